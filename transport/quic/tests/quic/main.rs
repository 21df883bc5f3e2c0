//! The QUIC transport over loopback.
#![expect(clippy::disallowed_methods, reason = "these tests use the real network and its timers")]

mod close;
mod faults;
mod lane;
mod stream;
mod support;
mod trust;
