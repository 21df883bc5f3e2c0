//! The end of a run: nothing is wrong any more, and everything must become well and quiet.

use std::sync::Arc;
use std::time::Duration;

use archipelago::Node;
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::session::times;

use super::counter::{Add, ask};
use super::plan::{KINDS, Plan, TELL_TTL};
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Ground, TTL, is_quiet, reach, stop_all};
use crate::invariants::Invariant;
use crate::world::World;

/// Looks at everything that must hold once nothing is wrong any more.
pub(crate) async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    let until = world.now() + times::observer_wait(TTL).to_duration() + HEAL_LIMIT;
    let agree_until = world.now() + times::observer_wait(TTL).to_duration() + AGREE_LIMIT;
    for index in 0..plan.nodes {
        for kind in 0..KINDS {
            for key in 0..plan.keys {
                reach_counter(world, truth, index, ActorNumber { kind, key }, until).await;
            }
        }
    }
    agree(plan, world, truth, agree_until).await;
    let tells = TELL_TTL.to_duration() + Duration::from_millis(plan.silence);
    TrueClock::sleep(tells + Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    if truth.ledger().judge().violated() {
        return;
    }
    for index in 0..plan.nodes {
        is_quiet(world, truth.ledger(), index);
    }
    if plan.calm {
        truth.look_back(plan.moves > 0);
    }
    stop_all(world, truth.ledger(), plan.nodes).await;
}

/// A fresh ask of node `index` to a counter must succeed soon.
async fn reach_counter(world: &World, truth: &Arc<Truth>, index: usize, to: ActorNumber, until: Duration) {
    reach(
        world,
        truth.ledger(),
        (index, to),
        until,
        |node, ticket, options| {
            let call = ask(node, to, Add { ticket, millis: 0, then: None }, options);
            async move {
                let answer = call.await;
                truth.answered(ticket, &answer);
                answer.err()
            }
        },
        |node| truth.sender_of_client(index, node.id()),
    )
    .await;
}

/// Everybody must see everybody, and the same leader, soon.
async fn agree(plan: &Plan, world: &World, truth: &Truth, until: Duration) {
    let mut odd = first_odd_view(plan, world);
    while odd.is_some() && world.now() < until {
        TrueClock::sleep(Duration::from_millis(100)).await;
        odd = first_odd_view(plan, world);
    }
    world.record("agreed", u64::from(odd.is_none()), 0);
    truth.ledger().check(Invariant::ViewsConverge, odd.is_none(), || odd.unwrap_or_default());
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

/// How long after the last session that may be in the way has ended every counter must answer.
const HEAL_LIMIT: Duration = Duration::from_secs(5);
/// How long after that everybody must see the same.
const AGREE_LIMIT: Duration = Duration::from_secs(20);
