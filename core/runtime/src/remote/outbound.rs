//! The way of a message out of this node.

use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::{CallError, Queue, UnknownMessage};
use archipelago_protocol::identity::Generation;
use archipelago_protocol::link::{Asked, Head, KeyText, Refused, ShardRef, Told};
use archipelago_protocol::message::{CallChain, CodecError, CodecId, PayloadCodec, WireId};
use archipelago_protocol::time::Millis;
use bytes::{Bytes, BytesMut};

use super::lane::Lane;
use super::peer::Peer;
use super::room::Stay;
use super::routes::Shard;
use super::waiter::{Payload, Waiter};
use crate::arbiter::ArbiterLocal;
use crate::call::{AnswerSender, answer_channel};
use crate::catalog::{Encoded, JobHead, Target, WayBack};
use crate::events::DeadLetter;
use crate::message::RemoteMessage;
use crate::refs::submit_here;

/// A message that may have to leave the node.
pub(crate) struct Parcel<B: ?Sized> {
    pub(crate) shard: Shard,
    pub(crate) target: Target,
    pub(crate) head: JobHead,
    /// When it is not worth sending any more.
    pub(crate) expires: Millis,
    /// The room that it takes while it waits.
    pub(crate) stay: Option<Stay>,
    pub(crate) body: B,
}

/// A message that comes out of an inbox again, but for its content.
pub(crate) struct Origin {
    pub(crate) shard: Shard,
    pub(crate) target: Target,
    pub(crate) head: JobHead,
    pub(crate) expires: Millis,
}

impl Origin {
    /// The message with its content.
    pub(crate) fn parcel(self, body: impl Outbound + 'static) -> Parked {
        let Self { shard, target, head, expires } = self;
        Box::new(Parcel { shard, target, head, expires, stay: None, body })
    }
}

/// Encodes a message on any thread, unless it is longer than a limit.
pub(super) type WriteElsewhere = Box<dyn FnOnce(&mut BytesMut, usize) -> Result<(), CodecError> + Send>;

/// A message that waits until it is known where its actor lives.
pub(crate) type Parked = Box<Parcel<dyn Outbound>>;

/// The content of a message, and whoever waits for its reply.
pub(crate) trait Outbound {
    /// The number of the message's name.
    fn id(&self) -> WireId;
    /// The message's name.
    fn name(&self) -> &str;
    /// How it is encoded.
    fn codec(&self) -> CodecId;
    /// Appends the encoded message, unless it is longer than `limit`.
    fn write(&self, out: &mut BytesMut, limit: usize) -> Result<(), CodecError>;
    /// Encodes the message off the arbiter: it is large.
    fn write_elsewhere(&mut self) -> WriteElsewhere;
    /// Hands out whoever waits for the reply.
    fn take_waiter(&mut self) -> Option<Waiter>;
    /// True if nobody waits any more.
    fn is_over(&self) -> bool;
    /// About how many bytes it takes while it waits.
    fn weight(&self) -> usize;
    /// Hands the message to an actor of this node after all.
    fn submit_here(
        &mut self,
        kind: u32,
        target: &Target,
        head: JobHead,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError>;
}

impl Parcel<dyn Outbound> {
    /// Tells whoever waits that the message will not be handled; a tell becomes a dead letter.
    #[expect(clippy::boxed_local, reason = "a parcel is passed by its box, whose contents are unsized")]
    pub(crate) fn refuse(mut self: Box<Self>, error: CallError, on: &ArbiterLocal) {
        match self.body.take_waiter() {
            Some(waiter) => waiter.fail(error),
            None if self.head.asks => {}
            // A node without a transport has no other to send to.
            None if on.seat().is_none() => {
                on.node().dead_letter(self.target.id.to_string(), self.body.name(), &error);
            }
            None => {
                let (target, message) = (self.target.id.to_string(), self.body.name().to_owned());
                on.node().lost_on_the_way(None, DeadLetter { target, message, reason: error });
            }
        }
    }

    /// Ends a message that is not worth sending any more.
    pub(crate) fn over(self: Box<Self>, on: &ArbiterLocal) {
        self.refuse(CallError::Timeout { started: false }, on);
    }

    pub(crate) fn is_over(&self, now: Millis) -> bool {
        self.expires <= now || self.body.is_over()
    }
}

/// A message of a known type.
pub(crate) struct TypedOutbound<M: RemoteMessage> {
    message: Option<M>,
    caller: Option<AnswerSender<M::Result>>,
}

impl<M: RemoteMessage> TypedOutbound<M> {
    pub(crate) const fn new(message: M, caller: Option<AnswerSender<M::Result>>) -> Self {
        Self { message: Some(message), caller }
    }
}

impl<M: RemoteMessage> Outbound for TypedOutbound<M> {
    fn id(&self) -> WireId {
        M::WIRE_ID
    }

    fn name(&self) -> &str {
        M::NAME
    }

    fn codec(&self) -> CodecId {
        M::Codec::ID
    }

    fn write(&self, out: &mut BytesMut, limit: usize) -> Result<(), CodecError> {
        match &self.message {
            Some(message) => M::Codec::encode_into(message, out, limit),
            None => Ok(()),
        }
    }

    fn write_elsewhere(&mut self) -> WriteElsewhere {
        let message = self.message.take();
        Box::new(move |out, limit| match message {
            Some(message) => M::Codec::encode_into(&message, out, limit),
            None => Ok(()),
        })
    }

    fn take_waiter(&mut self) -> Option<Waiter> {
        self.caller.take().map(Waiter::caller::<M::Codec, _>)
    }

    fn is_over(&self) -> bool {
        self.caller.as_ref().is_some_and(AnswerSender::is_closed)
    }

    fn weight(&self) -> usize {
        // As it is: most of what waits stays on this node, and is never encoded.
        size_of::<M>()
    }

    fn submit_here(
        &mut self,
        kind: u32,
        target: &Target,
        head: JobHead,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let Some(message) = self.message.take() else { return Ok(()) };
        submit_here(message, kind, target, head, self.caller.take(), on)
    }
}

/// A message that is bytes already.
pub(crate) struct EncodedOutbound {
    pub(crate) id: WireId,
    pub(crate) name: Box<str>,
    pub(crate) codec: CodecId,
    pub(crate) payload: Bytes,
    pub(crate) waiter: Option<Waiter>,
    /// Its call has ended.
    pub(crate) ended: bool,
}

impl Outbound for EncodedOutbound {
    fn id(&self) -> WireId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn codec(&self) -> CodecId {
        self.codec
    }

    fn write(&self, out: &mut BytesMut, limit: usize) -> Result<(), CodecError> {
        append(&self.payload, out, limit)
    }

    fn write_elsewhere(&mut self) -> WriteElsewhere {
        let payload = std::mem::take(&mut self.payload);
        Box::new(move |out, limit| append(&payload, out, limit))
    }

    fn take_waiter(&mut self) -> Option<Waiter> {
        self.waiter.take()
    }

    fn is_over(&self) -> bool {
        self.ended || self.waiter.as_ref().is_some_and(|waiter| waiter.is_abandoned())
    }

    fn weight(&self) -> usize {
        self.payload.len()
    }

    fn submit_here(
        &mut self,
        kind: u32,
        target: &Target,
        head: JobHead,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        submit_encoded(self, kind, target, head, on)
    }
}

fn append(payload: &[u8], out: &mut BytesMut, limit: usize) -> Result<(), CodecError> {
    if payload.len() > limit {
        return Err(CodecError::TooLarge { limit });
    }
    out.extend_from_slice(payload);
    Ok(())
}

/// Where a message goes on another node.
pub(super) struct Way<'a> {
    pub(super) peer: &'a Arc<Peer>,
    pub(super) lane: &'a Rc<Lane>,
    /// The shard, as the peer calls it.
    pub(super) shard: ShardRef,
    pub(super) generation: Generation,
}

/// Why a message was not written into its lane.
pub(super) enum NotSent {
    /// Whoever waits must be told.
    Refused(CallError),
    /// It needs a stream of its own.
    Large,
}

enum WriteError {
    Refused(Refused),
    Codec(CodecError),
}

impl From<Refused> for WriteError {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// Writes a message into its lane, which was `told` first at that time. A waiter that was not needed comes back with the error.
pub(super) fn send_on<B: Outbound + ?Sized>(
    way: &Way<'_>,
    target: &Target,
    head: &JobHead,
    body: &mut B,
    (now, told): (Millis, Millis),
) -> Result<(), (Option<Waiter>, NotSent)> {
    let frame = match frame_head(way, target, head, body, now) {
        Ok(frame) => frame,
        Err(error) => return Err((body.take_waiter(), NotSent::Refused(error))),
    };
    let limit = way.lane.frame_limit();
    match body.take_waiter() {
        Some(waiter) => {
            let written = way.lane.ask(head.deadline, waiter, |out, call| {
                Asked::encode_head(out, call, &frame);
                body.write(out, limit).map_err(WriteError::Codec)
            });
            written.map(|_| ()).map_err(|(waiter, error)| (Some(waiter), not_sent(error)))
        }
        None => {
            let written = way.lane.tell(now, told, |out| {
                Told::encode_head(out, &frame);
                body.write(out, limit).map_err(WriteError::Codec)
            });
            written.map_err(|error| (None, not_sent(error)))
        }
    }
}

/// What stands before the payload.
pub(super) fn frame_head<'a, B: Outbound + ?Sized>(
    way: &Way<'_>,
    target: &'a Target,
    head: &JobHead,
    body: &B,
    now: Millis,
) -> Result<Head<'a>, CallError> {
    let message = way.peer.tables().message(way.shard.kind, body.id());
    let message = message.ok_or_else(|| unknown_message(target, body.name()))?;
    let ttl = (head.deadline < Millis::MAX).then(|| head.deadline.since(now));
    Ok(Head {
        ttl,
        flags: head.flags,
        codec: body.codec(),
        shard: way.shard,
        message,
        generation: way.generation,
        key: KeyText::from(target.id.key()),
        trace: head.scope.as_ref().and_then(|scope| scope.trace),
        chain: head.scope.as_ref().map_or(CallChain::empty(), |scope| scope.chain),
    })
}

fn unknown_message(target: &Target, name: &str) -> CallError {
    let kind = target.id.kind().as_str().into();
    CallError::UnknownMessage(Box::new(UnknownMessage { kind, message: name.into() }))
}

fn not_sent(error: WriteError) -> NotSent {
    match error {
        WriteError::Codec(CodecError::TooLarge { .. }) => NotSent::Large,
        WriteError::Refused(Refused::Frame(_)) => NotSent::Large,
        WriteError::Codec(error) => {
            NotSent::Refused(CallError::Codec { reason: error.to_string().into(), started: false })
        }
        WriteError::Refused(Refused::Overloaded { bound, .. }) => NotSent::Refused(CallError::Overloaded {
            queue: Queue::Lane,
            bound: u32::try_from(bound).unwrap_or(u32::MAX),
        }),
        WriteError::Refused(_) => {
            NotSent::Refused(CallError::NoRoute { reason: "the lane refused it".into() })
        }
    }
}

/// Hands an encoded message to an actor of this node; its reply goes where a remote one would have gone.
fn submit_encoded(
    message: &mut EncodedOutbound,
    kind: u32,
    target: &Target,
    head: JobHead,
    on: &Rc<ArbiterLocal>,
) -> Result<(), CallError> {
    let way_back = message.waiter.take().map_or(WayBack::Nobody, |waiter| forward(waiter, message.codec, on));
    let Some(kind) = on.any_kind(kind) else {
        return Err(way_back.refuse(CallError::UnknownKind { kind: target.id.kind().as_str().into() }, on));
    };
    let (id, name, bytes, codec) = (message.id, &*message.name, &*message.payload, message.codec);
    kind.submit_encoded(target, head, Encoded { id, name, bytes, codec, way_back }, on)
}

fn forward(waiter: Waiter, codec: CodecId, on: &Rc<ArbiterLocal>) -> WayBack {
    let (caller, answer) = answer_channel::<Bytes>();
    let on = Rc::clone(on);
    let env = Arc::clone(on.node().env());
    env.spawn(Box::pin(async move {
        match answer.await.unwrap_or(Err(CallError::Stopped)) {
            Ok(reply) => waiter.reply(codec, Payload::Small(&reply), on.node()),
            Err(error) => waiter.fail(error),
        }
    }));
    WayBack::Caller(caller)
}
