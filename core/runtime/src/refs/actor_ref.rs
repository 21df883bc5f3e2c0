//! The everyday ref: one actor, known by its type and key.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use actix::Recipient;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::ActorId;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

use super::binding::Binding;
use super::submit::{Submit, ask, refuse, tell};
use super::{MessageRef, UntypedRef, recipient};
use crate::arbiter::ArbiterLocal;
use crate::call::{AnswerSender, Call, CallOptions};
use crate::catalog::{Job, JobHead, ReplyTo, Target, TypedJob};
use crate::message::{AcceptedBy, VirtualActor};
use crate::node::{Node, NodeShared};
use crate::remote::TypedOutbound;
use crate::watch::{At, Watch, WatchTarget};

/// The actor of type `A` with a certain key, wherever it lives and whether or not it is active.
///
/// A ref is cheap to clone and to send; it serialises as the actor's id and is usable again where it is decoded.
pub struct ActorRef<A> {
    binding: Binding,
    actor: PhantomData<fn() -> A>,
}

impl<A: VirtualActor> ActorRef<A> {
    pub(crate) fn on(node: &Arc<NodeShared>, key: &str) -> Self {
        Self::of(Binding::on(node, A::KIND, key))
    }

    pub(super) const fn of(binding: Binding) -> Self {
        Self { binding, actor: PhantomData }
    }

    /// Asks: sends a message and waits for its reply, for as long as the node's `calls.timeout` says.
    ///
    /// The message is on its way when this returns; dropping the [`Call`] cancels it.
    pub fn send<M>(&self, message: M) -> Call<M::Result>
    where
        M: AcceptedBy<A>,
    {
        self.send_with(message, CallOptions::default())
    }

    /// Asks with a deadline, flags or a trace of its own.
    pub fn send_with<M>(&self, message: M, options: CallOptions) -> Call<M::Result>
    where
        M: AcceptedBy<A>,
    {
        ask(&self.binding, M::FLAGS, options, TypedMessage::<A, M>::new(message))
    }

    /// Tells: sends a message and waits for nothing. What cannot be delivered later becomes a dead letter.
    ///
    /// # Errors
    ///
    /// [`CallError`] if it is clear at once that the message will not be delivered.
    pub fn tell<M>(&self, message: M) -> Result<(), CallError>
    where
        M: AcceptedBy<A>,
    {
        self.tell_with(message, CallOptions::default())
    }

    /// Tells with flags, a trace, or a time after which the message is not worth handling any more.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn tell_with<M>(&self, message: M, options: CallOptions) -> Result<(), CallError>
    where
        M: AcceptedBy<A>,
    {
        tell(&self.binding, M::FLAGS, options, TypedMessage::<A, M>::new(message))
    }

    /// The same actor for code that knows only the message.
    pub fn message_ref<M>(&self) -> MessageRef<M>
    where
        M: AcceptedBy<A>,
    {
        MessageRef::of(self.binding.clone())
    }

    /// The same actor as a plain actix recipient, for code written without archipelago.
    ///
    /// It goes through a small actor of its own, so order holds among the messages of one recipient. `do_send` is a tell: what
    /// cannot be delivered becomes a dead letter. `send` is an ask whose errors show as a closed mailbox.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref is not bound or the node has stopped.
    pub fn recipient<M>(&self) -> Result<Recipient<M>, CallError>
    where
        M: AcceptedBy<A>,
    {
        recipient::start(self.message_ref())
    }

    /// The same actor for code that knows neither its type nor its messages.
    pub fn untyped(&self) -> UntypedRef {
        UntypedRef::of(self.binding.clone())
    }

    /// The same actor, as seen from `node`: for a ref that was decoded outside a node.
    #[must_use]
    pub fn bind(&self, node: &Node) -> Self {
        Self::of(self.binding.bind(node.shared()))
    }

    /// Asks the actor to deactivate once the messages that run now have ended; nothing happens if it is not active.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref cannot be used at all.
    pub fn deactivate(&self) -> Result<(), CallError> {
        self.binding.deactivate()
    }

    /// Watches the present activation of the actor, wherever it lives. Once this has returned, its end is not missed: the
    /// [`Watch`] is ready when it comes, and at once with [`NotActive`](archipelago_protocol::watch::Termination::NotActive) if
    /// there is none. Watching neither activates the actor nor keeps it alive.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref cannot be used, the owner cannot be asked within `calls.timeout`, or one of the two nodes has
    /// `events.watches` watches already.
    pub async fn watch(&self) -> Result<Watch, CallError> {
        watch(&self.binding).await
    }

    /// The arbiter of `node` that would host it.
    pub(crate) fn arbiter_of(&self, node: &NodeShared) -> Result<u16, CallError> {
        let route = self.binding.route()?;
        Ok(node.arbiter_of(route.kind(), route.target.hash))
    }

    /// Whether messages can get on their way.
    pub(crate) fn usable(&self) -> Result<(), CallError> {
        self.binding.route().map(|_| ())
    }

    /// The actor's id.
    ///
    /// # Errors
    ///
    /// [`CallError::InvalidId`] if the key cannot be one.
    pub fn id(&self) -> Result<&ActorId, CallError> {
        self.binding.id()
    }
}

/// Watches the actor of a binding.
pub(super) async fn watch(binding: &Binding) -> Result<Watch, CallError> {
    let route = binding.route()?.in_present_life();
    let id = &route.target.id;
    let target = WatchTarget::Actor(id.kind().as_str().to_owned(), id.key().as_str().to_owned());
    let shard = route.node.shard(route.kind(), route.target.hash);
    Watch::begin(route.node, target, At::Shard(shard)).await
}

/// A message of type `M` on its way to an actor of type `A`.
struct TypedMessage<A, M> {
    message: M,
    actor: PhantomData<fn() -> A>,
}

impl<A, M> TypedMessage<A, M> {
    const fn new(message: M) -> Self {
        Self { message, actor: PhantomData }
    }
}

impl<A, M> Submit<M::Result> for TypedMessage<A, M>
where
    A: VirtualActor,
    M: AcceptedBy<A>,
{
    // So that the head is written where it stays, and not copied there.
    #[inline(always)]
    fn submit(
        self,
        index: u32,
        target: &Target,
        head: JobHead,
        caller: Option<AnswerSender<M::Result>>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let Some(kind) = on.kind::<A>(index) else {
            return Err(refuse(caller, CallError::UnknownKind { kind: A::KIND.into() }));
        };
        if !kind.is_open_to(target) {
            return on.post(index, target, head, TypedOutbound::new(self.message, caller));
        }
        let job = match caller {
            Some(caller) => Job::boxed(head, TypedJob::new(self.message, ReplyTo::Caller(caller))),
            // Tells come in bursts, and their jobs end here: unlike that of an ask, which goes to its caller.
            None => TypedJob::within(kind.kept_job(), head, self.message, ReplyTo::Nobody),
        };
        kind.submit(target, job, on)
    }

    fn name(&self) -> String {
        M::NAME.to_owned()
    }
}

impl<A> Clone for ActorRef<A> {
    fn clone(&self) -> Self {
        Self { binding: self.binding.clone(), actor: PhantomData }
    }
}

impl<A> PartialEq for ActorRef<A> {
    fn eq(&self, other: &Self) -> bool {
        self.binding == other.binding
    }
}

impl<A> Eq for ActorRef<A> {}

impl<A> Hash for ActorRef<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.binding.hash(state);
    }
}

impl<A> fmt::Debug for ActorRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.binding.id() {
            Ok(id) => write!(f, "ActorRef({id})"),
            Err(error) => write!(f, "ActorRef({error})"),
        }
    }
}

impl<A> Serialize for ActorRef<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.binding.id().map_err(ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de, A: VirtualActor> Deserialize<'de> for ActorRef<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let id = ActorId::deserialize(deserializer)?;
        if id.kind().as_str() != A::KIND {
            return Err(de::Error::custom(format_args!("{id} is no actor of kind {}", A::KIND)));
        }
        Ok(Self::of(Binding::decoded(id)))
    }
}
