//! Who has said how much: the version of a view.

use alloc::collections::BTreeMap;

use crate::identity::NodeId;

/// How many words of each node a view holds. Views are ordered by it, partially.
///
/// Invariant: no count is zero, so that equal clocks are equal values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct VectorClock {
    counts: BTreeMap<NodeId, u64>,
}

/// How two clocks lie to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockOrder {
    /// Both hold the same words.
    Same,
    /// The other holds everything of this one, and more.
    Before,
    /// This one holds everything of the other, and more.
    After,
    /// Each holds words that the other lacks.
    Concurrent,
}

impl VectorClock {
    /// A clock on which nobody has said anything.
    pub const fn new() -> Self {
        Self { counts: BTreeMap::new() }
    }

    /// Counts one more word of `node`.
    pub fn increment(&mut self, node: NodeId) {
        self.advance(node, self.count(node).saturating_add(1));
    }

    /// Knows at least `count` words of `node` from here on.
    pub fn advance(&mut self, node: NodeId, count: u64) {
        if count > self.count(node) {
            self.counts.insert(node, count);
        }
    }

    /// Knows whatever `other` knows as well.
    pub fn merge(&mut self, other: &Self) {
        other.counts.iter().for_each(|(&node, &count)| self.advance(node, count));
    }

    /// Forgets the nodes that `keep` refuses: the clock would grow with everyone who ever was.
    pub fn prune(&mut self, keep: impl Fn(NodeId) -> bool) {
        self.counts.retain(|&node, _| keep(node));
    }

    /// How many words of `node` it knows.
    pub fn count(&self, node: NodeId) -> u64 {
        self.counts.get(&node).copied().unwrap_or(0)
    }

    /// How this clock lies to `other`.
    pub fn compare(&self, other: &Self) -> ClockOrder {
        match (self.holds(other), other.holds(self)) {
            (true, true) => ClockOrder::Same,
            (false, true) => ClockOrder::Before,
            (true, false) => ClockOrder::After,
            (false, false) => ClockOrder::Concurrent,
        }
    }

    /// How many nodes have said something.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nobody has said anything.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    fn holds(&self, other: &Self) -> bool {
        other.counts.iter().all(|(&node, &count)| self.count(node) >= count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clock(counts: &[(u64, u64)]) -> VectorClock {
        let mut clock = VectorClock::new();
        counts.iter().for_each(|&(node, count)| clock.advance(NodeId::new(node), count));
        clock
    }

    /// Proves: R134
    #[test]
    fn clocks_are_the_same_before_after_or_concurrent() {
        let old = clock(&[(1, 1)]);
        let mut new = old.clone();
        new.increment(NodeId::new(2));
        let mut other = old.clone();
        other.increment(NodeId::new(1));
        assert_eq!(old.compare(&old), ClockOrder::Same);
        assert_eq!(old.compare(&new), ClockOrder::Before);
        assert_eq!(new.compare(&old), ClockOrder::After);
        assert_eq!(new.compare(&other), ClockOrder::Concurrent);
    }

    /// Proves: C39
    #[test]
    fn the_gone_are_pruned() {
        let mut pruned = clock(&[(1, 4), (2, 7)]);
        pruned.prune(|node| node == NodeId::new(2));
        assert_eq!((pruned.count(NodeId::new(1)), pruned.count(NodeId::new(2)), pruned.len()), (0, 7, 1));
    }

    fn any_clock() -> impl Strategy<Value = VectorClock> {
        proptest::collection::vec((0..4u64, 0..4u64), 0..5).prop_map(|counts| clock(&counts))
    }

    fn merged(a: &VectorClock, b: &VectorClock) -> VectorClock {
        let mut both = a.clone();
        both.merge(b);
        both
    }

    proptest! {
        /// Proves: R134
        #[test]
        fn a_merge_is_the_least_clock_that_holds_both(a in any_clock(), b in any_clock(), c in any_clock()) {
            let both = merged(&a, &b);
            prop_assert!(both.holds(&a) && both.holds(&b));
            prop_assert!(!(c.holds(&a) && c.holds(&b)) || c.holds(&both));
            prop_assert_eq!(&both, &merged(&b, &a));
            prop_assert_eq!(merged(&both, &c), merged(&a, &merged(&b, &c)));
            prop_assert_eq!(merged(&a, &a), a);
        }

        /// Proves: R134
        #[test]
        fn the_order_is_partial(a in any_clock(), b in any_clock(), c in any_clock()) {
            prop_assert_eq!(a.compare(&b) == ClockOrder::Same, a == b);
            prop_assert_eq!(a.compare(&b) == ClockOrder::Before, b.compare(&a) == ClockOrder::After);
            prop_assert!(!(a.holds(&b) && b.holds(&c)) || a.holds(&c));
        }
    }
}
