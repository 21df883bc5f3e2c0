//! A ref to an actor that is known by its path.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;

use actix::Recipient;
use archipelago_protocol::call::{CallError, ForeignNamespace};
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tokio::sync::oneshot;

use super::{NamedAnswer, NamedHead, Ticket, TypedBody};
use crate::arbiter::local;
use crate::call::{AnswerSender, Call, CallOptions, answer_channel};
use crate::catalog::JobHead;
use crate::message::{AcceptedBy, NamedActor};
use crate::node::{Node, NodeShared};
use crate::refs::{Addressee, ask_head, backstop, decoding_node, forwarder, tell_head};
use crate::remote::{Letter, TypedOutbound};
use crate::watch::{At, Watch, WatchTarget};

/// An actor registered under a path, on this node or another.
///
/// It serialises as the actor's URI, with the address of its node, and is usable again where it is decoded.
pub struct NamedRef<A> {
    path: ActorPath,
    /// Where it is used; none if it was decoded outside a node.
    node: Option<Arc<NodeShared>>,
    actor: PhantomData<fn() -> A>,
}

impl<A> NamedRef<A> {
    pub(super) const fn on(node: Option<Arc<NodeShared>>, path: ActorPath) -> Self {
        Self { path, node, actor: PhantomData }
    }

    /// Its path, as it was given.
    pub const fn path(&self) -> &ActorPath {
        &self.path
    }

    /// Its path as other nodes know it: with the address of its node, if that can be reached.
    pub fn address(&self) -> ActorPath {
        self.node
            .as_ref()
            .map_or_else(|| self.path.clone(), |node| node.present().path_from_outside(&self.path))
    }

    /// The same actor, as seen from `node`: for a ref that was decoded outside a node.
    #[must_use]
    pub fn bind(&self, node: &Node) -> Self {
        Self::on(Some(Arc::clone(node.shared())), self.path.clone())
    }

    /// Watches the actor, on this node or another: until it stops, its path is given back, or its node goes. If nobody is
    /// registered there, the [`Watch`] is ready at once with
    /// [`NotActive`](archipelago_protocol::watch::Termination::NotActive). A stop shows within a second.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref cannot be used, its node cannot be asked within `calls.timeout`, or one of the two nodes has
    /// `events.watches` watches already.
    pub async fn watch(&self) -> Result<Watch, CallError> {
        let node = self.usable()?;
        let here = || self.path.address().filter(|_| !self.is_on(node));
        let at = here().map_or(At::Here, |address| At::Address(address.clone()));
        Watch::begin(node, WatchTarget::Named(self.path.path().to_owned()), at).await
    }

    fn usable(&self) -> Result<&Arc<NodeShared>, CallError> {
        let node = self.node.as_ref().ok_or(CallError::Unbound)?.present();
        if node.namespace().as_str() == self.path.system() {
            return Ok(node);
        }
        Err(CallError::ForeignNamespace(Box::new(ForeignNamespace {
            ours: node.namespace().as_str().into(),
            theirs: self.path.system().into(),
        })))
    }

    fn is_on(&self, node: &NodeShared) -> bool {
        self.path.address().is_none_or(|address| node.is_own_address(address))
    }
}

impl<A: NamedActor> NamedRef<A> {
    /// Asks: sends a message and waits for its reply, for as long as the node's `calls.timeout` says.
    ///
    /// The message is on its way when this returns; dropping the [`Call`] cancels it. The call ends with
    /// [`CallError::NoSuchActor`] if nobody is registered there; the message becomes a dead letter on that node, too.
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
        let asked = self.usable().and_then(|node| {
            let (head, now) = ask_head(node, M::FLAGS, options)?;
            if self.is_on(node) {
                self.ask_here(node, message, head, now)
            } else {
                self.ask_there(node, message, head, now)
            }
        });
        asked.unwrap_or_else(Call::failed)
    }

    /// Tells: sends a message and waits for nothing. If nobody is registered there it becomes a dead letter on that node,
    /// which is no error.
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
        let node = self.usable()?;
        let head = tell_head(node, M::FLAGS, options);
        if self.is_on(node) {
            self.tell_here(node, message, head)
        } else {
            self.tell_there(node, message, head)
        }
    }

    /// The same actor as a plain actix recipient, for code written without archipelago.
    ///
    /// It goes through a small actor of its own, so order holds among the messages of one recipient. `do_send` is a tell: what
    /// cannot be delivered becomes a dead letter. `send` is an ask whose errors show as a closed mailbox.
    ///
    /// # Errors
    ///
    /// [`CallError`] if the ref cannot be used or the node has stopped.
    pub fn recipient<M>(&self) -> Result<Recipient<M>, CallError>
    where
        M: AcceptedBy<A>,
    {
        let node = self.usable()?;
        forwarder::<M>(node, node.arbiter_of_path(&self.path), self.clone())
    }

    fn ask_here<M: AcceptedBy<A>>(
        &self,
        node: &Arc<NodeShared>,
        message: M,
        head: JobHead,
        now: Millis,
    ) -> Result<Call<M::Result>, CallError> {
        let left = head.deadline.since(now);
        let ticket = Arc::<Ticket>::default();
        let (body, begins) = TypedBody::ask(message, self.named_head(node, head), Arc::clone(&ticket));
        self.push(node, body, |_| true)?;
        Ok(Call::named(NamedAnswer::new(begins, alarm(node, left), ticket)))
    }

    fn tell_here<M: AcceptedBy<A>>(
        &self,
        node: &Arc<NodeShared>,
        message: M,
        head: JobHead,
    ) -> Result<(), CallError> {
        let body = TypedBody::tell(message, self.named_head(node, head));
        let nobody_there = |error: &CallError| matches!(error, CallError::NoSuchActor { .. });
        match self.push(node, body, nobody_there) {
            Err(error) if nobody_there(&error) => Ok(()),
            pushed => pushed,
        }
    }

    /// Puts a message through the door of its actor; if that fails, it is refused for good if `refuse` says so.
    fn push<M: AcceptedBy<A>>(
        &self,
        node: &Arc<NodeShared>,
        body: TypedBody<M>,
        refuse: impl FnOnce(&CallError) -> bool,
    ) -> Result<(), CallError> {
        let body = Box::new(body);
        let pushed = match node.named().find::<A>(self.path.path()) {
            Some(door) => door.push(body, node.settings().inbox),
            None => Err((body as _, CallError::NoSuchActor { path: self.path.to_uri().into() })),
        };
        pushed.map_err(|(body, error)| {
            if refuse(&error) {
                body.refuse(error.clone());
            }
            error
        })
    }

    fn named_head(&self, node: &Arc<NodeShared>, head: JobHead) -> NamedHead {
        let JobHead { deadline, scope, .. } = head;
        NamedHead { node: Arc::clone(node), path: self.path.clone(), deadline, scope, held: None }
    }

    fn ask_there<M: AcceptedBy<A>>(
        &self,
        node: &Arc<NodeShared>,
        message: M,
        head: JobHead,
        now: Millis,
    ) -> Result<Call<M::Result>, CallError> {
        let arbiter = node.arbiter_of_path(&self.path);
        let left = head.deadline.since(now);
        let (caller, answer) = answer_channel();
        let letter = self.letter(message, head, Some(caller));
        match local(node, arbiter) {
            Some(on) => {
                // The caller is told through its way back.
                let _ = on.post_letter(letter());
                Ok(Call::waiting(answer, None))
            }
            None => {
                node.enter_work(arbiter, move |on| drop(on.post_letter(letter())))?;
                Ok(Call::waiting(answer, backstop(node, left)))
            }
        }
    }

    fn tell_there<M: AcceptedBy<A>>(
        &self,
        node: &Arc<NodeShared>,
        message: M,
        head: JobHead,
    ) -> Result<(), CallError> {
        let arbiter = node.arbiter_of_path(&self.path);
        let letter = self.letter(message, head, None);
        match local(node, arbiter) {
            Some(on) => on.post_letter(letter()),
            None => node.enter_work(arbiter, move |on| on.post_or_lose(letter())),
        }
    }

    /// Makes the letter where it is posted: it may not leave its arbiter.
    fn letter<M: AcceptedBy<A>>(
        &self,
        message: M,
        head: JobHead,
        caller: Option<AnswerSender<M::Result>>,
    ) -> impl FnOnce() -> Letter + Send + use<A, M> {
        let to = self.path.clone();
        move || Letter::new(to, head, Box::new(TypedOutbound::new(message, caller)))
    }
}

impl<A: NamedActor, M: AcceptedBy<A>> Addressee<M> for NamedRef<A> {
    fn ask(&self, message: M) -> Call<M::Result> {
        self.send(message)
    }

    fn tell(&self, message: M) -> Result<(), CallError> {
        self.tell(message)
    }

    fn name(&self) -> String {
        self.path.to_uri()
    }
}

/// Rings after `left`, also for a caller on a thread without timers.
fn alarm(node: &Arc<NodeShared>, left: Millis) -> BoxFuture<'static, ()> {
    if tokio::runtime::Handle::try_current().is_ok() {
        return node.env().sleep(left);
    }
    let (rings, rung) = oneshot::channel::<()>();
    let set = node.enter_work(0, move |on| {
        let sleep = on.node().env().sleep(left);
        on.node().env().spawn(Box::pin(async move {
            sleep.await;
            drop(rings);
        }));
    });
    if let Err(error) = set {
        tracing::debug!(%error, "no alarm for a call; it ends at once");
    }
    Box::pin(async move { drop(rung.await) })
}

impl<A> Clone for NamedRef<A> {
    fn clone(&self) -> Self {
        Self::on(self.node.clone(), self.path.clone())
    }
}

impl<A> PartialEq for NamedRef<A> {
    fn eq(&self, other: &Self) -> bool {
        self.address() == other.address()
    }
}

impl<A> Eq for NamedRef<A> {}

impl<A> Hash for NamedRef<A> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}

impl<A> fmt::Debug for NamedRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedRef({})", self.path.to_uri())
    }
}

impl<A> Serialize for NamedRef<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.address().serialize(serializer)
    }
}

impl<'de, A> Deserialize<'de> for NamedRef<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::on(decoding_node(), ActorPath::deserialize(deserializer)?))
    }
}
