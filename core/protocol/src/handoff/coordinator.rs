//! What the coordinator of a kind does about each of its shards. It only asks; it writes nothing.
//!
//! [`Coordinator`] has soft state: it may be lost at any time and another may begin anew, even while the first still runs,
//! because owners move their shards themselves and claims are compare-and-swap. It asks owners to hand shards over as its
//! [`AllocateShards`] says, within limits, and nodes to claim what nobody owns. Sending is left to the shell.
//!
//! Invariants: at most one question per shard is open; no node is asked to take a shard that is no target.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::allocate::{AllocateShards, Allocations, Host, ShardMove};
use super::limits::pause;
use crate::identity::{Generation, NodeId};
use crate::link::Hint;
use crate::time::Millis;

/// How much a coordinator asks for, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorLimits {
    /// How many shards one node hands over at a time.
    pub per_source: usize,
    /// How many shards one node takes at a time.
    pub per_target: usize,
    /// How many moves one round begins, some of them when others have ended.
    pub per_round: usize,
    /// How long it waits before its first rebalance, so that the orders of an earlier coordinator run out.
    pub settle_in: Millis,
    /// The distance between two rounds.
    pub round: Millis,
    /// How long an order may take.
    pub ask: Millis,
    /// The first and the longest pause after an order that came to nothing.
    pub backoff: (Millis, Millis),
    /// How long a node may take to claim before the next is asked.
    pub place: Millis,
}

impl Default for CoordinatorLimits {
    fn default() -> Self {
        Self {
            per_source: 8,
            per_target: 4,
            per_round: 32,
            settle_in: Millis(5_000),
            round: Millis(1_000),
            ask: Millis(5_000),
            backoff: (Millis(10_000), Millis(300_000)),
            place: Millis(2_000),
        }
    }
}

/// The coordinator of the shards of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    limits: CoordinatorLimits,
    hosts: BTreeMap<NodeId, Host>,
    shards: BTreeMap<u32, Shard>,
    /// When the next round begins; not before the first one is a shard moved.
    round_at: Millis,
    /// How many moves this round may still begin.
    left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shard {
    /// The record, and whether its owner's session has ended.
    record: Option<(Hint, bool)>,
    state: ShardState,
    /// How many orders in a row came to nothing.
    failures: u32,
}

/// How things stand with one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardState {
    /// Nothing is open.
    Steady,
    /// Its owner was asked to hand it over.
    Asked {
        /// The generation that is to move.
        generation: Generation,
        /// To whom.
        to: NodeId,
        /// How long an answer is waited for.
        until: Millis,
    },
    /// A node was asked to claim it.
    Placing {
        /// The node.
        node: NodeId,
        /// When the next one is asked.
        until: Millis,
    },
    /// An order came to nothing; no other until then.
    Backoff {
        /// Until when.
        until: Millis,
    },
}

/// What reaches the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorEvent {
    /// The nodes that host the kind, all of them.
    Hosts(BTreeMap<NodeId, Host>),
    /// The record of a shard, as the store shows it; `ended`: its owner's session has.
    Record {
        /// The shard.
        shard: u32,
        /// The record; none if there is none.
        record: Option<Hint>,
        /// Whether the owner's session has ended.
        ended: bool,
    },
    /// Somebody has messages for a shard (`GetShardLocation`).
    Wanted(u32),
    /// The owner says what became of an order.
    Done {
        /// The shard.
        shard: u32,
        /// The generation of the order.
        generation: Generation,
        /// Whether the shard has gone.
        moved: bool,
    },
    /// Time has passed.
    WokeUp,
}

/// What the shell does about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorAction {
    /// Ask the owner to hand the shard over.
    HandOff {
        /// The shard.
        shard: u32,
        /// Its owner.
        owner: NodeId,
        /// The generation that is to move.
        generation: Generation,
        /// To whom.
        to: NodeId,
    },
    /// Ask a node to claim the shard.
    Allocate {
        /// The shard.
        shard: u32,
        /// Whom to ask.
        node: NodeId,
        /// The generation of the record that stands; none if there is no record.
        expect: Option<Generation>,
    },
    /// Wake the machine at this time.
    WakeAt(Millis),
}

impl Coordinator {
    /// A coordinator that takes office now and knows nothing yet.
    pub fn new(now: Millis, limits: CoordinatorLimits) -> Self {
        let round_at = now + limits.settle_in;
        Self { limits, hosts: BTreeMap::new(), shards: BTreeMap::new(), round_at, left: 0 }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(
        &mut self,
        now: Millis,
        event: CoordinatorEvent,
        strategy: &dyn AllocateShards,
    ) -> Vec<CoordinatorAction> {
        let mut out = Vec::new();
        match event {
            CoordinatorEvent::Hosts(hosts) => self.hosts = hosts,
            CoordinatorEvent::Record { shard, record, ended } => {
                self.on_record(now, shard, record.map(|hint| (hint, ended)), strategy, &mut out);
                self.rebalance(now, strategy, &mut out);
            }
            CoordinatorEvent::Wanted(shard) => self.place(now, shard, strategy, &mut out),
            CoordinatorEvent::Done { shard, generation, moved } => {
                self.on_done(now, shard, generation, moved);
                self.rebalance(now, strategy, &mut out);
            }
            CoordinatorEvent::WokeUp => self.on_woke_up(now, strategy, &mut out),
        }
        out.extend(self.due().map(CoordinatorAction::WakeAt));
        out
    }

    /// How things stand with a shard.
    pub fn state(&self, shard: u32) -> ShardState {
        self.shards.get(&shard).map_or(ShardState::Steady, |shard| shard.state)
    }

    /// An owner that died with its shard leaves an orphan, which is placed at once; one that nobody has asked for is not.
    fn on_record(
        &mut self,
        now: Millis,
        number: u32,
        record: Option<(Hint, bool)>,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) {
        let shard = self.shards.entry(number).or_insert(Shard::NEW);
        let generation = |record: Option<(Hint, bool)>| record.map(|(hint, _)| hint.generation);
        if generation(record) > generation(shard.record) {
            shard.state = ShardState::Steady;
            shard.failures = 0;
        }
        shard.record = record;
        if record.is_some_and(|(_, ended)| ended) {
            self.place(now, number, strategy, out);
        }
    }

    fn place(
        &mut self,
        now: Millis,
        number: u32,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) {
        let shard = *self.shards.entry(number).or_insert(Shard::NEW);
        let owned = shard.record.is_some_and(|(_, ended)| !ended);
        let asked_before = match shard.state {
            ShardState::Placing { until, .. } if now < until => return,
            ShardState::Placing { node, .. } => Some(node),
            _ => None,
        };
        let Some(node) = self.next_place(strategy, asked_before).filter(|_| !owned) else { return };
        let state = ShardState::Placing { node, until: now + self.limits.place };
        self.shards.insert(number, Shard { state, ..shard });
        let expect = shard.record.map(|(hint, _)| hint.generation);
        out.push(CoordinatorAction::Allocate { shard: number, node, expect });
    }

    /// The strategy's choice; if that one was asked in vain, the next target after it.
    fn next_place(&self, strategy: &dyn AllocateShards, in_vain: Option<NodeId>) -> Option<NodeId> {
        let allocations = self.allocations();
        let Some(in_vain) = in_vain else { return strategy.allocate(&allocations) };
        let targets = allocations.targets();
        targets.iter().find(|node| **node > in_vain).or(targets.first()).copied()
    }

    fn on_done(&mut self, now: Millis, number: u32, generation: Generation, moved: bool) {
        if let Some(shard) = self.shards.get_mut(&number)
            && matches!(shard.state, ShardState::Asked { generation: asked, .. } if asked == generation)
        {
            shard.end(now, moved, &self.limits);
        }
    }

    fn on_woke_up(&mut self, now: Millis, strategy: &dyn AllocateShards, out: &mut Vec<CoordinatorAction>) {
        for number in self.shards.keys().copied().collect::<Vec<_>>() {
            let Some(shard) = self.shards.get_mut(&number) else { continue };
            match shard.state {
                ShardState::Asked { until, .. } if until <= now => shard.end(now, false, &self.limits),
                ShardState::Backoff { until } if until <= now => shard.state = ShardState::Steady,
                ShardState::Placing { until, .. } if until <= now => self.place(now, number, strategy, out),
                _ => {}
            }
        }
        if self.round_at <= now {
            self.round_at = now + self.limits.round;
            self.left = self.limits.per_round;
            self.rebalance(now, strategy, out);
        }
    }

    /// Begins as many moves as this round and the nodes have room for.
    fn rebalance(&mut self, now: Millis, strategy: &dyn AllocateShards, out: &mut Vec<CoordinatorAction>) {
        if self.left == 0 {
            return;
        }
        let allocations = self.allocations();
        let targets = allocations.targets();
        for ShardMove { shard: number, from, to } in strategy.rebalance(&allocations, self.shards.len()) {
            let sources = self.asked().filter(|(owner, _)| *owner == from).count();
            let taking = self.asked().filter(|(_, target)| *target == to).count();
            let allowed = sources < self.limits.per_source
                && taking < self.limits.per_target
                && self.left > 0
                && targets.contains(&to);
            let until = now + self.limits.ask;
            if let Some(shard) = self.shards.get_mut(&number)
                && let (Some((hint, false)), ShardState::Steady, true) = (shard.record, shard.state, allowed)
                && hint.owner == from
            {
                let generation = hint.generation;
                shard.state = ShardState::Asked { generation, to, until };
                self.left -= 1;
                out.push(CoordinatorAction::HandOff { shard: number, owner: from, generation, to });
            }
        }
    }

    /// From whom to whom the orders that are open go.
    fn asked(&self) -> impl Iterator<Item = (NodeId, NodeId)> {
        self.shards.values().filter_map(|shard| match (shard.state, shard.record) {
            (ShardState::Asked { to, .. }, Some((hint, _))) => Some((hint.owner, to)),
            _ => None,
        })
    }

    /// Shards that were ordered to move count where they go.
    fn allocations(&self) -> Allocations {
        let owner = |shard: &Shard| match (shard.state, shard.record) {
            (ShardState::Asked { to, .. }, _) | (ShardState::Placing { node: to, .. }, _) => Some(to),
            (_, Some((hint, false))) => Some(hint.owner),
            _ => None,
        };
        let owners =
            self.shards.iter().filter_map(|(number, shard)| Some((*number, owner(shard)?))).collect();
        Allocations { hosts: self.hosts.clone(), owners }
    }

    fn due(&self) -> Option<Millis> {
        let waits = self.shards.values().filter_map(|shard| match shard.state {
            ShardState::Steady => None,
            ShardState::Asked { until, .. }
            | ShardState::Placing { until, .. }
            | ShardState::Backoff { until } => Some(until),
        });
        waits.chain([self.round_at]).min()
    }
}

impl Shard {
    const NEW: Self = Self { record: None, state: ShardState::Steady, failures: 0 };

    /// An order has ended; if it came to nothing, the next one waits longer each time.
    fn end(&mut self, now: Millis, moved: bool, limits: &CoordinatorLimits) {
        if moved {
            self.state = ShardState::Steady;
        } else {
            self.state = ShardState::Backoff { until: now + pause(limits.backoff, self.failures) };
            self.failures = self.failures.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handoff::allocate::{LeastShards, version_of};
    use crate::membership::MemberStatus;

    const A: NodeId = NodeId::new(1);
    const B: NodeId = NodeId::new(2);

    fn hosts(statuses: &[(NodeId, MemberStatus)]) -> CoordinatorEvent {
        let host = |status| Host { status, version: version_of("1.0"), load: 0 };
        CoordinatorEvent::Hosts(statuses.iter().map(|(node, status)| (*node, host(*status))).collect())
    }

    fn record(shard: u32, owner: NodeId, generation: u64) -> CoordinatorEvent {
        let record = Some(Hint { owner, generation: Generation::new(generation) });
        CoordinatorEvent::Record { shard, record, ended: false }
    }

    fn tell(coordinator: &mut Coordinator, now: u64, event: CoordinatorEvent) -> Vec<CoordinatorAction> {
        let mut actions = coordinator.handle(Millis(now), event, &LeastShards);
        actions.retain(|action| !matches!(action, CoordinatorAction::WakeAt(_)));
        actions
    }

    /// A owns all of `shards`; B has just joined.
    fn unbalanced(shards: u32) -> Coordinator {
        let mut coordinator = Coordinator::new(Millis(0), CoordinatorLimits::default());
        tell(&mut coordinator, 0, hosts(&[(A, MemberStatus::Up), (B, MemberStatus::Up)]));
        (0..shards).for_each(|shard| assert!(tell(&mut coordinator, 0, record(shard, A, 1)).is_empty()));
        coordinator
    }

    /// Proves: R284, R287, R302
    #[test]
    fn the_first_rebalance_comes_after_five_seconds_and_asks_within_limits() {
        let mut coordinator = unbalanced(40);
        assert!(tell(&mut coordinator, 4_999, CoordinatorEvent::WokeUp).is_empty());
        let orders = tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp);
        assert_eq!(orders.len(), 4, "four per target");
        let (shard, generation) = (0, Generation::new(1));
        assert_eq!(orders[0], CoordinatorAction::HandOff { shard, owner: A, generation, to: B });
        assert!(tell(&mut coordinator, 6_000, CoordinatorEvent::WokeUp).is_empty(), "four are open");
        assert_eq!(tell(&mut coordinator, 6_500, record(0, B, 2)).len(), 1, "one goes and the next begins");
        assert_eq!(coordinator.state(0), ShardState::Steady, "the record tells");
        assert!(tell(&mut coordinator, 7_000, CoordinatorEvent::WokeUp).is_empty(), "four are open");
    }

    #[test]
    fn a_round_begins_no_more_moves_than_it_may_however_fast_they_end() {
        let mut coordinator = unbalanced(200);
        let begins = |actions: &[CoordinatorAction]| actions.len();
        let mut begun = begins(&tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp));
        for shard in 0..200 {
            if matches!(coordinator.state(shard), ShardState::Asked { .. }) {
                begun += begins(&tell(&mut coordinator, 5_100, record(shard, B, 2)));
            }
        }
        assert_eq!(begun, CoordinatorLimits::default().per_round);
        assert_eq!(tell(&mut coordinator, 6_000, CoordinatorEvent::WokeUp).len(), 4, "the next round");
    }

    #[test]
    fn one_source_hands_over_eight_at_a_time() {
        let mut coordinator = unbalanced(60);
        let up = [A, B, NodeId::new(3), NodeId::new(4), NodeId::new(5)].map(|node| (node, MemberStatus::Up));
        tell(&mut coordinator, 0, hosts(&up));
        assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 8);
    }

    #[test]
    fn an_order_without_result_is_repeated_after_growing_pauses() {
        let mut coordinator = unbalanced(2);
        let backoff = |until| ShardState::Backoff { until: Millis(until) };
        assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 1);
        let done = CoordinatorEvent::Done { shard: 0, generation: Generation::new(1), moved: false };
        tell(&mut coordinator, 6_000, done);
        assert_eq!(coordinator.state(0), backoff(16_000));
        tell(&mut coordinator, 16_000, CoordinatorEvent::WokeUp);
        assert!(matches!(coordinator.state(0), ShardState::Asked { .. }));
        tell(&mut coordinator, 21_000, CoordinatorEvent::WokeUp);
        assert_eq!(coordinator.state(0), backoff(41_000), "no answer in five seconds, twice the pause");
    }

    /// Proves: R285
    #[test]
    fn an_orphan_is_placed_at_once_and_the_next_node_is_asked_after_two_seconds() {
        let mut coordinator = unbalanced(0);
        let hint = Hint { owner: NodeId::new(9), generation: Generation::new(3) };
        let orphan = CoordinatorEvent::Record { shard: 7, record: Some(hint), ended: true };
        let allocate = |node, expect| CoordinatorAction::Allocate { shard: 7, node, expect };
        let expect = Some(Generation::new(3));
        assert_eq!(tell(&mut coordinator, 10, orphan), [allocate(A, expect)]);
        assert!(tell(&mut coordinator, 20, CoordinatorEvent::Wanted(7)).is_empty(), "one was asked");
        assert_eq!(tell(&mut coordinator, 2_010, CoordinatorEvent::WokeUp), [allocate(B, expect)]);
        tell(&mut coordinator, 2_020, record(7, B, 4));
        assert_eq!(coordinator.state(7), ShardState::Steady);
        assert!(tell(&mut coordinator, 2_030, CoordinatorEvent::Wanted(7)).is_empty(), "somebody owns it");
    }

    /// Proves: R292
    #[test]
    fn a_shard_without_a_record_is_placed_when_it_is_wanted() {
        let mut coordinator = unbalanced(0);
        let allocate = CoordinatorAction::Allocate { shard: 7, node: A, expect: None };
        assert_eq!(tell(&mut coordinator, 0, CoordinatorEvent::Wanted(7)), [allocate]);
    }

    #[test]
    fn what_a_leaving_node_owns_goes_to_one_that_stays() {
        let mut coordinator = unbalanced(1);
        tell(&mut coordinator, 0, hosts(&[(A, MemberStatus::Leaving), (B, MemberStatus::Up)]));
        assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 1);
        let mut alone = unbalanced(1);
        tell(&mut alone, 0, hosts(&[(A, MemberStatus::Leaving), (B, MemberStatus::Joining)]));
        assert!(tell(&mut alone, 5_000, CoordinatorEvent::WokeUp).is_empty(), "nobody is up");
    }
}
