//! The calls of one lane that wait for an answer.
//!
//! [`CallTable`] decides which of reply, deadline, cancellation and shutdown ends a call: the first one to ask
//! gets the waiter, everybody later gets nothing. It also decides whether a call may still start, so that a
//! call reported as not started never is. It reads no clock and wakes nobody; whoever owns the lane does.
//!
//! Invariant: every waiter that went in comes out exactly once.

use alloc::vec::Vec;

use crate::identity::CorrelationId;
use crate::time::Millis;

/// The pending calls of one lane, at most `bound` of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallTable<W> {
    lane: u16,
    bound: usize,
    slots: Vec<Slot<W>>,
    free: Vec<u32>,
    /// No pending deadline is earlier than this.
    earliest: Millis,
}

/// Answer to [`CallTable::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The call is pending and is now marked as started.
    Go,
    /// The call has ended before: do not start it.
    Ended,
}

/// A call that ended without a reply, and its waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended<W> {
    /// The call.
    pub id: CorrelationId,
    /// Whoever waits for it.
    pub waiter: W,
    /// Whether its handler had started.
    pub started: bool,
}

/// The table holds `bound` calls already; here is the waiter back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full<W> {
    /// The waiter that was not taken.
    pub waiter: W,
    /// How many calls the table holds at most.
    pub bound: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot<W> {
    turn: u16,
    started: bool,
    deadline: Millis,
    waiter: Option<W>,
}

impl<W> CallTable<W> {
    /// An empty table for `lane` that holds at most `bound` calls.
    pub const fn new(lane: u16, bound: usize) -> Self {
        Self { lane, bound, slots: Vec::new(), free: Vec::new(), earliest: Millis::MAX }
    }

    /// Registers a call before it is sent.
    ///
    /// # Errors
    ///
    /// [`Full`] gives the waiter back; nothing changed.
    #[inline]
    pub fn open(&mut self, deadline: Millis, waiter: W) -> Result<CorrelationId, Full<W>> {
        if self.is_full() {
            return Err(Full { waiter, bound: self.bound });
        }
        self.earliest = self.earliest.min(deadline);
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        };
        let entry = &mut self.slots[slot as usize];
        (entry.started, entry.deadline, entry.waiter) = (false, deadline, Some(waiter));
        Ok(CorrelationId::new(self.lane, slot, entry.turn))
    }

    /// Asks whether the call may start now, and marks it as started if so.
    #[inline]
    pub fn start(&mut self, id: CorrelationId) -> Start {
        match self.pending(id) {
            Some(entry) => {
                entry.started = true;
                Start::Go
            }
            None => Start::Ended,
        }
    }

    /// Ends a call with its reply. `None` means that it had ended before: the reply is late.
    pub fn complete(&mut self, id: CorrelationId) -> Option<W> {
        self.end(id).map(|ended| ended.waiter)
    }

    /// Ends a call for any other reason than its reply or its deadline.
    #[inline]
    pub fn end(&mut self, id: CorrelationId) -> Option<Ended<W>> {
        let entry = self.pending(id)?;
        let started = entry.started;
        let waiter = entry.waiter.take()?;
        entry.turn = entry.turn.wrapping_add(1);
        self.free.push(id.slot());
        Some(Ended { id, waiter, started })
    }

    /// Ends every call whose deadline is at or before `now`.
    pub fn sweep(&mut self, now: Millis) -> Vec<Ended<W>> {
        if now < self.earliest {
            return Vec::new();
        }
        let due = self.ids_where(|slot| slot.deadline <= now);
        let ended = due.into_iter().filter_map(|id| self.end(id)).collect();
        self.earliest =
            self.slots.iter().filter(|s| s.waiter.is_some()).map(|s| s.deadline).min().unwrap_or(Millis::MAX);
        ended
    }

    /// Ends all calls, because the lane closes.
    pub fn drain(&mut self) -> Vec<Ended<W>> {
        let all = self.ids_where(|_| true);
        all.into_iter().filter_map(|id| self.end(id)).collect()
    }

    /// When to sweep next: no call's deadline is earlier. `None` if nothing is pending.
    #[inline]
    pub fn next_sweep(&self) -> Option<Millis> {
        (!self.is_empty()).then_some(self.earliest)
    }

    /// True if the call has not ended.
    #[inline]
    pub fn is_pending(&self, id: CorrelationId) -> bool {
        let entry = self.slots.get(id.slot() as usize);
        id.lane() == self.lane && entry.is_some_and(|slot| slot.turn == id.turn() && slot.waiter.is_some())
    }

    /// True if no further call can be opened.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.len() >= self.bound
    }

    /// How many calls are pending.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True if no call is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn pending(&mut self, id: CorrelationId) -> Option<&mut Slot<W>> {
        let lane = self.lane;
        let entry = self.slots.get_mut(id.slot() as usize)?;
        (id.lane() == lane && entry.turn == id.turn() && entry.waiter.is_some()).then_some(entry)
    }

    fn ids_where(&self, mut wanted: impl FnMut(&Slot<W>) -> bool) -> Vec<CorrelationId> {
        (0_u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.waiter.is_some() && wanted(slot))
            .map(|(n, slot)| CorrelationId::new(self.lane, n, slot.turn))
            .collect()
    }

    fn grow(&mut self) -> u32 {
        let slot = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot { turn: 0, started: false, deadline: Millis::MAX, waiter: None });
        slot
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    fn table() -> CallTable<u32> {
        CallTable::new(3, 4)
    }

    /// Proves: R33, R57, R65, R83, R85, R89
    #[test]
    fn a_reply_reaches_the_waiter_of_its_own_request() {
        let mut calls = table();
        let first = calls.open(Millis(10), 1).unwrap();
        let second = calls.open(Millis(10), 2).unwrap();
        assert_eq!(calls.complete(second), Some(2));
        assert_eq!(calls.complete(first), Some(1));
    }

    /// Proves: R451, R88, R90
    #[test]
    fn a_late_reply_cannot_complete_the_call_that_took_its_slot() {
        let mut calls = table();
        let old = calls.open(Millis(10), 1).unwrap();
        assert_eq!(calls.sweep(Millis(10)), vec![Ended { id: old, waiter: 1, started: false }]);
        let new = calls.open(Millis(20), 2).unwrap();
        assert_eq!(old.slot(), new.slot(), "the slot is used again");
        assert_eq!(calls.complete(old), None);
        assert_eq!(calls.complete(new), Some(2));
    }

    /// Proves: R86, R91, R92, R450, C43
    #[test]
    fn a_deadline_removes_the_pending_call() {
        let mut calls = table();
        calls.open(Millis(10), 1).unwrap();
        assert!(calls.sweep(Millis(9)).is_empty());
        assert_eq!(calls.sweep(Millis(10)).len(), 1);
        assert!(calls.is_empty());
        assert_eq!(calls.next_sweep(), None);
    }

    #[test]
    fn a_call_that_ended_never_starts() {
        let mut calls = table();
        let id = calls.open(Millis(10), 1).unwrap();
        calls.sweep(Millis(11));
        assert_eq!(calls.start(id), Start::Ended);
    }

    #[test]
    fn an_expired_call_says_whether_it_had_started() {
        let mut calls = table();
        let id = calls.open(Millis(10), 1).unwrap();
        assert_eq!(calls.start(id), Start::Go);
        assert!(calls.sweep(Millis(10))[0].started);
    }

    #[test]
    fn a_full_table_gives_the_waiter_back() {
        let mut calls = table();
        for waiter in 0..4 {
            calls.open(Millis(10), waiter).unwrap();
        }
        assert_eq!(calls.open(Millis(10), 9), Err(Full { waiter: 9, bound: 4 }));
    }

    /// Proves: R32
    #[test]
    fn a_correlation_id_returns_only_after_65536_turns_of_its_slot() {
        let mut calls = table();
        let mut seen = BTreeSet::new();
        for _ in 0..65_536 {
            let id = calls.open(Millis(1), 0).unwrap();
            assert!(seen.insert(id.as_u64()));
            calls.complete(id);
        }
    }

    #[test]
    fn ids_of_another_lane_are_not_ours() {
        let mut calls = table();
        let id = calls.open(Millis(1), 0).unwrap();
        assert_eq!(calls.complete(CorrelationId::new(4, id.slot(), id.turn())), None);
        assert_eq!(calls.complete(CorrelationId::new(3, 77, 0)), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Open(u64),
        Start(usize),
        Reply(usize),
        Cancel(usize),
        Sweep(u64),
        Drain,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0_u64..50).prop_map(Step::Open),
            2 => (0_usize..20).prop_map(Step::Start),
            3 => (0_usize..20).prop_map(Step::Reply),
            1 => (0_usize..20).prop_map(Step::Cancel),
            2 => (0_u64..50).prop_map(Step::Sweep),
            1 => Just(Step::Drain),
        ]
    }

    proptest! {
        /// Proves: R34, R82, R87, R93, R94, R96, R31
        #[test]
        fn every_call_ends_exactly_once_and_never_starts_afterwards(steps in prop::collection::vec(step(), 1..200)) {
            let mut calls = CallTable::new(0, 8);
            let mut opened: Vec<CorrelationId> = Vec::new();
            let mut ended = BTreeMap::<u32, u32>::new();
            let mut next = 0_u32;
            for step in steps {
                let out: Vec<u32> = match step {
                    Step::Open(deadline) => match calls.open(Millis(deadline), next) {
                        Ok(id) => {
                            let pending = opened.len() - ended.len();
                            prop_assert!(pending < 8);
                            opened.push(id);
                            next += 1;
                            vec![]
                        }
                        Err(full) => {
                            prop_assert_eq!(full.waiter, next);
                            vec![]
                        }
                    },
                    Step::Start(n) => {
                        if let Some(&id) = opened.get(n) {
                            let was_over = ended.contains_key(&u32::try_from(n).unwrap());
                            prop_assert_eq!(calls.start(id) == Start::Ended, was_over);
                        }
                        vec![]
                    }
                    Step::Reply(n) => opened.get(n).and_then(|&id| calls.complete(id)).into_iter().collect(),
                    Step::Cancel(n) => opened.get(n).and_then(|&id| calls.end(id)).map(|e| e.waiter).into_iter().collect(),
                    Step::Sweep(now) => calls.sweep(Millis(now)).into_iter().map(|e| e.waiter).collect(),
                    Step::Drain => calls.drain().into_iter().map(|e| e.waiter).collect(),
                };
                for waiter in out {
                    *ended.entry(waiter).or_default() += 1;
                    prop_assert_eq!(ended[&waiter], 1, "call {} ended twice", waiter);
                }
                prop_assert_eq!(calls.len(), opened.len() - ended.len());
            }
            calls.drain();
            prop_assert!(calls.is_empty());
        }
    }
}
