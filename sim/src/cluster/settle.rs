//! The end of a run: nothing is wrong any more, and everything must become well and quiet.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{CallOptions, Node};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::session::times;
use archipelago_runtime::env::from_outside;

use super::counter::{Add, ask};
use super::outcome::report;
use super::plan::{KINDS, Plan, TELL_TTL, TTL};
use super::truth::{ActorNumber, Sending, Truth};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;
use crate::invariants::Invariant;
use crate::world::World;

/// Looks at everything that must hold once nothing is wrong any more.
pub(crate) async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    let until = world.now() + times::observer_wait(TTL).to_duration() + HEAL_LIMIT;
    let agree_until = world.now() + times::observer_wait(TTL).to_duration() + AGREE_LIMIT;
    for index in 0..plan.nodes {
        for kind in 0..KINDS {
            for key in 0..plan.keys {
                reach(world, truth, index, ActorNumber { kind, key }, until).await;
            }
        }
    }
    agree(plan, world, truth, agree_until).await;
    let tells = TELL_TTL.to_duration() + Duration::from_millis(plan.silence);
    TrueClock::sleep(tells + Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    if truth.judge().violated() {
        return;
    }
    for index in 0..plan.nodes {
        is_quiet(world, truth, index);
    }
    if plan.calm {
        truth.look_back();
    }
    stop_all(plan, world, truth).await;
}

/// A fresh ask of node `index` to a counter must succeed soon.
async fn reach(world: &World, truth: &Arc<Truth>, index: usize, to: ActorNumber, until: Duration) {
    let mut last = None;
    while let Some(node) = world.node(index)
        && !truth.judge().violated()
    {
        let life = truth.life_of(node.id());
        let sending = Sending { to, from: index, life, sender: None, tell: false, inside: false };
        let ticket = truth.sending(sending);
        world.record("reach", ticket, to.as_u64());
        let options = CallOptions::new().timeout(Duration::from_secs(1));
        let add = Add { ticket, millis: 0, then: None };
        let answer = from_outside(|| ask(&node, to, add, options)).await;
        report(truth, ticket, &answer);
        last = answer.err();
        if last.is_none() || world.now() >= until {
            break;
        }
        TrueClock::sleep(Duration::from_millis(100)).await;
    }
    truth.check(Invariant::HealsAfterFaults, last.is_none(), || {
        format!("node {index} does not reach {to:?}, and last: {last:?}")
    });
}

/// Everybody must see everybody, and the same leader, soon.
async fn agree(plan: &Plan, world: &World, truth: &Truth, until: Duration) {
    let mut odd = first_odd_view(plan, world);
    while odd.is_some() && world.now() < until {
        TrueClock::sleep(Duration::from_millis(100)).await;
        odd = first_odd_view(plan, world);
    }
    world.record("agreed", u64::from(odd.is_none()), 0);
    truth.check(Invariant::ViewsConverge, odd.is_none(), || odd.unwrap_or_default());
}

/// A node that does not see all nodes up and answering, or another leader than the first.
fn first_odd_view(plan: &Plan, world: &World) -> Option<String> {
    let nodes: Vec<Node> = (0..plan.nodes).filter_map(|index| world.node(index)).collect();
    let mut all: Vec<NodeId> = nodes.iter().map(Node::id).collect();
    all.sort();
    let leader = nodes.first().and_then(Node::leader);
    let odd = |node: &&Node| {
        let members = node.members();
        let well = members.iter().all(|member| member.status == MemberStatus::Up && !member.suspect);
        let ids: Vec<NodeId> = members.iter().map(|member| member.info.id).collect();
        !well || ids != all || node.leader() != leader || leader.is_none()
    };
    let found = nodes.iter().find(odd)?;
    let seen: Vec<_> =
        found.members().into_iter().map(|member| (member.info.id, member.status, member.suspect)).collect();
    Some(format!(
        "of {all:?} with leader {leader:?} node {} sees {seen:?} with leader {:?}",
        found.id(),
        found.leader()
    ))
}

fn is_quiet(world: &World, truth: &Truth, index: usize) {
    let Some(env) = world.env(index) else { return };
    let meters = env.switch().meters();
    let gauges = ["archipelago_active_actors", "archipelago_open_jobs", "archipelago_pending_calls"];
    let left = gauges.map(|gauge| meters.gauge(gauge));
    truth.check(Invariant::CatalogIsConsistent, left == [0.0; 3], || {
        format!("all is quiet, but places, jobs, calls of node {index} are {left:?}")
    });
}

async fn stop_all(plan: &Plan, world: &World, truth: &Truth) {
    let envs: Vec<Arc<SimEnvironment>> = (0..plan.nodes).filter_map(|index| world.env(index)).collect();
    for index in 0..plan.nodes {
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

/// How long after the last session that may be in the way has ended every counter must answer.
const HEAL_LIMIT: Duration = Duration::from_secs(5);
/// How long after that everybody must see the same.
const AGREE_LIMIT: Duration = Duration::from_secs(20);
