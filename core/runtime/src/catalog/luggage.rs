//! The states of actors between two activations of a move: those that went for it here, and those that came along. An actor
//! without a state is in the list as well, if other datacenters may ask whether it lives here.
//!
//! A state waits here until its actor begins again, on this node because the shard stays or because it came here. If the
//! shard goes, so do the states; if nobody asks for the actor for as long as it might have been idle, its state is forgotten.
//!
//! Bound: so many bytes. Beyond them the shards are forgotten first whose states have waited longest (FORGETS-LONGEST-WAITING),
//! whether or not their actors would ever have been idle; the states of one shard that are too many alone are not kept. Both
//! are counted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use archipelago_protocol::handoff::{CarriedState, HandoffLimits};
use archipelago_protocol::time::Millis;
use metrics::{Counter, Gauge, counter, gauge};

/// The states of one kind on one arbiter.
pub(crate) struct Luggage {
    shards: RefCell<BTreeMap<u64, Waiting>>,
    bytes: Gauge,
    no_room: Counter,
    weight: Cell<u64>,
    /// How often something was kept: which states have waited longest.
    kept: Cell<u64>,
    most: u64,
}

/// The states of one shard.
#[derive(Default)]
struct Waiting {
    states: BTreeMap<String, CarriedState>,
    /// When they are forgotten.
    until: Millis,
    /// The number of the last one, as they were kept.
    last: u64,
}

impl Luggage {
    pub(super) fn new(kind: &str) -> Self {
        let bytes = gauge!("archipelago_carried_state_bytes", "kind" => kind.to_owned());
        // The outcome of a state that was not kept, or not for as long as its actor might have come.
        let no_room = counter!("archipelago_carried_states_total", "outcome" => "no_room");
        let (weight, kept) = (Cell::new(0), Cell::new(0));
        Self { shards: RefCell::default(), bytes, no_room, weight, kept, most: MOST }
    }

    /// Keeps the state of an actor until then, if there is room for it; whether there is.
    pub(super) fn keep(&self, shard: u64, state: CarriedState, until: Millis) -> bool {
        let coming = state.weight();
        if self.rest_of(shard, &state.key).saturating_add(coming) <= self.most {
            self.make_room_for(coming, shard);
        }
        if self.weight.get().saturating_add(coming) > self.most {
            self.no_room.increment(1);
            return false;
        }
        self.weighs(|weight| weight + coming);
        self.kept.set(self.kept.get() + 1);
        let mut shards = self.shards.borrow_mut();
        let waiting = shards.entry(shard).or_default();
        waiting.until = waiting.until.max(until);
        waiting.last = self.kept.get();
        let before = waiting.states.insert(state.key.clone(), state);
        drop(shards);
        self.gone(before.iter());
        true
    }

    /// What the states of a shard weigh without that of one actor: others make no room for what does not fit all the same.
    fn rest_of(&self, shard: u64, but: &str) -> u64 {
        let shards = self.shards.borrow();
        let states = shards.get(&shard).into_iter().flat_map(|waiting| &waiting.states);
        states.filter(|(key, _)| key.as_str() != but).map(|(_, state)| state.weight()).sum()
    }

    /// Forgets the states of other shards that have waited longest, until there is room.
    fn make_room_for(&self, coming: u64, but: u64) {
        while self.weight.get().saturating_add(coming) > self.most
            && let Some((shard, states)) = self.longest_waiting(but)
        {
            tracing::warn!(
                shard,
                states,
                "no room for so many states that wait for their actors: some are forgotten"
            );
            self.no_room.increment(states as u64);
            self.forget(shard);
        }
    }

    /// The shard whose states have waited longest, and how many they are.
    fn longest_waiting(&self, but: u64) -> Option<(u64, usize)> {
        let shards = self.shards.borrow();
        let others = shards.iter().filter(|(shard, _)| **shard != but);
        let (shard, waiting) = others.min_by_key(|(_, waiting)| waiting.last)?;
        Some((*shard, waiting.states.len()))
    }

    /// The state that waits for an actor.
    pub(super) fn of_actor(&self, shard: u64, key: &str) -> Option<CarriedState> {
        self.shards.borrow().get(&shard)?.states.get(key).cloned()
    }

    /// The actor has begun again, or its state is of no use.
    pub(super) fn used(&self, shard: u64, key: &str) {
        let mut shards = self.shards.borrow_mut();
        let Some(waiting) = shards.get_mut(&shard) else { return };
        let used = waiting.states.remove(key);
        if waiting.states.is_empty() {
            shards.remove(&shard);
        }
        drop(shards);
        self.gone(used.iter());
    }

    /// All states that wait in a shard.
    pub(crate) fn of_shard(&self, shard: u64) -> Vec<CarriedState> {
        let shards = self.shards.borrow();
        shards.get(&shard).map_or_else(Vec::new, |waiting| waiting.states.values().cloned().collect())
    }

    /// Whether an actor waits for its next message, after a move.
    pub(crate) fn has(&self, shard: u64, key: &str) -> bool {
        self.shards.borrow().get(&shard).is_some_and(|waiting| waiting.states.contains_key(key))
    }

    /// Whether an actor of a shard has a state here.
    pub(crate) fn has_states(&self, shard: u64) -> bool {
        let shards = self.shards.borrow();
        shards.get(&shard).is_some_and(|waiting| waiting.states.values().any(|one| one.state.is_some()))
    }

    /// What the states of a shard weigh; none if there are none.
    pub(crate) fn weight_of(&self, shard: u64) -> Option<u64> {
        let shards = self.shards.borrow();
        Some(shards.get(&shard)?.states.values().map(CarriedState::weight).sum())
    }

    /// Forgets the states of a shard.
    pub(crate) fn forget(&self, shard: u64) {
        let forgotten = self.shards.borrow_mut().remove(&shard);
        self.gone(forgotten.iter().flat_map(|waiting| waiting.states.values()));
    }

    /// Forgets the states that have waited long enough.
    pub(super) fn expire(&self, now: Millis) {
        while let Some(shard) = self.first_due(now) {
            self.forget(shard);
        }
    }

    /// When the next states have waited long enough.
    pub(super) fn next_at(&self) -> Option<Millis> {
        self.shards.borrow().values().map(|waiting| waiting.until).min().filter(|at| *at < Millis::MAX)
    }

    fn first_due(&self, now: Millis) -> Option<u64> {
        self.shards.borrow().iter().find(|(_, waiting)| waiting.until <= now).map(|(shard, _)| *shard)
    }

    fn gone<'a>(&self, states: impl Iterator<Item = &'a CarriedState>) {
        let lighter: u64 = states.map(CarriedState::weight).sum();
        self.weighs(|weight| weight.saturating_sub(lighter));
    }

    fn weighs(&self, now: impl FnOnce(u64) -> u64) {
        let (before, after) = (self.weight.get(), now(self.weight.get()));
        self.weight.set(after);
        // Several arbiters add to the same gauge.
        self.bytes.increment(after as f64 - before as f64);
    }
}

impl Drop for Luggage {
    fn drop(&mut self) {
        self.weighs(|_| 0);
    }
}

/// How many bytes of states wait at most, of one kind on one arbiter: as many as may be on their way to a node.
const MOST: u64 = HandoffLimits::DEFAULT.parcel_room as u64;

#[cfg(test)]
mod tests {
    use archipelago_protocol::handoff::StateBytes;

    use super::*;

    /// Room for three of these.
    fn small() -> Luggage {
        let mut luggage = Luggage::new("Kind");
        luggage.most = 3 * state("a").weight();
        luggage
    }

    fn state(key: &str) -> CarriedState {
        CarriedState { key: key.into(), state: Some(StateBytes { version: 1, bytes: vec![7; 100].into() }) }
    }

    #[test]
    fn beyond_the_bound_the_states_are_forgotten_that_have_waited_longest() {
        let luggage = small();
        // None of them is ever idle for long enough.
        for (shard, key) in [(2, "a"), (1, "b"), (2, "c")] {
            assert!(luggage.keep(shard, state(key), Millis::MAX));
        }
        assert!(luggage.keep(3, state("d"), Millis::MAX));
        assert!(!luggage.has(1, "b"), "the other shard got one later");
        assert!(luggage.has(2, "a") && luggage.has(2, "c") && luggage.has(3, "d"));
        assert!(luggage.keep(3, state("e"), Millis::MAX));
        assert_eq!((luggage.weight_of(2), luggage.weight_of(3)), (None, Some(2 * state("d").weight())));
    }

    #[test]
    fn what_one_shard_has_too_much_of_is_not_kept_and_weighs_nothing() {
        let luggage = small();
        for key in ["a", "b", "c"] {
            assert!(luggage.keep(1, state(key), Millis::MAX));
        }
        assert!(!luggage.keep(1, state("d"), Millis::MAX));
        assert_eq!(luggage.weight_of(1), Some(3 * state("a").weight()), "what was there before stays");
        luggage.forget(1);
        assert_eq!(luggage.weight.get(), 0);
    }

    #[test]
    fn what_does_not_fit_all_the_same_throws_nothing_out() {
        let luggage = small();
        for (shard, key) in [(1, "a"), (2, "b"), (2, "c")] {
            assert!(luggage.keep(shard, state(key), Millis::MAX));
        }
        let mut large = state("d");
        large.state = Some(StateBytes { version: 1, bytes: vec![7; 200].into() });
        assert!(!luggage.keep(2, large, Millis::MAX), "the shard has too much already");
        assert!(luggage.has(1, "a"), "nothing would have been won by that");
    }
}
