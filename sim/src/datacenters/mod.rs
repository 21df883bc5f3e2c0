//! The workload of several datacenters: two or three clusters with a store each, clients everywhere, ways between them that are cut
//! and slow, and nodes and stores that fail.
//!
//! Three kinds of actors live in them: *homed* ones by a policy, *placed* ones by their home records, and *sought* ones where they
//! came to life first. Whatever happens, each of them lives in one datacenter. Of the last kind that is promised only while nobody
//! dies and nobody is asked for in two datacenters for the first time at once; so runs with them are *steady*: only ways fail.

mod client;
mod dweller;
mod fate;
mod homes;
mod plan;
mod settle;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_runtime::NodeBuilder;
use futures_util::future::join_all;

use client::Client;
use dweller::with_kinds;
use fate::{Fate, meet};
use homes::Registers;
use plan::Plan;
use settle::settle;
use truth::Truth;

use crate::common::{Desk, Ground, Hand, Home, Outcome, Shared, run_judged, send_rounds};
use crate::env::SimEnvironment;
use crate::world::{Simulation, World};

/// Runs the workload of several datacenters of one seed for `length` of virtual time, and then until all is well.
pub fn run_datacenters_seed(seed: u64, length: Duration) -> Outcome {
    let mut rng = Rng::new(seed ^ SALT);
    let plan = Plan::draw(&mut rng);
    let (shared, registers): (Shared<Truth>, _) = (Arc::default(), Registers::default());
    let mut simulation = Simulation::new(rng.bits()).with_network_of(plan.network()).without_observer();
    let mut island = 0;
    for index in 0..plan.nodes() {
        if plan.island_of(index) != island {
            island = plan.island_of(index);
            simulation = simulation.another_datacenter();
        }
        simulation = simulation.node_in(0, builder(&plan, index, &registers, Arc::clone(&shared)));
    }
    let truth = |world: &World| Truth::new(world, plan.clone());
    run_judged((seed, &plan), simulation, &shared, truth, async |world, truth| {
        script(&plan, (world, truth, registers), &mut rng, length).await;
    })
}

fn builder(
    plan: &Plan,
    index: usize,
    registers: &Registers,
    shared: Shared<Truth>,
) -> impl Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder + 'static {
    let (settings, island) = (plan.settings(index), plan.island_of(index));
    let (map, register) = (plan.map(island), Arc::new(registers.of_one(plan)));
    move |builder, env| {
        let home = Home { index, env: Arc::clone(env) };
        let builder = builder.settings(settings.clone()).datacenters(map.clone());
        with_kinds(builder.homes(Arc::clone(&register) as Arc<_>), &shared, &home)
    }
}

async fn script(
    plan: &Plan,
    (world, truth, registers): (&World, &Arc<Truth>, Registers),
    rng: &mut Rng,
    length: Duration,
) {
    for index in 0..plan.nodes() {
        if let Some(node) = world.node(index) {
            meet(world, truth, index, &node);
        }
    }
    world.advance(CLUSTERS_FORM).await;
    let end = world.now() + length;
    let mut part = || (plan.clone(), world.clone(), Arc::clone(truth), Rng::new(rng.bits()));
    let clients: Vec<_> = (0..plan.nodes())
        .map(|index| {
            let (plan, world, truth, rng) = part();
            send_rounds(Client { plan, desk: Desk::new(index, world, truth, rng) }, end)
        })
        .collect();
    let (own_plan, own_world, own_truth, rng) = part();
    let hand = Hand { nodes: plan.nodes(), world: own_world, truth: own_truth, rng };
    let fate = Fate { plan: own_plan, hand, registers }.run(end);
    let (_, mut fate) = futures_util::future::join(join_all(clients), fate).await;
    if !truth.ledger().judge().violated() {
        fate.make_well().await;
        settle(plan, world, truth).await;
    }
}

/// Within this time the nodes of each datacenter have found each other.
const CLUSTERS_FORM: Duration = Duration::from_secs(4);
/// Keeps the chances of this workload apart from those of the others.
const SALT: u64 = 0x6d61_6e79_6463_7321;
