//! A modest sweep of the workload of several nodes, the same seed twice, and what a script can do to a network.

use std::process::Command;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Link, Simulation, Sweep, Workload, World, bind_of, run_remote_seed};

#[test]
fn a_hundred_seeds_of_three_nodes_hold_every_promise_and_meet_every_difficulty() {
    let mut sweep = Sweep::of(Workload::Remote);
    for seed in 1..=100 {
        sweep.run(seed, LENGTH);
    }
    for failed in &sweep.failed {
        eprintln!("{}", failed.tail.join("\n"));
        let violation = failed.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        let (seed, seconds) = (failed.seed, LENGTH.as_secs());
        eprintln!("seed {seed}: {violation}");
        eprintln!("replay: cargo xtask sim --workload remote --from {seed} --seeds 1 --seconds {seconds}");
    }
    assert!(sweep.failed.is_empty(), "{} seeds failed", sweep.failed.len());
    assert_eq!(sweep.never_evaluated(), [], "a promise that is never looked at is not kept");
    assert_eq!(sweep.never_reached(), [""; 0], "a difficulty that is never met is not overcome");
}

#[test]
fn the_same_seed_gives_the_same_run_of_three_nodes() {
    for seed in [2, 3, 12, 19] {
        let [first, second] = [(); 2].map(|()| run_remote_seed(seed, LENGTH));
        assert!(first.sent > 100, "seed {seed} did nothing");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_of_three_nodes_in_another_process() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-sim"));
    let arguments = ["--workload", "remote", "--replay", "14", "--seconds", "30"];
    let output = command.args(arguments).output().unwrap();
    let there = String::from_utf8(output.stdout).unwrap();
    let here = run_remote_seed(14, LENGTH).hash;
    assert!(there.contains(&format!("{here:016x}")), "{here:016x} here, there {there}");
}

// ---- scripts ----

#[remote(u32)]
struct Tick;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick))]
struct Counter(u32);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Tick> for Counter {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

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

const LENGTH: Duration = Duration::from_secs(30);
