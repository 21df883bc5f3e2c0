//! Messages as plain envelopes, for code that speaks to the transport actor itself.
//!
//! [`SendRemote`] goes to the [`TransportActor`], which puts the envelope on its way to the node of its target. There it is
//! handled like any other message to a named actor; if nobody is registered at its path, it goes to whoever has sent a
//! [`SubscribeInbound`], as an [`InboundMessage`], and if there is nobody either, it becomes a dead letter.

use std::rc::Rc;
use std::sync::Arc;

use actix::{Context, Handler, Message, Recipient};
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::message::{CodecId, Envelope, Target, TypeHint};
use bytes::Bytes;

use super::incoming::Held;
use super::letter::Letter;
use super::transport_actor::TransportActor;
use crate::arbiter::ArbiterLocal;
use crate::named::Arrival;

/// A message to a named actor, as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageEnvelope {
    /// Whom it is for: a URI such as `archipelago://system@host:port/path`.
    pub target: ActorPath,
    /// Who sent it, if that can be answered to.
    pub sender: Option<ActorPath>,
    /// The name of the message's type.
    pub type_hint: String,
    /// How the payload is encoded: by a built-in codec, or by one of your own.
    pub codec: CodecId,
    /// The encoded message.
    pub payload: Bytes,
}

/// Asks the transport actor to send an envelope. Nobody waits for a reply.
///
/// The answer says whether it is on its way; what is lost later becomes a remote dead letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendRemote {
    /// What to send.
    pub envelope: MessageEnvelope,
}

impl Message for SendRemote {
    type Result = Result<(), CallError>;
}

/// An envelope that came from another node, and that no registered actor takes.
#[derive(Clone)]
pub struct InboundMessage {
    /// What came.
    pub envelope: MessageEnvelope,
    /// Its share of the window of its connection: whoever is slow slows its senders down.
    _share: Option<Arc<Held>>,
}

impl Message for InboundMessage {
    type Result = ();
}

impl std::fmt::Debug for InboundMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InboundMessage").field("envelope", &self.envelope).finish_non_exhaustive()
    }
}

/// Asks the transport actor for every [`InboundMessage`] from now on.
#[derive(Clone)]
pub struct SubscribeInbound(pub Recipient<InboundMessage>);

impl Message for SubscribeInbound {
    type Result = ();
}

impl std::fmt::Debug for SubscribeInbound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SubscribeInbound")
    }
}

/// Nobody takes an envelope; its subscribers may.
struct Unclaimed(InboundMessage);

impl Message for Unclaimed {
    type Result = ();
}

impl Handler<SendRemote> for TransportActor {
    type Result = Result<(), CallError>;

    fn handle(&mut self, SendRemote { envelope }: SendRemote, _: &mut Context<Self>) -> Self::Result {
        let bad = |error: &dyn std::fmt::Display| CallError::Codec {
            reason: format!("the type hint: {error}").into(),
            started: false,
        };
        TypeHint::new(&envelope.type_hint).map_err(|error| bad(&error))?;
        let node = self.node();
        let arbiter = node.arbiter_of_path(&envelope.target);
        let here = envelope.target.address().is_none_or(|address| node.is_own_address(address));
        node.on_arbiter(arbiter, move |on| {
            if here {
                on.take_own(envelope);
            } else {
                on.post_or_lose(Letter::of_envelope(envelope));
            }
        })
    }
}

impl Handler<SubscribeInbound> for TransportActor {
    type Result = ();

    fn handle(&mut self, SubscribeInbound(subscriber): SubscribeInbound, _: &mut Context<Self>) {
        self.subscribers.push(subscriber);
        self.node().remoting().inbound_wanted(true);
    }
}

impl Handler<Unclaimed> for TransportActor {
    type Result = ();

    fn handle(&mut self, Unclaimed(message): Unclaimed, _: &mut Context<Self>) {
        self.subscribers.retain(Recipient::connected);
        if self.subscribers.is_empty() {
            self.node().remoting().inbound_wanted(false);
            let MessageEnvelope { target, type_hint, .. } = &message.envelope;
            let error = CallError::NoSuchActor { path: target.to_uri().into() };
            return self.node().dead_letter(target.to_uri(), type_hint, &error);
        }
        for subscriber in &self.subscribers {
            subscriber.do_send(message.clone());
        }
    }
}

impl ArbiterLocal {
    /// Gives an arrival that nobody takes to the subscribers, or back if it is not for them or there are none.
    pub(super) fn offer_to_subscribers(self: &Rc<Self>, arrival: Arrival) -> Option<Arrival> {
        let Some(transport) = self.node().remoting().transport_if_wanted() else { return Some(arrival) };
        let Some(envelope) = plain(&arrival.envelope) else { return Some(arrival) };
        let share = arrival.way_back.map(|way_back| Arc::new(way_back.into_held()));
        transport.do_send(Unclaimed(InboundMessage { envelope, _share: share }));
        None
    }
}

/// An envelope that nobody waits for, without what belongs to its way.
fn plain(envelope: &Envelope) -> Option<MessageEnvelope> {
    let path = |target: &Target| match target {
        Target::Path(path) => Some(path.clone()),
        Target::Actor(_) => None,
    };
    let type_hint = envelope.type_hint.as_ref().map(|hint| hint.as_str().to_owned());
    envelope.correlation().is_none().then_some(())?;
    Some(MessageEnvelope {
        target: path(envelope.target()?)?,
        sender: envelope.sender().and_then(path),
        type_hint: type_hint.unwrap_or_else(|| envelope.message.to_string()),
        codec: envelope.codec,
        payload: envelope.payload.clone(),
    })
}
