//! Which activations to look at next, and when.
//!
//! One entry per activation, looked at when it may have become idle, or when the longest unused must go: an activation that
//! was used meanwhile goes back with its new time. So a sweep costs what is due, not what is active.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::time::Millis;

/// Activations by the time at which they may have become idle, or were last known to be used.
#[derive(Clone, Debug)]
pub struct TimeQueue<K> {
    heap: BinaryHeap<Reverse<Due<K>>>,
    pushed: u64,
}

#[derive(Clone, Debug)]
struct Due<K> {
    at: Millis,
    turn: u64,
    key: K,
}

impl<K> TimeQueue<K> {
    /// An empty queue.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), pushed: 0 }
    }

    /// Asks for `key` to be looked at when `at` has come.
    pub fn push(&mut self, at: Millis, key: K) {
        self.pushed += 1;
        self.heap.push(Reverse(Due { at, turn: self.pushed, key }));
    }

    /// Takes one key whose time has come; earlier times first, then in the order of pushing.
    pub fn pop_due(&mut self, now: Millis) -> Option<K> {
        if self.next_at()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(due)| due.key)
    }

    /// Takes the first key, whether its time has come or not, and that time.
    pub fn pop_first(&mut self) -> Option<(Millis, K)> {
        self.heap.pop().map(|Reverse(due)| (due.at, due.key))
    }

    /// Forgets the keys that are not worth looking at any more.
    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.heap.retain(|Reverse(due)| keep(&due.key));
    }

    /// When the next key is due.
    pub fn next_at(&self) -> Option<Millis> {
        self.heap.peek().map(|Reverse(due)| due.at)
    }

    /// How many keys wait.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// True if no key waits.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

impl<K> Default for TimeQueue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K> Due<K> {
    const fn order(&self) -> (Millis, u64) {
        (self.at, self.turn)
    }
}

impl<K> PartialEq for Due<K> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<K> Eq for Due<K> {}

impl<K> PartialOrd for Due<K> {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Due<K> {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: R312
    #[test]
    fn a_sweep_sees_only_what_is_due() {
        let mut queue = TimeQueue::new();
        queue.push(Millis(30), "late");
        queue.push(Millis(10), "first");
        queue.push(Millis(10), "second");
        assert_eq!(queue.pop_due(Millis(9)), None);
        assert_eq!(queue.pop_due(Millis(10)), Some("first"));
        assert_eq!(queue.pop_due(Millis(10)), Some("second"));
        assert_eq!(queue.pop_due(Millis(10)), None);
        assert_eq!(queue.next_at(), Some(Millis(30)));
        assert_eq!(queue.len(), 1);
    }
}
