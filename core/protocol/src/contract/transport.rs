//! The network between nodes: connections with one ordered lane each, and streams beside it for what is large.
//!
//! A transport moves bytes and knows nothing of messages: `crate::link` says what the bytes mean. Every arbiter of a
//! node opens an endpoint of its own and uses it, and the connections it gave, on its own thread.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::task::{Context, Poll};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use super::BoxError;
use crate::identity::NodeAddress;

/// Opens endpoints.
///
/// # Every implementation
///
/// - *lane_keeps_order*: what one side puts on a lane comes out on the other in the same order, without a gap.
/// - *at_most_once*: no byte comes out twice, and a new connection begins empty, whatever became of the one before.
/// - *peer_is_proven*: where the transport is secured, a connection exists only after both sides have proven themselves;
///   [`Connection::peer`] says as whom. Who cannot is refused, and both sides are told why.
/// - *dials_again*: after a connection has ended, by either side or by a fault, the same two endpoints can make another.
/// - *close_says_why*: a close reaches the other side with its code and text, after everything sent before it; from then
///   on every operation on the connection answers with it.
/// - *full_means_wait*: with a peer that does not read, sending becomes pending after a bounded number of bytes, and goes
///   on when it reads again.
/// - *silence_is_noticed*: a peer that vanished without a word, or whose process is frozen, ends the connection as
///   [`Lost`](TransportError::Lost) within the endpoint's silence limit, also if nothing is being sent.
/// - *streams_stand_beside*: a stream delivers what was sent on it, whole and in order, or its reader gets an error; and
///   while it carries a large transfer the lane goes on.
/// - *messages_of_every_size*: messages from 0 bytes to 1 MiB come out as they were put in, however they are cut, on lanes and
///   streams.
/// - *large_stream*: so does a stream of 64 MiB.
/// - *garbage_is_refused*: bytes that are not of this transport end that one connection with a reason; the endpoint goes on.
/// - *slow_dialers_block_nobody*: a client that connects and says nothing delays nobody else and is dropped in time.
/// - *cancel_safe*: dropping the future of `accept`, `dial`, `open` or `next` loses no connection and no stream that was
///   handed out, and corrupts nothing.
///
/// It need not resume anything over a new connection, nor order a stream against the lane: that a large message keeps its
/// place among the others to its actor (`large_keeps_order`) is the work of the nodes, tested over every transport in
/// `tests/processes/tests/two_processes.rs`, and over the one in memory in `sim/tests/simulated/lanes.rs`.
#[async_trait]
pub trait Transport: Send + Sync + 'static {
    /// Its name, as in the configuration.
    fn name(&self) -> &'static str;

    /// Opens an endpoint that listens at `at`; port 0 lets the system choose. Call it on the thread that will use it.
    ///
    /// # Errors
    ///
    /// `Unavailable`: the address cannot be listened at. `Invalid`: address or settings are wrong.
    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError>;
}

/// Where an arbiter listens and dials from.
#[async_trait]
pub trait Endpoint: Send + Sync + 'static {
    /// The address it listens at, with the port that it really has.
    fn address(&self) -> &NodeAddress;

    /// The next connection that somebody has dialled.
    ///
    /// # Errors
    ///
    /// `Refused`, `Lost`: one dialler could not be let in; the next call goes on with the next one. `Ended`: the endpoint was
    /// closed.
    async fn accept(&self) -> Result<Connection, TransportError>;

    /// Connects to an endpoint elsewhere, within the endpoint's own time limit.
    ///
    /// # Errors
    ///
    /// `Unavailable`: nobody answers there; try again later. `Refused`: somebody does, but one side does not trust the
    /// other, or it does not speak this transport.
    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError>;

    /// Closes the endpoint and every connection it made, each with `reason`.
    async fn close(&self, reason: CloseReason);
}

/// One connection to an endpoint elsewhere. Dropping all of its parts ends it.
pub struct Connection {
    /// Who is on the other side.
    pub peer: PeerIdentity,
    /// The lane to the other side.
    pub outgoing: Box<dyn SendStream>,
    /// The lane from the other side.
    pub incoming: Box<dyn RecvStream>,
    /// Streams beside the lane, and the end of the connection.
    pub streams: Box<dyn Streams>,
}

/// Bytes on their way out.
pub trait SendStream: Send + 'static {
    /// Takes bytes from the front of `data`; ready when it has taken all. What it took is not in `data` any more.
    ///
    /// # Errors
    ///
    /// `Closed`, `Lost`: bytes taken before may have arrived, bytes left in `data` have not.
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), TransportError>>;

    /// Ends the stream in good order. A lane ends only with its connection: for it this only waits until everything is
    /// on the wire.
    ///
    /// # Errors
    ///
    /// As `poll_send`.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>>;
}

/// Bytes on their way in.
pub trait RecvStream: Send + 'static {
    /// Appends what has come to `into`, and says how much it was. Zero: the other side has finished the stream.
    ///
    /// # Errors
    ///
    /// `Closed`, `Lost`: nothing more will come. Of a stream: it is not whole.
    fn poll_recv(&mut self, cx: &mut Context<'_>, into: &mut BytesMut)
    -> Poll<Result<usize, TransportError>>;
}

/// The streams beside the lane of one connection.
#[async_trait]
pub trait Streams: Send + Sync + 'static {
    /// Opens a stream to the other side. Waits while too many are open.
    ///
    /// # Errors
    ///
    /// `Closed`, `Lost`: the connection has ended.
    async fn open(&self) -> Result<Box<dyn SendStream>, TransportError>;

    /// The next stream that the other side has opened.
    ///
    /// # Errors
    ///
    /// `Closed`, `Lost`: the connection has ended.
    async fn next(&self) -> Result<Box<dyn RecvStream>, TransportError>;

    /// Ends the connection; the other side learns the reason, as far as it can be reached.
    fn close(&self, reason: CloseReason);
}

/// What the other side of a connection has proven about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerIdentity {
    /// The names in its certificate; empty without one.
    pub names: Vec<String>,
    /// The SHA-256 of its certificate; none if the transport is not secured.
    pub fingerprint: Option<[u8; 32]>,
}

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CloseReason {
    /// For programs.
    pub code: CloseCode,
    /// For people; cut at [`MAX_TEXT`](Self::MAX_TEXT) bytes.
    pub text: String,
}

impl CloseReason {
    /// The longest text that travels, in bytes.
    pub const MAX_TEXT: usize = 256;

    /// A reason with a text, which is cut at a character boundary if it is too long.
    pub fn new(code: CloseCode, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let mut end = text.len().min(Self::MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Self { code, text }
    }
}

impl core::fmt::Display for CloseReason {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ({})", self.text, self.code)
    }
}

/// Why a connection was closed, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CloseCode {
    /// In good order: nothing is wanted any more.
    Done,
    /// The node stops.
    Stopping,
    /// The handshake found something that does not fit.
    Mismatch,
    /// The other side sent what it must not.
    Protocol,
    /// Another connection between the same two took its place.
    Replaced,
    /// A code that this version does not know.
    Other(u16),
}

impl CloseCode {
    /// Its number on the wire.
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::Done => 0,
            Self::Stopping => 1,
            Self::Mismatch => 2,
            Self::Protocol => 3,
            Self::Replaced => 4,
            Self::Other(code) => code,
        }
    }

    /// The code with this number.
    pub const fn from_u16(code: u16) -> Self {
        match code {
            0 => Self::Done,
            1 => Self::Stopping,
            2 => Self::Mismatch,
            3 => Self::Protocol,
            4 => Self::Replaced,
            other => Self::Other(other),
        }
    }
}

impl core::fmt::Display for CloseCode {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Stopping => f.write_str("stopping"),
            Self::Mismatch => f.write_str("mismatch"),
            Self::Protocol => f.write_str("protocol error"),
            Self::Replaced => f.write_str("replaced"),
            Self::Other(code) => write!(f, "code {code}"),
        }
    }
}

/// How the network fails, sorted by what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// Nobody answers there, or the address cannot be listened at. Try again later.
    #[error("{address} is not available: {reason}")]
    Unavailable {
        /// The address.
        address: NodeAddress,
        /// What the system said.
        reason: String,
    },
    /// One side does not trust the other, or the two do not speak the same transport. Trying again soon is no use.
    #[error("refused: {reason}")]
    Refused {
        /// What did not fit.
        reason: String,
    },
    /// The connection was closed on purpose, by either side.
    #[error("closed: {0}")]
    Closed(CloseReason),
    /// The connection broke. What was sent may or may not have arrived.
    #[error("connection lost: {reason}")]
    Lost {
        /// What is known about it.
        reason: String,
    },
    /// The endpoint itself was closed.
    #[error("the endpoint is closed")]
    Ended,
    /// Address or settings are wrong; nothing was tried.
    #[error("{what}")]
    Invalid {
        /// What is wrong.
        what: String,
        /// The error below, if there is one.
        source: Option<BoxError>,
    },
}

impl core::fmt::Debug for Connection {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_close_code_survives_the_wire(code: u16) {
            prop_assert_eq!(CloseCode::from_u16(code).as_u16(), code);
        }

        #[test]
        fn the_text_of_a_close_reason_is_bounded(text in any::<String>()) {
            let reason = CloseReason::new(CloseCode::Done, text.clone());
            prop_assert!(reason.text.len() <= CloseReason::MAX_TEXT);
            prop_assert!(text.starts_with(&reason.text));
        }
    }
}
