//! Which nodes to ask to own a shard that nobody owns.

use alloc::vec::Vec;
use core::fmt;

use crate::hash::{mix, stable_hash};
use crate::identity::{Kind, NodeId};

/// Puts the nodes that may own a shard into the order in which they are asked.
///
/// # Every implementation
///
/// - *choice_is_advice*: whatever it answers, at most one node comes to own the shard; a node that is not named is not asked.
/// - *choice_is_pure*: equal questions get equal answers. Chance comes in with the question.
pub trait ChooseNode: fmt::Debug + Send + Sync + 'static {
    /// The nodes to ask, best first. `candidates` host the kind and have not ended; they are in the order of their ids.
    fn order(&self, wanted: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId>;
}

/// A shard that needs an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wanted<'a> {
    /// The kind of its actors.
    pub kind: &'a Kind,
    /// Its number.
    pub number: u64,
    /// The node that asks.
    pub asker: NodeId,
    /// Chance, different for each question.
    pub random: u64,
}

/// A node that could own a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The node.
    pub node: NodeId,
    /// How many actors are active there, as far as is known.
    pub load: u64,
    /// Whether the asker has reason to believe that it cannot be reached.
    pub suspect: bool,
}

/// Spreads the shards evenly: each goes to the node that a hash of both ranks highest. A node that comes or goes changes the
/// choice for its own share only. The default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Spread;

/// The node that asks, then as [`Spread`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Local;

/// Any node, by chance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Random;

/// The node with the fewest active actors; equals as [`Spread`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeastLoaded;

impl ChooseNode for Spread {
    fn order(&self, wanted: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId> {
        ranked(candidates, |one| core::cmp::Reverse(weight(wanted, one.node)))
    }
}

impl ChooseNode for Local {
    fn order(&self, wanted: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId> {
        ranked(candidates, |one| (one.node != wanted.asker, core::cmp::Reverse(weight(wanted, one.node))))
    }
}

impl ChooseNode for Random {
    fn order(&self, wanted: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId> {
        ranked(candidates, |one| mix(wanted.random ^ one.node.as_u64()))
    }
}

impl ChooseNode for LeastLoaded {
    fn order(&self, wanted: &Wanted<'_>, candidates: &[Candidate]) -> Vec<NodeId> {
        ranked(candidates, |one| (one.load, core::cmp::Reverse(weight(wanted, one.node))))
    }
}

/// By `rank`, lowest first; whoever is suspect comes after all others.
fn ranked<K: Ord>(candidates: &[Candidate], rank: impl Fn(&Candidate) -> K) -> Vec<NodeId> {
    let mut order: Vec<&Candidate> = candidates.iter().collect();
    order.sort_by_cached_key(|one| (one.suspect, rank(one), one.node));
    order.into_iter().map(|one| one.node).collect()
}

/// How much a node wants a shard.
fn weight(wanted: &Wanted<'_>, node: NodeId) -> u64 {
    mix(stable_hash(wanted.kind.as_str().as_bytes()) ^ mix(wanted.number) ^ node.as_u64())
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;

    fn candidates(nodes: impl IntoIterator<Item = u64>) -> Vec<Candidate> {
        let one = |id: u64| Candidate { node: NodeId::new(id), load: 0, suspect: false };
        nodes.into_iter().map(one).collect()
    }

    fn ask(strategy: &dyn ChooseNode, number: u64, candidates: &[Candidate]) -> Vec<NodeId> {
        let kind = Kind::new("Account").unwrap();
        let wanted = Wanted { kind: &kind, number, asker: NodeId::new(2), random: number * 77 };
        strategy.order(&wanted, candidates)
    }

    fn shares(strategy: &dyn ChooseNode, candidates: &[Candidate]) -> BTreeMap<NodeId, usize> {
        let mut shares = BTreeMap::new();
        for number in 0..256 {
            *shares.entry(ask(strategy, number, candidates)[0]).or_default() += 1;
        }
        shares
    }

    /// Proves: R237, R240
    #[test]
    fn shards_are_spread_evenly() {
        for strategy in [&Spread as &dyn ChooseNode, &Random] {
            let shares = shares(strategy, &candidates([1, 2, 3, 4]));
            assert!(shares.values().all(|share| (40..=90).contains(share)), "{strategy:?}: {shares:?}");
        }
    }

    #[test]
    fn a_node_that_goes_leaves_the_choice_for_the_others_alone() {
        let (all, left) = (candidates([1, 2, 3, 4]), candidates([1, 2, 4]));
        for number in 0..256 {
            let before = ask(&Spread, number, &all)[0];
            if before != NodeId::new(3) {
                assert_eq!(ask(&Spread, number, &left)[0], before);
            }
        }
    }

    #[test]
    fn everybody_chooses_alike() {
        let kind = Kind::new("Account").unwrap();
        let of = |asker: u64| Wanted { kind: &kind, number: 9, asker: NodeId::new(asker), random: asker };
        let nodes = candidates(1..9);
        assert_eq!(Spread.order(&of(1), &nodes), Spread.order(&of(5), &nodes));
    }

    /// Proves: R239
    #[test]
    fn local_prefers_the_asker_and_least_loaded_the_idle() {
        let mut nodes = candidates([1, 2, 3]);
        assert!((0..32).all(|number| ask(&Local, number, &nodes)[0] == NodeId::new(2)));
        nodes[0].load = 5;
        nodes[1].load = 9;
        let order = ask(&LeastLoaded, 7, &nodes);
        assert_eq!(order, [3, 1, 2].map(NodeId::new));
    }

    #[test]
    fn a_suspect_is_asked_last() {
        let mut nodes = candidates([1, 2, 3]);
        nodes[1].suspect = true;
        for strategy in [&Spread as &dyn ChooseNode, &Local, &Random, &LeastLoaded] {
            assert!((0..64).all(|number| ask(strategy, number, &nodes)[2] == NodeId::new(2)));
        }
    }

    #[test]
    fn nobody_is_left_out_and_nobody_is_named_twice() {
        for strategy in [&Spread as &dyn ChooseNode, &Local, &Random, &LeastLoaded] {
            let mut order = ask(strategy, 3, &candidates(1..6));
            order.sort();
            assert_eq!(order, (1..6).map(NodeId::new).collect::<Vec<_>>());
        }
        assert!(ask(&Spread, 3, &[]).is_empty());
    }
}
