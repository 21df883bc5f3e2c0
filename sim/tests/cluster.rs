//! A modest sweep of the workload of a cluster, the same seed twice, and sessions that only the nodes themselves end.

use std::process::Command;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Simulation, Sweep, Workload, World, bind_of, run_cluster_seed};

#[test]
fn a_hundred_seeds_of_a_cluster_hold_every_promise_and_meet_every_difficulty() {
    let mut sweep = Sweep::of(Workload::Cluster);
    for seed in 1..=100 {
        sweep.run(seed, LENGTH);
    }
    for failed in &sweep.failed {
        eprintln!("{}", failed.tail.join("\n"));
        let violation = failed.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        let (seed, seconds) = (failed.seed, LENGTH.as_secs());
        eprintln!("seed {seed}: {violation}");
        eprintln!("replay: cargo xtask sim --workload cluster --from {seed} --seeds 1 --seconds {seconds}");
    }
    assert!(sweep.failed.is_empty(), "{} seeds failed", sweep.failed.len());
    assert_eq!(sweep.never_evaluated(), [], "a promise that is never looked at is not kept");
    assert_eq!(sweep.never_reached(), [""; 0], "a difficulty that is never met is not overcome");
}

#[test]
fn the_same_seed_gives_the_same_run_of_a_cluster() {
    for seed in [2, 3, 12] {
        let [first, second] = [(); 2].map(|()| run_cluster_seed(seed, SHORT));
        assert!(first.sent > 100, "seed {seed} did nothing");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run_of_a_cluster_in_another_process() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-sim"));
    let arguments = ["--workload", "cluster", "--replay", "14", "--seconds", "20"];
    let output = command.args(arguments).output().unwrap();
    let there = String::from_utf8(output.stdout).unwrap();
    let here = run_cluster_seed(14, SHORT).hash;
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

/// Both nodes host the counters, and nobody else ends their sessions.
fn two_hosts() -> Simulation {
    let host = |index| {
        move |builder: NodeBuilder| {
            let mut settings = NodeSettings::default();
            settings.data_arbiters = Some(1);
            settings.session_ttl = Millis(3_000);
            settings.remote.bind = bind_of(index);
            builder.settings(settings).actor::<Counter>()
        }
    };
    Simulation::new(5).with_network().without_observer().node(host(0)).node(host(1))
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

const LENGTH: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(20);
