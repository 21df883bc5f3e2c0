//! Who watches all leases: the lowest three nodes that one can itself reach (MONITORS).

use alloc::collections::BTreeSet;

use crate::identity::NodeId;

/// How many nodes watch all leases when views agree; more are harmless, none would be fatal.
pub const MONITOR_COUNT: usize = 3;

/// Whether `me` watches all leases, given the nodes it deems reachable and not ended.
///
/// Counting only *reachable* nodes is what keeps this alive: three dead nodes that still stand in every list
/// would otherwise be the only ones allowed to end themselves.
pub fn is_monitor(me: NodeId, reachable: &BTreeSet<NodeId>) -> bool {
    reachable.iter().filter(|&&other| other < me).count() < MONITOR_COUNT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(ids: &[u64]) -> BTreeSet<NodeId> {
        ids.iter().map(|&id| NodeId::new(id)).collect()
    }

    #[test]
    fn the_lowest_three_monitor() {
        let all = nodes(&[1, 2, 3, 4, 5]);
        let monitors: alloc::vec::Vec<_> = all.iter().filter(|&&me| is_monitor(me, &all)).collect();
        assert_eq!(monitors, [&NodeId::new(1), &NodeId::new(2), &NodeId::new(3)]);
    }

    /// The mutant "lowest three Up" leaves nobody when those three die together.
    #[test]
    fn survivors_take_over_when_the_lowest_three_die() {
        let survivors = nodes(&[4, 5]);
        assert!(is_monitor(NodeId::new(4), &survivors) && is_monitor(NodeId::new(5), &survivors));
    }

    #[test]
    fn a_node_that_reaches_nobody_monitors() {
        assert!(is_monitor(NodeId::new(9), &BTreeSet::new()));
    }
}
