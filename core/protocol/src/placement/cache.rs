//! What a sender remembers about the places of single actors, and which of them it forgets.
//!
//! [`PlacementCache`] has an entry for each place that was learnt. It gives entries up that were not used for a while
//! and, above its bound, those that are not in use at the moment. A look costs what is looked at, not what is known. Whether an entry can go at once or something of ours is still on its way there is the shell's to know.
//!
//! Invariant: the time at which places were learnt never goes back, whatever the clock does.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::identity::{Generation, NodeId};
use crate::link::Hint;
use crate::time::Millis;

/// The places that one sender knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlacementCache<K> {
    entries: BTreeMap<K, Entry>,
    /// Who is looked at next. An entry that was learnt anew is here twice; only its newest turn counts.
    order: VecDeque<(u64, K)>,
    turn: u64,
    newest: Millis,
    limits: CacheLimits,
}

/// How much is remembered, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheLimits {
    /// How many places are remembered at most.
    pub entries: usize,
    /// After how long without a use a place is forgotten.
    pub idle: Millis,
}

/// One place that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cached {
    /// The node where the actor lives, as far as is known.
    pub node: NodeId,
    /// The generation of its ownership.
    pub generation: Generation,
    /// When that was learnt.
    pub cached_at: Millis,
}

/// Why an entry is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GiveUp {
    /// It was not used for as long as the limits say.
    Idle,
    /// There are more than the limits allow.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    place: Cached,
    turn: u64,
    leaving: bool,
}

impl CacheLimits {
    /// A place that was used so recently is in use: it stays even above the bound, or those who use it would look it up
    /// for every message.
    pub const IN_USE: Millis = Millis(500);

    /// 65,536 places, for a minute each.
    pub const DEFAULT: Self = Self { entries: 65_536, idle: Millis(60_000) };
}

impl Default for CacheLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<K: Ord + Clone> PlacementCache<K> {
    /// Nothing is known.
    pub const fn new(limits: CacheLimits) -> Self {
        Self { entries: BTreeMap::new(), order: VecDeque::new(), turn: 0, newest: Millis::ZERO, limits }
    }

    /// Remembers where `key` is.
    pub fn learn(&mut self, now: Millis, key: K, Hint { owner: node, generation }: Hint) {
        self.newest = self.newest.max(now);
        let known = self.entries.get_mut(&key).filter(|entry| entry.place.node == node);
        if let Some(entry) = known.filter(|entry| entry.place.generation == generation) {
            // Nothing new: it was asked for, so it stays.
            entry.leaving = false;
            return;
        }
        self.turn += 1;
        let place = Cached { node, generation, cached_at: self.newest };
        let entry = Entry { place, turn: self.turn, leaving: false };
        self.entries.insert(key.clone(), entry);
        self.order.push_back((self.turn, key));
        if self.order.len() > 2 * self.entries.len() + SPARE {
            let entries = &self.entries;
            self.order.retain(|(turn, key)| entries.get(key).is_some_and(|entry| entry.turn == *turn));
        }
    }

    /// Forgets where `key` is.
    pub fn forget(&mut self, key: &K) {
        self.entries.remove(key);
    }

    /// Looks at the next `most` entries and answers which of them to give up. `used` says when a key was last used. What is
    /// given up stays known until it is forgotten, and is looked at again.
    pub fn look(&mut self, now: Millis, most: usize, used: impl Fn(&K) -> Millis) -> Vec<(K, GiveUp)> {
        let mut given_up = Vec::new();
        for _ in 0..most.min(self.order.len()) {
            let Some((turn, key)) = self.order.pop_front() else { break };
            let excess = self.excess().saturating_sub(given_up.len());
            let idle = self.limits.idle;
            let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.turn == turn) else { continue };
            let last = used(&key).max(entry.place.cached_at);
            let why = if now.since(last) >= idle {
                Some(GiveUp::Idle)
            } else if excess > 0 && now.since(last) >= CacheLimits::IN_USE {
                Some(GiveUp::Full)
            } else {
                None
            };
            if let Some(why) = why {
                entry.leaving = true;
                given_up.push((key.clone(), why));
            }
            self.order.push_back((turn, key));
        }
        given_up
    }

    /// Whether `key` was given up and not learnt again since.
    pub fn is_leaving(&self, key: &K) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.leaving)
    }

    /// Where `key` is, as far as is known.
    pub fn place(&self, key: &K) -> Option<Cached> {
        self.entries.get(key).map(|entry| entry.place)
    }

    /// By how many entries there are too many.
    pub fn excess(&self) -> usize {
        self.entries.len().saturating_sub(self.limits.entries)
    }

    /// How many places are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if nothing is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// How much of the order may be out of date before it is put right.
const SPARE: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: CacheLimits = CacheLimits { entries: 2, idle: Millis(2_000) };

    fn hint(node: u64, generation: u64) -> Hint {
        Hint { owner: NodeId::new(node), generation: Generation::new(generation) }
    }

    fn cache() -> PlacementCache<u64> {
        PlacementCache::new(LIMITS)
    }

    /// Proves: R211, R219
    #[test]
    fn an_entry_says_which_actor_is_where_and_since_when_that_is_known() {
        let mut cache = cache();
        assert_eq!(cache.place(&7), None, "not placed, as far as is known");
        cache.learn(Millis(5), 7, hint(1, 3));
        let known = Cached { node: NodeId::new(1), generation: Generation::new(3), cached_at: Millis(5) };
        assert_eq!(cache.place(&7), Some(known));
        cache.forget(&7);
        assert_eq!(cache.place(&7), None);
    }

    #[test]
    fn what_is_not_used_is_given_up_and_what_is_used_stays() {
        let mut cache = cache();
        cache.learn(Millis(0), 1, hint(1, 1));
        cache.learn(Millis(0), 2, hint(1, 1));
        let used = |key: &u64| if *key == 2 { Millis(1_000) } else { Millis(0) };
        assert_eq!(cache.look(Millis(1_999), 9, used), []);
        assert_eq!(cache.look(Millis(2_000), 9, used), [(1, GiveUp::Idle)]);
        assert!(cache.is_leaving(&1) && !cache.is_leaving(&2));
        assert_eq!(cache.len(), 2, "it stays known until it can be forgotten");
        assert_eq!(cache.look(Millis(2_000), 9, used), [(1, GiveUp::Idle)], "and is looked at again");
    }

    #[test]
    fn an_entry_that_is_learnt_again_stays() {
        let mut cache = cache();
        cache.learn(Millis(0), 1, hint(1, 1));
        assert_eq!(cache.look(Millis(2_000), 9, |_| Millis(0)), [(1, GiveUp::Idle)]);
        cache.learn(Millis(2_000), 1, hint(1, 1));
        assert!(!cache.is_leaving(&1));
    }

    #[test]
    fn above_the_bound_those_go_that_are_not_in_use() {
        let mut cache = cache();
        for key in 1..=3 {
            cache.learn(Millis(key), key, hint(1, 1));
        }
        assert_eq!(cache.excess(), 1);
        let used = |key: &u64| if *key == 1 { Millis(200) } else { Millis(0) };
        assert_eq!(cache.look(Millis(400), 9, used), [], "all of them are");
        assert_eq!(cache.look(Millis(600), 9, used), [(2, GiveUp::Full)]);
        cache.forget(&2);
        assert_eq!(cache.look(Millis(600), 9, used), []);
    }

    #[test]
    fn a_look_costs_no_more_than_it_is_allowed_to() {
        let mut cache = cache();
        for key in 0..1_000 {
            cache.learn(Millis(0), key, hint(1, 1));
        }
        let given_up = cache.look(Millis(5_000), 10, |_| Millis(0));
        assert_eq!(given_up.len(), 10);
        assert_eq!(cache.look(Millis(5_000), 10, |_| Millis(0))[0].0, 10, "the next ten");
    }

    proptest! {
        /// Proves: R223
        #[test]
        fn the_times_at_which_places_were_learnt_never_go_back(
            steps in prop::collection::vec((0_u64..50, 0_u64..4, 1_u64..5), 1..60),
        ) {
            let (mut cache, mut last) = (cache(), Millis::ZERO);
            for (generation, (now, key, node)) in (0..).zip(steps) {
                cache.learn(Millis(now), key, hint(node, generation));
                let learnt = cache.place(&key).unwrap().cached_at;
                prop_assert!(learnt >= last);
                last = learnt;
            }
        }

        #[test]
        fn after_enough_looks_the_bound_holds(keys in prop::collection::vec(0_u64..40, 0..200)) {
            let mut cache = cache();
            for (at, key) in (0..).zip(keys) {
                cache.learn(Millis(at), key, hint(1, at));
                prop_assert!(cache.order.len() <= 2 * cache.len() + SPARE + 1);
            }
            for (gone, _) in cache.look(Millis(9_000), usize::MAX, |_| Millis(0)) {
                cache.forget(&gone);
            }
            prop_assert_eq!(cache.excess(), 0);
        }
    }
}
