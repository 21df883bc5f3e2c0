//! What nodes leave behind: shards that nobody serves any more, sessions that nobody has ended, and leases that nobody needs.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, OwnedKey};
use archipelago_protocol::placement::Local;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Simulation, World};

/// Whoever asks first owns a counter, and nothing moves for the sake of balance.
fn settings() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.placement = Arc::new(Local);
    settings.sharding.rebalance = false;
    settings
}

fn nodes(seed: u64, count: usize, settings: &NodeSettings) -> Simulation {
    Simulation::new(seed).nodes(count, settings, |node| node.actor::<Counter>())
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn tick(world: &World, by: usize, key: &str) -> Result<u32, CallError> {
    let counter = node(world, by).actor::<Counter>(key);
    let options = CallOptions::new().timeout(Duration::from_secs(20));
    from_outside(|| counter.send_with(Tick, options)).await
}

/// Who owns the shard of a counter, as the store has it.
async fn owner(world: &World, key: &str) -> Option<NodeId> {
    let any = (0..world.node_count()).find_map(|index| world.node(index)).expect("a node is up");
    let hash = any.actor::<Counter>(key).id().expect("the key is one").stable_hash();
    let shard = u32::try_from(hash % 256).expect("a shard is a small number");
    world.owner_of(0, &OwnedKey::shard(Kind::new("Counter").expect("a kind"), shard)).await
}

/// Proves: R285
#[test]
fn what_a_dead_node_has_owned_goes_to_others_though_nobody_asks_and_nothing_is_balanced() {
    nodes(1, 3, &settings()).run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        let leader = node(&world, 0).leader().expect("somebody leads");
        let dies = (0..3).find(|index| node(&world, *index).id() != leader).expect("two do not lead");
        let dead = node(&world, dies).id();
        for key in 0..8 {
            assert_eq!(tick(&world, dies, &key.to_string()).await, Ok(1));
            assert_eq!(owner(&world, &key.to_string()).await, Some(dead));
        }
        world.advance(Duration::from_secs(20)).await;
        assert_eq!(owner(&world, "0").await, Some(dead), "nothing is balanced");
        world.crash(dies).await;
        world.advance(Duration::from_secs(30)).await;
        for key in 0..8 {
            let now = owner(&world, &key.to_string()).await;
            assert!(now.is_some_and(|now| now != dead), "shard of {key} is at {now:?}");
        }
    });
}

/// The leader neither hosts the kind nor knows it.
#[test]
fn shards_of_a_kind_that_the_leader_does_not_know_are_balanced_and_inherited() {
    let bound = |index: usize| {
        let mut even = settings();
        even.sharding.rebalance = true;
        even.remote.bind = NodeAddress::new(&format!("node-{index}"), 7_000).expect("a plain address");
        even
    };
    let leads = move |node: NodeBuilder| node.settings(bound(0));
    let hosts = |index| move |node: NodeBuilder| node.settings(bound(index)).actor::<Counter>();
    let simulation = Simulation::new(1).with_network().without_observer().node(leads);
    simulation.node(hosts(1)).node(hosts(2)).run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        assert_eq!(node(&world, 1).leader(), Some(node(&world, 0).id()));
        let (dies, stays) = (node(&world, 1).id(), node(&world, 2).id());
        for key in 0..8 {
            assert_eq!(tick(&world, 1, &key.to_string()).await, Ok(1));
        }
        world.advance(Duration::from_secs(60)).await;
        let owned_by = async |by: NodeId| {
            let mut count = 0;
            for key in 0..8 {
                count += usize::from(owner(&world, &key.to_string()).await == Some(by));
            }
            count
        };
        assert_eq!((owned_by(dies).await, owned_by(stays).await), (4, 4), "spread evenly");
        world.crash(1).await;
        world.advance(Duration::from_secs(30)).await;
        assert_eq!(owned_by(stays).await, 8, "nothing is left without an owner");
    });
}

/// The store has lost the lease of the owner before any monitor that lives saw it: nobody but who is in its way finds out.
#[test]
fn an_owner_that_was_met_before_and_died_unseen_is_found_out_by_who_is_blocked_by_it() {
    for seed in 1..=3 {
        nodes(seed, 6, &settings()).run(async |world| {
            world.advance(Duration::from_secs(10)).await;
            let mut order: Vec<usize> = (0..6).collect();
            order.sort_by_key(|index| node(&world, *index).id());
            let (monitors, dies, asks) = (&order[..4], order[4], order[5]);
            assert_eq!(tick(&world, dies, "one").await, Ok(1));
            assert_eq!(tick(&world, asks, "one").await, Ok(2), "now they have met");
            for index in monitors {
                world.crash(*index).await;
            }
            assert!(world.expire_lease(dies).await);
            world.crash(dies).await;
            for index in monitors {
                world.restart_at_once(*index).await.expect("it starts");
            }
            let mut answer = tick(&world, asks, "one").await;
            for _ in 0..3 {
                if answer.is_err() {
                    answer = tick(&world, asks, "one").await;
                }
            }
            assert_eq!(answer, Ok(1), "seed {seed}: it lives again");
        });
    }
}

#[test]
fn the_lease_of_an_ended_session_goes_an_hour_after_its_end_and_not_before() {
    let mut slow = settings();
    (slow.session_ttl, slow.session_heartbeat) = (Millis(60_000), Millis(20_000));
    nodes(1, 4, &slow).run(async |world| {
        world.advance(Duration::from_secs(60)).await;
        let (dead, left) = (node(&world, 3).id(), node(&world, 2).id());
        world.crash(3).await;
        world.stop(2).await.expect("nothing is wrong");
        world.advance(Duration::from_secs(3_500)).await;
        assert!(
            world.knows_session(0, dead).await && world.knows_session(0, left).await,
            "they are evidence"
        );
        world.advance(Duration::from_secs(300)).await;
        assert!(!world.knows_session(0, dead).await && !world.knows_session(0, left).await);
        assert!(world.knows_session(0, node(&world, 0).id()).await, "who lives keeps its lease");
    });
}
