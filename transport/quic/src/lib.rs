//! The QUIC transport of archipelago: TLS 1.3 with both sides proven, one lane per connection, streams beside it.
//!
//! [`QuicTransport`] implements the [`Transport`](archipelago_protocol::contract::Transport) contract over quinn. The
//! lane is one bidirectional stream that the dialler opens and that lives as long as the connection; what is large goes
//! on unidirectional streams beside it. `preamble` says what the two sides tell each other before a connection counts,
//! `closing` how a connection ends without losing what was sent before.
//!
//! Invariants: a connection is handed out only after both sides have proven themselves and named this transport; what
//! was sent before a close arrives before it, unless the network fails for the close limit; and no number of unread
//! streams can take the lane's share of the windows ([`QuicSettings::connection_window`]).
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a transport is what provides the real network, with its sockets, timers and tasks"
)]

mod closing;
mod door;
mod endpoint;
mod errors;
mod lane;
mod link;
mod links;
mod preamble;
mod resolve;
mod settings;
pub use settings::QuicSettings;
mod streams;
mod transport;
pub use transport::QuicTransport;
pub mod tuning;
