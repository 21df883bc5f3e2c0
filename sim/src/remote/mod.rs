//! The workload of several nodes: three nodes, three kinds of actors, clients everywhere, and a network that fails.

mod client;
mod fate;
mod island;
mod plan;
mod settle;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_runtime::NodeBuilder;
use futures_util::future::join_all;

use client::Client;
use fate::{Fate, meet};
use island::with_kind;
use plan::{NODES, Plan};
use settle::settle;
use truth::Truth;

use crate::clock::TrueClock;
use crate::common::{Desk, Ground, Hand, Home, Outcome, Shared, run_judged, send_rounds};
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::{Simulation, World};

/// Runs the remote workload of one seed for `length` of virtual time, and then until all is quiet.
pub fn run_remote_seed(seed: u64, length: Duration) -> Outcome {
    let mut rng = Rng::new(seed ^ SALT);
    let plan = Plan::draw(&mut rng);
    let shared: Shared<Truth> = Arc::default();
    let mut simulation = Simulation::new(rng.bits())
        .with_network_of(plan.network())
        .with_wrong_locations(plan.wrong_locations);
    for index in 0..NODES {
        simulation = simulation.node_in(plan.ppm[index], builder(&plan, index, Arc::clone(&shared)));
    }
    run_judged((seed, &plan), simulation, &shared, Truth::new, async |world, truth| {
        script(&plan, world, truth, &mut rng, length).await;
    })
}

fn builder(
    plan: &Plan,
    index: usize,
    shared: Shared<Truth>,
) -> impl Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder + 'static {
    let (settings, all_host) = (plan.settings(index), plan.all_host);
    move |builder, env| {
        let home = Home { index, env: Arc::clone(env) };
        let hosts = |kind| all_host || kind == index;
        let builder = builder.settings(settings.clone());
        let builder = with_kind::<0>(builder, hosts(0), &shared, &home);
        let builder = with_kind::<1>(builder, hosts(1), &shared, &home);
        with_kind::<2>(builder, hosts(2), &shared, &home)
    }
}

async fn script(plan: &Plan, world: &World, truth: &Arc<Truth>, rng: &mut Rng, length: Duration) {
    for index in 0..NODES {
        if let Some(node) = world.node(index) {
            meet(world, truth, index, &node);
        }
    }
    world.spawn(watch(plan.clone(), world.clone(), Arc::clone(truth)));
    let mut part = || (plan.clone(), world.clone(), Arc::clone(truth), Rng::new(rng.bits()));
    let clients = (0..NODES).flat_map(|index| (0..plan.clients_per_node).map(move |_| index));
    let clients: Vec<_> = clients
        .map(|index| {
            let (plan, world, truth, rng) = part();
            send_rounds(Client { plan, desk: Desk::new(index, world, truth, rng) }, length)
        })
        .collect();
    let (own_plan, own_world, own_truth, rng) = part();
    let hand = Hand { nodes: NODES, world: own_world, truth: own_truth, rng };
    let fate = Fate { plan: own_plan, hand }.run(length);
    let (_, mut fate) = futures_util::future::join(join_all(clients), fate).await;
    if !truth.ledger().judge().violated() {
        fate.make_well().await;
        settle(plan, world, truth).await;
    }
}

/// Looks at what must hold at any moment, every now and then.
async fn watch(plan: Plan, world: World, truth: Arc<Truth>) {
    let network = plan.network();
    let per_way = network.lane_window + network.max_streams * network.stream_window;
    loop {
        TrueClock::sleep(Duration::from_millis(97)).await;
        let (connections, bytes) = world.network_load();
        let most_bytes = 2 * connections * per_way;
        truth.ledger().check(Invariant::BuffersAreBounded, bytes <= most_bytes, || {
            format!("{bytes} bytes are under way, {most_bytes} at most may be")
        });
    }
}

/// Keeps the chances of this workload apart from those of the other.
const SALT: u64 = 0x6973_6c61_6e64_7321;
