//! In which order the states of one activation reach its store, and how long the last one is tried.
//!
//! [`SaveOrder`] numbers the states as they are taken and says, when the turn of one comes, whether it is still worth
//! writing: a state that is older than what was written is covered by it. [`LastSave`] decides what follows a failed
//! attempt to save the state of an actor that goes. Neither waits nor writes: that is for the runtime.
//!
//! Invariant: no state is written after a newer one was, nor after the activation has ended.

use crate::contract::StateStoreError;
use crate::peer::Backoff;
use crate::time::Millis;

/// The order of one activation's saves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SaveOrder {
    taken: u64,
    written: u64,
    /// Nothing is stored, and nothing that was sent could change that.
    empty: bool,
    /// A write was begun.
    begun: bool,
    ended: bool,
}

/// A state that was taken, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SaveTicket(u64);

/// What to do with a state whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SaveStep {
    /// Write it.
    Write,
    /// Nothing: what is stored is as new, or newer.
    Covered,
    /// Nothing: the activation has ended, and the state belongs to the next.
    Ended,
}

impl SaveOrder {
    /// The order of an activation that found a state in the store, or none.
    pub const fn loaded(found: bool) -> Self {
        Self { taken: 0, written: 0, empty: !found, begun: false, ended: false }
    }

    /// Numbers a state that is taken from the actor now.
    pub const fn take(&mut self) -> SaveTicket {
        self.taken += 1;
        SaveTicket(self.taken)
    }

    /// What to do with a state, one at a time; `present` is false if it says that there is nothing to keep.
    pub const fn turn(&mut self, ticket: SaveTicket, present: bool) -> SaveStep {
        if self.ended {
            return SaveStep::Ended;
        }
        if ticket.0 <= self.written || (self.empty && !present) {
            return SaveStep::Covered;
        }
        self.empty = false;
        self.begun = true;
        SaveStep::Write
    }

    /// Notes that a state was written.
    pub fn wrote(&mut self, ticket: SaveTicket) {
        self.written = self.written.max(ticket.0);
    }

    /// Whether anything was, or may have been, written.
    pub const fn has_written(&self) -> bool {
        self.begun
    }

    /// Notes that the activation is over.
    pub const fn end(&mut self) {
        self.ended = true;
    }
}

/// The save of an actor that goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LastSave {
    until: Millis,
    backoff: Backoff,
}

/// What follows a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterFailure {
    /// Try again after this long.
    RetryAfter(Millis),
    /// Say that the state was not saved.
    GiveUp,
}

impl LastSave {
    /// A save that begins at `now` and may take `budget`, a tenth of which is left to say that it failed.
    pub const fn new(now: Millis, budget: Millis) -> Self {
        let usable = budget.0 - budget.0 / 10;
        let until = Millis(now.0.saturating_add(usable));
        Self { until, backoff: Backoff::new(FIRST_RETRY, LONGEST_RETRY) }
    }

    /// How long the attempt that begins at `now` may take.
    pub const fn remaining(&self, now: Millis) -> Millis {
        self.until.since(now)
    }

    /// One attempt failed at `now`; `random` is any number.
    pub fn failed(&mut self, now: Millis, error: &StateStoreError, random: u64) -> AfterFailure {
        let wait = self.backoff.next(random);
        if error.is_worth_repeating() && now + wait < self.until {
            AfterFailure::RetryAfter(wait)
        } else {
            AfterFailure::GiveUp
        }
    }
}

/// The wait after the first failure of a last save.
const FIRST_RETRY: Millis = Millis(50);

/// The longest wait between two attempts of a last save.
const LONGEST_RETRY: Millis = Millis(1_000);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::identity::Generation;

    #[test]
    fn an_older_state_is_not_written_over_a_newer_one() {
        let mut order = SaveOrder::loaded(true);
        let (first, second) = (order.take(), order.take());
        assert_eq!(order.turn(second, true), SaveStep::Write);
        order.wrote(second);
        assert_eq!(order.turn(first, true), SaveStep::Covered);
        assert_eq!(order.turn(second, true), SaveStep::Covered);
    }

    #[test]
    fn a_failed_save_covers_nothing() {
        let mut order = SaveOrder::loaded(true);
        let (first, second) = (order.take(), order.take());
        assert_eq!(order.turn(second, true), SaveStep::Write);
        assert_eq!(order.turn(first, true), SaveStep::Write, "nothing newer is known to be stored");
    }

    #[test]
    fn nothing_is_written_once_the_activation_has_ended() {
        let mut order = SaveOrder::loaded(true);
        let ticket = order.take();
        order.end();
        assert_eq!(order.turn(ticket, true), SaveStep::Ended);
        assert_eq!(order.turn(ticket, false), SaveStep::Ended);
    }

    #[test]
    fn an_actor_that_never_had_anything_to_keep_writes_nothing() {
        let mut order = SaveOrder::loaded(false);
        let nothing = order.take();
        assert_eq!(order.turn(nothing, false), SaveStep::Covered);
        let something = order.take();
        assert_eq!(order.turn(something, true), SaveStep::Write);
        let nothing_again = order.take();
        assert_eq!(order.turn(nothing_again, false), SaveStep::Write, "something may be stored by now");
        let ticket = SaveOrder::loaded(true).take();
        assert_eq!(SaveOrder::loaded(true).turn(ticket, false), SaveStep::Write);
    }

    #[test]
    fn only_what_may_succeed_is_tried_again_and_only_in_time() {
        let away = StateStoreError::Unavailable { backend: "b", source: "away".into() };
        let fenced = StateStoreError::Fenced { by: Generation::new(9) };
        let mut save = LastSave::new(Millis(1_000), Millis(1_000));
        assert_eq!(save.remaining(Millis(1_000)), Millis(900));
        assert_eq!(save.failed(Millis(1_000), &fenced, 0), AfterFailure::GiveUp);
        let mut now = Millis(1_000);
        let mut attempts = 0;
        while let AfterFailure::RetryAfter(wait) = save.failed(now, &away, u64::MAX) {
            assert!(wait > Millis::ZERO);
            now = now + wait;
            attempts += 1;
        }
        assert!((2..10).contains(&attempts) && now < Millis(1_900), "{attempts} until {now}");
        assert_eq!(save.remaining(Millis(1_950)), Millis::ZERO);
    }

    proptest! {
        #[test]
        fn whatever_fails_and_whoever_waits_states_are_written_in_order(
            turns in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
        ) {
            let mut order = SaveOrder::loaded(true);
            let tickets: alloc::vec::Vec<SaveTicket> = (0..20).map(|_| order.take()).collect();
            let mut newest = None;
            for (index, succeeds) in turns {
                let ticket = *index.get(&tickets);
                if order.turn(ticket, true) == SaveStep::Write && succeeds {
                    prop_assert!(newest < Some(ticket));
                    newest = Some(ticket);
                    order.wrote(ticket);
                }
            }
        }
    }
}
