//! When the leases of ended sessions go: an hour after their end, when nobody needs the evidence any more.
//!
//! [`Collector`] counts from when this node learned of an end, so that a late start costs time and nothing else. Who monitors
//! removes; others merely forget. Removing is the directory's: it looks again and writes by compare-and-swap, so that too
//! many collectors are harmless. Some engines remove ended leases by themselves; then there is nothing left to do.
//!
//! Invariant: no lease is asked to be removed that is not known to have ended for [`times::KEEP_ENDED`].

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::times;
use crate::identity::NodeId;
use crate::time::Millis;

/// The machine that has the leases of ended sessions removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Collector {
    /// When each is to go.
    due: BTreeMap<NodeId, Millis>,
}

/// What reaches the collector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectorEvent {
    /// A session has ended, for certain.
    Ended(NodeId),
    /// Its lease is not there any more.
    Gone(NodeId),
    /// These leases there are, and no others.
    Listed(BTreeSet<NodeId>),
    /// A lease was removed, or was not there.
    Collected(NodeId),
    /// The time asked for has come.
    Wake {
        /// Whether this node monitors all leases.
        monitoring: bool,
    },
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CollectorAction {
    /// Remove what the session still has, and its lease; answer with [`CollectorEvent::Collected`] if that worked.
    Collect(NodeId),
    /// Nothing needs to be known about the session any more.
    Forget(NodeId),
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

impl Collector {
    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: CollectorEvent) -> Vec<CollectorAction> {
        let mut actions = Vec::new();
        match event {
            CollectorEvent::Ended(id) => {
                self.due.entry(id).or_insert(now + times::KEEP_ENDED);
            }
            CollectorEvent::Gone(id) => drop(self.due.remove(&id)),
            CollectorEvent::Listed(ids) => self.due.retain(|id, _| ids.contains(id)),
            CollectorEvent::Collected(id) => {
                self.due.remove(&id);
                actions.push(CollectorAction::Forget(id));
            }
            CollectorEvent::Wake { monitoring } => self.on_wake(now, monitoring, &mut actions),
        }
        let next = self.due.values().min();
        actions.extend(next.map(|due| CollectorAction::WakeAt((*due).max(now + PAUSE))));
        actions
    }

    /// What does not work is tried again later.
    fn on_wake(&mut self, now: Millis, monitoring: bool, actions: &mut Vec<CollectorAction>) {
        let due = self.due.iter().filter(|(_, due)| **due <= now).map(|(id, _)| *id);
        for id in due.take(AT_A_TIME).collect::<Vec<_>>() {
            if monitoring {
                self.due.insert(id, now + AGAIN);
                actions.push(CollectorAction::Collect(id));
            } else {
                self.due.remove(&id);
                actions.push(CollectorAction::Forget(id));
            }
        }
    }
}

/// How many go at once; others a moment later.
const AT_A_TIME: usize = 16;

/// Between two looks at what is due.
const PAUSE: Millis = Millis(1_000);

/// When a removal that did not work is tried again.
const AGAIN: Millis = Millis(600_000);

#[cfg(test)]
mod tests {
    use super::*;

    const A: NodeId = NodeId::new(1);
    const HOUR: u64 = 3_600_000;

    fn wake(collector: &mut Collector, now: u64, monitoring: bool) -> Vec<CollectorAction> {
        let mut actions = collector.handle(Millis(now), CollectorEvent::Wake { monitoring });
        actions.retain(|action| !matches!(action, CollectorAction::WakeAt(_)));
        actions
    }

    fn ended(now: u64) -> Collector {
        let mut collector = Collector::default();
        let told = collector.handle(Millis(now), CollectorEvent::Ended(A));
        assert_eq!(told, [CollectorAction::WakeAt(Millis(now + HOUR))]);
        collector
    }

    #[test]
    fn an_ended_lease_is_kept_for_an_hour_and_then_removed_by_who_monitors() {
        let mut collector = ended(10);
        collector.handle(Millis(20), CollectorEvent::Ended(A));
        assert_eq!(wake(&mut collector, 10 + HOUR - 1, true), [], "told twice, counted once");
        assert_eq!(wake(&mut collector, 10 + HOUR, true), [CollectorAction::Collect(A)]);
        let done = collector.handle(Millis(20 + HOUR), CollectorEvent::Collected(A));
        assert_eq!(done, [CollectorAction::Forget(A)]);
        assert_eq!(wake(&mut collector, 10 * HOUR, true), []);
    }

    #[test]
    fn who_does_not_monitor_forgets_and_removes_nothing() {
        assert_eq!(wake(&mut ended(0), HOUR, false), [CollectorAction::Forget(A)]);
    }

    #[test]
    fn what_does_not_work_is_tried_again_and_what_is_gone_is_left_alone() {
        let mut collector = ended(0);
        assert_eq!(wake(&mut collector, HOUR, true), [CollectorAction::Collect(A)]);
        assert_eq!(wake(&mut collector, HOUR + 599_999, true), []);
        assert_eq!(wake(&mut collector, HOUR + 600_000, true), [CollectorAction::Collect(A)]);
        for gone in [CollectorEvent::Gone(A), CollectorEvent::Listed(BTreeSet::new())] {
            let mut collector = collector.clone();
            assert_eq!(collector.handle(Millis(2 * HOUR), gone), []);
            assert_eq!(wake(&mut collector, 3 * HOUR, true), []);
        }
    }

    #[test]
    fn many_go_a_few_at_a_time() {
        let mut collector = Collector::default();
        for id in 0..40 {
            collector.handle(Millis(0), CollectorEvent::Ended(NodeId::new(id)));
        }
        let first = collector.handle(Millis(HOUR), CollectorEvent::Wake { monitoring: true });
        assert_eq!(first.len(), AT_A_TIME + 1);
        assert_eq!(first.last(), Some(&CollectorAction::WakeAt(Millis(HOUR) + PAUSE)));
        assert_eq!(wake(&mut collector, HOUR + 1_000, true).len(), AT_A_TIME);
        assert_eq!(wake(&mut collector, HOUR + 2_000, true).len(), 40 - 2 * AT_A_TIME);
    }
}
