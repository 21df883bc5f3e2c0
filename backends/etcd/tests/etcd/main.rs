//! The etcd backend on real servers, some of which are hurt.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "tests run in real time against real servers")]

mod access;
mod chaos;
mod cluster;
mod idle;
mod layout;
mod members;
mod outage;
mod rate;
mod rules;
mod support;
mod ttl;
mod watching;
