//! Roles of the cluster, which one node has at a time: what the actors that have one share. Every decision is [`RoleHolder`]'s;
//! here its requests are carried out.

use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, WrapFuture};
use archipelago_protocol::contract::{DirectoryError, OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{Generation, OwnedKey, Placement};
use archipelago_protocol::session::{RoleAction, RoleClaim, RoleEvent, RoleHolder, RoleSight, times};

use crate::env::{Oddity, within};
use crate::node::NodeShared;
use crate::placement::session_of;

/// A role at this node.
pub(crate) struct Seat {
    node: Arc<NodeShared>,
    key: OwnedKey,
    machine: RoleHolder,
}

/// An actor that does the work of a role on the node that has it.
pub(crate) trait Officer: Actor<Context = Context<Self>> {
    /// Its role.
    fn seat(&mut self) -> &mut Seat;

    /// This node has the role from now on, until its session ends or the actor gives it up.
    fn take_office(&mut self, generation: Generation, ctx: &mut Context<Self>);

    /// A claim came to nothing.
    fn passed_over(&mut self, _: &mut Context<Self>) {}
}

impl Seat {
    /// The role of this name, which the node does not have.
    pub(crate) fn new(node: &Arc<NodeShared>, key: OwnedKey) -> Self {
        let machine = RoleHolder::new(node.settings().session_ttl);
        Self { node: Arc::clone(node), key, machine }
    }
}

/// Says whether this node should have the role. To be said again and again: what must not be here is found by that.
pub(crate) fn want<A: Officer>(officer: &mut A, wanted: bool, ctx: &mut Context<A>) {
    apply(officer, if wanted { RoleEvent::Wanted } else { RoleEvent::Unwanted }, ctx);
}

/// Gives the role back. Whatever was done with it here has stopped.
pub(crate) fn give_up<A: Officer>(officer: &mut A, ctx: &mut Context<A>) {
    apply(officer, RoleEvent::GivenUp, ctx);
}

fn apply<A: Officer>(officer: &mut A, event: RoleEvent, ctx: &mut Context<A>) {
    let seat = officer.seat();
    let now = seat.node.env().now();
    for action in seat.machine.handle(now, event) {
        match action {
            RoleAction::Claim => ask(officer, claimed, ctx),
            RoleAction::LookUp => ask(officer, looked_up, ctx),
            RoleAction::Release(generation) => {
                ask(officer, async move |node, key| released(node, key, generation).await, ctx);
            }
            RoleAction::TakeOffice(generation) => officer.take_office(generation, ctx),
            RoleAction::PassedOver => officer.passed_over(ctx),
        }
    }
}

/// Runs one request beside the actor's other work and feeds what came of it to the machine.
fn ask<A, F>(officer: &mut A, request: F, ctx: &mut Context<A>)
where
    A: Officer,
    F: AsyncFnOnce(Arc<NodeShared>, OwnedKey) -> RoleEvent + 'static,
{
    let seat = officer.seat();
    let (node, key) = (Arc::clone(&seat.node), seat.key.clone());
    let asked = async move { request(node, key).await };
    ctx.spawn(asked.into_actor(officer).map(|event, officer, ctx| apply(officer, event, ctx)));
}

async fn claimed(node: Arc<NodeShared>, key: OwnedKey) -> RoleEvent {
    let session = session_of(&node);
    let attempt = node.directory().claim(&key, session, None);
    let answer = within(node.env(), times::attempt_timeout(session.ttl), attempt).await;
    let answer = answer.filter(|_| !node.env().oddly(Oddity::ClaimUnanswered));
    if let Some(Ok(PlacementDecision::AlreadyPlaced(held) | PlacementDecision::Raced { winner: held })) =
        &answer
    {
        note_block(&node, held);
    }
    let claim = RoleClaim::of(node.id(), answer.as_ref());
    if claim == RoleClaim::Unanswered {
        tracing::debug!(%key, ?answer, "the claim of a role was not answered");
    }
    RoleEvent::Claimed(claim)
}

async fn looked_up(node: Arc<NodeShared>, key: OwnedKey) -> RoleEvent {
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let found = within(node.env(), limit, node.directory().lookup(&key)).await;
    RoleEvent::LookedUp(RoleSight::of(node.id(), found.as_ref()))
}

async fn released(node: Arc<NodeShared>, key: OwnedKey, generation: Generation) -> RoleEvent {
    let placement = Placement { key, node: node.id(), generation };
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let answer = within(node.env(), limit, node.directory().release(&placement)).await;
    tracing::debug!(key = %placement.key, %generation, ?answer, "a role is given back");
    // A conflict says that another record stands there.
    RoleEvent::Released(matches!(answer, Some(Ok(()) | Err(DirectoryError::Conflict { .. }))))
}

/// The owner may be gone for good: then somebody must notice, and it may have to be us.
pub(crate) fn note_block(node: &NodeShared, record: &OwnerRecord) {
    let owner = record.placement.node;
    if owner != node.id() && !node.members().view().is_active(owner) {
        node.members().blocked_by(record.session());
    }
}
