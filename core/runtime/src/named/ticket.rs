//! Whether a message to a named actor may still start: agreed on between the threads of its caller and of its actor.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use archipelago_protocol::identity::CorrelationId;

/// The state of one message. Either it starts or it is cancelled, never both.
#[derive(Debug, Default)]
pub(crate) struct Ticket(AtomicU8);

impl Ticket {
    /// Marks the message as started; false if it was cancelled.
    pub(crate) fn start(&self) -> bool {
        self.0.compare_exchange(OPEN, STARTED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Sees to it that the message never starts; false if it has started already.
    pub(crate) fn cancel(&self) -> bool {
        let cancelled = self.0.compare_exchange(OPEN, CANCELLED, Ordering::AcqRel, Ordering::Acquire);
        cancelled != Err(STARTED)
    }

    /// Whether it will never start.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire) == CANCELLED
    }
}

const OPEN: u8 = 0;
const STARTED: u8 = 1;
const CANCELLED: u8 = 2;

/// The calls to named actors that came over the lanes of one arbiter and have not ended.
#[derive(Default)]
pub(crate) struct NamedCalls {
    open: RefCell<BTreeMap<(u16, CorrelationId), Arc<Ticket>>>,
}

impl NamedCalls {
    pub(crate) fn open(&self, lane: u16, call: CorrelationId) -> Arc<Ticket> {
        let ticket = Arc::<Ticket>::default();
        self.open.borrow_mut().insert((lane, call), Arc::clone(&ticket));
        ticket
    }

    /// The call is over; `ticket` is its own, since its number may have been given to another meanwhile.
    pub(crate) fn close(&self, lane: u16, call: CorrelationId, ticket: &Arc<Ticket>) {
        let mut open = self.open.borrow_mut();
        if open.get(&(lane, call)).is_some_and(|known| Arc::ptr_eq(known, ticket)) {
            open.remove(&(lane, call));
        }
    }

    /// The caller waits no longer.
    pub(crate) fn cancel(&self, lane: u16, call: CorrelationId) {
        if let Some(ticket) = self.open.borrow().get(&(lane, call)) {
            ticket.cancel();
        }
    }

    /// The connection is lost: nothing that came by it starts any more.
    pub(crate) fn lane_lost(&self, lane: u16) {
        self.open.borrow_mut().retain(|(of, _), ticket| {
            let stays = *of != lane;
            if !stays {
                ticket.cancel();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_starts_or_is_cancelled_and_never_both() {
        let ticket = Ticket::default();
        assert!(ticket.start());
        assert!(!ticket.cancel() && !ticket.is_cancelled());
        assert!(!ticket.start(), "only once");
        let ticket = Ticket::default();
        assert!(ticket.cancel());
        assert!(ticket.cancel() && ticket.is_cancelled(), "it still never starts");
        assert!(!ticket.start());
    }

    #[test]
    fn a_cancelled_call_and_those_of_a_lost_lane_do_not_start() {
        let calls = NamedCalls::default();
        let call = |slot| CorrelationId::new(0, slot, 0);
        let [first, second, other] =
            [(1, 0), (1, 1), (2, 0)].map(|(lane, slot)| calls.open(lane, call(slot)));
        calls.cancel(1, call(0));
        assert!(!first.start());
        calls.lane_lost(1);
        assert!(!second.start());
        assert!(other.start());
        assert_eq!(calls.open.borrow().len(), 1);
    }

    #[test]
    fn the_end_of_a_call_does_not_end_its_successor() {
        let calls = NamedCalls::default();
        let call = CorrelationId::new(0, 0, 0);
        let first = calls.open(1, call);
        let second = calls.open(1, call);
        calls.close(1, call, &first);
        calls.cancel(1, call);
        assert!(!second.start(), "it was still known");
    }
}
