//! The NATS backend on real servers: the suites that every backend passes, and what is particular to this one.
#![allow(clippy::unwrap_used)]
#![expect(clippy::disallowed_methods, reason = "tests of a real server wait in real time")]

mod chaos;
mod cluster;
mod control_plane;
mod directory;
mod history;
mod idle;
mod layout;
mod outages;
mod proxy;
mod rig;
mod rights;
mod start;
mod store;
