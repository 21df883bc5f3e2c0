//! The place of a large message on its lane.
//!
//! Only the mark goes over the lane; the message follows on a stream of its own. [`Mark`] knows whether the mark has left,
//! and takes it back if the message does not come after all.
//!
//! Invariant: the other side waits for a message only as long as its mark stands: what is taken back is said on the lane,
//! behind the mark.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{Frame, Refused};
use archipelago_protocol::message::CodecId;
use archipelago_protocol::time::Millis;

use super::lane::Lane;
use super::large_room::InLine;
use super::transfers::{Transfer, Transfers};
use super::waiter::{Payload, Waiter, Waiting};
use crate::node::NodeShared;

/// The place of a large message on its lane: the receiver takes the message in there, after everything that was sent
/// before it.
pub(super) struct Mark {
    lane: Rc<Lane>,
    /// What the lane knows it by. A tell has one as well, so that it is known whether its mark has left.
    id: CorrelationId,
    asks: bool,
    transfer: Transfer,
    /// Its message waits for its turn.
    in_line: Option<InLine>,
}

impl Mark {
    /// Puts a mark into the lane.
    ///
    /// # Errors
    ///
    /// The lane takes no more, or too many wait for their turn; whoever waits has been told.
    pub(super) fn set(
        transfers: &Transfers,
        lane: &Rc<Lane>,
        deadline: Millis,
        waiter: Option<Waiter>,
    ) -> Result<Self, CallError> {
        let in_line = match InLine::enter(lane) {
            Ok(in_line) => Some(in_line),
            Err(full) => return Err(refuse(waiter, full)),
        };
        let transfer = transfers.begin(lane.index());
        let asks = waiter.is_some();
        let (waiter, deadline) =
            waiter.map_or_else(|| (Waiter::Other(Box::new(Nobody)), Millis::MAX), |one| (one, deadline));
        let marked = lane.ask::<Refused>(deadline, waiter, |out, call| {
            Frame::LargeHere { transfer: transfer.number(), call: asks.then_some(call) }.encode(out);
            Ok(())
        });
        let id = marked.map_err(|(waiter, refused)| refuse(Some(waiter), no_place(&refused)))?;
        Ok(Self { lane: Rc::clone(lane), id, asks, transfer, in_line })
    }

    /// Its message has its turn: the next one may stand in line.
    pub(super) fn has_turn(&mut self) {
        self.in_line = None;
    }

    /// The call that waits; none for a tell.
    pub(super) fn call(&self) -> Option<CorrelationId> {
        self.asks.then_some(self.id)
    }

    /// The lane it is on.
    pub(super) const fn lane(&self) -> &Rc<Lane> {
        &self.lane
    }

    /// The transfer that it announces.
    pub(super) const fn transfer(&mut self) -> &mut Transfer {
        &mut self.transfer
    }

    /// The number of that transfer.
    pub(super) const fn number(&self) -> u64 {
        self.transfer.number()
    }

    /// Whether it was given to the connection.
    pub(super) fn is_given(&self) -> bool {
        self.lane.outbox().borrow().is_given(self.id)
    }

    /// Whether the message need not be sent any more: its call has ended, or its mark was thrown out or lost.
    pub(super) fn is_over(&self) -> bool {
        !self.lane.outbox().borrow().is_pending(self.id)
    }

    /// Why the message is not sent any more, if that is not for lack of time.
    pub(super) fn why_over(&mut self, late: &'static str) -> CallError {
        if self.transfer.is_lost() {
            return no_route("the connection was lost");
        }
        no_route(if !self.asks && self.is_over() {
            "the lane is full: its place was thrown out"
        } else {
            late
        })
    }

    /// The message has arrived. Its call goes on; nobody waits for anything of a tell.
    pub(super) fn arrived(self) {
        if !self.asks {
            self.end();
        }
    }

    /// The message does not come: its call ends, and the other side waits for it no longer.
    pub(super) fn take_back(self, error: &CallError) {
        let never_left = !self.is_over() && !self.is_given();
        if let Some(waiter) = self.end() {
            waiter.fail(error.clone());
        }
        if !never_left {
            self.lane.say(&Frame::LargeGone { transfer: self.number() });
        }
    }

    /// Ends it on the lane. A mark that has not left never will; of a call that has, the other side is told.
    fn end(&self) -> Option<Waiter> {
        let mut outbox = self.lane.outbox().borrow_mut();
        if self.asks || !outbox.is_given(self.id) { outbox.cancel(self.id) } else { outbox.end(self.id) }
    }
}

/// Stands for whoever would wait for the reply to a tell.
struct Nobody;

impl Waiting for Nobody {
    fn reply(self: Box<Self>, _: CodecId, _: Payload<'_>, _: &Arc<NodeShared>) {}

    fn fail(self: Box<Self>, _: CallError) {}

    fn is_abandoned(&self) -> bool {
        false
    }
}

fn no_place(refused: &Refused) -> CallError {
    match refused {
        Refused::Overloaded { bound, .. } => {
            CallError::Overloaded { queue: Queue::Lane, bound: u32::try_from(*bound).unwrap_or(u32::MAX) }
        }
        refused => no_route(refused.to_string()),
    }
}

pub(super) fn no_route(reason: impl Into<Box<str>>) -> CallError {
    CallError::NoRoute { reason: reason.into() }
}

/// Tells whoever waits.
pub(super) fn refuse(waiter: Option<Waiter>, error: CallError) -> CallError {
    if let Some(waiter) = waiter {
        waiter.fail(error.clone());
    }
    error
}

#[cfg(test)]
mod tests;
