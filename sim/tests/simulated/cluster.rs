//! A modest sweep of the workload of a cluster, the same seed twice, and sessions that only the nodes themselves end.

use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::ArbiterRole;
use archipelago_sim::{Simulation, Workload, World};

#[test]
fn a_hundred_seeds_of_a_cluster_hold_every_promise_and_meet_every_difficulty() {
    crate::common::holds(Workload::Cluster, 100, LENGTH);
}

#[test]
fn the_same_seed_gives_the_same_run_of_a_cluster() {
    crate::common::repeats(Workload::Cluster, &[2, 3, 12], SHORT);
}

#[test]
fn the_same_seed_gives_the_same_run_of_a_cluster_in_another_process() {
    crate::common::repeats_elsewhere(Workload::Cluster, 14, SHORT);
}

// ---- scripts ----

/// Both nodes host the counters, and nobody else ends their sessions.
fn two_hosts() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    Simulation::new(5).nodes(2, &settings, |node| node.actor::<Counter>())
}

/// Asks `count` counters through node `index`; how many answer in time.
async fn answered(world: &World, index: usize, count: usize, millis: u64) -> usize {
    let node = world.node(index).expect("the node is up");
    let mut answered = 0;
    for key in 0..count {
        let counter = node.actor::<Counter>(key.to_string());
        let options = CallOptions::new().timeout(Duration::from_millis(millis));
        let call = archipelago_runtime::env::from_outside(|| counter.send_with(Tick, options));
        answered += usize::from(call.await.is_ok());
    }
    answered
}

#[test]
fn a_node_ends_the_session_of_one_that_crashed_and_serves_what_it_had() {
    two_hosts().run(async |world| {
        // Work is given to members that take part.
        world.advance(Duration::from_secs(10)).await;
        assert_eq!(answered(&world, 0, 16, 5_000).await, 16);
        world.crash(1).await;
        let crashed = world.now();
        // The call by which the loss is noticed is lost with the node, and its caller is told so.
        assert!(answered(&world, 0, 16, 10_000).await >= 15);
        let took = world.now() - crashed;
        assert!(took >= Duration::from_secs(2), "what the other node had was taken too early: {took:?}");
        assert_eq!(answered(&world, 0, 16, 5_000).await, 16);
    });
}

#[test]
fn without_others_a_crashed_node_finds_its_own_last_session_in_the_way_and_ends_it() {
    two_hosts().run(async |world| {
        assert_eq!(answered(&world, 0, 16, 5_000).await, 16);
        world.crash(0).await;
        world.crash(1).await;
        world.restart_at_once(0).await.unwrap();
        assert_eq!(answered(&world, 0, 16, 15_000).await, 16);
    });
}

/// Whether node 1 ever suspects node 0, whose control arbiter is stuck for a while, if it talks to an actor there meanwhile.
fn is_suspected(talks: bool) -> bool {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    // The session of node 0 outlives what happens to it.
    settings.session_ttl = Millis(120_000);
    settings.placement = std::sync::Arc::new(archipelago_protocol::placement::Local);
    let run = Simulation::new(5).nodes(2, &settings, |node| node.actor::<Counter>()).run(async |world| {
        world.advance(Duration::from_secs(10)).await;
        assert_eq!(answered(&world, 0, 1, 5_000).await, 1);
        assert_eq!(answered(&world, 1, 1, 5_000).await, 1);
        world.block_arbiter(0, ArbiterRole::Control, true);
        let (node, other) = (world.node(1).expect("it is up"), world.node(0).expect("it is up").id());
        let mut suspected = false;
        for _ in 0..200 {
            if talks {
                assert_eq!(answered(&world, 1, 1, 5_000).await, 1);
            }
            world.advance(Duration::from_millis(100)).await;
            let members = node.members();
            suspected |= members.iter().any(|member| member.info.id == other && member.suspect);
        }
        suspected
    });
    run.output
}

#[test]
fn a_node_whose_actors_answer_is_not_suspected() {
    assert!(is_suspected(false), "otherwise this test shows nothing");
    assert!(!is_suspected(true));
}

const LENGTH: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(20);
