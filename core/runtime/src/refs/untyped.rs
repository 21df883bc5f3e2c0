//! A ref for code that knows neither the actor's type nor its messages: everything is bytes.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::message::{CodecId, MessageFlags, wire_id};
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::ActorRef;
use super::binding::Binding;
use super::submit::{Submit, ask, refuse, tell};
use crate::arbiter::ArbiterLocal;
use crate::call::{AnswerSender, Call, CallOptions};
use crate::catalog::{Encoded, JobHead, Target, WayBack};
use crate::message::VirtualActor;
use crate::node::{Node, NodeShared};
use crate::remote::{EncodedOutbound, Waiter};
use crate::watch::Watch;

/// An actor known by kind and key.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct UntypedRef {
    binding: Binding,
}

impl UntypedRef {
    pub(crate) fn on(node: &Arc<NodeShared>, kind: &str, key: &str) -> Self {
        Self::of(Binding::on(node, kind, key))
    }

    pub(super) const fn of(binding: Binding) -> Self {
        Self { binding }
    }

    /// Asks with an encoded message; the reply comes back encoded the same way.
    ///
    /// `codec` is a [`Codec`](archipelago_protocol::message::Codec), or the id of one of your own.
    pub fn send_encoded(
        &self,
        message: &str,
        codec: impl Into<CodecId>,
        payload: impl Into<Bytes>,
    ) -> Call<Bytes> {
        self.send_encoded_with(message, codec, payload, CallOptions::default())
    }

    /// Asks with an encoded message and a deadline, flags or a trace of its own. The flags of the message's type hold as well.
    pub fn send_encoded_with(
        &self,
        message: &str,
        codec: impl Into<CodecId>,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Call<Bytes> {
        let job = EncodedMessage { name: message.to_owned(), codec: codec.into(), payload: payload.into() };
        ask(&self.binding, MessageFlags::empty(), options, job)
    }

    /// Tells with an encoded message.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it is clear at once that the message will not be delivered.
    pub fn tell_encoded(
        &self,
        message: &str,
        codec: impl Into<CodecId>,
        payload: impl Into<Bytes>,
    ) -> Result<(), CallError> {
        self.tell_encoded_with(message, codec, payload, CallOptions::default())
    }

    /// Tells with an encoded message and flags, a trace, or a time after which it is not worth handling any more. The flags of
    /// the message's type hold as well.
    ///
    /// # Errors
    ///
    /// As [`tell_encoded`](Self::tell_encoded).
    pub fn tell_encoded_with(
        &self,
        message: &str,
        codec: impl Into<CodecId>,
        payload: impl Into<Bytes>,
        options: CallOptions,
    ) -> Result<(), CallError> {
        let job = EncodedMessage { name: message.to_owned(), codec: codec.into(), payload: payload.into() };
        tell(&self.binding, MessageFlags::empty(), options, job)
    }

    /// Asks the actor to deactivate, as [`ActorRef::deactivate`] does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn deactivate(&self) -> Result<(), CallError> {
        self.binding.deactivate()
    }

    /// The same actor with its type; `None` if it is of another kind.
    pub fn typed<A: VirtualActor>(&self) -> Option<ActorRef<A>> {
        let same = self.binding.id().is_ok_and(|id| id.kind().as_str() == A::KIND);
        same.then(|| ActorRef::of(self.binding.clone()))
    }

    /// The same actor, as seen from `node`.
    #[must_use]
    pub fn bind(&self, node: &Node) -> Self {
        Self::of(self.binding.bind(node.shared()))
    }

    /// Watches the present activation of the actor, as [`ActorRef::watch`] does.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn watch(&self) -> Result<Watch, CallError> {
        super::actor_ref::watch(&self.binding).await
    }

    /// The actor's id.
    ///
    /// # Errors
    ///
    /// [`CallError::InvalidId`] if kind or key cannot be one.
    pub fn id(&self) -> Result<&ActorId, CallError> {
        self.binding.id()
    }
}

struct EncodedMessage {
    name: String,
    codec: CodecId,
    payload: Bytes,
}

impl Submit<Bytes> for EncodedMessage {
    fn submit(
        self,
        kind: u32,
        target: &Target,
        mut head: JobHead,
        caller: Option<AnswerSender<Bytes>>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let id = wire_id(&self.name);
        if let Some(known) = on.any_kind(kind).filter(|kind| !kind.shards().is_open_to(target)) {
            head.flags |= known.flags_of(id);
            let waiter = caller.map(Waiter::of_bytes);
            let (name, codec, payload) = (self.name.into(), self.codec, self.payload);
            let body = EncodedOutbound { id, name, codec, payload, waiter, ended: false };
            return on.post(kind, target, head, body);
        }
        let Some(kind) = on.any_kind(kind) else {
            return Err(refuse(caller, CallError::UnknownKind { kind: target.id.kind().as_str().into() }));
        };
        let way_back = caller.map_or(WayBack::Nobody, WayBack::Caller);
        let message = Encoded { id, name: &self.name, bytes: &self.payload, codec: self.codec, way_back };
        kind.submit_encoded(target, head, message, on)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

impl fmt::Debug for UntypedRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding.id() {
            Ok(id) => write!(f, "UntypedRef({id})"),
            Err(error) => write!(f, "UntypedRef({error})"),
        }
    }
}

impl Serialize for UntypedRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.binding.id().map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for UntypedRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(Binding::decoded(ActorId::deserialize(deserializer)?)))
    }
}
