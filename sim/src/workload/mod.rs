//! The project's own workload: one node, real actors, clients, and fate.

mod account;
mod bank;
mod client;
mod faults;
mod lives;
mod plan;
mod report;
mod span;
mod subject;
mod truth;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use archipelago_backend_conformance::{Faults, Rng};
use archipelago_runtime::NodeBuilder;
use futures_util::future::join_all;

use account::Account;
use client::Client;
use faults::{Fate, meet};
pub(crate) use lives::{Lives, TTL};
use plan::Plan;
use subject::{Hooks, Subject};
pub(crate) use truth::Reported;
use truth::Truth;

use crate::clock::TrueClock;
use crate::invariants::{Invariant, Violation};
use crate::sometimes::take_fired;
use crate::world::{Simulation, World};

/// What became of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The hash of every recorded step.
    pub hash: u64,
    /// How much virtual time passed.
    pub simulated: Duration,
    /// How many messages were sent.
    pub sent: u64,
    /// How many of them were handled.
    pub handled: u64,
    /// How often each invariant was looked at.
    pub evaluated: BTreeMap<Invariant, u64>,
    /// The places of [`POINTS`](crate::POINTS) that were reached.
    pub reached: BTreeSet<&'static str>,
    /// The first promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// The last steps before the end, if one was.
    pub tail: Vec<String>,
}

/// Runs the workload of one seed for `length` of virtual time, and then until all is quiet.
pub fn run_seed(seed: u64, length: Duration) -> Outcome {
    drop(take_fired());
    let mut rng = Rng::new(seed);
    let plan = Plan::draw(&mut rng);
    let shared: Arc<OnceLock<Arc<Truth>>> = Arc::default();
    let build = builder(&plan, Arc::clone(&shared));
    let simulation = Simulation::new(rng.bits()).skewed_node(plan.ppm, build);
    let run = simulation.run(async |world| {
        let truth = Truth::new(world.true_clock(), Arc::clone(world.beats()), rng.bits());
        // The node was started before there was a truth; it has had no message yet.
        let truth = Arc::clone(shared.get_or_init(|| truth));
        script(&plan, &world, &truth, &mut rng, length).await;
        let (evaluated, violation) = truth.judge().verdict();
        let tail = if violation.is_some() { world.trace(|trace| trace.tail()) } else { Vec::new() };
        (truth.totals(), evaluated, violation, tail)
    });
    let ((sent, handled), evaluated, violation, tail) = run.output;
    let (hash, simulated) = (run.hash, run.simulated);
    Outcome { seed, hash, simulated, sent, handled, evaluated, reached: take_fired(), violation, tail }
}

fn builder(plan: &Plan, shared: Arc<OnceLock<Arc<Truth>>>) -> impl Fn(NodeBuilder) -> NodeBuilder + 'static {
    let settings = plan.settings();
    let hooks = Hooks { slow: plan.slow_hooks, failing: plan.failing_hooks };
    move |builder| {
        let (subjects, accounts) = (Arc::clone(&shared), Arc::clone(&shared));
        builder
            .settings(settings.clone())
            .actor_with(move |id, node| Subject::new(known(&subjects), hooks, id, node))
            .actor_with(move |id, node| Account::new(known(&accounts), id, node))
    }
}

fn known(shared: &OnceLock<Arc<Truth>>) -> &Arc<Truth> {
    shared.get().expect("actors are made for messages, and those are sent after the truth is known")
}

async fn script(plan: &Plan, world: &World, truth: &Arc<Truth>, rng: &mut Rng, length: Duration) {
    if let Some(node) = world.node(0) {
        meet(world, truth, &node);
    }
    world.spawn(watch(world.clone(), Arc::clone(truth)));
    let mut part = || (plan.clone(), world.clone(), Arc::clone(truth), Rng::new(rng.bits()));
    let clients = (0..plan.clients).map(|number| {
        let (plan, world, truth, mut rng) = part();
        let outside = rng.chance(plan.outside);
        Client { number, plan, world, truth, rng, outside }.run(length)
    });
    let clients = join_all(clients.collect::<Vec<_>>());
    let (plan, world, truth, rng) = part();
    let fate = Fate { plan: plan.clone(), world: world.clone(), truth: Arc::clone(&truth), rng }.run(length);
    futures_util::future::join(clients, fate).await;
    if !truth.judge().violated() {
        world.store_faults(Faults::default());
        settle(&plan, &world, &truth).await;
    }
}

/// Looks at what must hold at any moment, every now and then.
async fn watch(world: World, truth: Arc<Truth>) {
    loop {
        TrueClock::sleep(Duration::from_millis(97)).await;
        let (Some(node), Some(env)) = (world.node(0), world.env(0)) else { continue };
        let alive = truth.alive_in(truth.lives().number(node.id()));
        let places = env.switch().meters().gauge("archipelago_active_actors");
        truth.check(Invariant::CatalogIsConsistent, alive as f64 <= places, || {
            format!("{alive} activations live, the catalog has {places} places")
        });
        let sum = truth.bank().sum();
        truth.check(Invariant::BankingSumConstant, sum == 0, || format!("the money has changed by {sum}"));
    }
}

/// Waits until every actor is idle and gone, and looks at what must hold then.
async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    TrueClock::sleep(Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    let (Some(node), Some(env)) = (world.node(0), world.env(0)) else { return };
    let life = truth.lives().number(node.id());
    let meters = env.switch().meters();
    let left = ["archipelago_active_actors", "archipelago_open_jobs", "archipelago_pending_calls"]
        .map(|gauge| meters.gauge(gauge));
    let alive = truth.alive_in(life);
    truth.check(Invariant::CatalogIsConsistent, left == [0.0; 3] && alive == 0, || {
        format!("all is quiet, but places, jobs, calls are {left:?}, and {alive} activations live")
    });
    if plan.loses_nothing() {
        settle_messages(truth);
    }
    if plan.loses_nothing() && !plan.node_stops {
        let (open, all) = truth.bank().open();
        truth.check(Invariant::BankingSumConstant, open == 0, || {
            format!("{open} of {all} transfers never ended")
        });
    }
    let stopped = world.stop(0).await;
    truth.check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
        format!("an idle node stopped with {stopped:?}")
    });
    for _ in 0..GOODBYE_ROUNDS {
        tokio::task::yield_now().await;
    }
    truth.check(Invariant::CatalogIsConsistent, env.switch().is_empty(), || {
        "a stopped node still runs".to_owned()
    });
}

fn settle_messages(truth: &Truth) {
    for (key, actor) in truth.actors() {
        let (accepted, started, dead) = (actor.tells_accepted, actor.tells_started, actor.dead_letters);
        truth.check(Invariant::NoAcceptedMessageLost, accepted == started + dead, || {
            format!("actor {key}: {accepted} tells accepted, {started} handled, {dead} dead letters")
        });
    }
}

/// How often everybody else gets a turn before a stopped node must be gone.
const GOODBYE_ROUNDS: usize = 64;
