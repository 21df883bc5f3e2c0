//! The actors under test, of three kinds that do the same: they answer.

use std::sync::Arc;
use std::time::Duration;

use archipelago::identity::ActorId;
use archipelago::prelude::*;
use archipelago::{Call, CallOptions};
use archipelago_runtime::{AcceptedBy, MessageTable, NodeBuilder, ViaHandler};

use super::truth::{Span, Truth};
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Home, Shared, known};

/// Is answered with its ticket, after a while.
#[remote(u64)]
pub(crate) struct Greet {
    pub(crate) ticket: u64,
    pub(crate) millis: u64,
}

/// An actor of kind number `N`.
pub(crate) struct Dweller<const N: usize> {
    span: Arc<Span>,
}

impl<const N: usize> Dweller<N> {
    fn new(truth: &Arc<Truth>, home: &Home, id: &ActorId, node: &Node) -> Self {
        let key = id.key().as_str().parse().unwrap_or(u64::MAX);
        Self { span: truth.activation(ActorNumber { kind: N, key }, id, home, node.id()) }
    }
}

impl<const N: usize> Actor for Dweller<N> {
    type Context = Context<Self>;
}

impl<const N: usize> VirtualActor for Dweller<N> {
    const KIND: &'static str = NAMES[N];

    fn messages(table: &mut MessageTable<Self>) {
        table.add::<Greet>();
    }
}

impl<const N: usize> Lifecycle for Dweller<N> {
    const HOOKS: bool = false;
}

impl<const N: usize> AcceptedBy<Dweller<N>> for Greet {
    type Via = ViaHandler;
}

impl<const N: usize> Handler<Greet> for Dweller<N> {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, Greet { ticket, millis }: Greet, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let (running, span) = (self.span.truth().started(ticket, &self.span), Arc::clone(&self.span));
        Box::pin(async move {
            let _running = running;
            if millis > 0 {
                TrueClock::sleep(Duration::from_millis(millis)).await;
                span.goes_on();
            }
            ticket
        })
    }
}

/// Has a node host all kinds.
pub(crate) fn with_kinds(builder: NodeBuilder, truth: &Shared<Truth>, home: &Home) -> NodeBuilder {
    let builder = with_kind::<HOMED>(builder, truth, home);
    let builder = with_kind::<PLACED>(builder, truth, home);
    with_kind::<SOUGHT>(builder, truth, home)
}

fn with_kind<const N: usize>(builder: NodeBuilder, truth: &Shared<Truth>, home: &Home) -> NodeBuilder {
    let (truth, home) = (Arc::clone(truth), home.clone());
    builder.actor_with(move |id: &ActorId, node: &Node| Dweller::<N>::new(known(&truth), &home, id, node))
}

/// Asks an actor of any kind.
pub(crate) fn ask(node: &Node, to: ActorNumber, greet: Greet, options: CallOptions) -> Call<u64> {
    let key = to.key.to_string();
    match to.kind {
        HOMED => node.actor::<Dweller<HOMED>>(key).send_with(greet, options),
        PLACED => node.actor::<Dweller<PLACED>>(key).send_with(greet, options),
        _ => node.actor::<Dweller<SOUGHT>>(key).send_with(greet, options),
    }
}

/// The name of a kind.
pub(crate) const fn name_of(kind: usize) -> &'static str {
    NAMES[kind]
}

/// The shard of an actor.
pub(crate) fn shard_of(node: &Node, actor: ActorNumber) -> u32 {
    let actor = node.actor_ref(name_of(actor.kind), &actor.key.to_string());
    actor.id().map_or(u32::MAX, |id| u32::try_from(id.stable_hash() % SHARDS).unwrap_or(u32::MAX))
}

/// Lives where a policy says.
pub(crate) const HOMED: usize = 0;
/// Lives where it was placed.
pub(crate) const PLACED: usize = 1;
/// Lives where it came to life first.
pub(crate) const SOUGHT: usize = 2;
/// How many kinds there are.
pub(crate) const KINDS: usize = 3;
const NAMES: [&str; KINDS] = ["Homed", "Placed", "Sought"];
/// Into how many shards a kind is divided.
const SHARDS: u64 = 256;
