//! Sharded kinds in virtual time: each with settings of its own, and routes that are known need nobody to ask.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::handoff::{AllocateShards, Allocations, ShardMove};
use archipelago::prelude::*;
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey};
use archipelago_protocol::placement::{Local, ShardCount};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeSettings, Sharding};
use archipelago_sim::{Faults, Simulation, World};

/// Another kind of counter.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick))]
struct Lasting(u32);

impl Actor for Lasting {
    type Context = Context<Self>;
}

impl Handler<Tick> for Lasting {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn two_hosts() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.placement = Arc::new(Local);
    Simulation::new(3).nodes(2, &settings, |node| {
        let few = ShardCount::new(4).expect("four is a number of shards");
        let brief = Sharding::new(|_: &_, _: &_| Counter::default()).shards(few);
        node.shard(brief.passivate_after(Millis(60_000))).actor::<Lasting>()
    })
}

async fn tick<A>(world: &World, by: usize) -> Result<u32, CallError>
where
    A: VirtualActor,
    Tick: archipelago_runtime::AcceptedBy<A>,
{
    let actor = world.node(by).expect("the node is up").actor::<A>("one");
    let options = CallOptions::new().timeout(Duration::from_secs(3));
    from_outside(|| actor.send_with(Tick, options)).await
}

/// Everything at the node with the highest id that may have it.
#[derive(Debug)]
struct AllAtTheHighest;

impl AllocateShards for AllAtTheHighest {
    fn allocate(&self, allocations: &Allocations) -> Option<NodeId> {
        allocations.targets().into_iter().max()
    }

    fn rebalance(&self, allocations: &Allocations, most: usize) -> Vec<ShardMove> {
        let Some(to) = self.allocate(allocations) else { return Vec::new() };
        let elsewhere = allocations.owners.iter().filter(|(_, owner)| **owner != to);
        elsewhere.map(|(shard, from)| ShardMove { shard: *shard, from: *from, to }).take(most).collect()
    }
}

async fn owners(world: &World, kind: &str, shards: u32) -> BTreeSet<NodeId> {
    let mut owners = BTreeSet::new();
    for shard in 0..shards {
        let key = OwnedKey::shard(Kind::new(kind).expect("a kind"), shard);
        owners.extend(world.owner_of(0, &key).await);
    }
    owners
}

async fn tick_many<A>(world: &World, by: usize)
where
    A: VirtualActor,
    Tick: archipelago_runtime::AcceptedBy<A>,
{
    for key in 0..30 {
        let actor = world.node(by).expect("the node is up").actor::<A>(key.to_string());
        let answer = from_outside(|| actor.send(Tick)).await;
        assert!(answer.is_ok(), "{answer:?}");
    }
}

/// Proves: R299
#[test]
fn a_kind_can_have_a_strategy_of_its_own_that_says_where_its_shards_should_be() {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    let world = Simulation::new(5).nodes(3, &settings, |node| {
        let few = ShardCount::new(8).expect("eight is a number of shards");
        let own = Sharding::new(|_: &_, _: &_| Counter::default()).shards(few);
        node.shard(own.allocation(Arc::new(AllAtTheHighest))).actor::<Lasting>()
    });
    world.run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        tick_many::<Counter>(&world, 0).await;
        tick_many::<Lasting>(&world, 0).await;
        world.advance(Duration::from_secs(30)).await;
        let highest = (0..3).filter_map(|index| world.node(index)).map(|node| node.id()).max();
        let counters = owners(&world, "Counter", 8).await;
        assert_eq!(counters.into_iter().collect::<Vec<_>>(), Vec::from_iter(highest));
        assert_eq!(owners(&world, "Lasting", 256).await.len(), 3, "the other kind is spread");
    });
}

/// Proves: R301
#[test]
fn while_nodes_of_different_versions_are_up_new_shards_go_to_the_newest_whoever_asks() {
    let of = |version: &str| {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(1);
        settings.placement = Arc::new(Local);
        settings.sharding.rebalance = false;
        version.clone_into(&mut settings.version);
        settings
    };
    let actors = |node: archipelago_runtime::NodeBuilder| node.actor::<Lasting>();
    let world = Simulation::new(6).nodes(2, &of("1.9.0"), actors).nodes(1, &of("1.10.0"), actors);
    world.run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        tick_many::<Lasting>(&world, 0).await;
        let newest = world.node(2).expect("the node is up").id();
        assert_eq!(owners(&world, "Lasting", 256).await, BTreeSet::from([newest]));
        world.stop(2).await.expect("nothing is wrong");
        tick_many::<Lasting>(&world, 0).await;
        let old = [0, 1].map(|index| world.node(index).expect("the node is up").id());
        assert!(owners(&world, "Lasting", 256).await.is_subset(&BTreeSet::from(old)), "and not without it");
    });
}

/// Proves: R434, R297
#[test]
fn each_kind_has_its_own_number_of_shards_and_its_own_idle_time() {
    two_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!((tick::<Counter>(&world, 0).await, tick::<Lasting>(&world, 0).await), (Ok(1), Ok(1)));
        world.advance(Duration::from_secs(50)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(2), "it was used and stays");
        world.advance(Duration::from_secs(50)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(3), "that was a minute ago, but not without use");
        world.advance(Duration::from_secs(62)).await;
        assert_eq!((tick::<Counter>(&world, 0).await, tick::<Lasting>(&world, 0).await), (Ok(1), Ok(2)));
        let node = world.node(0).expect("the node is up");
        let unknown = node.move_shard("Counter", 4, node.id()).await;
        assert!(unknown.is_err(), "this kind has four shards");
        let known = node.move_shard("Lasting", 255, node.id()).await;
        assert!(!matches!(&known, Err(CallError::UnknownKind { .. })), "and the other has 256: {known:?}");
    });
}

/// Proves: R291
#[test]
fn a_shard_whose_place_is_known_is_reached_without_asking_anybody() {
    two_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(1));
        assert_eq!(tick::<Counter>(&world, 1).await, Ok(2), "now the other node knows the place as well");
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        for count in 3..=20 {
            assert_eq!(tick::<Counter>(&world, 1).await, Ok(count), "no store is asked");
        }
        world.store_faults(Faults::default());
    });
}
