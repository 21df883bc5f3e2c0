//! Where the actors live that one sender sends to: at home or in another datacenter, as far as that is known.
//!
//! [`Standings`] decides whether a message may go at once or has to wait until its actor was looked for, and keeps the order
//! of what waits. The search itself it leaves to the shell.
//!
//! Invariants: while messages to an actor wait, no later one goes; what goes in comes out once, in order.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use crate::time::Millis;

/// Where an actor lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whither<P> {
    /// In this datacenter, or nowhere yet: then it comes to life here.
    Home,
    /// In another one, at this place.
    Abroad(P),
}

/// What becomes of a message whose actor's place is not known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Keep<M> {
    /// It waits, and somebody must look for its actor.
    Seek,
    /// It waits for a search that is under way.
    Waits,
    /// Too many wait already.
    Full(M),
}

/// What one sender knows of the places of actors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Standings<K, P, M> {
    known: BTreeMap<K, Known<P>>,
    order: VecDeque<(u64, K)>,
    seeking: BTreeMap<K, VecDeque<M>>,
    next: u64,
    /// How many places are remembered.
    remembered: usize,
    /// How many messages to one actor may wait.
    waiting: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known<P> {
    whither: Whither<P>,
    until: Millis,
    number: u64,
}

impl<K: Ord + Clone, P: Copy, M> Standings<K, P, M> {
    /// Nothing is known; `remembered` places will be, and `waiting` messages to one actor are kept. As many actors are
    /// looked for at once as are remembered.
    pub const fn new(remembered: usize, waiting: usize) -> Self {
        Self {
            known: BTreeMap::new(),
            order: VecDeque::new(),
            seeking: BTreeMap::new(),
            next: 0,
            remembered,
            waiting,
        }
    }

    /// Where a message to this actor may go now; none if it has to wait.
    pub fn whither(&self, now: Millis, key: &K) -> Option<Whither<P>> {
        if !self.seeking.is_empty() && self.seeking.contains_key(key) {
            return None;
        }
        self.known.get(key).filter(|known| now < known.until).map(|known| known.whither)
    }

    /// A message goes to an actor whose place is known, by a way that is open: the place stays known for another `life`.
    pub fn use_again(&mut self, now: Millis, key: &K, life: Millis) {
        let known = self.known.get_mut(key).filter(|known| now < known.until);
        if let Some(known) = known {
            known.until = known.until.max(now + life);
        }
    }

    /// Whether messages to this actor wait.
    pub fn is_sought(&self, key: &K) -> bool {
        self.seeking.contains_key(key)
    }

    /// Keeps a message until its actor's place is known.
    pub fn keep(&mut self, key: &K, message: M) -> Keep<M> {
        let (sought, room) = (self.seeking.len(), self.remembered);
        match self.seeking.get_mut(key) {
            Some(queue) if queue.len() >= self.waiting => Keep::Full(message),
            Some(queue) => {
                queue.push_back(message);
                Keep::Waits
            }
            None if sought >= room => Keep::Full(message),
            None => {
                self.seeking.insert(key.clone(), VecDeque::from([message]));
                Keep::Seek
            }
        }
    }

    /// A search has ended: remembers the place until `until`, and hands out what waited, in order.
    pub fn settled(&mut self, key: &K, whither: Whither<P>, until: Millis) -> VecDeque<M> {
        self.next += 1;
        let number = self.next;
        self.known.insert(key.clone(), Known { whither, until, number });
        self.order.push_back((number, key.clone()));
        while self.known.len() > self.remembered || self.order.len() > 2 * self.remembered {
            let Some((number, key)) = self.order.pop_front() else { break };
            if self.known.get(&key).is_some_and(|known| known.number == number) {
                self.known.remove(&key);
            }
        }
        self.seeking.remove(key).unwrap_or_default()
    }

    /// A search has failed: hands out what waited for it.
    pub fn failed(&mut self, key: &K) -> VecDeque<M> {
        self.seeking.remove(key).unwrap_or_default()
    }

    /// Forgets where an actor is: it turned out to be wrong.
    pub fn forget(&mut self, key: &K) {
        self.known.remove(key);
    }

    /// Forgets all actors abroad for whose places `gone` holds.
    pub fn forget_abroad(&mut self, gone: impl Fn(&P) -> bool) {
        self.known.retain(|_, known| !matches!(&known.whither, Whither::Abroad(place) if gone(place)));
    }

    /// Takes the messages that wait and are not worth sending any more.
    pub fn take_ended(&mut self, is_over: impl Fn(&M) -> bool) -> Vec<M> {
        let mut ended = Vec::new();
        for queue in self.seeking.values_mut().filter(|queue| queue.iter().any(&is_over)) {
            let (over, rest): (Vec<M>, _) = queue.drain(..).partition(&is_over);
            *queue = rest.into();
            ended.extend(over);
        }
        ended
    }

    /// Takes everything that waits: the sender stops.
    pub fn take_all(&mut self) -> Vec<M> {
        core::mem::take(&mut self.seeking).into_values().flatten().collect()
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.seeking.values().map(VecDeque::len).sum()
    }

    /// How many places are remembered.
    pub fn remembered(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    fn fresh() -> Standings<u8, u8, u32> {
        Standings::new(4, 3)
    }

    #[test]
    fn a_message_waits_for_the_search_and_then_goes_in_order() {
        let mut all = fresh();
        assert_eq!(all.whither(Millis(0), &1), None);
        assert_eq!(all.keep(&1, 10), Keep::Seek);
        assert_eq!(all.keep(&1, 11), Keep::Waits);
        assert_eq!(all.settled(&1, Whither::Abroad(7), Millis(100)), vec![10, 11]);
        assert_eq!(all.whither(Millis(99), &1), Some(Whither::Abroad(7)));
        assert_eq!(all.whither(Millis(100), &1), None, "what is remembered has a short life");
    }

    #[test]
    fn a_known_actor_whose_messages_wait_is_passed_by_nobody() {
        let mut all = fresh();
        all.settled(&1, Whither::Home, Millis(10));
        assert_eq!(all.keep(&1, 1), Keep::Seek);
        assert_eq!(all.whither(Millis(5), &1), None);
    }

    #[test]
    fn what_waits_is_bounded_per_actor_and_in_all() {
        let mut all = fresh();
        (0..3).for_each(|n| assert_ne!(all.keep(&1, n), Keep::Full(n)));
        assert_eq!(all.keep(&1, 9), Keep::Full(9));
        (2..5).for_each(|key| assert_eq!(all.keep(&key, 0), Keep::Seek));
        assert_eq!(all.keep(&5, 0), Keep::Full(0));
        assert_eq!(all.waiting(), 6);
    }

    #[test]
    fn a_place_that_is_used_stays_known_and_one_that_is_over_does_not_come_back() {
        let mut all = fresh();
        all.settled(&1, Whither::Abroad(7), Millis(100));
        all.use_again(Millis(90), &1, Millis(100));
        assert_eq!(all.whither(Millis(189), &1), Some(Whither::Abroad(7)));
        all.use_again(Millis(190), &1, Millis(100));
        assert_eq!(all.whither(Millis(190), &1), None);
    }

    #[test]
    fn places_in_a_datacenter_that_is_gone_are_forgotten() {
        let mut all = fresh();
        all.settled(&1, Whither::Abroad(7), Millis(100));
        all.settled(&2, Whither::Abroad(8), Millis(100));
        all.settled(&3, Whither::Home, Millis(100));
        all.forget_abroad(|place| *place == 7);
        assert_eq!([1, 2, 3].map(|key| all.whither(Millis(0), &key).is_some()), [false, true, true]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_doubled_and_memory_is_bounded(steps in proptest::collection::vec((0_u8..6, 0_u8..4), 1..60)) {
            let mut all = fresh();
            let (mut sent, mut out) = (0_u32, Vec::new());
            for (now, (key, step)) in (0_u64..).zip(steps) {
                match step {
                    0 | 1 => {
                        sent += 1;
                        if let Keep::Full(message) = all.keep(&key, sent) {
                            out.push(message);
                        }
                    }
                    2 => out.extend(all.settled(&key, Whither::Home, Millis(now + 5))),
                    _ => out.extend(all.failed(&key)),
                }
                prop_assert!(all.remembered() <= 4 && all.order.len() <= 8);
            }
            out.extend(all.take_all());
            out.sort_unstable();
            prop_assert_eq!(out, (1..=sent).collect::<Vec<_>>());
        }
    }
}
