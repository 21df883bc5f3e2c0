//! A coordinator that weighs loads, and the nodes that it moves shards between, which measure themselves every five seconds.

use proptest::prelude::*;

use super::*;
use crate::handoff::allocate::WeighLoad;

/// What the nodes have: each shard an owner, a generation and a weight.
struct World {
    coordinator: Coordinator,
    nodes: u64,
    shards: Vec<(u64, u64, u64)>,
    orders: Vec<Millis>,
}

impl World {
    /// The owners count from 1.
    fn new(nodes: u64, shards: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let coordinator = Coordinator::new(Millis(0), CoordinatorLimits::default());
        let shards = shards.into_iter().map(|(owner, weight)| (owner, 1, weight)).collect();
        let mut world = Self { coordinator, nodes, shards, orders: Vec::new() };
        world.measure(Millis(0), 1);
        for number in 0..world.shards.len() {
            let (owner, generation, _) = world.shards[number];
            world.tell(Millis(0), record(number as u32, NodeId::new(owner), generation));
        }
        world
    }

    /// Every order is carried out at once, and the owner says so; the record comes as well.
    fn tell(&mut self, now: Millis, event: CoordinatorEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for action in self.coordinator.handle(now, event, &WeighLoad::default()) {
                let CoordinatorAction::HandOff { shard, owner, generation, to } = action else { continue };
                let (at, known, _) = &mut self.shards[shard as usize];
                assert_eq!(
                    (NodeId::new(*at), Generation::new(*known)),
                    (owner, generation),
                    "asks who has it"
                );
                (*at, *known) = (to.as_u64(), *known + 1);
                let moved = Some(Hint { owner: to, generation: Generation::new(*known) });
                events.push(CoordinatorEvent::Done { shard, generation, moved });
                events.push(record(shard, to, *known));
                self.orders.push(now);
            }
        }
    }

    fn load(&self, node: u64) -> u64 {
        self.shards.iter().filter(|(owner, ..)| *owner == node).map(|(.., weight)| weight).sum()
    }

    fn measure(&mut self, now: Millis, measured: u32) {
        let host = |load| Host { status: MemberStatus::Up, version: version_of("1.0"), load, measured };
        let hosts = (1..=self.nodes).map(|node| (NodeId::new(node), host(self.load(node)))).collect();
        self.tell(now, CoordinatorEvent::Hosts(hosts));
    }

    /// Lets seconds pass, in each of which the coordinator begins a round.
    fn run(&mut self, seconds: core::ops::Range<u64>) {
        for second in seconds {
            let now = Millis(second * 1_000);
            if second % 5 == 0 {
                self.measure(now, second as u32 + 2);
            }
            self.tell(now, CoordinatorEvent::WokeUp);
        }
    }
}

/// Proves: R300
#[test]
fn between_two_measurements_no_more_moves_than_balances() {
    let mut world = World::new(2, (0..40).map(|_| (1, 10)));
    world.run(5..9);
    assert_eq!(world.orders.len(), 18, "the last of them leave 220 and 180, which is roughly even");
    world.run(9..120);
    assert_eq!(world.orders.len(), 18, "and that is how it stays");
}

#[test]
fn the_orphans_of_a_dead_node_are_spread() {
    let mut world =
        World::new(3, (0..30).map(|number| (1 + number % 3, if number % 3 == 0 { 90 } else { 100 })));
    let dead = NodeId::new(9);
    let mut placed = BTreeMap::<NodeId, usize>::new();
    for shard in 100..130 {
        let hint = Some(Hint { owner: dead, generation: Generation::new(1) });
        let orphan = CoordinatorEvent::Record { shard, record: hint, ended: true };
        for action in world.coordinator.handle(Millis(10), orphan, &WeighLoad::default()) {
            if let CoordinatorAction::Allocate { node, .. } = action {
                *placed.entry(node).or_default() += 1;
            }
        }
    }
    // The first has the least to do, but not by 30 shards.
    assert_eq!(placed.into_values().collect::<Vec<_>>(), [11, 10, 9]);
}

proptest! {
    /// The rule `rebalance_ends` of a strategy, for loads that are measured now and then.
    #[test]
    fn rebalance_ends_though_loads_are_measured_late(
        nodes in 2_u64..6,
        owners in prop::collection::vec(1_u64..6, 1..60),
        weight in 0_u64..30,
    ) {
        let mut world = World::new(nodes, owners.into_iter().map(|owner| (1 + owner % nodes, weight)));
        world.run(5..60);
        let (orders, shards) = (world.orders.len(), world.shards.len());
        prop_assert!(orders <= shards, "{orders} moves of {shards} shards");
        world.run(60..120);
        prop_assert_eq!(world.orders.len(), orders, "it has come to an end");
    }
}
