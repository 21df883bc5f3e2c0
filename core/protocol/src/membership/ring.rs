//! Who watches whom.
//!
//! Up to [`ALL_BELOW`] nodes everybody watches everybody. Above that the nodes form a ring in the order of their ids,
//! and each watches the nodes after it until it has passed [`NEIGHBOURS`] that are reachable. So every node, also
//! one that is not reachable, is watched by the nearest reachable nodes before it, and a split of any shape is
//! noticed on both sides.

use alloc::collections::BTreeSet;
use core::ops::Bound::{Excluded, Unbounded};

use crate::identity::NodeId;

/// Up to this many nodes everybody watches everybody.
pub const ALL_BELOW: usize = 50;
/// How many reachable nodes each watches in a greater cluster.
pub const NEIGHBOURS: usize = 10;

/// Whom `me` watches among `present`, given who is `suspected`.
pub fn watched_by(me: NodeId, present: &BTreeSet<NodeId>, suspected: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let after = present.range((Excluded(me), Unbounded)).chain(present.range(..me));
    until_enough(after, present.len(), suspected)
}

/// Who of the reachable watches `subject`.
pub fn watchers_of(
    subject: NodeId,
    present: &BTreeSet<NodeId>,
    suspected: &BTreeSet<NodeId>,
) -> BTreeSet<NodeId> {
    let before = present.range(..subject).rev().chain(present.range((Excluded(subject), Unbounded)).rev());
    let mut watchers = until_enough(before, present.len(), suspected);
    watchers.retain(|node| !suspected.contains(node));
    watchers
}

fn until_enough<'a>(
    ring: impl Iterator<Item = &'a NodeId>,
    len: usize,
    suspected: &BTreeSet<NodeId>,
) -> BTreeSet<NodeId> {
    let enough = if len <= ALL_BELOW { len } else { NEIGHBOURS };
    let mut reachable = 0;
    ring.copied()
        .take_while(|node| {
            let go_on = reachable < enough;
            reachable += usize::from(!suspected.contains(node));
            go_on
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn nodes(ids: impl IntoIterator<Item = u64>) -> BTreeSet<NodeId> {
        ids.into_iter().map(NodeId::new).collect()
    }

    /// Proves: R190, C50
    #[test]
    fn up_to_fifty_nodes_everybody_watches_everybody() {
        let all = nodes(1..=50);
        let watched = watched_by(NodeId::new(7), &all, &BTreeSet::new());
        assert_eq!(watched.len(), 49);
        assert!(!watched.contains(&NodeId::new(7)));
    }

    /// Proves: C50
    #[test]
    fn above_fifty_each_watches_the_next_ten_around_the_ring() {
        let all = nodes(1..=51);
        let watched = watched_by(NodeId::new(46), &all, &BTreeSet::new());
        assert_eq!(watched, nodes([47, 48, 49, 50, 51, 1, 2, 3, 4, 5]));
    }

    #[test]
    fn the_suspected_do_not_count_towards_the_ten() {
        let watched = watched_by(NodeId::new(1), &nodes(1..=60), &nodes(2..=30));
        assert_eq!(watched, nodes(2..=40));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn both_ways_round_the_ring_name_the_same_pairs(
            ids in proptest::collection::btree_set(0..400u64, 2..120),
            suspected in proptest::collection::btree_set(0..400u64, 0..80),
        ) {
            let present = nodes(ids);
            let suspected: BTreeSet<NodeId> = nodes(suspected).intersection(&present).copied().collect();
            let watchers: BTreeMap<NodeId, BTreeSet<NodeId>> =
                present.iter().map(|subject| (*subject, watchers_of(*subject, &present, &suspected))).collect();
            for &me in present.difference(&suspected) {
                let watched = watched_by(me, &present, &suspected);
                let watches = watchers.iter().filter(|(_, watchers)| watchers.contains(&me));
                prop_assert_eq!(watched, watches.map(|(subject, _)| *subject).collect::<BTreeSet<_>>());
            }
        }

        #[test]
        fn everybody_is_watched_while_anybody_is_reachable(
            ids in proptest::collection::btree_set(0..400u64, 2..120),
            reachable in any::<proptest::sample::Index>(),
        ) {
            let present = nodes(ids);
            let last = *reachable.get(&present.iter().copied().collect::<alloc::vec::Vec<_>>());
            let suspected: BTreeSet<NodeId> = present.iter().copied().filter(|node| *node != last).collect();
            for &subject in &suspected {
                prop_assert_eq!(watchers_of(subject, &present, &suspected), BTreeSet::from([last]));
            }
        }
    }
}
