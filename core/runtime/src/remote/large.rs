//! Messages and replies too large for a frame: each on a stream of its own.
//!
//! They are encoded and decoded off the arbiter, and later messages to the same actor wait until the large one has
//! arrived, so that order is kept.
//!
//! A stream carries the number of the transfer (u64), the length of the frame (u64) and the frame.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{RecvStream, SendStream, Streams, TransportError};
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{Asked, Frame, Refused, Told};
use archipelago_protocol::message::{Codec, CodecError};
use archipelago_protocol::time::Millis;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::incoming::{Held, Incoming};
use super::lane::{Lane, Waiting};
use super::outbound::{Outbound, Way, WriteElsewhere, frame_head};
use super::routes::Shard;
use super::seat::SeatLocal;
use crate::arbiter::ArbiterLocal;
use crate::catalog::{JobHead, Target};
use crate::env::Environment;
use crate::node::NodeShared;

/// Sends one frame on a stream of its own.
///
/// # Errors
///
/// The transport's; the frame has not arrived whole, or it is not known whether it has.
pub(super) async fn send(streams: &dyn Streams, transfer: u64, frame: Bytes) -> Result<(), TransportError> {
    let mut stream = streams.open().await?;
    let mut head = BytesMut::with_capacity(HEAD);
    head.put_u64_le(transfer);
    head.put_u64_le(frame.len() as u64);
    write(&mut *stream, head.freeze()).await?;
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
async fn others_first() {
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
/// The lane takes no more calls; whoever waits has been told.
pub(super) fn send_message<B: Outbound + ?Sized>(
    on: &Rc<ArbiterLocal>,
    way: &Way<'_>,
    target: &Target,
    head: &JobHead,
    (body, waiter): (&mut B, Option<Box<dyn Waiting>>),
) -> Result<(), CallError> {
    let (transfer, arrived) = on.transfers().begin(way.lane.index());
    let call = register(way.lane, head.deadline, waiter, (transfer, on.coarse()))?;
    if let Some(seat) = on.seat() {
        seat.call_pending();
    }
    let mut frame = BytesMut::new();
    let first = frame_head(way, target, head, body, on.coarse())?;
    match call {
        Some(call) => Asked::encode_head(&mut frame, call, &first),
        None => Told::encode_head(&mut frame, &first),
    }
    let shard =
        Shard { kind: on.node().kind_index(target.id.kind()).unwrap_or(u32::MAX), number: way.shard.number };
    on.transfers().hold_up(shard, target.hash, way.lane.index(), transfer);
    let write = body.write_elsewhere();
    let job = Outgoing { lane: Rc::clone(way.lane), call, frame, write, transfer, arrived };
    let (name, id, hash, on) = (body.name().to_owned(), target.id.clone(), target.hash, Rc::clone(on));
    let env = Arc::clone(on.node().env());
    env.spawn(Box::pin(async move {
        let sent = job.run(&on).await;
        for parcel in on.transfers().release(shard, hash, transfer) {
            on.park(parcel);
        }
        if let Err(error) = sent {
            tracing::debug!(%error, "a large message was not sent");
            if call.is_none() {
                on.node().dead_letter(id.to_string(), &name, &error);
            }
        }
    }));
    Ok(())
}

/// Only the place of the message goes over the lane: the receiver takes the message in there, after everything that was
/// sent before it.
pub(super) fn register(
    lane: &Lane,
    deadline: Millis,
    waiter: Option<Box<dyn Waiting>>,
    (transfer, now): (u64, Millis),
) -> Result<Option<CorrelationId>, CallError> {
    let mark = |out: &mut BytesMut, call| {
        Frame::LargeHere { transfer, call }.encode(out);
        Ok(())
    };
    let no_route = |error: Refused| CallError::NoRoute { reason: error.to_string().into() };
    let Some(waiter) = waiter else {
        return lane.tell::<Refused>(now, |out| mark(out, None)).map(|()| None).map_err(no_route);
    };
    let registered = lane.ask::<Refused>(deadline, waiter, |out, call| mark(out, Some(call)));
    registered.map(Some).map_err(|(waiter, error)| {
        let error = no_route(error);
        waiter.fail(error.clone());
        error
    })
}

/// One large message on its way out.
pub(super) struct Outgoing {
    pub(super) lane: Rc<Lane>,
    pub(super) call: Option<CorrelationId>,
    /// What stands before what `write` appends.
    pub(super) frame: BytesMut,
    pub(super) write: WriteElsewhere,
    pub(super) transfer: u64,
    pub(super) arrived: oneshot::Receiver<()>,
}

impl Outgoing {
    /// Sends it, and waits until it has arrived.
    ///
    /// # Errors
    ///
    /// It has not, or it is not known whether it has; the other side waits for it no longer.
    pub(super) async fn run(self, on: &Rc<ArbiterLocal>) -> Result<(), CallError> {
        let (lane, transfer) = (Rc::clone(&self.lane), self.transfer);
        let sent = self.send(on).await;
        if sent.is_err() {
            on.node().env().spawn(Box::pin(async move { withdraw(&lane, transfer).await }));
        }
        sent
    }

    async fn send(self, on: &Rc<ArbiterLocal>) -> Result<(), CallError> {
        let Self { lane, call, frame, write, transfer, mut arrived } = self;
        let largest = on.node().settings().remote.largest;
        let Some(_turn) = turn(on.node(), &lane, call).await else {
            return Err(give_up(&lane, call, CallError::NoRoute { reason: "its turn did not come".into() }));
        };
        let frame = match encode(on.node().env(), frame, write, largest).await {
            Ok(frame) => frame,
            Err(error) => return Err(give_up(&lane, call, error)),
        };
        on.transfers().keep(lane.index(), transfer, &frame);
        let connected = ready(on.node(), &lane, call).await;
        let Some(streams) = connected else {
            return Err(CallError::NoRoute { reason: "no connection".into() });
        };
        if matches!(arrived.try_recv(), Err(oneshot::error::TryRecvError::Closed)) {
            // Its place went with a connection that was lost.
            return Err(CallError::NoRoute { reason: "the connection was lost".into() });
        }
        if let Err(error) = send(&*streams, transfer, frame).await {
            return Err(CallError::NoRoute { reason: error.to_string().into() });
        }
        // Without the news the connection is lost, which ends the wait as well.
        let _ = arrived.await;
        Ok(())
    }
}

/// Tells the other side not to wait for a large message whose place it may have seen.
async fn withdraw(lane: &Lane, transfer: u64) {
    if let Some((_, streams)) = lane.streams() {
        let mut nothing = BytesMut::new();
        Frame::Void.encode(&mut nothing);
        // With the connection the place is gone as well.
        drop(send(&*streams, transfer, nothing.freeze()).await);
    }
}

fn give_up(lane: &Lane, call: Option<CorrelationId>, error: CallError) -> CallError {
    let waiter = call.and_then(|call| lane.outbox().borrow_mut().cancel(call));
    if let Some(waiter) = waiter {
        waiter.fail(error.clone());
    }
    error
}

/// Waits until few enough large messages of the lane are in memory as bytes; `None` if that does not come to pass in time.
async fn turn(node: &NodeShared, lane: &Lane, call: Option<CorrelationId>) -> Option<OwnedSemaphorePermit> {
    let until = node.env().now() + node.settings().remote.tell_ttl;
    loop {
        if let Ok(turn) = Arc::clone(lane.large_turns()).try_acquire_owned() {
            return Some(turn);
        }
        if is_over(node, lane, call, until) {
            return None;
        }
        node.env().sleep(LOOK_EVERY).await;
    }
}

/// Whether a large message need not be sent any more: its call has ended, or the time for a tell is over.
fn is_over(node: &NodeShared, lane: &Lane, call: Option<CorrelationId>, until: Millis) -> bool {
    match call {
        Some(call) => !lane.outbox().borrow().is_pending(call),
        None => node.env().now() >= until,
    }
}

/// Waits until the lane is connected and the call, if there is one, was given to the connection; `None` if that does not
/// come to pass in time.
async fn ready(node: &NodeShared, lane: &Lane, call: Option<CorrelationId>) -> Option<Arc<dyn Streams>> {
    let until = node.env().now() + node.settings().remote.tell_ttl;
    loop {
        let given = call.is_none_or(|call| lane.outbox().borrow().is_given(call));
        if let (true, Some((_, streams))) = (given, lane.streams()) {
            return Some(streams);
        }
        if is_over(node, lane, call, until) {
            return None;
        }
        node.env().sleep(LOOK_EVERY).await;
    }
}

/// Encodes off the arbiter.
async fn encode(
    env: &Arc<dyn Environment>,
    mut frame: BytesMut,
    write: WriteElsewhere,
    largest: usize,
) -> Result<Bytes, CallError> {
    let (result, encoded) = oneshot::channel();
    env.offload(Box::new(move || {
        let written = write(&mut frame, largest).map(|()| frame.freeze());
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

/// Sends a reply that is too large for a frame.
pub(super) fn send_reply<R: Serialize + Send + 'static>(
    held: Held,
    lane: Rc<Lane>,
    call: CorrelationId,
    codec: Codec,
    reply: R,
    on: &ArbiterLocal,
) {
    let node = Arc::clone(on.node());
    let env = Arc::clone(node.env());
    let largest = node.settings().remote.largest;
    env.spawn(Box::pin(async move {
        let mut frame = BytesMut::new();
        Frame::encode_reply_head(&mut frame, call, codec.id());
        let write: WriteElsewhere = Box::new(move |out, limit| codec.encode_into(&reply, out, limit));
        let sent = match encode(node.env(), frame, write, largest).await {
            Ok(frame) => send_if_connected(&lane, &held, frame).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent
            && lane.is_connected_by(held.incoming())
        {
            lane.say(&Frame::Fail { call, error: as_reply(error) });
        }
    }));
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

/// Takes the large frames of one connection for as long as it lasts, a few at a time.
pub(super) async fn receive(
    lane: Rc<Lane>,
    incoming: Arc<Incoming>,
    seat: Rc<SeatLocal>,
    streams: Arc<dyn Streams>,
) {
    let at_once = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let Ok(place) = Arc::clone(&at_once).acquire_owned().await else { return };
        let Ok(stream) = streams.next().await else { return };
        let (lane, incoming, seat) = (Rc::clone(&lane), Arc::clone(&incoming), Rc::clone(&seat));
        let env = Arc::clone(seat.node().env());
        env.spawn(Box::pin(async move {
            let largest = seat.node().settings().remote.largest;
            match read(stream, largest + SLACK).await {
                Ok((transfer, frame)) => seat.sink().take_large(&lane, &incoming, transfer, frame),
                Err(error) => tracing::warn!(peer = %lane.peer().id(), %error, "a large transfer failed"),
            }
            drop(place);
        }));
    }
}

/// Reads one frame; its length is checked before anything is allocated for it, and memory grows only with what comes.
async fn read(mut stream: Box<dyn RecvStream>, largest: usize) -> Result<(u64, Bytes), TransportError> {
    let mut bytes = BytesMut::new();
    while bytes.len() < HEAD {
        more(&mut *stream, &mut bytes).await?;
    }
    let (transfer, len) = (bytes.get_u64_le(), bytes.get_u64_le());
    let len = usize::try_from(len).ok().filter(|len| *len <= largest);
    let len = len.ok_or_else(|| lost(format!("a transfer is larger than {largest} bytes")))?;
    // Only address space: memory comes with what is written into it.
    bytes.reserve(len.saturating_sub(bytes.len()));
    let mut turn = bytes.len();
    while bytes.len() < len {
        more(&mut *stream, &mut bytes).await?;
        if bytes.len() - turn >= PART {
            turn = bytes.len();
            others_first().await;
        }
    }
    if bytes.len() > len {
        return Err(lost("a transfer is longer than it says".to_owned()));
    }
    Ok((transfer, bytes.freeze()))
}

async fn more(stream: &mut dyn RecvStream, into: &mut BytesMut) -> Result<(), TransportError> {
    match poll_fn(|cx| stream.poll_recv(cx, into)).await? {
        0 => Err(lost("a transfer ended early".to_owned())),
        _ => Ok(()),
    }
}

fn lost(reason: String) -> TransportError {
    TransportError::Lost { reason }
}

/// The number of transfers whose arrival nobody waits for.
const NO_TRANSFER: u64 = 0;
/// How often a large message looks whether it may go.
const LOOK_EVERY: Millis = Millis(2);
/// How much of a large message is written or read before others have their turn.
const PART: usize = 64 << 10;
/// Transfer and length.
const HEAD: usize = 16;
/// Large frames that are sent at once to, and received at once from one peer arbiter.
pub(super) const AT_ONCE: usize = 4;
/// What a frame may have beyond its payload.
const SLACK: usize = 4 << 10;
