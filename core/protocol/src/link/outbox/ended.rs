//! What comes out of an outbox without an answer.

use alloc::vec::Vec;

use bytes::Bytes;

use crate::identity::CorrelationId;
use crate::time::Millis;

/// A call that ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndedCall<W> {
    /// The call.
    pub id: CorrelationId,
    /// Whoever waits for it.
    pub waiter: W,
    /// Whether its frame was given to the transport: if so the outcome is unknown, if not it never starts.
    pub given: bool,
}

/// What was thrown out to make room. None of it was given.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dropped<W> {
    /// Calls, oldest first.
    pub calls: Vec<EndedCall<W>>,
    /// Tells, oldest first: tag and body of each.
    pub tells: Vec<Bytes>,
}

impl<W> Dropped<W> {
    /// Whether nothing was thrown out.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.tells.is_empty()
    }
}

impl<W> Default for Dropped<W> {
    fn default() -> Self {
        Self { calls: Vec::new(), tells: Vec::new() }
    }
}

/// What a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Expired<W> {
    /// Calls whose deadline has come.
    pub calls: Vec<EndedCall<W>>,
    /// Tells that waited too long for a connection, oldest first: tag and body of each.
    pub tells: Vec<Bytes>,
    /// What asks have thrown out and nobody has fetched before.
    pub dropped: Dropped<W>,
}

/// All that an outbox held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drained<W> {
    /// The waiters of given calls, whose outcome is unknown.
    pub given: Vec<W>,
    /// What was never given, in the order in which it came.
    pub unsent: Vec<Unsent<W>>,
    /// What asks have thrown out and nobody has fetched before.
    pub dropped: Dropped<W>,
}

/// An ask or tell that was never given: it may be sent elsewhere. The time to live in its frame is what it has left.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Unsent<W> {
    /// An ask, or whatever else was written as one.
    Ask {
        /// The call's id here; it has ended.
        id: CorrelationId,
        /// Whoever waits for it.
        waiter: W,
        /// Until when.
        deadline: Millis,
        /// Tag and body.
        frame: Bytes,
    },
    /// A tell.
    Tell {
        /// When it was told.
        told: Millis,
        /// Tag and body.
        frame: Bytes,
    },
}
