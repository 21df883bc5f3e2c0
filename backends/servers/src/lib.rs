//! Real etcd and NATS servers, started and hurt by tests.
//!
//! [`ServerProcess`] starts any server on loopback ports of its own and can pause, kill and restart it; [`etcd`] and
//! [`nats`] know how theirs are called. [`find`] says where the programs are, and what happens if they are
//! nowhere.
//!
//! Every test process starts its own servers: nothing is shared, so tests run in any number of processes and in any
//! order, and a server that one test hurts is nobody else's. Within one process, tests that do not hurt it share one.
//!
//! This crate is for tests, so it panics where a library would answer an error.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests start processes, and wait for them in real time over real sockets"
)]

mod container;
pub mod cpu;
pub mod etcd;
pub mod hurt;
pub mod nats;
mod ports;
pub mod process;
pub mod program;

pub use process::{OfPlace, Place, Recipe, ServerProcess};
pub use program::{Source, find};
