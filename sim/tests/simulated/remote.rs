//! A modest sweep of the workload of several nodes, the same seed twice, and what a script can do to a network.

use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{DialAnswer, Faults, Link, Simulation, Workload, World, bind_of};

#[test]
fn a_hundred_seeds_of_three_nodes_hold_every_promise_and_meet_every_difficulty() {
    crate::common::holds(Workload::Remote, 100, LENGTH);
}

#[test]
fn the_same_seed_gives_the_same_run_of_three_nodes() {
    crate::common::repeats(Workload::Remote, &[2, 3, 12, 19], LENGTH);
}

#[test]
fn the_same_seed_gives_the_same_run_of_three_nodes_in_another_process() {
    crate::common::repeats_elsewhere(Workload::Remote, 14, LENGTH);
}

// ---- scripts ----

/// Node 0 hosts the counters, node 1 knows them.
fn two_nodes() -> Simulation {
    let settings = |builder: NodeBuilder, index| {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(1);
        settings.remote.bind = bind_of(index);
        builder.settings(settings)
    };
    Simulation::new(5)
        .with_network()
        .node(move |builder| settings(builder, 0).actor::<Counter>())
        .node(move |builder| settings(builder, 1).remote_actor::<Counter>())
}

/// Asks from node 1, with this many milliseconds to wait.
async fn ask(world: &World, millis: u64) -> Result<u32, CallError> {
    let counter = world.node(1).expect("node 1 is up").actor::<Counter>("one");
    let options = CallOptions::new().timeout(Duration::from_millis(millis));
    archipelago_runtime::env::from_outside(|| counter.send_with(Tick, options)).await
}

#[test]
fn a_call_crosses_the_network_and_takes_its_time() {
    let run = two_nodes().run(async |world| {
        assert_eq!(ask(&world, 1_000).await, Ok(1));
        let slow =
            Link { latency: Millis(200), jitter: Millis(0), loss_per_mille: 0, duplicate_per_mille: 0 };
        world.slow_link(1, 0, slow);
        let asked = world.now();
        assert_eq!(ask(&world, 1_000).await, Ok(2));
        (world.now() - asked, world.network_stats())
    });
    let (took, stats) = run.output;
    assert!(took >= Duration::from_millis(200), "{took:?}");
    assert!(stats.connections >= 2 && stats.lost == 0, "{stats:?}");
}

#[test]
fn a_partition_holds_calls_up_until_it_is_healed() {
    two_nodes().run(async |world| {
        assert_eq!(ask(&world, 1_000).await, Ok(1));
        world.partition(0, 1);
        assert!(ask(&world, 500).await.is_err());
        world.heal(0, 1);
        assert!(ask(&world, 5_000).await.is_ok());
        world.partition_one_way(0, 1);
        // The question gets through, the answer does not.
        assert_eq!(ask(&world, 500).await, Err(CallError::Timeout { started: true }));
        world.heal(0, 1);
        assert!(ask(&world, 5_000).await.is_ok());
    });
}

#[test]
fn a_reset_connection_is_made_anew() {
    two_nodes().run(async |world| {
        assert_eq!(ask(&world, 1_000).await, Ok(1));
        let before = world.network_stats();
        world.reset_connections(0);
        // What is sent before node 1 has noticed may be lost with the connection.
        world.advance(Duration::from_millis(10)).await;
        assert_eq!(ask(&world, 5_000).await, Ok(2));
        let after = world.network_stats();
        assert!(after.lost > before.lost && after.connections > before.connections, "{before:?} {after:?}");
    });
}

#[test]
fn a_crashed_node_says_nothing_and_leaves_no_connection_behind() {
    two_nodes().run(async |world| {
        assert_eq!(ask(&world, 1_000).await, Ok(1));
        let asked = world.now();
        world.crash(0).await;
        assert!(ask(&world, 20_000).await.is_err());
        assert!(world.now() - asked >= Duration::from_secs(5), "nobody told node 1, it had to notice itself");
        world.crash(1).await;
        assert_eq!(world.network_load().0, 0);
    });
}

#[test]
fn a_paused_node_goes_on_where_it_was() {
    two_nodes().run(async |world| {
        assert_eq!(ask(&world, 1_000).await, Ok(1));
        world.pause(0, Duration::from_secs(2));
        let asked = world.now();
        assert_eq!(ask(&world, 5_000).await, Ok(2));
        assert!(world.now() - asked >= Duration::from_secs(2));
    });
}

/// Nobody answers node 1 for so long, after which everybody does again. How many ticks were counted in the end.
async fn tell_while_unreachable(world: &World, options: CallOptions, seconds: u64) -> Result<u32, CallError> {
    assert_eq!(ask(world, 1_000).await, Ok(1));
    world.answer_dials(0, DialAnswer::Unavailable);
    world.reset_connections(0);
    world.advance(Duration::from_millis(100)).await;
    let counter = world.node(1).expect("node 1 is up").actor::<Counter>("one");
    archipelago_runtime::env::from_outside(|| counter.tell_with(Tick, options)).expect("there is room");
    world.advance(Duration::from_secs(seconds)).await;
    world.answer_dials(0, DialAnswer::Normal);
    ask(world, 60_000).await
}

#[test]
fn a_tell_that_was_never_written_keeps_its_own_deadline() {
    two_nodes().run(async |world| {
        let half_a_second = CallOptions::new().timeout(Duration::from_millis(500));
        assert_eq!(tell_while_unreachable(&world, half_a_second, 3).await, Ok(2), "it came too late");
    });
}

#[test]
fn a_tell_does_not_wait_longer_for_looking_for_its_way_again() {
    two_nodes().run(async |world| {
        assert_eq!(
            tell_while_unreachable(&world, CallOptions::new(), 4).await,
            Ok(3),
            "it waits for a while"
        );
    });
    two_nodes().run(async |world| {
        assert_eq!(tell_while_unreachable(&world, CallOptions::new(), 12).await, Ok(2), "not for ever");
    });
}

/// Tells 40 actors something while their places cannot be found out; how many messages wait.
fn waiting_on_a_node_with_room_for(total: usize) -> f64 {
    let settings = move |builder: NodeBuilder, index| {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(1);
        settings.remote.bind = bind_of(index);
        settings.remote.parked_total = total;
        settings.remote.parked = total;
        builder.settings(settings)
    };
    let simulation = Simulation::new(5).with_network();
    let simulation = simulation.node(move |builder| settings(builder, 0).actor::<Counter>());
    let simulation = simulation.node(move |builder| settings(builder, 1).remote_actor::<Counter>());
    let run = simulation.run(async |world| {
        world.advance(Duration::from_secs(3)).await;
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        let node = world.node(1).expect("node 1 is up");
        for key in 0..40 {
            let counter = node.actor::<Counter>(format!("k{key}"));
            archipelago_runtime::env::from_outside(|| counter.tell(Tick))
                .expect("whether there is room shows later");
        }
        world.advance(Duration::from_millis(200)).await;
        world.gauge(1, "archipelago_parked_messages")
    });
    run.output
}

#[test]
fn what_waits_for_all_shards_of_a_node_together_is_bounded() {
    assert_eq!(waiting_on_a_node_with_room_for(100), 40.0);
    assert_eq!(waiting_on_a_node_with_room_for(25), 25.0);
}

const LENGTH: Duration = Duration::from_secs(30);
