//! A message to a named actor of another node.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::hash::stable_hash_parts;
use archipelago_protocol::identity::{ActorPath, CorrelationId};
use archipelago_protocol::link::Unsent;
use archipelago_protocol::message::{CallChain, Envelope, Extensions, Leg, Target, TypeHint, wire_id};
use archipelago_protocol::placement::ShardCount;
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use super::envelopes::MessageEnvelope;
use super::outbound::{EncodedOutbound, Outbound};
use super::peer::Peer;
use super::waiter::Waiter;
use crate::arbiter::ArbiterLocal;
use crate::call::CallScope;
use crate::catalog::JobHead;
use crate::events::DeadLetter;
use crate::node::NodeShared;

/// A message to a named actor of another node. Stays on its arbiter.
pub(crate) struct Letter {
    pub(super) to: ActorPath,
    pub(super) sender: Option<Box<ActorPath>>,
    pub(super) head: JobHead,
    /// When it is not worth sending any more.
    pub(super) expires: Millis,
    pub(super) body: Box<dyn Outbound>,
    /// Whoever waits for the reply; none for a tell.
    pub(super) waiter: Option<Waiter>,
}

impl Letter {
    pub(crate) fn new(to: ActorPath, head: JobHead, mut body: Box<dyn Outbound>) -> Self {
        let waiter = body.take_waiter();
        Self { to, sender: None, expires: head.deadline, head, body, waiter }
    }

    /// A raw envelope that nobody waits for.
    pub(super) fn of_envelope(envelope: MessageEnvelope) -> Self {
        let MessageEnvelope { target, sender, type_hint, codec, payload } = envelope;
        let (id, name) = (wire_id(&type_hint), type_hint.into());
        let body = EncodedOutbound { id, name, codec, payload, waiter: None, ended: false };
        let head = head_of(false, Millis::MAX, Default::default(), None);
        Self { sender: sender.map(Box::new), ..Self::new(target, head, Box::new(body)) }
    }

    /// What was given to a lane and never left it; `None` if it was no letter, or cannot be one again. The time to live in it
    /// was right at `now`.
    pub(super) fn unsent(unsent: Unsent<Waiter>, now: Millis, tell_ttl: Millis) -> Option<Self> {
        let (frame, waiter, deadline) = match unsent {
            Unsent::Ask { frame, waiter, deadline, .. } => (frame, Some(waiter), deadline),
            Unsent::Tell { frame, told } => (frame, None, told + tell_ttl),
        };
        let Ok(envelope) = Envelope::decode(&frame.slice(1..)) else {
            if let Some(waiter) = waiter {
                waiter.fail(CallError::NoRoute { reason: "the connection was lost".into() });
            }
            return None;
        };
        let Envelope { leg, message: id, type_hint, flags, codec, trace, chain, payload, .. } = envelope;
        let (Some(Target::Path(to)), sender) = (leg.target().cloned(), leg.sender().cloned()) else {
            return None;
        };
        let sender = sender.and_then(|sender| match sender {
            Target::Path(path) => Some(Box::new(path)),
            Target::Actor(_) => None,
        });
        let name = type_hint.as_ref().map_or("?", TypeHint::as_str).into();
        let body = EncodedOutbound { id, name, codec, payload, waiter: None, ended: false };
        let scope = Arc::new(CallScope { deadline: Some(deadline), trace, chain });
        let asks = waiter.is_some();
        let until = if asks { deadline } else { leg.ttl().map_or(Millis::MAX, |ttl| now + ttl) };
        let head = head_of(asks, until, flags, Some(scope));
        Some(Self { to, sender, head, expires: deadline.min(until), body: Box::new(body), waiter })
    }

    /// The envelope for it, without its payload.
    pub(super) fn envelope(&self, call: Option<CorrelationId>, peer: &Peer, node: &NodeShared) -> Envelope {
        let now = node.env().coarse();
        let left = (self.head.deadline < Millis::MAX).then(|| self.head.deadline.since(now));
        let (target, sender) = (self.to.clone().into(), self.sender.as_deref().cloned().map(Target::Path));
        let leg = match call {
            Some(correlation) => {
                Leg::Request { correlation, ttl: left.unwrap_or(Millis::MAX), target, sender }
            }
            None => Leg::OneWay { ttl: left, target, sender },
        };
        let scope = self.head.scope.as_deref();
        Envelope {
            leg,
            target_node: peer.id(),
            sender_node: node.id(),
            message: self.body.id(),
            type_hint: TypeHint::new(self.body.name()).ok(),
            flags: self.head.flags,
            codec: self.body.codec(),
            trace: scope.and_then(|scope| scope.trace),
            chain: scope.map_or(CallChain::empty(), |scope| scope.chain),
            extensions: Extensions::new(),
            payload: Bytes::new(),
        }
    }

    /// Tells whoever waits that the message will not be handled; a tell becomes a dead letter.
    pub(super) fn refuse(mut self, error: CallError, on: &ArbiterLocal) {
        match self.waiter.take() {
            Some(waiter) => waiter.fail(error),
            None if self.head.asks => {}
            None => on.node().lost_on_the_way(None, self.dead(error)),
        }
    }

    pub(super) fn dead(&self, reason: CallError) -> DeadLetter {
        DeadLetter { target: self.to.to_uri(), message: self.body.name().to_owned(), reason }
    }

    pub(super) fn is_over(&self, now: Millis) -> bool {
        self.expires <= now || self.waiter.as_ref().is_some_and(|waiter| waiter.is_abandoned())
    }

    pub(super) fn hash(&self) -> u64 {
        hash_of(&self.to)
    }
}

fn head_of(
    asks: bool,
    deadline: Millis,
    flags: archipelago_protocol::message::MessageFlags,
    scope: Option<Arc<CallScope>>,
) -> JobHead {
    JobHead { call: None, asks, remote: false, inside: true, deadline, flags, scope }
}

/// Picks the arbiters of a path: the same on every node.
fn hash_of(path: &ActorPath) -> u64 {
    stable_hash_parts(&[path.system(), path.path()])
}

/// The slot of a path's hash; slots are given to arbiters as shards are.
pub(super) const fn slot_of(hash: u64) -> u64 {
    ShardCount::DEFAULT.shard_of(hash)
}

impl NodeShared {
    /// The arbiter whose lanes the messages to a named actor take, so that they stay in order.
    pub(crate) fn arbiter_of_path(&self, path: &ActorPath) -> u16 {
        self.arbiter_of_shard(slot_of(hash_of(path)))
    }
}
