//! How much that is too large for a frame may wait on one lane.
//!
//! A message waits as it is until it has a turn: how many do so is bounded, and so is how many are in memory as bytes. A reply
//! is encoded as soon as it can be, since only then it is known how long it is: until it has left, its bytes count as answers
//! that nobody has read.
//!
//! Invariant: whatever has a place gives it back when it ends, however that comes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use tokio::sync::Semaphore;

use super::lane::Lane;

/// What waits on one lane.
pub(super) struct LargeRoom {
    /// Who may hold a message as bytes.
    turns: Arc<Semaphore>,
    /// Who may encode a reply.
    encoders: Arc<Semaphore>,
    /// Messages without a turn.
    waiting: Cell<usize>,
    /// Bytes of replies that have not left.
    replies: Cell<usize>,
}

/// The place of a message that waits for its turn.
pub(super) struct InLine(Rc<Lane>);

/// The bytes of a reply that has not left.
pub(super) struct Unread {
    lane: Rc<Lane>,
    bytes: usize,
}

impl Default for LargeRoom {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            encoders: Arc::new(Semaphore::new(AT_ONCE)),
            waiting: Cell::new(0),
            replies: Cell::new(0),
        }
    }
}

impl LargeRoom {
    /// Who may hold a message as bytes.
    pub(super) const fn turns(&self) -> &Arc<Semaphore> {
        &self.turns
    }

    /// Who may encode a reply.
    pub(super) const fn encoders(&self) -> &Arc<Semaphore> {
        &self.encoders
    }

    /// How many messages wait for their turn.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// How many bytes of replies have not left.
    pub(super) fn reply_bytes(&self) -> usize {
        self.replies.get()
    }
}

impl InLine {
    /// Takes a place.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn enter(lane: &Rc<Lane>) -> Result<Self, CallError> {
        let waiting = &lane.large_room().waiting;
        if waiting.get() >= MOST_IN_LINE {
            return Err(CallError::Overloaded { queue: Queue::Lane, bound: MOST_IN_LINE as u32 });
        }
        waiting.set(waiting.get() + 1);
        Ok(Self(Rc::clone(lane)))
    }
}

impl Drop for InLine {
    fn drop(&mut self) {
        let waiting = &self.0.large_room().waiting;
        waiting.set(waiting.get().saturating_sub(1));
    }
}

impl Unread {
    /// Takes room for a reply of `bytes` bytes among `most`; one alone always has room. `None`: there is none.
    pub(super) fn enter(lane: &Rc<Lane>, bytes: usize, most: usize) -> Option<Self> {
        let mut entered = Self { lane: Rc::clone(lane), bytes: 0 };
        entered.set(bytes, most).then_some(entered)
    }

    /// The reply turns out to have so many bytes; false if there is no room for them.
    pub(super) fn set(&mut self, bytes: usize, most: usize) -> bool {
        let replies = &self.lane.large_room().replies;
        let others = replies.get().saturating_sub(self.bytes);
        let fits = others == 0 || others + bytes <= most;
        if fits {
            replies.set(others + bytes);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let replies = &self.lane.large_room().replies;
        replies.set(replies.get().saturating_sub(self.bytes));
    }
}

/// Large frames that are sent at once to, and received at once from one peer arbiter.
pub(super) const AT_ONCE: usize = 4;
/// Large messages to one peer arbiter that may wait for their turn.
pub(super) const MOST_IN_LINE: usize = 1_024;
