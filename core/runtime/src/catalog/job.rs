//! One message on its way into an actor.

use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use actix::dev::MessageResponse;
use actix::{Context, Handler};
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::message::{Codec, MessageFlags};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use crate::arbiter::ArbiterLocal;
use crate::call::{CallCell, CallScope};
use crate::message::{RemoteMessage, VirtualActor};

/// What the inbox must know about a job before it starts it.
#[derive(Clone)]
pub(crate) struct JobHead {
    /// The pending call that waits for the reply; none for a tell.
    pub(crate) call: Option<CorrelationId>,
    /// When it expires; `Millis::MAX` for never.
    pub(crate) deadline: Millis,
    pub(crate) flags: MessageFlags,
    pub(crate) scope: Option<Arc<CallScope>>,
}

/// The message itself, with the way back for its reply.
pub(crate) trait JobBody<A: VirtualActor>: Send {
    /// Calls the handler.
    fn run(
        self: Box<Self>,
        head: &JobHead,
        actor: &mut A,
        ctx: &mut Context<A>,
        on: &Rc<ArbiterLocal>,
    ) -> Ran;
    /// True if its caller has gone.
    fn is_abandoned(&self) -> bool;
    /// The name of the message.
    fn name(&self) -> &'static str;
}

/// What became of a job that was run.
pub(crate) enum Ran {
    /// It ended, and its reply has left.
    Done,
    /// Its reply comes later.
    Awaiting(Box<dyn Awaited>),
}

/// A reply that comes later.
pub(crate) trait Awaited {
    /// Sends the reply on as soon as it is there.
    fn poll(&mut self, cx: &mut TaskContext<'_>, on: &ArbiterLocal) -> Poll<()>;
}

/// Where the reply of type `R` goes.
pub(crate) enum ReplyTo<R> {
    /// Nobody wants it.
    Nobody,
    /// A caller on this node, as it is.
    Caller(Arc<CallCell<R>>),
    /// A caller who wants it encoded.
    Encoded(Arc<CallCell<Bytes>>, Codec),
}

/// A message of a known type.
pub(crate) struct TypedJob<M: RemoteMessage> {
    pub(crate) message: M,
    pub(crate) reply_to: ReplyTo<M::Result>,
}

impl<A, M> JobBody<A> for TypedJob<M>
where
    A: VirtualActor + Handler<M>,
    M: RemoteMessage,
{
    fn run(
        self: Box<Self>,
        head: &JobHead,
        actor: &mut A,
        ctx: &mut Context<A>,
        on: &Rc<ArbiterLocal>,
    ) -> Ran {
        let mut ending = Ending { call: head.call, on: Rc::clone(on), armed: true };
        let (tx, mut rx) = oneshot::channel();
        actor.handle(self.message, ctx).handle(ctx, Some(tx));
        ending.armed = false;
        match rx.try_recv() {
            Ok(reply) => {
                self.reply_to.send(head.call, Ok(reply), on);
                Ran::Done
            }
            Err(TryRecvError::Closed) => {
                self.reply_to.send(head.call, Err(CallError::NoReply), on);
                Ran::Done
            }
            Err(TryRecvError::Empty) => {
                Ran::Awaiting(Box::new(LateReply { rx, reply_to: self.reply_to, call: head.call }))
            }
        }
    }

    fn is_abandoned(&self) -> bool {
        match &self.reply_to {
            ReplyTo::Nobody => false,
            ReplyTo::Caller(cell) => cell.is_abandoned(),
            ReplyTo::Encoded(cell, _) => cell.is_abandoned(),
        }
    }

    fn name(&self) -> &'static str {
        M::NAME
    }
}

/// Tells the caller when a handler panics.
struct Ending {
    call: Option<CorrelationId>,
    on: Rc<ArbiterLocal>,
    armed: bool,
}

impl Drop for Ending {
    fn drop(&mut self) {
        if self.armed
            && let Some(call) = self.call
        {
            self.on.fail_call(call, CallError::Panicked);
        }
    }
}

struct LateReply<R> {
    rx: oneshot::Receiver<R>,
    reply_to: ReplyTo<R>,
    call: Option<CorrelationId>,
}

impl<R: serde::Serialize + Send + 'static> Awaited for LateReply<R> {
    fn poll(&mut self, cx: &mut TaskContext<'_>, on: &ArbiterLocal) -> Poll<()> {
        let reply = std::task::ready!(std::pin::Pin::new(&mut self.rx).poll(cx));
        let reply_to = std::mem::replace(&mut self.reply_to, ReplyTo::Nobody);
        reply_to.send(self.call, reply.map_err(|_| CallError::NoReply), on);
        Poll::Ready(())
    }
}

impl<R: serde::Serialize + Send + 'static> ReplyTo<R> {
    /// Lets the reply out, if the node may still answer for its actors and the call still waits.
    fn send(self, call: Option<CorrelationId>, reply: Result<R, CallError>, on: &ArbiterLocal) {
        let Some(call) = call else { return };
        let reply = if on.node().gate().may_answer(on.now()) { reply } else { Err(CallError::Stopped) };
        if !on.complete_call(call) {
            return;
        }
        match self {
            Self::Nobody => {}
            Self::Caller(cell) => cell.finish(reply),
            Self::Encoded(cell, codec) => cell.finish(reply.and_then(|reply| {
                codec
                    .encode(&reply)
                    .map(Bytes::from)
                    .map_err(|error| CallError::Codec { reason: error.to_string(), started: true })
            })),
        }
    }
}
