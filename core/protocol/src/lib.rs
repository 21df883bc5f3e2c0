//! Identities, wire format, contracts, and every decision of archipelago as a pure machine.
//!
//! Nothing here knows a clock, a thread, a socket or a runtime: time and random numbers come in as
//! arguments, work goes out as return values. The crate is `no_std` so that this stays true.

#![no_std]
#![cfg_attr(test, allow(clippy::unwrap_used))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod activation;
pub mod call;
pub mod contract;
pub mod datacenter;
pub mod handoff;
pub mod hash;
pub mod identity;
pub mod link;
pub mod membership;
pub mod message;
pub mod peer;
pub mod placement;
pub mod ranges;
pub mod route;
pub mod session;
pub mod time;
pub mod watch;
