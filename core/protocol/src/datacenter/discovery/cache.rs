//! What earlier searches have found, for a short time.

use alloc::collections::{BTreeMap, VecDeque};

use super::super::DataCenterId;
use crate::time::Millis;

/// The answers of earlier searches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cache<K, P> {
    known: BTreeMap<K, Known<P>>,
    /// The keys in the order in which they were learned, with a number that tells old entries from new ones.
    order: VecDeque<(u64, K)>,
    next: u64,
    bound: usize,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known<P> {
    /// Where it is; none if nobody has it.
    place: Option<(DataCenterId, P)>,
    until: Millis,
    number: u64,
}

impl<K: Ord + Clone, P: Clone> Cache<K, P> {
    pub(super) const fn new(bound: usize) -> Self {
        Self { known: BTreeMap::new(), order: VecDeque::new(), next: 0, bound }
    }

    /// What is known of `key`.
    pub(super) fn get(&self, now: Millis, key: &K) -> Option<&Option<(DataCenterId, P)>> {
        self.known.get(key).filter(|known| now < known.until).map(|known| &known.place)
    }

    pub(super) fn learn(&mut self, key: K, place: Option<(DataCenterId, P)>, until: Millis) {
        self.next += 1;
        let number = self.next;
        self.order.push_back((number, key.clone()));
        self.known.insert(key, Known { place, until, number });
        while self.known.len() > self.bound || self.order.len() > 2 * self.bound {
            let Some((number, key)) = self.order.pop_front() else { return };
            // It may have been learned anew since.
            if self.known.get(&key).is_some_and(|known| known.number == number) {
                self.known.remove(&key);
            }
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        self.known.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
