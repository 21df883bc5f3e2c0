//! Shards that move: a modest sweep under load, the same seed twice, and single moves step by step.

use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::handoff::{HandOffOutcome, RefuseReason};
use archipelago::prelude::*;
use archipelago_runtime::NodeSettings;
use archipelago_sim::{Simulation, Workload, World};

/// Proves: R298, R303, R304, R306, R307, R308, R309, R310
#[test]
fn shards_move_under_load_and_every_promise_holds() {
    crate::common::holds(Workload::Handoff, 60, LENGTH);
}

#[test]
fn the_same_seed_gives_the_same_run_with_moves() {
    crate::common::repeats(Workload::Handoff, &[2, 3], SHORT);
}

#[test]
fn the_same_seed_gives_the_same_run_with_moves_in_another_process() {
    crate::common::repeats_elsewhere(Workload::Handoff, 4, SHORT);
}

// ---- scripts ----

/// All three host the counters; whoever asks first owns them.
fn three_hosts() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.placement = std::sync::Arc::new(archipelago_protocol::placement::Local);
    Simulation::new(7).nodes(3, &settings, |node| node.actor::<Counter>())
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn tick(world: &World, index: usize) -> Result<u32, CallError> {
    let counter = node(world, index).actor::<Counter>("one");
    let options = CallOptions::new().timeout(Duration::from_secs(5));
    archipelago_runtime::env::from_outside(|| counter.send_with(Tick, options)).await
}

async fn move_to(world: &World, by: usize, to: usize) -> HandOffOutcome {
    let shard = node(world, by).actor::<Counter>("one").id().expect("the key is one").stable_hash() % 256;
    let target = node(world, to).id();
    let shard = u32::try_from(shard).expect("a shard is a small number");
    node(world, by).move_shard("Counter", shard, target).await.expect("the owner can be asked")
}

#[test]
fn a_shard_moves_when_any_node_orders_it_and_its_actors_begin_anew_there() {
    three_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        for count in 1..=3 {
            assert_eq!(tick(&world, 0).await, Ok(count));
        }
        assert!(matches!(move_to(&world, 2, 1).await, HandOffOutcome::Moved(_)));
        assert_eq!(tick(&world, 0).await, Ok(1), "an activation of the new owner counts from the beginning");
        assert_eq!(tick(&world, 2).await, Ok(2));
        assert_eq!(tick(&world, 1).await, Ok(3));
        assert!(matches!(move_to(&world, 0, 0).await, HandOffOutcome::Moved(_)), "and back");
        assert_eq!(tick(&world, 1).await, Ok(1));
    });
}

#[test]
fn an_order_that_makes_no_sense_is_refused_and_changes_nothing() {
    three_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(tick(&world, 0).await, Ok(1));
        let own = HandOffOutcome::Refused(RefuseReason::OwnTarget);
        assert_eq!(move_to(&world, 0, 0).await, own);
        let nobody = node(&world, 0).move_shard("Counter", 999, node(&world, 1).id()).await;
        assert!(nobody.is_err(), "there is no such shard");
        assert_eq!(tick(&world, 0).await, Ok(2), "the same activation goes on");
    });
}

#[test]
fn a_target_that_is_gone_leaves_the_shard_where_it_is() {
    three_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(tick(&world, 0).await, Ok(1));
        let target = node(&world, 1).id();
        world.crash(1).await;
        let shard = node(&world, 0).actor::<Counter>("one").id().expect("the key is one").stable_hash() % 256;
        let shard = u32::try_from(shard).expect("a shard is a small number");
        let outcome = node(&world, 0).move_shard("Counter", shard, target).await;
        assert!(matches!(outcome, Ok(HandOffOutcome::Stays(_))), "{outcome:?}");
        assert_eq!(tick(&world, 0).await, Ok(2), "the same activation goes on");
    });
}

const LENGTH: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(20);
