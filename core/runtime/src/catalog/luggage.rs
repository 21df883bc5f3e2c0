//! The states of actors between two activations of a move: those that went for it here, and those that came along. An actor
//! without a state is in the list as well, if other datacenters may ask whether it lives here.
//!
//! A state waits here until its actor begins again, on this node because the shard stays or because it came here. If the
//! shard goes, so do the states; if nobody asks for the actor for as long as it might have been idle, its state is forgotten.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use archipelago_protocol::handoff::CarriedState;
use archipelago_protocol::time::Millis;
use metrics::{Gauge, gauge};

/// The states of one kind on one arbiter.
pub(crate) struct Luggage {
    shards: RefCell<BTreeMap<u64, Waiting>>,
    bytes: Gauge,
    weight: Cell<u64>,
}

/// The states of one shard.
#[derive(Default)]
struct Waiting {
    states: BTreeMap<String, CarriedState>,
    /// When they are forgotten.
    until: Millis,
}

impl Luggage {
    pub(super) fn new(kind: &str) -> Self {
        let bytes = gauge!("archipelago_carried_state_bytes", "kind" => kind.to_owned());
        Self { shards: RefCell::default(), bytes, weight: Cell::new(0) }
    }

    /// Keeps the state of an actor until then.
    pub(super) fn keep(&self, shard: u64, state: CarriedState, until: Millis) {
        self.weighs(|weight| weight + state.weight());
        let mut shards = self.shards.borrow_mut();
        let waiting = shards.entry(shard).or_default();
        waiting.until = waiting.until.max(until);
        let before = waiting.states.insert(state.key.clone(), state);
        drop(shards);
        self.gone(before.iter());
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
