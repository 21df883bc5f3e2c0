//! One message on its way into an actor, and its reply on the way out.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use actix::Context;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::message::{Codec, MessageFlags};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::call::{Answer, AnswerSender, CallScope};
use crate::message::{AcceptedBy, Dispatch, Dispatched, RemoteMessage, VirtualActor};

/// A job: one allocation from the sender to the reply, so that only its pointer moves.
pub(crate) struct Job<B: ?Sized> {
    pub(crate) head: JobHead,
    pub(crate) body: B,
}

/// A job for an actor of type `A`.
pub(crate) type Queued<A> = Box<Job<dyn JobBody<A>>>;

/// What the inbox must know about a job before it starts it.
#[derive(Clone)]
pub(crate) struct JobHead {
    /// The pending call that waits for the reply, once it is registered; none for a tell.
    pub(crate) call: Option<CorrelationId>,
    /// Whether somebody will wait for the reply.
    pub(crate) asks: bool,
    /// Whether it was sent from inside a job, and so belongs to work under way.
    pub(crate) inside: bool,
    /// When it expires; `Millis::MAX` for never.
    pub(crate) deadline: Millis,
    pub(crate) flags: MessageFlags,
    pub(crate) scope: Option<Arc<CallScope>>,
}

/// The message itself; its reply waits in the same place.
pub(crate) trait JobBody<A: VirtualActor>: Reply {
    /// Calls the handler.
    fn run(&mut self, actor: &mut A, ctx: &mut Context<A>) -> Ran;
    /// The name of the message.
    fn name(&self) -> &'static str;
}

/// The way back of a job, whatever its actor.
pub(crate) trait Reply: Send {
    /// Waits for a reply that comes later.
    fn poll_reply(&mut self, cx: &mut TaskContext<'_>) -> Poll<()>;
    /// Lets the reply out.
    fn release(&mut self);
    /// Lets an error out instead; nothing else leaves afterwards.
    fn fail(&mut self, error: CallError);
    /// True if nobody waits for the reply any more.
    fn is_abandoned(&self) -> bool;
}

/// What became of a job that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It ended; its reply waits to be released.
    Done,
    /// Its reply comes later.
    Awaiting,
}

/// Where the reply of type `R` goes.
pub(crate) enum ReplyTo<R> {
    /// Nobody wants it.
    Nobody,
    /// A caller on this node, as it is.
    Caller(AnswerSender<R>),
    /// A caller who wants it encoded.
    Encoded(AnswerSender<Bytes>, Codec),
}

/// A message of a known type.
pub(crate) struct TypedJob<M: RemoteMessage> {
    message: Option<M>,
    pending: Option<oneshot::Receiver<M::Result>>,
    reply: Option<Answer<M::Result>>,
    reply_to: ReplyTo<M::Result>,
}

impl<M: RemoteMessage> TypedJob<M> {
    pub(crate) const fn new(message: M, reply_to: ReplyTo<M::Result>) -> Self {
        Self { message: Some(message), pending: None, reply: None, reply_to }
    }
}

impl<A: VirtualActor, M: AcceptedBy<A>> JobBody<A> for TypedJob<M> {
    fn run(&mut self, actor: &mut A, ctx: &mut Context<A>) -> Ran {
        let Some(message) = self.message.take() else { return Ran::Done };
        match <M::Via as Dispatch<A, M>>::dispatch(actor, message, ctx) {
            Dispatched::Reply(reply) => self.reply = Some(Ok(reply)),
            Dispatched::Nothing => self.reply = Some(Err(CallError::NoReply)),
            Dispatched::Later(reply) => {
                self.pending = Some(reply);
                return Ran::Awaiting;
            }
        }
        Ran::Done
    }

    fn name(&self) -> &'static str {
        M::NAME
    }
}

impl<M: RemoteMessage> Reply for TypedJob<M> {
    fn poll_reply(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Some(pending) = &mut self.pending {
            let reply = ready!(Pin::new(pending).poll(cx));
            self.pending = None;
            self.reply = Some(reply.map_err(|_| CallError::NoReply));
        }
        Poll::Ready(())
    }

    fn release(&mut self) {
        let reply = self.reply.take().unwrap_or(Err(CallError::NoReply));
        std::mem::replace(&mut self.reply_to, ReplyTo::Nobody).send(reply);
    }

    fn fail(&mut self, error: CallError) {
        std::mem::replace(&mut self.reply_to, ReplyTo::Nobody).send(Err(error));
    }

    fn is_abandoned(&self) -> bool {
        match &self.reply_to {
            ReplyTo::Nobody => false,
            ReplyTo::Caller(caller) => caller.is_closed(),
            ReplyTo::Encoded(caller, _) => caller.is_closed(),
        }
    }
}

impl<R: Serialize> ReplyTo<R> {
    /// A caller who has gone meanwhile is no error.
    fn send(self, reply: Answer<R>) {
        match self {
            Self::Nobody => {}
            Self::Caller(caller) => drop(caller.send(reply)),
            Self::Encoded(caller, codec) => drop(caller.send(reply.and_then(|reply| {
                let bytes = codec.encode(&reply).map(Bytes::from);
                bytes.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: true })
            }))),
        }
    }
}
