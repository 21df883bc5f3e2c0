//! The end of a run: nothing is wrong any more, and everything must become well and quiet.

use std::sync::Arc;
use std::time::Duration;

use archipelago::CallOptions;
use archipelago_runtime::env::from_outside;

use super::island::{Quick, ask};
use super::outcome::report;
use super::plan::{NODES, Plan, TELL_TTL};
use super::truth::{ActorNumber, Sending, Truth};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// Looks at everything that must hold once nothing is wrong any more.
pub(crate) async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    for index in 0..NODES {
        for kind in 0..NODES {
            reach(world, truth, index, kind).await;
        }
    }
    let tells = TELL_TTL.to_duration() + Duration::from_millis(plan.silence);
    TrueClock::sleep(tells + Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    if truth.judge().violated() {
        return;
    }
    for index in 0..NODES {
        is_quiet(world, truth, index);
    }
    truth.look_back(plan.calm);
    connections_are_few(plan, world, truth);
    stop_all(world, truth).await;
}

/// A fresh ask of node `index` to an actor of `kind` must succeed soon.
async fn reach(world: &World, truth: &Arc<Truth>, index: usize, kind: usize) {
    let begun = world.now();
    let mut last = None;
    while world.now() - begun < HEAL_LIMIT {
        let Some(node) = world.node(index) else { break };
        let to = ActorNumber { kind, key: 0 };
        let ticket = truth.sending(Sending { to, sender: None, tell: false, large: false, must: false });
        world.record("reach", ticket, to.as_u64());
        let options = CallOptions::new().timeout(Duration::from_secs(1));
        let answer = from_outside(|| ask(&node, to, Quick { ticket, pad: Vec::new() }, options)).await;
        report(truth, ticket, &answer);
        if answer.is_ok() {
            last = None;
            break;
        }
        last = Some(format!("{answer:?}"));
        TrueClock::sleep(Duration::from_millis(100)).await;
    }
    truth.check(Invariant::HealsAfterFaults, last.is_none(), || {
        format!("node {index} does not reach kind {kind} for {HEAL_LIMIT:?}, and last: {last:?}")
    });
}

fn is_quiet(world: &World, truth: &Truth, index: usize) {
    let Some(env) = world.env(index) else { return };
    let meters = env.switch().meters();
    let gauges = ["archipelago_active_actors", "archipelago_open_jobs", "archipelago_pending_calls"];
    let left = gauges.map(|gauge| meters.gauge(gauge));
    truth.check(Invariant::CatalogIsConsistent, left == [0.0; 3], || {
        format!("all is quiet, but places, jobs, calls of node {index} are {left:?}")
    });
    if meters.counter("archipelago_messages_returned_total") > 0 {
        sometimes!("message returned and resent");
    }
}

/// One connection per pair of arbiters, and nothing under way on them but what nodes always tell each other.
fn connections_are_few(plan: &Plan, world: &World, truth: &Truth) {
    let most: usize = (0..NODES)
        .flat_map(|a| (a + 1..NODES).map(move |b| (a, b)))
        .map(|(a, b)| 1 + usize::from(plan.arbiters[a]) * usize::from(plan.arbiters[b]))
        .sum();
    let (connections, bytes) = world.network_load();
    truth.check(Invariant::NothingOutlivesItsNode, connections <= most, || {
        format!("{connections} connections stand where {most} are of use")
    });
    truth.check(Invariant::BuffersAreBounded, bytes <= CHATTER, || {
        format!("all is quiet, but {bytes} bytes are under way")
    });
}

async fn stop_all(world: &World, truth: &Truth) {
    let envs: Vec<Arc<SimEnvironment>> = (0..NODES).filter_map(|index| world.env(index)).collect();
    for index in 0..NODES {
        let stopped = world.stop(index).await;
        truth.check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
            format!("idle node {index} stopped with {stopped:?}")
        });
    }
    TrueClock::sleep(Duration::from_secs(3)).await;
    let running = envs.iter().filter(|env| !env.switch().is_empty()).count();
    let (connections, _) = world.network_load();
    truth.check(Invariant::NothingOutlivesItsNode, running == 0 && connections == 0, || {
        format!("all nodes have stopped, but {running} still run, and {connections} connections stand")
    });
}

/// How long it may take until a node reaches a kind again.
const HEAL_LIMIT: Duration = Duration::from_secs(8);

/// The most bytes about membership that are under way at any moment.
const CHATTER: usize = 8 << 10;
