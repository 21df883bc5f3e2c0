//! A kind behind one address: an actix actor that takes envelopes and sends what is in them to whom they name.
//!
//! For code that has one `Addr` for all entities of a kind, as with other sharding libraries. A message pays one hop through
//! the region's mailbox; `node.actor::<A>(key)` pays none. Where the entity lives is the business of the route that the
//! message takes then; the region decides nothing.

use std::marker::PhantomData;

use actix::{Actor, Addr, Context, Handler, Message, ResponseFuture};
use archipelago_protocol::call::CallError;

use crate::message::{AcceptedBy, RemoteMessage, VirtualActor};
use crate::node::Node;

/// A message, and the entity it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardEnvelope<M> {
    /// The key of the entity.
    pub entity_id: String,
    /// What it is told or asked.
    pub message: M,
}

impl<M> ShardEnvelope<M> {
    /// `message` for the entity with this key.
    pub fn new(entity_id: impl Into<String>, message: M) -> Self {
        Self { entity_id: entity_id.into(), message }
    }
}

impl<M: RemoteMessage> Message for ShardEnvelope<M> {
    type Result = Result<M::Result, CallError>;
}

/// Takes envelopes for all actors of type `A`, wherever they live.
pub struct ShardRegion<A: VirtualActor> {
    node: Node,
    actor: PhantomData<fn() -> A>,
}

impl<A: VirtualActor> Actor for ShardRegion<A> {
    type Context = Context<Self>;
}

impl<A, M> Handler<ShardEnvelope<M>> for ShardRegion<A>
where
    A: VirtualActor,
    M: AcceptedBy<A>,
{
    type Result = ResponseFuture<Result<M::Result, CallError>>;

    fn handle(&mut self, envelope: ShardEnvelope<M>, _: &mut Context<Self>) -> Self::Result {
        // On its way before the next envelope is looked at, so that order is kept.
        Box::pin(self.node.actor::<A>(envelope.entity_id).send(envelope.message))
    }
}

impl Node {
    /// Starts a region for actors of type `A` on the present arbiter: one address for all of them. It ends with its last
    /// address.
    pub fn region<A: VirtualActor>(&self) -> Addr<ShardRegion<A>> {
        ShardRegion { node: self.clone(), actor: PhantomData }.start()
    }
}
