//! Messages and replies too large for a frame: each on a stream of its own.
//!
//! They are encoded off the arbiter, and later messages to the same actor wait until the large one has arrived, so that
//! order is kept. The place of a message is marked on the lane; a message that will not come after all is taken back
//! there, behind its mark.
//!
//! Invariant: whatever is announced either comes on its stream or is taken back, as long as the connection lasts.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{SendStream, Streams, TransportError};
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{Asked, Frame, LargeHead, Told};
use archipelago_protocol::message::{CodecError, CodecId, PayloadCodec};
use archipelago_protocol::time::Millis;
use bytes::{Bytes, BytesMut};
use futures_util::future::{Either, select};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::incoming::Held;
use super::lane::Lane;
use super::large_room::Unread;
use super::mark::{Mark, no_route, refuse};
use super::outbound::{Outbound, Way, WriteElsewhere, frame_head};
use super::routes::Shard;
use super::waiter::Waiter;
use crate::arbiter::ArbiterLocal;
use crate::catalog::{JobHead, Target};
use crate::env::{Environment, within};
use crate::events::DeadLetter;
use crate::node::NodeShared;

/// Sends one frame on a stream of its own.
///
/// # Errors
///
/// The transport's; the frame has not arrived whole, or it is not known whether it has.
pub(super) async fn send(streams: &dyn Streams, transfer: u64, frame: Bytes) -> Result<(), TransportError> {
    let mut stream = streams.open().await?;
    let head = LargeHead { transfer, len: frame.len() as u64 }.encode();
    write(&mut *stream, Bytes::copy_from_slice(&head)).await?;
    write(&mut *stream, frame).await?;
    poll_fn(|cx| stream.poll_finish(cx)).await
}

/// Writes part by part: as long as the other side keeps up this would never wait, and so nobody else would have a turn.
async fn write(stream: &mut dyn SendStream, mut bytes: Bytes) -> Result<(), TransportError> {
    while !bytes.is_empty() {
        let mut part = bytes.split_to(bytes.len().min(PART));
        poll_fn(|cx| stream.poll_send(cx, &mut part)).await?;
        others_first().await;
    }
    Ok(())
}

/// Lets the other tasks of the arbiter have their turn.
pub(super) async fn others_first() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Sends a message that is too large for a frame. Its call is registered with the lane at once.
///
/// # Errors
///
/// It cannot be sent, or the lane takes no more calls; whoever waits has been told.
pub(super) fn send_message<B: Outbound + ?Sized>(
    on: &Rc<ArbiterLocal>,
    way: &Way<'_>,
    target: &Target,
    head: &JobHead,
    (body, waiter): (&mut B, Option<Waiter>),
) -> Result<(), CallError> {
    let first = match frame_head(way, target, head, body, on.coarse()) {
        Ok(first) => first,
        Err(error) => return Err(refuse(waiter, error)),
    };
    let mark = Mark::set(on.transfers(), way.lane, head.deadline, waiter)?;
    if let Some(seat) = on.seat() {
        seat.call_pending();
    }
    let mut frame = BytesMut::new();
    match mark.call() {
        Some(call) => Asked::encode_head(&mut frame, call, &first),
        None => Told::encode_head(&mut frame, &first),
    }
    let shard = Shard {
        island: on.node().island_of(way.peer),
        kind: on.node().kind_index(target.id.kind()).unwrap_or(u32::MAX),
        number: way.shard.number,
    };
    let (transfer, asks) = (mark.number(), mark.call().is_some());
    on.transfers().hold_up(shard, target.hash, way.lane.index(), transfer);
    let job = Outgoing { mark, frame, write: body.write_elsewhere(), deadline: head.deadline };
    let (message, target, hash, on) = (body.name().to_owned(), target.id.clone(), target.hash, Rc::clone(on));
    let peer = way.peer.id();
    let env = Arc::clone(on.node().env());
    env.spawn(Box::pin(async move {
        let sent = job.run(&on).await;
        for parcel in on.transfers().release(shard, hash, transfer) {
            on.park(parcel);
        }
        if let Err(reason) = sent {
            tracing::debug!(%reason, "a large message was not sent");
            if !asks {
                let target = target.to_string();
                on.node().lost_on_the_way(Some(peer), DeadLetter { target, message, reason });
            }
        }
    }));
    Ok(())
}

/// One large message on its way out.
pub(super) struct Outgoing {
    pub(super) mark: Mark,
    /// What stands before what `write` appends.
    pub(super) frame: BytesMut,
    pub(super) write: WriteElsewhere,
    /// When it is not worth handling any more.
    pub(super) deadline: Millis,
}

impl Outgoing {
    /// Sends it, and waits until it has arrived.
    ///
    /// # Errors
    ///
    /// It has not, or it is not known whether it has; the other side waits for it no longer.
    pub(super) async fn run(self, on: &ArbiterLocal) -> Result<(), CallError> {
        let Self { mut mark, frame, write, deadline } = self;
        let sent = send_marked(on, &mut mark, (frame, write), deadline).await;
        match &sent {
            Ok(()) => mark.arrived(),
            Err(error) => mark.take_back(error),
        }
        sent
    }
}

async fn send_marked(
    on: &ArbiterLocal,
    mark: &mut Mark,
    (frame, write): (BytesMut, WriteElsewhere),
    deadline: Millis,
) -> Result<(), CallError> {
    let (node, largest) = (on.node(), on.node().settings().remote.largest);
    let Some(_turn) = turn(node, mark).await else { return Err(mark.why_over("its turn did not come")) };
    mark.has_turn();
    let mut frame = encode(node.env(), frame, write, largest).await?;
    let Some(streams) = ready(node, mark).await else { return Err(mark.why_over("no connection")) };
    if mark.transfer().is_lost() {
        // Its place went with a connection that was lost.
        return Err(no_route("the connection was lost"));
    }
    // It has waited since its head was written.
    Frame::set_ttl(&mut frame, deadline.since(node.env().coarse()));
    let frame = frame.freeze();
    mark.transfer().keep(&frame);
    let sent = send(&*streams, mark.number(), frame).await;
    if let Err(error) = sent {
        tracing::debug!(%error, "a large message was not taken");
        // Whoever did not take it says why, if it can.
        within(node.env(), HEAR_WHY, mark.transfer().over()).await;
        return Err(CallError::ConnectionLost { node: mark.lane().peer().id() });
    }
    // Without the news the connection is lost, which ends the wait as well.
    mark.transfer().over().await;
    Ok(())
}

/// Waits until few enough large messages of the lane are in memory as bytes; `None` if that does not come to pass in time.
async fn turn(node: &NodeShared, mark: &mut Mark) -> Option<OwnedSemaphorePermit> {
    let until = node.env().now() + node.settings().remote.tell_ttl;
    let mut turn = pin!(Arc::clone(mark.lane().large_room().turns()).acquire_owned());
    let mut has_turn = None;
    loop {
        if mark.is_over() || is_late(node, mark, until) {
            return None;
        }
        if has_turn.is_some() {
            return has_turn;
        }
        let lost = mark.transfer().over();
        match select(select(turn.as_mut(), pin!(lost)), node.env().sleep(LOOK_IN_LINE)).await {
            // Nobody closes the turns.
            Either::Left((Either::Left((turn, _)), _)) => has_turn = Some(turn.ok()?),
            Either::Left((Either::Right(_), _)) => return None,
            Either::Right(_) => {}
        }
    }
}

/// Waits until the lane is connected and the mark was given to the connection; `None` if that does not come to pass in
/// time.
async fn ready(node: &NodeShared, mark: &Mark) -> Option<Arc<dyn Streams>> {
    let until = node.env().now() + node.settings().remote.tell_ttl;
    loop {
        if let (true, Some((_, streams))) = (mark.is_given(), mark.lane().streams()) {
            return Some(streams);
        }
        if mark.is_over() || is_late(node, mark, until) {
            return None;
        }
        node.env().sleep(LOOK_EVERY).await;
    }
}

/// Whether the time for a tell is over.
fn is_late(node: &NodeShared, mark: &Mark, until: Millis) -> bool {
    mark.call().is_none() && node.env().now() >= until
}

/// Encodes off the arbiter.
async fn encode(
    env: &Arc<dyn Environment>,
    mut frame: BytesMut,
    write: WriteElsewhere,
    largest: usize,
) -> Result<BytesMut, CallError> {
    let (result, encoded) = oneshot::channel();
    env.offload(Box::new(move || {
        let written = write(&mut frame, largest).map(|()| frame);
        // Nobody waits if the node has stopped.
        let _ = result.send(written);
    }))
    .await;
    match encoded.await {
        Ok(Ok(frame)) => Ok(frame),
        Ok(Err(CodecError::TooLarge { .. })) => {
            Err(CallError::TooLarge { max: u32::try_from(largest).unwrap_or(u32::MAX), started: false })
        }
        Ok(Err(error)) => Err(CallError::Codec { reason: error.to_string().into(), started: false }),
        Err(_) => Err(CallError::Codec { reason: "encoding panicked".into(), started: false }),
    }
}

/// Sends a reply that is too large for a frame, to a message whose own codec is `C`. If too much waits for the caller already,
/// it hears that there is none.
pub(super) fn send_reply<C: PayloadCodec, R: Serialize + Send + 'static>(
    held: Held,
    lane: Rc<Lane>,
    call: CorrelationId,
    codec: CodecId,
    reply: R,
    on: &ArbiterLocal,
) {
    let node = Arc::clone(on.node());
    let env = Arc::clone(node.env());
    let most = node.settings().remote.answer_bytes;
    // It is longer than a frame; how much longer will be known when it is encoded.
    let Some(mut unread) = Unread::enter(&lane, lane.frame_limit(), most) else {
        metrics::counter!("archipelago_replies_refused_total").increment(1);
        return lane.say(&Frame::Fail { call, error: CallError::NoReply });
    };
    env.spawn(Box::pin(async move {
        let mut frame = BytesMut::new();
        Frame::encode_reply_head(&mut frame, call, codec);
        let write: WriteElsewhere = Box::new(move |out, limit| codec.encode_into::<C, R>(&reply, out, limit));
        let sent = match encode_reply(&node, &lane, frame, write).await {
            Ok(frame) if unread.set(frame.len(), most) => send_if_connected(&lane, &held, frame).await,
            Ok(_) => {
                metrics::counter!("archipelago_replies_refused_total").increment(1);
                Err(CallError::NoReply)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = sent
            && lane.is_connected_by(held.incoming())
        {
            lane.say(&Frame::Fail { call, error: as_reply(error) });
        }
    }));
}

/// Encodes a reply, a few of a lane at once.
async fn encode_reply(
    node: &NodeShared,
    lane: &Lane,
    frame: BytesMut,
    write: WriteElsewhere,
) -> Result<Bytes, CallError> {
    // Nobody closes them, so this is a turn.
    let _turn = lane.large_room().encoders().acquire().await;
    encode(node.env(), frame, write, node.settings().remote.largest).await.map(BytesMut::freeze)
}

async fn send_if_connected(lane: &Lane, held: &Held, frame: Bytes) -> Result<(), CallError> {
    match lane.streams() {
        Some((now, streams)) if now.connection() == held.incoming().connection() => {
            let sent = send(&*streams, NO_TRANSFER, frame).await;
            sent.map_err(|error| CallError::NoRoute { reason: error.to_string().into() })
        }
        // Nobody hears the reply any more.
        _ => Ok(()),
    }
}

/// The handler has run, whatever happened to its reply.
fn as_reply(error: CallError) -> CallError {
    match error {
        CallError::TooLarge { max, .. } => CallError::TooLarge { max, started: true },
        CallError::Codec { reason, .. } => CallError::Codec { reason, started: true },
        _ => CallError::NoReply,
    }
}

/// The number of transfers whose arrival nobody waits for.
pub(super) const NO_TRANSFER: u64 = LargeHead::REPLY;
/// How often a large message looks whether it may go.
pub(super) const LOOK_EVERY: Millis = Millis(2);
/// How often a large message that waits for its turn looks whether its caller has gone.
const LOOK_IN_LINE: Millis = Millis(50);
/// How long to wait for the other side to say why it does not take a stream.
const HEAR_WHY: Millis = Millis(1_000);
/// How much of a large message is written or read before others have their turn.
pub(super) const PART: usize = 64 << 10;
