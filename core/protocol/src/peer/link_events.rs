//! What reaches a link, and what is to be done about it.

use super::hello::AttemptId;
use super::refusal::RefusalReason;
use crate::contract::CloseCode;
use crate::time::Millis;

/// Where a link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkState {
    /// Not connected, and nobody wants it.
    Idle,
    /// A dial is under way.
    Dialing {
        /// Which one.
        attempt: AttemptId,
        /// When it is given up.
        until: Millis,
    },
    /// The peer dials, and its dial counts.
    Waiting {
        /// When to dial after all.
        until: Millis,
    },
    /// Connected.
    Up {
        /// By which connection.
        connection: ConnectionId,
        /// Whether this side dialled it.
        dialled_by_us: bool,
    },
    /// The last dial failed, or the connection broke.
    Backoff {
        /// When to dial again.
        until: Millis,
    },
    /// Over for good.
    Gone,
}

/// A connection, by a number that the shell gives it and never gives again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What reaches the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEvent {
    /// Something waits to be sent, or the peer is to be kept connected. From here on the link is kept up.
    Wanted,
    /// Our dial was welcomed.
    Dialled {
        /// Which dial.
        attempt: AttemptId,
        /// The connection it gave.
        connection: ConnectionId,
        /// The [`attempt`](super::Hello::attempt) in the peer's answer.
        peer_attempt: AttemptId,
    },
    /// Our dial came to nothing.
    DialFailed {
        /// Which dial.
        attempt: AttemptId,
        /// How.
        failure: DialFailure,
    },
    /// The peer dialled us and its hello fits: [`LinkAction::Accept`] or [`LinkAction::Refuse`] answers at once.
    Hello {
        /// The connection it came by.
        connection: ConnectionId,
        /// The [`attempt`](super::Hello::attempt) in it.
        peer_attempt: AttemptId,
    },
    /// A connection broke.
    Lost {
        /// Which one.
        connection: ConnectionId,
    },
    /// The peer closed a connection.
    Closed {
        /// Which one.
        connection: ConnectionId,
        /// Why.
        code: CloseCode,
    },
    /// Another link to the same peer is connected at this time: the peer can be reached.
    PeerReached {
        /// When.
        at: Millis,
    },
    /// The session of the peer has ended, or the members have buried it: it will not be back under this id.
    Departed {
        /// Nothing of it counts any more. Otherwise it may still be giving back what came too late: a connection is left to
        /// it for a while.
        at_once: bool,
    },
    /// The time asked for by [`LinkAction::WakeAt`] has come.
    WokeUp,
    /// The peer is gone for good, or this node stops.
    Stop,
}

/// How a dial fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DialFailure {
    /// Nobody answers.
    Unreachable,
    /// Somebody does, and it does not fit or does not trust us.
    Refused,
    /// The peer's own dial counts, or ours was overtaken ([`RefusalReason::Race`]).
    Race,
}

/// What the shell does about it, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkAction {
    /// Dial, with this number in the hello; answer with [`LinkEvent::Dialled`] or [`LinkEvent::DialFailed`].
    Dial {
        /// Its number.
        attempt: AttemptId,
    },
    /// Give the dial up and close what it gave.
    Abandon {
        /// Which dial.
        attempt: AttemptId,
    },
    /// Send the welcome, with [`PeerLink::newest_attempt`](super::PeerLink::newest_attempt) in its hello.
    Accept {
        /// On this connection.
        connection: ConnectionId,
    },
    /// Send a refusal and close.
    Refuse {
        /// This connection.
        connection: ConnectionId,
        /// Why.
        why: RefusalReason,
    },
    /// Send over this connection from here on.
    Use {
        /// The connection.
        connection: ConnectionId,
    },
    /// Close a connection; if it was in use, it is lost to whatever was on it.
    Drop {
        /// Which one.
        connection: ConnectionId,
        /// Why.
        code: CloseCode,
    },
    /// Wake the machine at this time; replaces any earlier wish. A wake-up that nobody waits for any more is harmless.
    WakeAt(Millis),
    /// Tell whoever listens.
    Report(LinkReport),
}

/// What others are told about a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkReport {
    /// It is being dialled.
    Connecting,
    /// It is connected.
    Connected,
    /// It is not connected any more, or could not be.
    Disconnected {
        /// When it is dialled again; none if nobody wants it.
        retry_at: Option<Millis>,
    },
    /// The peer does not let us in, or broke the protocol; something has to be set right.
    Refused,
    /// It is over for good.
    Gone,
}
