//! Calls that nobody waits for any more.

use alloc::vec::Vec;

use super::Outbox;
use crate::identity::CorrelationId;
use crate::time::Millis;

impl<W> Outbox<W> {
    /// Ends every call whose waiter has gone, as [`cancel`](Self::cancel) does; gives the waiters back.
    pub fn cancel_where(&mut self, gone: impl Fn(&W) -> bool) -> Vec<W> {
        let ids = self.calls.ids(|call| gone(&call.waiter));
        ids.into_iter().filter_map(|id| self.cancel(id)).collect()
    }

    /// The deadline of a pending call.
    pub fn deadline(&self, id: CorrelationId) -> Option<Millis> {
        self.calls.find(id).map(|call| call.deadline)
    }

    /// Whether the frame of a pending call was part of a batch that was taken.
    pub fn is_given(&self, id: CorrelationId) -> bool {
        self.calls.find(id).is_some_and(|call| self.waiting.is_given(call.at))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outbox, OutboxSettings, Refused};
    use crate::link::Frame;
    use crate::time::Millis;

    #[test]
    fn only_calls_without_a_waiter_are_cancelled() {
        let mut outbox = Outbox::new(0, OutboxSettings::default());
        outbox.opened(Millis(0));
        let mut ask = |waiter| {
            let asked = outbox.ask::<Refused>(Millis(100), waiter, |out, _| {
                Frame::Bye.encode(out);
                Ok(())
            });
            asked.unwrap()
        };
        let (stays, goes) = (ask("stays"), ask("goes"));
        assert!(!outbox.is_given(stays));
        assert!(outbox.take(Millis(0)).is_some());
        assert!(outbox.is_given(stays));
        assert_eq!(outbox.cancel_where(|waiter| *waiter == "goes"), ["goes"]);
        assert!(outbox.is_pending(stays) && !outbox.is_pending(goes));
        assert!(outbox.take(Millis(0)).is_some(), "the receiver is told");
    }
}
