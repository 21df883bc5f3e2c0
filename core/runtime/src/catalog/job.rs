//! One message on its way into an actor, and its reply on the way out.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use actix::Context;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::message::{CodecError, CodecId, MessageFlags, PayloadCodec, WireId};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::oneshot;

use super::tally::Tallies;
use crate::arbiter::ArbiterLocal;
use crate::call::{Answer, AnswerSender, CallScope, NearSender};
use crate::message::{AcceptedBy, Dispatch, Dispatched, RemoteMessage, VirtualActor};
use crate::remote::{EncodedOutbound, Incoming, LaneWay, Origin, Parked, TypedOutbound, Waiter};

/// A job: one allocation from the sender to the reply, so that only its pointer moves.
pub(crate) struct Job<B: ?Sized> {
    pub(crate) head: JobHead,
    pub(crate) body: B,
}

impl<B> Job<B> {
    /// A job in memory of its own. The memory is there before the job, so that each part is written where it stays: what is
    /// copied right after it was written, in other pieces, stalls the processor.
    #[inline(always)]
    pub(crate) fn boxed(head: JobHead, body: B) -> Box<Self> {
        Box::write(Box::new_uninit(), Self { head, body })
    }
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
    /// Whether it came from another node.
    pub(crate) remote: bool,
    /// Whether it was sent from inside a job, and so belongs to work under way.
    pub(crate) inside: bool,
    /// When it expires; `Millis::MAX` for never.
    pub(crate) deadline: Millis,
    pub(crate) flags: MessageFlags,
    pub(crate) scope: Option<Arc<CallScope>>,
}

/// The message itself; its reply waits in the same place.
pub(crate) trait JobBody<A: VirtualActor>: Reply {
    /// Calls the handler, and counts that.
    fn run(&mut self, actor: &mut A, ctx: &mut Context<A>, tallies: Option<&Tallies>) -> Ran;
    /// The name of the message.
    fn name(&self) -> &'static str;
    /// Whether it can still go back to where it came from.
    fn goes_back(&self, on: &ArbiterLocal) -> bool;
    /// Whether it came by this connection.
    fn came_by(&self, incoming: &Incoming, on: &ArbiterLocal) -> bool;
    /// The job as it is, for whoever fills it again.
    fn as_any(&mut self) -> &mut dyn Any;
    /// Makes of the job again what it was before it was queued; none if it has been started.
    fn unsend(&mut self, origin: Origin) -> Option<Unsent>;
}

/// A message that was queued and has not started, as it was before.
pub(crate) enum Unsent {
    /// A message of this node.
    Ours(Parked),
    /// One that came over a lane.
    OfLane {
        /// Its way back.
        way: LaneWay,
        /// The number of its name.
        id: WireId,
        /// How it is encoded.
        codec: CodecId,
        /// The message.
        payload: Bytes,
    },
    /// One that cannot be encoded again, and why: it will not be handled, and whoever waits must be told.
    Unreadable(WayBack, CallError),
}

/// The way back of a job, whatever its actor.
pub(crate) trait Reply: Send {
    /// Waits for a reply that comes later.
    fn poll_reply(&mut self, cx: &mut TaskContext<'_>) -> Poll<()>;
    /// Lets the reply out. A near caller takes it out of the job instead: then this is the way there, for the job.
    fn release(&mut self, on: &ArbiterLocal) -> Option<NearSender>;
    /// Puts the reply into `answer`, an `Answer<R>`, if there is one.
    fn collect(&mut self, answer: &mut dyn Any);
    /// Lets an error out instead; nothing else leaves afterwards.
    fn fail(&mut self, error: CallError, on: &ArbiterLocal);
    /// True if nobody waits for the reply any more.
    fn is_abandoned(&self, on: &ArbiterLocal) -> bool;
    /// Drops whatever is left in a job that has ended.
    fn clear(&mut self);
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
    Encoded(AnswerSender<Bytes>, CodecId),
    /// A caller on another node.
    Lane(LaneWay, CodecId),
}

/// Where the reply to an encoded message goes.
pub(crate) enum WayBack {
    /// Nobody wants it.
    Nobody,
    /// A caller on this node.
    Caller(AnswerSender<Bytes>),
    /// Another node: also a tell has to be accounted for there.
    Lane(LaneWay),
}

impl WayBack {
    /// Whether somebody waits for a reply.
    pub(crate) const fn asks(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::Caller(_) => true,
            Self::Lane(way) => way.asks(),
        }
    }

    /// Takes the way for replies of type `R`, encoded with `codec`.
    pub(crate) fn take<R>(&mut self, codec: CodecId) -> ReplyTo<R> {
        match std::mem::replace(self, Self::Nobody) {
            Self::Nobody => ReplyTo::Nobody,
            Self::Caller(caller) => ReplyTo::Encoded(caller, codec),
            Self::Lane(lane) => ReplyTo::Lane(lane, codec),
        }
    }

    /// Tells whoever waits that the message was not queued, and passes the error on.
    pub(crate) fn refuse(self, error: CallError, on: &ArbiterLocal) -> CallError {
        match self {
            Self::Nobody => {}
            Self::Caller(caller) => caller.send(Err(error.clone())),
            Self::Lane(lane) => lane.fail(error.clone(), on),
        }
        error
    }
}

/// A message of a known type. Small, because a job in a long queue is memory that the processor has not at hand.
pub(crate) struct TypedJob<M: RemoteMessage> {
    stage: Stage<M>,
    reply_to: ReplyTo<M::Result>,
}

/// What a job holds: first the message, at last the reply.
enum Stage<M: RemoteMessage> {
    Waiting(M),
    Running,
    Awaiting(oneshot::Receiver<M::Result>),
    Over(Answer<M::Result>),
}

impl<M: RemoteMessage> TypedJob<M> {
    pub(crate) const fn new(message: M, reply_to: ReplyTo<M::Result>) -> Self {
        Self { stage: Stage::Waiting(message), reply_to }
    }

    /// Makes a job in the memory of `kept`, if that was one of the same message, or in new memory.
    #[inline(always)]
    pub(crate) fn within<A>(
        kept: Option<Queued<A>>,
        head: JobHead,
        message: M,
        reply_to: ReplyTo<M::Result>,
    ) -> Queued<A>
    where
        A: VirtualActor,
        M: AcceptedBy<A>,
    {
        let Some(mut kept) = kept else { return Job::boxed(head, Self::new(message, reply_to)) };
        let Some(body) = kept.body.as_any().downcast_mut::<Self>() else {
            return Job::boxed(head, Self::new(message, reply_to));
        };
        body.stage = Stage::Waiting(message);
        body.reply_to = reply_to;
        kept.head = head;
        kept
    }

    fn take_reply(&mut self) -> Answer<M::Result> {
        match std::mem::replace(&mut self.stage, Stage::Running) {
            Stage::Over(reply) => reply,
            _ => Err(CallError::NoReply),
        }
    }
}

impl<A: VirtualActor, M: AcceptedBy<A>> JobBody<A> for TypedJob<M> {
    fn run(&mut self, actor: &mut A, ctx: &mut Context<A>, tallies: Option<&Tallies>) -> Ran {
        let Stage::Waiting(message) = std::mem::replace(&mut self.stage, Stage::Running) else {
            return Ran::Done;
        };
        if let Some(tallies) = tallies {
            tallies.start::<M>(<M as AcceptedBy<A>>::PLACE);
        }
        let (stage, ran) = match <M::Via as Dispatch<A, M>>::dispatch(actor, message, ctx) {
            // Nobody will take it out of the job.
            Dispatched::Reply(_) if matches!(self.reply_to, ReplyTo::Nobody) => return Ran::Done,
            Dispatched::Reply(reply) => (Stage::Over(Ok(reply)), Ran::Done),
            Dispatched::Nothing => (Stage::Over(Err(CallError::NoReply)), Ran::Done),
            Dispatched::Later(reply) => (Stage::Awaiting(reply), Ran::Awaiting),
        };
        self.stage = stage;
        ran
    }

    fn name(&self) -> &'static str {
        M::NAME
    }

    fn goes_back(&self, on: &ArbiterLocal) -> bool {
        match (&self.stage, &self.reply_to) {
            (Stage::Waiting(_), ReplyTo::Lane(way, _)) => way.can_return(on),
            (Stage::Waiting(_), _) => true,
            _ => false,
        }
    }

    fn came_by(&self, incoming: &Incoming, _: &ArbiterLocal) -> bool {
        matches!(&self.reply_to, ReplyTo::Lane(way, _) if way.came_by(incoming))
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn unsend(&mut self, origin: Origin) -> Option<Unsent> {
        let Stage::Waiting(message) = std::mem::replace(&mut self.stage, Stage::Running) else { return None };
        let id = M::WIRE_ID;
        match std::mem::replace(&mut self.reply_to, ReplyTo::Nobody) {
            ReplyTo::Nobody => Some(Unsent::Ours(origin.parcel(TypedOutbound::new(message, None)))),
            ReplyTo::Caller(caller) => {
                Some(Unsent::Ours(origin.parcel(TypedOutbound::new(message, Some(caller)))))
            }
            ReplyTo::Encoded(caller, codec) => {
                let payload = match codec.encode::<M::Codec, M>(&message) {
                    Ok(payload) => payload.into(),
                    Err(error) => {
                        return Some(Unsent::Unreadable(WayBack::Caller(caller), unencodable(&error)));
                    }
                };
                let waiter = Some(Waiter::of_bytes(caller));
                let body = EncodedOutbound { id, name: M::NAME.into(), codec, payload, waiter, ended: false };
                Some(Unsent::Ours(origin.parcel(body)))
            }
            ReplyTo::Lane(way, codec) => Some(match codec.encode::<M::Codec, M>(&message) {
                Ok(payload) => Unsent::OfLane { way, id, codec, payload: payload.into() },
                Err(error) => Unsent::Unreadable(WayBack::Lane(way), unencodable(&error)),
            }),
        }
    }
}

impl<M: RemoteMessage> Reply for TypedJob<M> {
    fn poll_reply(&mut self, cx: &mut TaskContext<'_>) -> Poll<()> {
        if let Stage::Awaiting(pending) = &mut self.stage {
            let reply = ready!(Pin::new(pending).poll(cx));
            self.stage = Stage::Over(reply.map_err(|_| CallError::NoReply));
        }
        Poll::Ready(())
    }

    fn release(&mut self, on: &ArbiterLocal) -> Option<NearSender> {
        match std::mem::replace(&mut self.reply_to, ReplyTo::Nobody) {
            ReplyTo::Caller(AnswerSender::Near(caller)) => return Some(caller),
            other => other.send::<M::Codec>(self.take_reply(), on),
        }
        None
    }

    fn collect(&mut self, answer: &mut dyn Any) {
        if let (Some(answer), Stage::Over(reply)) = (answer.downcast_mut(), &mut self.stage) {
            std::mem::swap(answer, reply);
        }
    }

    fn fail(&mut self, error: CallError, on: &ArbiterLocal) {
        std::mem::replace(&mut self.reply_to, ReplyTo::Nobody).send::<M::Codec>(Err(error), on);
    }

    fn is_abandoned(&self, on: &ArbiterLocal) -> bool {
        match &self.reply_to {
            ReplyTo::Nobody => false,
            ReplyTo::Caller(caller) => caller.is_closed(),
            ReplyTo::Encoded(caller, _) => caller.is_closed(),
            ReplyTo::Lane(lane, _) => lane.is_abandoned(on),
        }
    }

    fn clear(&mut self) {
        if !matches!(self.stage, Stage::Running) {
            self.stage = Stage::Running;
        }
        if !matches!(self.reply_to, ReplyTo::Nobody) {
            self.reply_to = ReplyTo::Nobody;
        }
    }
}

/// A message that was read cannot be written.
fn unencodable(error: &CodecError) -> CallError {
    CallError::Codec { reason: error.to_string().into(), started: false }
}

impl<R: Serialize + Send + 'static> ReplyTo<R> {
    /// Sends the reply to a message whose own codec is `C`. A caller who has gone meanwhile is no error.
    fn send<C: PayloadCodec>(self, reply: Answer<R>, on: &ArbiterLocal) {
        match self {
            Self::Nobody => {}
            Self::Caller(caller) => caller.send(reply),
            Self::Encoded(caller, codec) => caller.send(reply.and_then(|reply| {
                let bytes = codec.encode::<C, R>(&reply).map(Bytes::from);
                bytes.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: true })
            })),
            Self::Lane(lane, codec) => match reply {
                Ok(reply) => lane.reply::<C, R>(codec, reply, on),
                Err(error) => lane.fail(error, on),
            },
        }
    }
}
