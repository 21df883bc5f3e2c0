//! The workload of a cluster: three to five nodes that all host the same kinds, clients everywhere, nodes that come and go,
//! and nobody but the nodes themselves to end the sessions of those that fell silent.

mod client;
mod counter;
mod eyes;
mod fate;
mod memory;
mod moves;
mod plan;
mod settle;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_protocol::placement::KindLayout;
use archipelago_runtime::NodeBuilder;
use futures_util::future::join_all;

use client::Client;
use counter::with_kind;
use eyes::{meet, watch};
use fate::Fate;
use plan::Plan;
use settle::settle;
use truth::Truth;

use crate::common::{Desk, Ground, Hand, Home, Outcome, Shared, run_judged, send_rounds};
use crate::env::SimEnvironment;
use crate::world::{Simulation, World};

/// Runs the cluster workload of one seed for `length` of virtual time, and then until all is quiet.
pub fn run_cluster_seed(seed: u64, length: Duration) -> Outcome {
    let mut rng = Rng::new(seed ^ SALT);
    let plan = Plan::draw(&mut rng);
    run_plan(seed, plan, rng, length)
}

/// The same, with other chances, and shards that move between the nodes all the time.
pub fn run_handoff_seed(seed: u64, length: Duration) -> Outcome {
    let mut rng = Rng::new(seed ^ MOVING_SALT);
    let plan = Plan::draw(&mut rng).with_moves(&mut rng);
    run_plan(seed, plan, rng, length)
}

fn run_plan(seed: u64, plan: Plan, mut rng: Rng, length: Duration) -> Outcome {
    let shared: Shared<Truth> = Arc::default();
    let mut simulation = Simulation::new(rng.bits()).with_network_of(plan.network()).without_observer();
    simulation = simulation.with_oddities(plan.oddities);
    for index in 0..plan.nodes {
        simulation = simulation.node_in(plan.ppm[index], builder(&plan, index, Arc::clone(&shared)));
    }
    let kept = Duration::from_millis(plan.idle_after);
    let truth = |world: &World| Truth::new(world, kept, plan.calm);
    run_judged((seed, &plan), simulation, &shared, truth, async |world, truth| {
        script(&plan, world, truth, &mut rng, length).await;
    })
}

fn builder(
    plan: &Plan,
    index: usize,
    shared: Shared<Truth>,
) -> impl Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder + 'static {
    let settings = plan.settings(index);
    let last = if plan.singles { KindLayout::Actor } else { KindLayout::default() };
    move |builder, env| {
        let home = Home { index, env: Arc::clone(env) };
        let builder = builder.settings(settings.clone());
        let builder = with_kind::<0>(builder, &shared, &home, KindLayout::default());
        with_kind::<1>(builder, &shared, &home, last)
    }
}

async fn script(plan: &Plan, world: &World, truth: &Arc<Truth>, rng: &mut Rng, length: Duration) {
    for index in 0..plan.nodes {
        if let Some(node) = world.node(index) {
            meet(world, truth, index, &node);
        }
    }
    world.spawn(watch(plan.nodes, world.clone(), Arc::clone(truth)));
    let mut part = || (plan.clone(), world.clone(), Arc::clone(truth), Rng::new(rng.bits()));
    let clients = (0..plan.nodes).flat_map(|index| (0..plan.clients_per_node).map(move |_| index));
    let clients: Vec<_> = clients
        .map(|index| {
            let (plan, world, truth, rng) = part();
            send_rounds(Client { plan, desk: Desk::new(index, world, truth, rng) }, length)
        })
        .collect();
    let (own_plan, own_world, own_truth, rng) = part();
    let down_until = vec![Duration::ZERO; plan.nodes];
    let hand = Hand { nodes: plan.nodes, world: own_world, truth: own_truth, rng };
    let fate = Fate { plan: own_plan, hand, down_until }.run(length);
    let (_, mut fate) = futures_util::future::join(join_all(clients), fate).await;
    if !truth.ledger().judge().violated() {
        fate.make_well().await;
        settle(plan, world, truth).await;
    }
}

/// Keeps the chances of this workload apart from those of the others.
const SALT: u64 = 0x636c_7573_7465_7221;
const MOVING_SALT: u64 = 0x6d6f_7669_6e67_2121;
