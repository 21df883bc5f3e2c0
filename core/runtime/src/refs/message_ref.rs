//! A ref for code that knows the message and not the actor.

use std::any::TypeId;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::rc::Rc;

use archipelago_protocol::call::{CallError, UnknownMessage};
use archipelago_protocol::identity::ActorId;
use serde::{Deserialize, Deserializer, Serialize, Serializer, ser};

use super::binding::Binding;
use super::recipient::Addressee;
use super::submit::{Submit, ask, refuse, tell};
use crate::arbiter::ArbiterLocal;
use crate::call::{AnswerSender, Call, CallOptions};
use crate::catalog::{Job, JobHead, ReplyTo, Target, TypedJob};
use crate::message::RemoteMessage;
use crate::node::Node;
use crate::remote::TypedOutbound;
use crate::watch::Watch;

/// Some actor that takes messages of type `M`. Serialises like an `ActorRef`.
pub struct MessageRef<M> {
    binding: Binding,
    message: PhantomData<fn(M)>,
}

impl<M: RemoteMessage> MessageRef<M> {
    pub(super) const fn of(binding: Binding) -> Self {
        Self { binding, message: PhantomData }
    }

    /// Asks: sends a message and waits for its reply.
    pub fn send(&self, message: M) -> Call<M::Result> {
        self.send_with(message, CallOptions::default())
    }

    /// Asks with a deadline, flags or a trace of its own.
    pub fn send_with(&self, message: M, options: CallOptions) -> Call<M::Result> {
        ask(&self.binding, M::FLAGS, options, AnyActors(message))
    }

    /// Tells: sends a message and waits for nothing.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it is clear at once that the message will not be delivered.
    pub fn tell(&self, message: M) -> Result<(), CallError> {
        self.tell_with(message, CallOptions::default())
    }

    /// Tells with flags, a trace, or a time after which the message is not worth handling any more.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn tell_with(&self, message: M, options: CallOptions) -> Result<(), CallError> {
        tell(&self.binding, M::FLAGS, options, AnyActors(message))
    }

    /// Asks the actor to deactivate, as [`ActorRef::deactivate`](super::ActorRef::deactivate) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn deactivate(&self) -> Result<(), CallError> {
        self.binding.deactivate()
    }

    /// Watches the present activation of the actor, as [`ActorRef::watch`](super::ActorRef::watch) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn watch(&self) -> Result<Watch, CallError> {
        super::actor_ref::watch(&self.binding).await
    }

    /// The same actor, as seen from `node`.
    #[must_use]
    pub fn bind(&self, node: &Node) -> Self {
        Self::of(self.binding.bind(node.shared()))
    }

    /// The actor's id.
    ///
    /// # Errors
    ///
    /// [`CallError::InvalidId`] if the key cannot be one.
    pub fn id(&self) -> Result<&ActorId, CallError> {
        self.binding.id()
    }

    pub(super) const fn binding(&self) -> &Binding {
        &self.binding
    }
}

impl<M: RemoteMessage> Addressee<M> for MessageRef<M> {
    fn ask(&self, message: M) -> Call<M::Result> {
        self.send(message)
    }

    fn tell(&self, message: M) -> Result<(), CallError> {
        self.tell(message)
    }

    fn name(&self) -> String {
        self.binding.id().map_or_else(|error| error.to_string(), ActorId::to_string)
    }
}

/// A message whose actor's type is not known here.
struct AnyActors<M>(M);

impl<M: RemoteMessage> Submit<M::Result> for AnyActors<M> {
    fn submit(
        self,
        index: u32,
        target: &Target,
        head: JobHead,
        caller: Option<AnswerSender<M::Result>>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        if on.any_kind(index).is_some_and(|kind| !kind.shards().is_open_to(target)) {
            return on.post(index, target, head, TypedOutbound::new(self.0, caller));
        }
        submit_here(self.0, index, target, head, caller, on)
    }

    fn name(&self) -> String {
        M::NAME.to_owned()
    }
}

/// Queues a message for an actor of this node whose type is not known here.
///
/// # Errors
///
/// The job was not queued; whoever waits has been told.
pub(crate) fn submit_here<M: RemoteMessage>(
    message: M,
    kind: u32,
    target: &Target,
    head: JobHead,
    caller: Option<AnswerSender<M::Result>>,
    on: &Rc<ArbiterLocal>,
) -> Result<(), CallError> {
    let Some(kind) = on.any_kind(kind) else {
        return Err(refuse(caller, CallError::UnknownKind { kind: target.id.kind().as_str().into() }));
    };
    if !kind.takes(M::WIRE_ID, TypeId::of::<M>()) {
        let (kind, message) = (target.id.kind().as_str().into(), M::NAME.into());
        let unknown = UnknownMessage { kind, message };
        return Err(refuse(caller, CallError::UnknownMessage(Box::new(unknown))));
    }
    let reply_to = caller.map_or(ReplyTo::Nobody, ReplyTo::Caller);
    let job = Job::boxed(head, TypedJob::new(message, reply_to));
    kind.submit_boxed(target, (M::WIRE_ID, job), on)
}

impl<M> Clone for MessageRef<M> {
    fn clone(&self) -> Self {
        Self { binding: self.binding.clone(), message: PhantomData }
    }
}

impl<M> PartialEq for MessageRef<M> {
    fn eq(&self, other: &Self) -> bool {
        self.binding == other.binding
    }
}

impl<M> Eq for MessageRef<M> {}

impl<M> Hash for MessageRef<M> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.binding.hash(state);
    }
}

impl<M> fmt::Debug for MessageRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding.id() {
            Ok(id) => write!(f, "MessageRef({id})"),
            Err(error) => write!(f, "MessageRef({error})"),
        }
    }
}

impl<M> Serialize for MessageRef<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.binding.id().map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de, M: RemoteMessage> Deserialize<'de> for MessageRef<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(Binding::decoded(ActorId::deserialize(deserializer)?)))
    }
}
