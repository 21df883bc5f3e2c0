//! Two nodes: how they greet each other, and how they stay connected.
//!
//! A node has a connection per pair of arbiters, its *seats*. [`Handshake`] is the first thing on each of them, and
//! [`negotiate`] decides whether the two fit; [`PeerTables`] keeps the names that a peer told; [`PeerLink`] decides when
//! to dial, which of two connections lives, and how long to wait. Sockets, timers and the frames that follow are
//! others' business.
//!
//! Invariant: nothing is decoded from a peer before its hello was found to fit.

mod backoff;
mod contacts;
mod handshake;
mod hello;
mod link_events;
mod link_state;
mod negotiate;
mod refusal;
mod tables;

pub use backoff::Backoff;
pub use contacts::Contacts;
pub use handshake::{Handshake, HandshakeError};
pub use hello::{AttemptId, Hello, KindEntry, LaneEnds, PeerKind, Seat, Versions, Welcome};
pub use link_events::{ConnectionId, DialFailure, LinkAction, LinkEvent, LinkReport, LinkState};
pub use link_state::PeerLink;
pub use negotiate::negotiate;
pub use refusal::{Refusal, RefusalReason};
pub use tables::PeerTables;

#[cfg(test)]
mod samples;
