//! The project's own workload: one node, real actors, clients, and fate.

mod account;
mod bank;
mod client;
mod faults;
mod plan;
mod report;
mod subject;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::{Faults, Rng};
use archipelago_runtime::NodeBuilder;
use futures_util::future::join_all;

use account::Account;
use client::Client;
use faults::{Fate, meet};
use plan::Plan;
use subject::{Hooks, Subject};
use truth::Truth;

use crate::clock::TrueClock;
use crate::common::{Desk, Ground, Hand, Home, Outcome, Shared, is_quiet, known, run_judged, send_rounds};
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::{Simulation, World};

/// Runs the workload of one seed for `length` of virtual time, and then until all is quiet.
pub fn run_seed(seed: u64, length: Duration) -> Outcome {
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let shared: Shared<Truth> = Arc::default();
    let build = builder(&plan, Arc::clone(&shared));
    let simulation = Simulation::new(rng.bits()).node_in(plan.ppm, build);
    let truth = rng.bits();
    run_judged(
        (seed, &plan),
        simulation,
        &shared,
        |world| Truth::new(world, truth),
        async |world, truth| {
            script(&plan, world, truth, &mut rng, length).await;
        },
    )
}

fn builder(
    plan: &Plan,
    shared: Shared<Truth>,
) -> impl Fn(NodeBuilder, &Arc<SimEnvironment>) -> NodeBuilder + 'static {
    let settings = plan.settings();
    let hooks = Hooks { slow: plan.slow_hooks, failing: plan.failing_hooks };
    move |builder, env| {
        let (subjects, accounts) = (Arc::clone(&shared), Arc::clone(&shared));
        let home = Home { index: 0, env: Arc::clone(env) };
        let at_home = home.clone();
        builder
            .settings(settings.clone())
            .actor_with(move |id, node| Subject::new(known(&subjects), hooks, &home, id, node))
            .actor_with(move |id, node| Account::new(known(&accounts), &at_home, id, node))
    }
}

async fn script(plan: &Plan, world: &World, truth: &Arc<Truth>, rng: &mut Rng, length: Duration) {
    if let Some(node) = world.node(0) {
        meet(world, truth, &node);
    }
    world.spawn(watch(world.clone(), Arc::clone(truth)));
    let mut part = || (plan.clone(), world.clone(), Arc::clone(truth), Rng::new(rng.bits()));
    let clients = (0..plan.clients).map(|_| {
        let (plan, world, truth, mut rng) = part();
        let (number, outside) = (truth.ledger().new_sender(), rng.chance(plan.outside));
        send_rounds(Client { number, plan, desk: Desk::new(0, world, truth, rng), outside }, length)
    });
    let clients = join_all(clients.collect::<Vec<_>>());
    let (plan, world, truth, rng) = part();
    let hand = Hand { nodes: 1, world: world.clone(), truth: Arc::clone(&truth), rng };
    let fate = Fate { plan: plan.clone(), hand }.run(length);
    futures_util::future::join(clients, fate).await;
    if !truth.ledger().judge().violated() {
        world.store_faults(Faults::default());
        settle(&plan, &world, &truth).await;
    }
}

/// Looks at what must hold at any moment, every now and then.
async fn watch(world: World, truth: Arc<Truth>) {
    loop {
        TrueClock::sleep(Duration::from_millis(97)).await;
        let (Some(node), Some(env)) = (world.node(0), world.env(0)) else { continue };
        let (alive, _) = truth.ledger().alive_in(truth.ledger().lives().number(node.id()));
        let places = env.switch().meters().gauge("archipelago_active_actors");
        truth.ledger().check(Invariant::CatalogIsConsistent, f64::from(alive) <= places, || {
            format!("{alive} activations live, the catalog has {places} places")
        });
        let sum = truth.bank().sum();
        truth
            .ledger()
            .check(Invariant::BankingSumConstant, sum == 0, || format!("the money has changed by {sum}"));
    }
}

/// Waits until every actor is idle and gone, and looks at what must hold then.
async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    TrueClock::sleep(Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    let (Some(node), Some(env)) = (world.node(0), world.env(0)) else { return };
    is_quiet(world, truth.ledger(), 0);
    let alive = truth.ledger().alive_in(truth.ledger().lives().number(node.id()));
    truth.ledger().check(Invariant::CatalogIsConsistent, alive == (0, 0), || {
        format!("all is quiet, but {alive:?} activations and handlers live")
    });
    if plan.loses_nothing() {
        settle_messages(truth);
    }
    if plan.loses_nothing() && !plan.node_stops {
        let (open, all) = truth.bank().open();
        truth.ledger().check(Invariant::BankingSumConstant, open == 0, || {
            format!("{open} of {all} transfers never ended")
        });
    }
    let stopped = world.stop(0).await;
    truth.ledger().check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
        format!("an idle node stopped with {stopped:?}")
    });
    for _ in 0..GOODBYE_ROUNDS {
        tokio::task::yield_now().await;
    }
    truth.ledger().check(Invariant::CatalogIsConsistent, env.switch().is_empty(), || {
        "a stopped node still runs".to_owned()
    });
}

fn settle_messages(truth: &Truth) {
    for (key, actor) in truth.actors() {
        let (accepted, started, dead) = (actor.tells_accepted, actor.tells_started, actor.dead_letters);
        truth.ledger().check(Invariant::NoAcceptedMessageLost, accepted == started + dead, || {
            format!("actor {key}: {accepted} tells accepted, {started} handled, {dead} dead letters")
        });
    }
}

/// How often everybody else gets a turn before a stopped node must be gone.
const GOODBYE_ROUNDS: usize = 64;
