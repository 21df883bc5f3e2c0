//! Which node is to own which shard: the strategies of a coordinator.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::fmt;

use crate::identity::NodeId;
use crate::membership::MemberStatus;

/// Says where the shards of one kind should be.
///
/// # Every implementation
///
/// - *allocation_is_pure*: equal questions get equal answers.
/// - *allocation_names_targets*: only nodes of [`Allocations::targets`] get shards.
/// - *rebalance_is_bounded*: at most as many moves as asked for, each shard once, each from the node that owns it.
/// - *rebalance_ends*: carried out again and again, with nothing else changing, it comes to an empty answer.
pub trait AllocateShards: fmt::Debug + Send + Sync + 'static {
    /// The node that is to own a shard that nobody owns; none if there is no target.
    fn allocate(&self, allocations: &Allocations) -> Option<NodeId>;

    /// The next moves, most important first.
    fn rebalance(&self, allocations: &Allocations, most: usize) -> Vec<ShardMove>;
}

/// A shard that should go elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardMove {
    /// The shard.
    pub shard: u32,
    /// Who owns it.
    pub from: NodeId,
    /// Who should.
    pub to: NodeId,
}

/// A node that hosts the kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Host {
    /// Its status.
    pub status: MemberStatus,
    /// The version of its software, in numbers, as [`version_of`] reads it.
    pub version: Vec<u64>,
    /// How many actors are active there, as far as is known: what the node has measured, and what has come and gone with
    /// shards since.
    pub load: u64,
    /// Which of the node's measurements that is: another one has another number.
    pub measured: u32,
}

/// Who is there, and who owns what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Allocations {
    /// The nodes that host the kind.
    pub hosts: BTreeMap<NodeId, Host>,
    /// The owners of the shards.
    pub owners: BTreeMap<u32, NodeId>,
}

impl Allocations {
    /// The nodes that may get shards: those that are up and run the newest version that anybody does who is. While a cluster
    /// is upgraded node by node, a shard then moves to a new node once, and never back to an old one.
    pub fn targets(&self) -> Vec<NodeId> {
        targets(&self.hosts)
    }

    /// The moves that take from `leaver` what it owns, as `strategy` says; others may leave at the same time. Those that
    /// have refused a shard get none.
    pub fn away_from(
        &self,
        leaver: NodeId,
        unwilling: &BTreeSet<NodeId>,
        strategy: &dyn AllocateShards,
    ) -> Vec<ShardMove> {
        let mut now = self.clone();
        let refused = now.hosts.iter_mut().filter(|(node, _)| unwilling.contains(node));
        refused.filter(|(_, host)| host.status == MemberStatus::Up).for_each(|(_, host)| {
            host.status = MemberStatus::Joining;
        });
        // What others give away stands in the plan as well.
        let mut moves = strategy.rebalance(&now, now.owners.len());
        moves.retain(|step| step.from == leaver);
        moves
    }

    /// How many shards a node owns.
    pub fn count(&self, node: NodeId) -> usize {
        self.owners.values().filter(|owner| **owner == node).count()
    }
}

/// The nodes that may get shards, as [`Allocations::targets`] says.
pub(super) fn targets(hosts: &BTreeMap<NodeId, Host>) -> Vec<NodeId> {
    let up = hosts.iter().filter(|(_, host)| host.status == MemberStatus::Up);
    of_the_newest(up.map(|(node, host)| (*node, &host.version)))
}

/// Those of the newest version among them.
pub fn of_the_newest<T, V: Ord>(nodes: impl IntoIterator<Item = (T, V)>) -> Vec<T> {
    let nodes: Vec<(T, V)> = nodes.into_iter().collect();
    let newest = nodes.iter().map(|(_, version)| version).max();
    let keep: Vec<bool> = nodes.iter().map(|(_, version)| Some(version) == newest).collect();
    nodes.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|((node, _), _)| node).collect()
}

/// Reads the numbers of a version, `1.12.3-rc1` as 1, 12, 3; what is no number counts as none.
pub fn version_of(text: &str) -> Vec<u64> {
    let numbers = text.split(['-', '+']).next().unwrap_or_default();
    numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

/// A new shard goes to the node with the fewest; nodes with more than one too many give some away, the lowest shards of the
/// node with the most first. The default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LeastShards;

impl AllocateShards for LeastShards {
    fn allocate(&self, allocations: &Allocations) -> Option<NodeId> {
        Board::new(allocations).least()
    }

    fn rebalance(&self, allocations: &Allocations, most: usize) -> Vec<ShardMove> {
        plan(allocations, most, |now| {
            let to = now.least()?;
            let from = now.up().max_by_key(|node| (now.count(*node), core::cmp::Reverse(*node)))?;
            let uneven = now.count(from) > now.count(to) + 1;
            uneven.then_some(())?;
            Some(ShardMove { shard: now.first_of(from)?, from, to })
        })
    }
}

/// Weighs the actors that are active at a node, each shard of it counted as its share of them, and moves a shard only from
/// a node that has clearly more than another, and only if that stays so: few moves, rough balance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeighLoad {
    /// How much more, in percent, one node may have than another before a shard moves.
    pub slack: u32,
}

impl Default for WeighLoad {
    fn default() -> Self {
        Self { slack: 25 }
    }
}

impl AllocateShards for WeighLoad {
    fn allocate(&self, allocations: &Allocations) -> Option<NodeId> {
        let load = |node: &NodeId| allocations.hosts.get(node).map_or(0, |host| host.load);
        allocations.targets().into_iter().min_by_key(|node| (load(node), allocations.count(*node), *node))
    }

    fn rebalance(&self, allocations: &Allocations, most: usize) -> Vec<ShardMove> {
        let mut loads: BTreeMap<NodeId, u64> =
            allocations.hosts.iter().map(|(node, host)| (*node, host.load)).collect();
        plan(allocations, most, |now| {
            let to = now.targets.iter().copied().min_by_key(|node| (loads.get(node).copied(), *node))?;
            let from = now.up().filter(|node| now.count(*node) > 0);
            let from = from.max_by_key(|node| (loads.get(node).copied(), core::cmp::Reverse(*node)))?;
            let (high, low) = (*loads.get(&from)?, *loads.get(&to)?);
            let share = (high / now.count(from) as u64).max(1);
            let clearly = high.saturating_mul(100) > low.saturating_mul(100 + u64::from(self.slack));
            if from == to || !clearly || high - share < low + share {
                return None;
            }
            loads.insert(from, high - share);
            loads.insert(to, low + share);
            Some(ShardMove { shard: now.first_of(from)?, from, to })
        })
    }
}

/// Moves away from nodes that leave, then as `next` says, until enough or nothing is left to move. No shard moves twice.
fn plan(
    allocations: &Allocations,
    most: usize,
    mut next: impl FnMut(&Board<'_>) -> Option<ShardMove>,
) -> Vec<ShardMove> {
    let (mut now, mut moves, mut moved) = (Board::new(allocations), Vec::new(), BTreeSet::new());
    while moves.len() < most {
        let away = now.leaving().and_then(|(shard, from)| Some(ShardMove { shard, from, to: now.least()? }));
        let Some(step) = away.or_else(|| next(&now)) else { break };
        if !moved.insert(step.shard) {
            break;
        }
        now.carry_out(&step);
        moves.push(step);
    }
    moves
}

/// Who owns what while a plan is made: what a step needs to know is not counted anew for each.
struct Board<'a> {
    hosts: &'a BTreeMap<NodeId, Host>,
    targets: Vec<NodeId>,
    shards: BTreeMap<NodeId, BTreeSet<u32>>,
}

impl<'a> Board<'a> {
    fn new(allocations: &'a Allocations) -> Self {
        let mut shards = BTreeMap::<NodeId, BTreeSet<u32>>::new();
        for (shard, owner) in &allocations.owners {
            shards.entry(*owner).or_default().insert(*shard);
        }
        Self { hosts: &allocations.hosts, targets: allocations.targets(), shards }
    }

    fn carry_out(&mut self, step: &ShardMove) {
        self.shards.entry(step.from).or_default().remove(&step.shard);
        self.shards.entry(step.to).or_default().insert(step.shard);
    }

    fn count(&self, node: NodeId) -> usize {
        self.shards.get(&node).map_or(0, BTreeSet::len)
    }

    /// The target that owns the fewest shards; among equals the lowest id.
    fn least(&self) -> Option<NodeId> {
        self.targets.iter().copied().min_by_key(|node| (self.count(*node), *node))
    }

    /// The lowest shard of a node.
    fn first_of(&self, node: NodeId) -> Option<u32> {
        self.shards.get(&node)?.first().copied()
    }

    /// A shard of a node that leaves, the lowest first.
    fn leaving(&self) -> Option<(u32, NodeId)> {
        let leaving = self.hosts.iter().filter(|(_, host)| host.status == MemberStatus::Leaving);
        leaving.filter_map(|(node, _)| Some((self.first_of(*node)?, *node))).min()
    }

    /// The nodes that are up, targets or not.
    fn up(&self) -> impl Iterator<Item = NodeId> {
        self.hosts.iter().filter(|(_, host)| host.status == MemberStatus::Up).map(|(node, _)| *node)
    }
}

#[cfg(test)]
mod tests {
    use alloc::boxed::Box;

    use proptest::prelude::*;

    use super::*;

    fn host(status: MemberStatus, version: &str, load: u64) -> Host {
        Host { status, version: version_of(version), load, measured: 0 }
    }

    fn allocations(hosts: &[(u64, Host)], owners: &[u64]) -> Allocations {
        Allocations {
            hosts: hosts.iter().map(|(node, host)| (NodeId::new(*node), host.clone())).collect(),
            owners: (0..).zip(owners.iter().map(|node| NodeId::new(*node))).collect(),
        }
    }

    fn up() -> Host {
        host(MemberStatus::Up, "1.0.0", 0)
    }

    /// Proves: R299, R301
    #[test]
    fn a_new_shard_goes_to_the_node_with_the_fewest_and_among_equals_to_the_lowest() {
        let now = allocations(&[(1, up()), (2, up()), (3, up())], &[1, 1, 2, 3]);
        assert_eq!(LeastShards.allocate(&now), Some(NodeId::new(2)));
        assert_eq!(LeastShards.allocate(&Allocations::default()), None);
    }

    #[test]
    fn nobody_gets_a_shard_who_is_not_up_or_runs_an_older_version_than_others() {
        let hosts = [
            (1, host(MemberStatus::Leaving, "2.0.0", 0)),
            (2, host(MemberStatus::Up, "1.9.0", 0)),
            (3, host(MemberStatus::Up, "1.10.0-rc1", 0)),
            (4, host(MemberStatus::Joining, "1.10.0", 0)),
            (5, host(MemberStatus::Down, "1.10.0", 0)),
        ];
        let now = allocations(&hosts, &[1, 2, 2, 3, 3, 3, 3, 3]);
        assert_eq!(now.targets(), [NodeId::new(3)]);
        for strategy in [&LeastShards as &dyn AllocateShards, &WeighLoad::default()] {
            assert_eq!(strategy.allocate(&now), Some(NodeId::new(3)));
            let moves = strategy.rebalance(&now, 10);
            let away = ShardMove { shard: 0, from: NodeId::new(1), to: NodeId::new(3) };
            assert_eq!(moves, [away], "what a leaving node owns goes, what an old one owns stays");
        }
    }

    #[test]
    fn a_load_that_is_roughly_even_moves_nothing() {
        let loaded = |load| host(MemberStatus::Up, "1", load);
        let even = allocations(&[(1, loaded(100)), (2, loaded(120))], &[1, 1, 1, 1, 2]);
        assert_eq!(WeighLoad::default().rebalance(&even, 10), []);
        let uneven = allocations(&[(1, loaded(10)), (2, loaded(90))], &[1, 2, 2, 2]);
        let moves = WeighLoad::default().rebalance(&uneven, 10);
        assert_eq!(moves, [ShardMove { shard: 1, from: NodeId::new(2), to: NodeId::new(1) }]);
    }

    #[test]
    fn two_that_leave_at_once_both_hand_over_everything() {
        let leaving = || host(MemberStatus::Leaving, "1.0.0", 0);
        let now = allocations(&[(1, leaving()), (2, leaving()), (3, up()), (4, up())], &[1, 1, 1, 2, 2, 3]);
        for strategy in [&LeastShards as &dyn AllocateShards, &WeighLoad::default()] {
            for (leaver, owned) in [(1, [0, 1, 2].as_slice()), (2, &[3, 4])] {
                let moves = now.away_from(NodeId::new(leaver), &BTreeSet::new(), strategy);
                let shards: Vec<u32> = moves.iter().map(|step| step.shard).collect();
                assert_eq!(shards, owned, "{strategy:?}");
            }
        }
    }

    #[test]
    fn who_has_refused_a_shard_gets_none_and_the_others_get_all() {
        let leaving = host(MemberStatus::Leaving, "1.0.0", 0);
        let now = allocations(&[(1, leaving), (2, up()), (3, up())], &[1, 1, 1, 1]);
        let unwilling = BTreeSet::from([NodeId::new(2)]);
        let moves = now.away_from(NodeId::new(1), &unwilling, &LeastShards);
        assert_eq!(moves.len(), 4);
        assert!(moves.iter().all(|step| step.to == NodeId::new(3)), "{moves:?}");
        let all = BTreeSet::from([2, 3].map(NodeId::new));
        assert_eq!(now.away_from(NodeId::new(1), &all, &LeastShards), [], "nobody is left");
    }

    fn any_allocations() -> impl Strategy<Value = Allocations> {
        let status = prop_oneof![4 => Just(MemberStatus::Up), 1 => Just(MemberStatus::Leaving)];
        let hosts = prop::collection::vec((status, 0_u64..500), 1..7);
        (hosts, prop::collection::vec(0_usize..7, 0..40)).prop_map(|(hosts, owners)| {
            let known = hosts.len();
            let hosts: Vec<(u64, Host)> =
                (1..).zip(hosts.into_iter().map(|(status, load)| host(status, "1", load))).collect();
            let owners: Vec<u64> = owners.into_iter().map(|owner| (owner % known) as u64 + 1).collect();
            allocations(&hosts, &owners)
        })
    }

    proptest! {
        /// Proves: R286, R300
        #[test]
        fn rounds_of_least_shards_end_with_a_spread_of_one_and_move_no_more_than_needed(
            mut now in any_allocations(),
            most in 1_usize..9,
        ) {
            let targets = now.targets();
            prop_assume!(!targets.is_empty());
            let (each, over) = (now.owners.len() / targets.len(), now.owners.len() % targets.len());
            let mut counts: Vec<usize> = targets.iter().map(|node| now.count(*node)).collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            let kept: usize =
                counts.iter().enumerate().map(|(at, count)| (*count).min(each + usize::from(at < over))).sum();
            let needed = now.owners.len() - kept;
            let mut moved = 0;
            loop {
                let moves = LeastShards.rebalance(&now, most);
                prop_assert_eq!(&moves, &LeastShards.rebalance(&now.clone(), most), "same input, same output");
                prop_assert!(moves.len() <= most);
                if moves.is_empty() { break; }
                for step in moves {
                    prop_assert_eq!(now.owners.insert(step.shard, step.to), Some(step.from));
                    moved += 1;
                }
            }
            let counts: Vec<usize> = targets.iter().map(|node| now.count(*node)).collect();
            prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            prop_assert_eq!(moved, needed);
        }

        #[test]
        fn every_strategy_names_targets_moves_each_shard_once_and_within_bounds(
            now in any_allocations(),
            most in 0_usize..9,
        ) {
            let strategies: [Box<dyn AllocateShards>; 2] = [Box::new(LeastShards), Box::new(WeighLoad::default())];
            for strategy in strategies {
                let moves = strategy.rebalance(&now, most);
                prop_assert!(moves.len() <= most);
                for (at, step) in moves.iter().enumerate() {
                    prop_assert!(now.targets().contains(&step.to) && step.from != step.to);
                    prop_assert_eq!(now.owners.get(&step.shard), Some(&step.from));
                    prop_assert!(!moves[..at].iter().any(|other| other.shard == step.shard));
                }
            }
        }
    }
}
