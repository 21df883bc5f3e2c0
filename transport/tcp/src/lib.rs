//! The TCP transport of archipelago: one TCP connection, with TLS or plain, carries a lane and streams beside it.
//!
//! A thin layer of chunks (`chunk`) divides the connection. Lane and streams each have a window of their own: a reader
//! that does not take its data stops its own sender and nobody else, and everything that is kept for a reader is
//! bounded. Whoever polls does the work on the socket itself, under one lock, without a task or a channel in between;
//! a task per connection (`driver`) does it when nobody polls, and keeps watch over silence.
//!
//! Invariant: nothing is allocated because a peer said so; every length is checked against a window that was granted
//! before.
#![expect(
    clippy::disallowed_methods,
    reason = "a transport is the provider of the real network: its timers and tasks are what others are kept from"
)]

mod bell;
mod chunk;
mod connection;
mod door;
mod driver;
mod end;
mod endpoint;
mod handshake;
mod inbox;
mod incoming;
mod lane;
mod mux;
mod outgoing;
mod preamble;
mod receivers;
mod senders;
mod settings;
pub use settings::{Security, TcpSettings};
mod shared;
mod silence;
mod socket;
mod stream;
mod transport;
pub use transport::TcpTransport;
