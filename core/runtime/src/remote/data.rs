//! What comes over the lanes between data arbiters: messages for actors, and answers for callers.

use std::rc::{Rc, Weak};
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{Came, Frame, Head, Refused, ShardRef};
use archipelago_protocol::message::{CodecError, CodecId, PayloadCodec};
use archipelago_protocol::route::Verdict;
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::Serialize;

use super::drive::{FrameSink, Violation};
use super::incoming::{Held, Incoming};
use super::lane::Lane;
use super::large;
use super::large_in::Brought;
use super::waiter::Payload;
use crate::arbiter::ArbiterLocal;

/// Takes what comes to a data arbiter.
pub(crate) struct DataSink(Weak<ArbiterLocal>);

/// A message that came over a lane.
pub(crate) struct Arrived<'a> {
    pub(crate) head: &'a Head<'a>,
    pub(crate) payload: &'a [u8],
    /// When it was read, by the coarse clock.
    pub(crate) now: Millis,
    pub(crate) way_back: LaneWay,
}

/// A large message that came on a stream of its own, in whole.
pub(crate) struct LargeArrived {
    pub(crate) lane: Rc<Lane>,
    pub(crate) incoming: Arc<Incoming>,
    pub(crate) transfer: u64,
    pub(crate) frame: Bytes,
    pub(crate) call: Option<CorrelationId>,
}

/// The way back to the sender of a message on another node.
pub(crate) struct LaneWay {
    held: Held,
    /// The call that waits there; none for a tell.
    call: Option<CorrelationId>,
}

impl DataSink {
    pub(crate) fn new(on: &Rc<ArbiterLocal>) -> Rc<Self> {
        Rc::new(Self(Rc::downgrade(on)))
    }

    fn message(
        &self,
        on: &Rc<ArbiterLocal>,
        lane: &Rc<Lane>,
        (incoming, now): (&Arc<Incoming>, Millis),
        call: Option<CorrelationId>,
        (head, payload): (&Head<'_>, &[u8]),
    ) -> Result<(), Violation> {
        let Some(kind) = on.any_kind(head.shard.kind.into()) else {
            return Err(Violation::Meaning(format!("no kind has number {}", head.shard.kind)));
        };
        if let Some(call) = call {
            lane.inbound().borrow_mut().open(call).map_err(|fault| Violation::Meaning(fault.to_string()))?;
        }
        let Head { shard, generation, key, .. } = head;
        let serving = kind.shards().serves(shard.number, *generation, key.as_str()) && !on.turns_away(head);
        if !serving {
            let expires = head.ttl.map_or(Millis::MAX, |ttl| now + ttl);
            on.not_taken(head, expires);
        }
        if let Verdict::Return(reason) = on.judge(incoming, head.shard, serving) {
            if let Err(error) = on.send_back(lane, call, (head.clone(), payload), reason) {
                on.could_not_return(head, &error);
            }
            return Ok(());
        }
        let held = Held::take(incoming, payload.len() + PER_JOB);
        kind.submit_arrived(Arrived { head, payload, now, way_back: LaneWay { held, call } }, on)
    }
}

impl FrameSink for DataSink {
    fn take(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        frame: &[u8],
        now: Millis,
    ) -> Result<(), Violation> {
        let frame = Frame::decode(frame);
        let Some(on) = self.0.upgrade() else { return frame.map(|_| ()).map_err(Violation::Frame) };
        match frame {
            Ok(Frame::Ask(ref ask)) => {
                self.message(&on, lane, (incoming, now), Some(ask.call), (&ask.head, ask.payload))
            }
            Ok(Frame::Tell(ref tell)) => {
                self.message(&on, lane, (incoming, now), None, (&tell.head, tell.payload))
            }
            Ok(Frame::Reply { call, codec, payload }) => {
                lane.end_with_reply(call, codec, Payload::Small(payload), on.node());
                Ok(())
            }
            Ok(rarer) => self.take_rarer(&on, lane, incoming, rarer),
            Err(error) => Err(error.into()),
        }
    }

    fn take_large(
        &self,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        transfer: u64,
        brought: Brought,
    ) -> Result<(), Violation> {
        let Some(on) = self.0.upgrade() else { return Ok(()) };
        if !lane.is_connected_by(incoming) {
            // Nothing of a lost connection is taken in any more: what came by the next one would be overtaken.
            return Ok(());
        }
        if transfer == large::NO_TRANSFER {
            return large_reply(&on, lane, &brought);
        }
        let came = lane.large().borrow_mut().came(transfer, brought);
        match came.map_err(|fault| Violation::Meaning(fault.to_string()))? {
            Came::Due(call, brought) => self.take_in(&on, lane, incoming, (transfer, call), brought),
            Came::Early => Ok(()),
            Came::Unwanted(_) => {
                tracing::debug!(peer = %lane.peer().id(), transfer, "a large message came after it was given up");
                Ok(())
            }
        }
    }

    fn lost(&self, lane: &Rc<Lane>, incoming: &Incoming) {
        if let Some(on) = self.0.upgrade() {
            on.lane_lost(lane, incoming);
        }
    }

    fn sweep(&self) {
        if let Some(on) = self.0.upgrade() {
            on.sweep_routes();
            on.sweep_letters();
        }
    }

    fn waiting(&self) -> usize {
        self.0.upgrade().map_or(0, |on| {
            on.routes().waiting() + on.transfers().waiting() + on.roads().waiting() + on.abroad().waiting()
        })
    }

    fn waiting_bytes(&self) -> usize {
        self.0.upgrade().map_or(0, |on| on.routes().room().bytes())
    }
}

impl DataSink {
    /// Takes a frame that is neither a message nor a reply.
    #[inline(never)]
    fn take_rarer(
        &self,
        on: &Rc<ArbiterLocal>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        frame: Frame<'_>,
    ) -> Result<(), Violation> {
        match frame {
            Frame::Fail { call, error } => lane.end_with_failure(call, error),
            Frame::Cancel { call } => {
                lane.inbound().borrow_mut().cancel(call);
                on.named_calls().cancel(lane.index(), call);
            }
            Frame::Void => {}
            Frame::LargeHere { transfer, call } => {
                if let Some(brought) = lane.mark(transfer, call)? {
                    self.take_in(on, lane, incoming, (transfer, call), brought)?;
                }
            }
            Frame::LargeGone { transfer } => lane.large().borrow_mut().gone(transfer),
            Frame::LargeDone { transfer } => large_done(on, lane, transfer),
            Frame::LargeBack { transfer, reason } => on.take_large_back(lane, transfer, reason)?,
            Frame::Return(returned) => on.take_back(lane, returned)?,
            Frame::Settle { .. } | Frame::Settled { .. } | Frame::Notice { .. } => {
                on.about_shard(lane, incoming, frame)?;
            }
            Frame::Bye => on.take_leave_of(lane),
            Frame::ByeAck => lane.goodbye(),
            Frame::Envelope(bytes) => on.take_envelope(lane, incoming, &Bytes::copy_from_slice(bytes))?,
            Frame::Ask(_) | Frame::Tell(_) | Frame::Reply { .. } | Frame::Service { .. } => {
                return Err(Violation::Meaning("not for a data arbiter".to_owned()));
            }
        }
        Ok(())
    }

    /// Takes a large message in, at its place among the others.
    fn take_in(
        &self,
        on: &Rc<ArbiterLocal>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        (transfer, call): (u64, Option<CorrelationId>),
        brought: Brought,
    ) -> Result<(), Violation> {
        let Brought::Whole(frame) = brought else {
            refuse_unread(on, lane, transfer, call);
            return Ok(());
        };
        let (names, shard) = match Frame::decode(&frame)? {
            Frame::Ask(ask) => (Some(ask.call), ask.head.shard),
            Frame::Tell(tell) => (None, tell.head.shard),
            Frame::Envelope(bytes) => {
                on.take_large_envelope(lane, incoming, call, &frame.slice_ref(bytes))?;
                lane.say(&Frame::LargeDone { transfer });
                return Ok(());
            }
            _ => return Err(Violation::Meaning("not for a stream".to_owned())),
        };
        if names != call {
            return Err(Violation::Meaning("a large message is of another call than its place".to_owned()));
        }
        let Some(kind) = on.any_kind(shard.kind.into()) else {
            return Err(Violation::Meaning(format!("no kind has number {}", shard.kind)));
        };
        if call.is_some_and(|call| lane.inbound().borrow().is_cancelled(call)) {
            // Its caller has gone while it was on its way.
            lane.say(&Frame::LargeDone { transfer });
            return Ok(());
        }
        let (lane, incoming) = (Rc::clone(lane), Arc::clone(incoming));
        kind.submit_large(LargeArrived { lane, incoming, transfer, frame, call }, on)
    }
}

/// A large message of ours has arrived. To give so much memory back takes milliseconds, so that is done elsewhere.
fn large_done(on: &ArbiterLocal, lane: &Lane, transfer: u64) {
    if let Some(frame) = on.transfers().take_back(lane.index(), transfer) {
        let env = on.node().env();
        env.spawn(env.offload(Box::new(move || drop(frame))));
    }
}

/// The reply of a call has come on a stream of its own.
fn large_reply(on: &ArbiterLocal, lane: &Lane, brought: &Brought) -> Result<(), Violation> {
    let bytes = match brought {
        Brought::Whole(bytes) | Brought::TooLarge { start: bytes } => bytes,
    };
    let Frame::Reply { call, codec, payload } = Frame::decode(bytes)? else {
        return Err(Violation::Meaning("not for a stream without a place".to_owned()));
    };
    match brought {
        Brought::Whole(frame) => {
            lane.end_with_reply(call, codec, Payload::Large(frame.slice_ref(payload)), on.node());
        }
        Brought::TooLarge { .. } => lane.end_with_failure(call, too_large(on, true)),
    }
    Ok(())
}

/// A large message was not read because it is larger than this node takes.
fn refuse_unread(on: &ArbiterLocal, lane: &Lane, transfer: u64, call: Option<CorrelationId>) {
    match call {
        Some(call) if lane.inbound().borrow_mut().close(call) => {
            lane.say(&Frame::Fail { call, error: too_large(on, false) });
        }
        Some(_) => {}
        None => tracing::warn!(peer = %lane.peer().id(), "a message is larger than this node takes"),
    }
    lane.say(&Frame::LargeDone { transfer });
}

fn too_large(on: &ArbiterLocal, started: bool) -> CallError {
    CallError::TooLarge {
        max: u32::try_from(on.node().settings().remote.largest).unwrap_or(u32::MAX),
        started,
    }
}

impl LargeArrived {
    /// What is in the frame.
    pub(crate) fn message(&self) -> Result<(Head<'_>, Bytes), Violation> {
        match Frame::decode(&self.frame)? {
            Frame::Ask(ask) => Ok((ask.head, self.frame.slice_ref(ask.payload))),
            Frame::Tell(tell) => Ok((tell.head, self.frame.slice_ref(tell.payload))),
            _ => Err(Violation::Meaning("not for a stream".to_owned())),
        }
    }

    /// Whether it goes on from here; otherwise it has been sent back.
    pub(crate) fn may_enter(&self, shard: ShardRef, serving: bool, on: &ArbiterLocal) -> bool {
        match on.judge(&self.incoming, shard, serving) {
            Verdict::Return(reason) => {
                on.send_large_back(self, reason);
                false
            }
            _ => true,
        }
    }

    /// The way back of its reply; the sender's room for it is taken while this lives.
    pub(crate) fn way_back(&self) -> LaneWay {
        LaneWay { held: Held::take_large(&self.incoming, self.frame.len() + PER_JOB), call: self.call }
    }

    /// Whether the connection that it came by is still there. If not, what was sent after it may have come by the next one.
    pub(crate) fn is_connected(&self) -> bool {
        self.lane.is_connected_by(&self.incoming)
    }

    /// What to tell of a message that came by a connection which has ended.
    pub(crate) fn connection_lost(&self) -> CallError {
        CallError::ConnectionLost { node: self.lane.peer().id() }
    }

    /// It is in its actor's inbox, or refused for good: what waits behind it may come.
    pub(crate) fn done(&self) {
        if self.is_connected() {
            self.lane.say(&Frame::LargeDone { transfer: self.transfer });
        }
    }
}

impl LaneWay {
    pub(super) const fn new(held: Held, call: Option<CorrelationId>) -> Self {
        Self { held, call }
    }

    pub(crate) const fn call(&self) -> Option<CorrelationId> {
        self.call
    }

    pub(crate) fn lane_index(&self) -> u16 {
        self.held.incoming().lane()
    }

    /// What the message takes of the window of its connection; nobody is answered any more.
    pub(crate) fn into_held(self) -> Held {
        self.held
    }

    pub(crate) const fn asks(&self) -> bool {
        self.call.is_some()
    }

    /// Whether the message came by this connection.
    pub(crate) fn came_by(&self, incoming: &Incoming) -> bool {
        std::ptr::eq(&**self.held.incoming(), incoming)
    }

    /// Whether the message can go back as it came: the sender of a large one has forgotten it, a connection that was lost does
    /// not come back, and a node that leaves takes nothing back.
    pub(crate) fn can_return(&self, on: &ArbiterLocal) -> bool {
        !self.held.is_large() && self.open_lane(on).is_some_and(|lane| !lane.has_left())
    }

    /// The lane and the connection that the message came by, if that still stands.
    pub(super) fn ends(&self, on: &ArbiterLocal) -> Option<(Rc<Lane>, &Arc<Incoming>)> {
        Some((self.open_lane(on)?, self.held.incoming()))
    }

    /// Sends the reply to a message whose own codec is `C`.
    pub(crate) fn reply<C: PayloadCodec, R: Serialize + Send + 'static>(
        self,
        codec: CodecId,
        reply: R,
        on: &ArbiterLocal,
    ) {
        let (Some(call), Some(lane)) = (self.call, self.open_lane(on)) else { return };
        if !lane.inbound().borrow_mut().close(call) {
            return;
        }
        let limit = lane.frame_limit();
        let written = lane.answer::<ReplyError>(self.held.incoming(), |out| {
            Frame::encode_reply_head(out, call, codec);
            codec.encode_into::<C, R>(&reply, out, limit).map_err(ReplyError::Codec)
        });
        match written {
            Ok(()) => {}
            Err(ReplyError::Codec(CodecError::TooLarge { .. }) | ReplyError::TooLong) => {
                large::send_reply::<C, R>(self.held, lane, call, codec, reply, on);
            }
            Err(ReplyError::Codec(error)) => {
                let error = CallError::Codec { reason: error.to_string().into(), started: true };
                lane.say(&Frame::Fail { call, error });
            }
        }
    }

    /// Tells the sender that there will be no reply.
    pub(crate) fn fail(&self, error: CallError, on: &ArbiterLocal) {
        let (Some(call), Some(lane)) = (self.call, self.open_lane(on)) else { return };
        if lane.inbound().borrow_mut().close(call) {
            lane.say(&Frame::Fail { call, error });
        }
    }

    /// True if the sender waits no longer.
    pub(crate) fn is_abandoned(&self, on: &ArbiterLocal) -> bool {
        let Some(call) = self.call else { return false };
        self.open_lane(on).is_none_or(|lane| lane.inbound().borrow().is_cancelled(call))
    }

    /// The lane, if its connection is still the one that the message came by. Places of lanes are given anew, and calls are
    /// numbered by lane: without this look a late answer would end the call of another peer.
    fn open_lane(&self, on: &ArbiterLocal) -> Option<Rc<Lane>> {
        let incoming = self.held.incoming();
        on.seat()?.lane(incoming.lane()).filter(|lane| lane.is_connected_by(incoming))
    }
}

pub(crate) enum ReplyError {
    Codec(CodecError),
    TooLong,
}

impl From<Refused> for ReplyError {
    /// An answer is refused only because of its length.
    fn from(_: Refused) -> Self {
        Self::TooLong
    }
}

/// What a job costs besides its payload, roughly.
pub(super) const PER_JOB: usize = 128;
