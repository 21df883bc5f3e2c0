//! One message in the mailbox of a named actor, and its reply on the way out.

use std::fmt;
use std::sync::Arc;

use actix::Message;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::ActorPath;
use archipelago_protocol::time::Millis;
use tokio::sync::oneshot;

use super::{Begun, Door, Ticket};
use crate::call::{CallScope, Entered, enter};
use crate::message::{AcceptedBy, Dispatch, Dispatched, NamedActor, RemoteMessage};
use crate::node::NodeShared;
use crate::remote::Held;

/// What travels through the mailbox of a named actor. The derive writes its handler; nobody else needs it.
#[doc(hidden)]
pub struct NamedJob<A: NamedActor> {
    body: Option<Box<dyn Body<A>>>,
    door: Arc<Door<A>>,
}

/// A message for actors of type `A`, whatever its type.
pub(crate) trait Body<A: NamedActor>: Send {
    /// Calls the handler, unless the message is not to be handled any more.
    fn run(self: Box<Self>, actor: &mut A, ctx: &mut A::Context);
    /// The message will never be handled: whoever waits is told, or it becomes a dead letter.
    fn refuse(self: Box<Self>, error: CallError);
    /// True if nobody waits for the reply any more.
    fn is_abandoned(&self) -> bool;
}

impl<A: NamedActor> NamedJob<A> {
    pub(super) fn new(body: Box<dyn Body<A>>, door: Arc<Door<A>>) -> Self {
        Self { body: Some(body), door }
    }

    /// Handles the message.
    pub fn run(mut self, actor: &mut A, ctx: &mut A::Context) {
        self.door.left_mailbox();
        if let Some(body) = self.body.take() {
            body.run(actor, ctx);
        }
    }
}

impl<A: NamedActor> Message for NamedJob<A> {
    type Result = ();
}

impl<A: NamedActor> Drop for NamedJob<A> {
    fn drop(&mut self) {
        // Dropped before it was run: the mailbox is gone.
        if let Some(body) = self.body.take() {
            body.refuse(self.door.no_such_actor());
            self.door.mailbox_gone();
        }
    }
}

impl<A: NamedActor> fmt::Debug for NamedJob<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamedJob").finish_non_exhaustive()
    }
}

/// What a message brings along, whatever its type.
pub(crate) struct NamedHead {
    pub(crate) node: Arc<NodeShared>,
    pub(crate) path: ActorPath,
    /// When it expires; `Millis::MAX` for never.
    pub(crate) deadline: Millis,
    pub(crate) scope: Option<Arc<CallScope>>,
    /// Its share of the window of the connection it came by.
    pub(crate) held: Option<Held>,
}

/// A message of a known type.
pub(crate) struct TypedBody<M: RemoteMessage> {
    message: M,
    head: NamedHead,
    /// Whoever waits for the reply; none for a tell.
    asker: Option<Asker<M::Result>>,
}

struct Asker<R> {
    back: Back<R>,
    ticket: Arc<Ticket>,
}

impl<M: RemoteMessage> TypedBody<M> {
    pub(crate) fn tell(message: M, head: NamedHead) -> Self {
        Self { message, head, asker: None }
    }

    pub(crate) fn ask(
        message: M,
        head: NamedHead,
        ticket: Arc<Ticket>,
    ) -> (Self, oneshot::Receiver<Begun<M::Result>>) {
        let (sender, begins) = oneshot::channel();
        let asker = Some(Asker { back: Back(Some(sender)), ticket });
        (Self { message, head, asker }, begins)
    }

    fn may_start(&self) -> Result<(), CallError> {
        let expired = CallError::Timeout { started: false };
        if self.head.deadline <= self.head.node.env().now() {
            return Err(expired);
        }
        match &self.asker {
            Some(asker) if asker.back.is_closed() || !asker.ticket.start() => Err(expired),
            _ => Ok(()),
        }
    }

    fn turn_away(self, error: CallError) {
        let Self { head, asker, .. } = self;
        let nobody_there = matches!(error, CallError::NoSuchActor { .. });
        let abandoned = asker.as_ref().is_some_and(|asker| asker.back.is_closed());
        if asker.is_none() || (nobody_there && !abandoned) {
            head.node.dead_letter(head.path.to_uri(), M::NAME, &error);
        }
        if let Some(asker) = asker {
            asker.back.send(Begun::Ended(Err(error)));
        }
    }
}

impl<A: NamedActor, M: AcceptedBy<A>> Body<A> for TypedBody<M> {
    fn run(self: Box<Self>, actor: &mut A, ctx: &mut A::Context) {
        if let Err(error) = self.may_start() {
            return self.turn_away(error);
        }
        let Self { message, head, asker } = *self;
        let NamedHead { node, path, deadline, scope, held } = head;
        let token = node.env().random();
        let span = tracing::debug_span!("handle", node = %node.id(), actor = %path, message = M::NAME);
        node.adopt_trace(&span, scope.as_deref());
        let job = Entered::beside(node, token, deadline, scope);
        let dispatch = || <M::Via as Dispatch<A, M>>::dispatch(actor, message, ctx);
        let begun = match enter(job, || span.in_scope(dispatch)) {
            Dispatched::Reply(reply) => Begun::Ended(Ok(reply)),
            Dispatched::Later(reply) => Begun::Later(reply),
            Dispatched::Nothing => Begun::Ended(Err(CallError::NoReply)),
        };
        if let Some(asker) = asker {
            asker.back.send(begun);
        }
        drop(held);
    }

    fn refuse(self: Box<Self>, error: CallError) {
        self.turn_away(error);
    }

    fn is_abandoned(&self) -> bool {
        self.asker.as_ref().is_some_and(|asker| asker.back.is_closed() || asker.ticket.is_cancelled())
    }
}

/// The way back to a caller, who also learns of a panic.
struct Back<R>(Option<oneshot::Sender<Begun<R>>>);

impl<R> Back<R> {
    /// A caller who has gone meanwhile is no error.
    fn send(mut self, begun: Begun<R>) {
        if let Some(caller) = self.0.take() {
            drop(caller.send(begun));
        }
    }

    fn is_closed(&self) -> bool {
        self.0.as_ref().is_none_or(oneshot::Sender::is_closed)
    }
}

impl<R> Drop for Back<R> {
    fn drop(&mut self) {
        if let Some(caller) = self.0.take() {
            let error = if std::thread::panicking() { CallError::Panicked } else { CallError::NoReply };
            drop(caller.send(Begun::Ended(Err(error))));
        }
    }
}
