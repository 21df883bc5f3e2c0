//! Whoever waits for the answer to a call that went over a lane.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::message::{CodecId, PayloadCodec};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use crate::call::{AnswerSender, Delivery, NearSender, boxed};
use crate::node::NodeShared;
use crate::payload::read;
use crate::refs::decoding;

/// Whoever waits for the answer to a call. Nothing is allocated for the usual one, a caller on the lane's own thread.
pub(crate) enum Waiter {
    /// A caller on this thread, and what makes a reply of its type.
    Near(NearSender, Decode),
    Other(Box<dyn Waiting>),
}

/// Makes the end of a call from its encoded reply.
pub(crate) type Decode = fn(CodecId, &[u8]) -> Delivery;

/// Somebody else who waits.
pub(crate) trait Waiting {
    /// The reply has come.
    fn reply(self: Box<Self>, codec: CodecId, payload: Payload<'_>, node: &Arc<NodeShared>);
    /// There will be none.
    fn fail(self: Box<Self>, error: CallError);
    /// There will be none: the other side has said so.
    fn fail_there(self: Box<Self>, error: CallError) {
        self.fail(error);
    }
    /// True if nobody waits any more.
    fn is_abandoned(&self) -> bool;
}

/// The encoded form of a message or a reply.
#[derive(Clone, Debug)]
pub(crate) enum Payload<'a> {
    /// Small: part of what was read from a lane.
    Small(&'a [u8]),
    /// Large: it came on a stream of its own, and is decoded off the arbiter.
    Large(Bytes),
}

impl Waiter {
    /// The caller who waits for a reply of type `R` to a message whose own codec is `C`.
    pub(crate) fn caller<C: PayloadCodec, R: DeserializeOwned + Send + 'static>(
        caller: AnswerSender<R>,
    ) -> Self {
        match caller {
            AnswerSender::Near(caller) => Self::Near(caller, deliver::<C, R>),
            AnswerSender::Far(_) => Self::Other(Box::new(FarWaiter { caller, decode: decode::<C, R> })),
        }
    }

    /// The caller who wants the reply as it comes.
    pub(crate) fn of_bytes(caller: AnswerSender<Bytes>) -> Self {
        Self::Other(Box::new(BytesWaiter(caller)))
    }

    /// The reply has come.
    #[inline]
    pub(super) fn reply(self, codec: CodecId, payload: Payload<'_>, node: &Arc<NodeShared>) {
        match (self, payload) {
            (Self::Near(caller, decode), Payload::Small(bytes)) => {
                caller.send(decoding(node, || decode(codec, bytes)));
            }
            (Self::Near(caller, decode), Payload::Large(bytes)) => {
                let decoded = move || decode(codec, &bytes);
                elsewhere(node, decoded, |reply| {
                    caller.send(reply.unwrap_or(Delivery::Failed(CallError::NoReply)));
                });
            }
            (Self::Other(waiter), payload) => waiter.reply(codec, payload, node),
        }
    }

    /// There will be none.
    pub(super) fn fail(self, error: CallError) {
        match self {
            Self::Near(caller, _) => caller.send(Delivery::Failed(error)),
            Self::Other(waiter) => waiter.fail(error),
        }
    }

    /// There will be none: the other side has said so.
    pub(super) fn fail_there(self, error: CallError) {
        match self {
            Self::Near(caller, _) => caller.send(Delivery::Failed(error)),
            Self::Other(waiter) => waiter.fail_there(error),
        }
    }

    /// True if nobody waits any more.
    pub(super) fn is_abandoned(&self) -> bool {
        match self {
            Self::Near(caller, _) => caller.is_closed(),
            Self::Other(waiter) => waiter.is_abandoned(),
        }
    }
}

impl Payload<'_> {
    pub(super) fn into_bytes(self) -> Bytes {
        match self {
            Self::Small(bytes) => Bytes::copy_from_slice(bytes),
            Self::Large(bytes) => bytes,
        }
    }
}

/// A caller on another thread.
struct FarWaiter<R> {
    caller: AnswerSender<R>,
    decode: fn(CodecId, &[u8]) -> Result<R, CallError>,
}

impl<R: DeserializeOwned + Send + 'static> Waiting for FarWaiter<R> {
    fn reply(self: Box<Self>, codec: CodecId, payload: Payload<'_>, node: &Arc<NodeShared>) {
        let Self { caller, decode } = *self;
        match payload {
            Payload::Small(bytes) => {
                let reply = decoding(node, || decode(codec, bytes));
                caller.send(reply);
            }
            Payload::Large(bytes) => elsewhere(
                node,
                move || decode(codec, &bytes),
                |reply| caller.send(reply.unwrap_or(Err(CallError::NoReply))),
            ),
        }
    }

    fn fail(self: Box<Self>, error: CallError) {
        self.caller.send(Err(error));
    }

    fn is_abandoned(&self) -> bool {
        self.caller.is_closed()
    }
}

/// A caller who wants the reply as it came.
struct BytesWaiter(AnswerSender<Bytes>);

impl Waiting for BytesWaiter {
    fn reply(self: Box<Self>, _: CodecId, payload: Payload<'_>, _: &Arc<NodeShared>) {
        self.0.send(Ok(payload.into_bytes()));
    }

    fn fail(self: Box<Self>, error: CallError) {
        self.0.send(Err(error));
    }

    fn is_abandoned(&self) -> bool {
        self.0.is_closed()
    }
}

/// Decodes off the arbiter and goes on here with what came of it; nothing, if it panicked.
fn elsewhere<T: Send + 'static>(
    node: &Arc<NodeShared>,
    decode: impl FnOnce() -> T + Send + 'static,
    then: impl FnOnce(Option<T>) + 'static,
) {
    let (at, env) = (Arc::clone(node), Arc::clone(node.env()));
    let (decoded, reply) = oneshot::channel();
    let work = move || drop(decoded.send(decoding(&at, decode)));
    node.env().spawn(Box::pin(async move {
        env.offload(Box::new(work)).await;
        then(reply.await.ok());
    }));
}

fn deliver<C: PayloadCodec, R: DeserializeOwned + Send + 'static>(codec: CodecId, bytes: &[u8]) -> Delivery {
    match decode::<C, R>(codec, bytes) {
        Err(error) => Delivery::Failed(error),
        reply => Delivery::Boxed(boxed(reply)),
    }
}

fn decode<C: PayloadCodec, R: DeserializeOwned>(codec: CodecId, bytes: &[u8]) -> Result<R, CallError> {
    read::<C, R>(codec, bytes)
        .map_err(|error| CallError::Codec { reason: error.to_string().into(), started: true })
}
