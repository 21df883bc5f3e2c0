//! Messages that come back, messages that are sent back, and what two nodes tell each other about shards.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::HostEvent;
use archipelago_protocol::identity::{CorrelationId, Generation};
use archipelago_protocol::link::{Drained, Frame, Head, Hint, ReturnReason, Returned, ShardRef, Unsent};
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::route::{LaneId, Refusals, RouteEvent, Verdict};
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use super::data::{LaneWay, LargeArrived};
use super::drive::Violation;
use super::incoming::Incoming;
use super::lane::Lane;
use super::outbound::{EncodedOutbound, Parcel, Parked};
use super::routes::Shard;
use super::waiter::Waiter;
use crate::arbiter::ArbiterLocal;
use crate::call::CallScope;
use crate::catalog::{JobHead, Target};
use crate::mutants::{Mutant, broken};

/// What one arbiter has refused, and to whom.
#[derive(Default)]
pub(crate) struct Returns {
    pub(super) refusals: RefCell<Refusals>,
    /// How many messages of ours have come back.
    came_back: Cell<u64>,
}

impl Returns {
    /// How many messages of ours have come back.
    pub(super) fn came_back(&self) -> u64 {
        self.came_back.get()
    }
}

impl ArbiterLocal {
    // ---- sending back ----

    /// Whether a message for `shard` may be taken; `serving` if its kind is here.
    pub(super) fn judge(&self, incoming: &Incoming, shard: ShardRef, serving: bool) -> Verdict {
        self.returns().refusals.borrow_mut().on_data(lane_id(incoming), shard, serving)
    }

    /// Sends a message back to its sender's node, unstarted.
    ///
    /// # Errors
    ///
    /// It is too long to go back, and nobody waits for it; a caller has been told.
    pub(super) fn send_back(
        &self,
        lane: &Lane,
        call: Option<CorrelationId>,
        message: (Head<'_>, &[u8]),
        reason: ReturnReason,
    ) -> Result<(), CallError> {
        if let Some(call) = call
            && !lane.inbound().borrow_mut().close(call)
        {
            return Ok(());
        }
        if broken(Mutant::DropWhenNotOwner) && reason == ReturnReason::NotOwner {
            return Ok(());
        }
        metrics::counter!("archipelago_messages_returned_total").increment(1);
        let (head, payload) = message;
        let Err(too_long) = lane.try_say(&Frame::Return(Returned { reason, call, head, payload })) else {
            return Ok(());
        };
        let error = CallError::Codec { reason: too_long.to_string().into(), started: false };
        match call {
            Some(call) => lane.say(&Frame::Fail { call, error }),
            None => return Err(error),
        }
        Ok(())
    }

    /// A message of another node that nobody waits for is neither taken nor given back.
    #[cold]
    pub(super) fn could_not_return(&self, head: &Head<'_>, error: &CallError) {
        let Some(kind) = self.node().kinds().get(usize::from(head.shard.kind)) else { return };
        let target = format!("{}::{}/{}", self.node().namespace(), kind.name(), head.key);
        let name = kind.spec().messages().get(usize::from(head.message)).map_or("?", |message| message.name);
        self.node().dead_letter(target, name, error);
    }

    /// Sends a message back that was in an inbox already. Everything of its lane that follows goes back as well.
    ///
    /// # Errors
    ///
    /// As [`send_back`](Self::send_back).
    pub(crate) fn send_queued_back(
        &self,
        way: &LaneWay,
        message: (Head<'_>, &[u8]),
        reason: ReturnReason,
    ) -> Result<(), CallError> {
        let Some((lane, incoming)) = way.ends(self) else { return Ok(()) };
        self.returns().refusals.borrow_mut().refuse(lane_id(incoming), message.0.shard);
        self.send_back(&lane, way.call(), message, reason)
    }

    /// Sends the news back that a large message was not taken; its sender still has it. Nothing is sent if the connection
    /// that the message came by has ended: its sender knows.
    pub(super) fn send_large_back(&self, arrived: &LargeArrived, reason: ReturnReason) {
        let LargeArrived { lane, call, transfer, .. } = arrived;
        let transfer = *transfer;
        if !arrived.is_connected() {
            return;
        }
        let waits = call.is_none_or(|call| lane.inbound().borrow_mut().close(call));
        metrics::counter!("archipelago_messages_returned_total").increment(1);
        // Without a caller nobody wants it again, but what waits behind it does.
        let frame = if waits { Frame::LargeBack { transfer, reason } } else { Frame::LargeDone { transfer } };
        lane.say(&frame);
    }

    // ---- taking back ----

    /// A message of ours came back.
    pub(super) fn take_back(self: &Rc<Self>, lane: &Lane, returned: Returned<'_>) -> Result<(), Violation> {
        let Returned { reason, call, head, payload } = returned;
        let parcel = self.unstarted(lane, call, &head, Bytes::copy_from_slice(payload))?;
        self.return_to_route(lane, parcel, reason);
        Ok(())
    }

    /// A large message of ours was not taken. What waits behind it stays behind it.
    pub(super) fn take_large_back(
        self: &Rc<Self>,
        lane: &Lane,
        transfer: u64,
        reason: ReturnReason,
    ) -> Result<(), Violation> {
        let Some(kept) = self.transfers().take_back(lane.index(), transfer) else { return Ok(()) };
        let (call, head, payload) = match Frame::decode(&kept)? {
            Frame::Ask(ask) => (Some(ask.call), ask.head, ask.payload),
            Frame::Tell(tell) => (None, tell.head, tell.payload),
            _ => return Ok(()),
        };
        let parcel = self.unstarted(lane, call, &head, kept.slice_ref(payload))?;
        let behind = self.transfers().release(parcel.shard, parcel.target.hash, transfer);
        self.return_to_route(lane, parcel, reason);
        behind.into_iter().for_each(|parcel| self.park(parcel));
        Ok(())
    }

    /// A message that came back, as it was before it left; its call ends on the lane and goes on with the message.
    fn unstarted(
        &self,
        lane: &Lane,
        call: Option<CorrelationId>,
        head: &Head<'_>,
        payload: Bytes,
    ) -> Result<Parked, Violation> {
        let own = call.and_then(|call| lane.outbox().borrow().deadline(call)).unwrap_or(Millis::MAX);
        let waiter = call.and_then(|call| lane.outbox().borrow_mut().end(call));
        // The time to live is that of the sending: a detour must not give a call more time.
        let deadline = head.ttl.map_or(own, |ttl| own.min(self.node().env().now() + ttl));
        self.repack(lane, head, payload, (call.is_some(), waiter), deadline)
    }

    fn return_to_route(self: &Rc<Self>, lane: &Lane, parcel: Parked, reason: ReturnReason) {
        self.returns().came_back.set(self.returns().came_back.get().wrapping_add(1));
        let local_only = parcel.head.flags.contains(MessageFlags::IS_LOCAL_ONLY);
        let from = lane.peer().id();
        self.route(parcel.shard, RouteEvent::Returned { from, message: parcel, local_only, reason });
    }

    /// Makes a message of this node again of what was sent to another. Its call may have ended meanwhile; its route must
    /// hear of it all the same.
    fn repack(
        &self,
        lane: &Lane,
        head: &Head<'_>,
        payload: Bytes,
        (asks, waiter): (bool, Option<Waiter>),
        deadline: Millis,
    ) -> Result<Parked, Violation> {
        let meaning = |what: &str| Violation::Meaning(format!("a message came back with {what}"));
        let shard = self.shard_from(lane, head.shard)?;
        let (id, name) = lane
            .peer()
            .tables()
            .message_at(head.shard.kind, head.message)
            .ok_or_else(|| meaning("an unknown number"))?;
        let kind = &self.node().kinds()[shard.kind as usize];
        let actor = self.node().namespace().actor_id_of(kind.kind(), head.key.as_str());
        let actor = actor.map_err(|_| meaning("another key"))?;
        let target = Target { hash: actor.stable_hash(), id: actor };
        let job = head_again(head, asks, deadline);
        let expires = self.expires(&job);
        let (name, ended) = (name.into(), asks && waiter.is_none());
        let body = EncodedOutbound { id, name, codec: head.codec, payload, waiter, ended };
        Ok(Box::new(Parcel { shard, target, head: job, expires, stay: None, body }))
    }

    // ---- about shards ----

    /// The other side speaks about a shard.
    pub(super) fn about_shard(
        self: &Rc<Self>,
        lane: &Rc<Lane>,
        incoming: &Arc<Incoming>,
        frame: Frame<'_>,
    ) -> Result<(), Violation> {
        let from = lane.peer().id();
        match frame {
            Frame::Settle { shard, generation } => {
                if self.any_kind(shard.kind.into()).is_none() {
                    return Err(Violation::Meaning(format!("no kind has number {}", shard.kind)));
                }
                lane.request_waits()?;
                self.settle_lane(lane, incoming, shard, generation);
            }
            Frame::Settled { shard, generation, hint } => {
                let shard = self.shard_from(lane, shard)?;
                let hint = hint.filter(|hint| self.is_known(hint)).map(|hint| self.as_counted(shard, hint));
                self.route(shard, RouteEvent::Settled { from, generation, hint });
                if self.is_single(shard) && self.routes().waits_on(shard, from) {
                    // Nobody keeps the places of single actors in mind for others: look at once.
                    self.route(shard, RouteEvent::Bye(from));
                }
            }
            Frame::Notice { shard, hint } if self.is_known(&hint) => {
                let shard = self.shard_from(lane, shard)?;
                self.route(shard, RouteEvent::Learn(self.as_counted(shard, hint)));
            }
            _ => {}
        }
        Ok(())
    }

    /// Nobody counts the generations of a kind whose place is settled beforehand: its node has a directory of its own, which
    /// may begin anew.
    fn as_counted(&self, shard: Shard, hint: Hint) -> Hint {
        let kind = self.node().kinds().get(shard.kind as usize);
        let fixed =
            kind.is_some_and(|kind| self.node().remoting().locator().fixed_place(kind.kind()).is_some());
        if fixed { Hint { generation: Generation::new(0), ..hint } } else { hint }
    }

    /// Whether a hint may be followed: its node is known and has not said that it leaves.
    pub(crate) fn is_known(&self, hint: &Hint) -> bool {
        let book = self.node().remoting().book();
        hint.owner == self.node().id() || (book.get(hint.owner).is_some() && !book.is_leaving(hint.owner))
    }

    /// A message came for a shard that is not served here. Its sender may know more than this node; or nothing: nodes without
    /// a common directory find each other by address, and nobody else will have the shard placed.
    pub(crate) fn not_taken(self: &Rc<Self>, head: &Head<'_>, expires: Millis) {
        let Head { shard, generation, .. } = *head;
        let kind = self.node().kinds().get(usize::from(shard.kind));
        let hosted = kind.is_some_and(|kind| kind.is_hosted());
        let exists = kind.is_some_and(|kind| kind.layout().has(shard.number));
        let ours = exists && self.node().arbiter_of_shard(shard.number) == self.index();
        if !hosted || !ours || self.is_draining() || !self.name_part_of(head) {
            return;
        }
        // An actor of a range has no record that could tell more.
        let granted = self.is_granted(of_ours(shard), head.key.as_str());
        if granted || generation == Generation::new(0) {
            self.want_shard(of_ours(shard), None);
        } else {
            self.host(of_ours(shard), HostEvent::GaveBack { generation, expires });
        }
    }

    /// Tells whoever was promised to hear of a shard where it is.
    pub(crate) fn tell_the_owed(&self, shard: Shard, hint: Hint) {
        let Some(seat) = self.seat() else { return };
        let Ok(kind) = u16::try_from(shard.kind) else { return };
        let shard = ShardRef { kind, number: shard.number };
        for due in self.returns().refusals.borrow_mut().notices_due(shard, hint) {
            let lane = seat.all_lanes().into_iter().find(|lane| lane.connection().map(LaneId) == Some(due));
            if let Some(lane) = lane {
                lane.say(&Frame::Notice { shard, hint });
            }
        }
    }

    // ---- a lost connection ----

    /// The connection of a lane is gone: calls given to it are unknown, everything else looks for its way again.
    pub(super) fn lane_lost(self: &Rc<Self>, lane: &Lane, incoming: &Incoming) {
        self.returns().refusals.borrow_mut().lane_lost(lane_id(incoming));
        self.transfers().lane_lost(lane.index());
        self.named_calls().lane_lost(lane.index());
        let now = self.node().env().now();
        let Drained { given, unsent, dropped } = lane.outbox().borrow_mut().drain(now);
        for waiter in given {
            waiter.fail(CallError::ConnectionLost { node: lane.peer().id() });
        }
        if let Some(seat) = self.seat() {
            seat.overflowed(lane, dropped);
        }
        let (letters, unsent): (Vec<_>, Vec<_>) = unsent.into_iter().partition(is_letter);
        let mut by_shard: BTreeMap<Shard, Vec<Parked>> = BTreeMap::new();
        for parcel in unsent.into_iter().filter_map(|one| self.unpack(lane, one, now)) {
            by_shard.entry(parcel.shard).or_default().push(parcel);
        }
        let ours = |shard: &Shard| lane.peer().seat_of(shard.number) == lane.to();
        let concerned = self.routes().concerned_with(lane.peer().id(), |kind| self.has_singles(kind));
        for shard in concerned.into_iter().filter(ours) {
            let mut of_shard = by_shard.remove(&shard).unwrap_or_default();
            // What waited behind a large message was sent after what is in the lane.
            of_shard.extend(self.transfers().release_all(shard, lane.index()));
            self.route(shard, RouteEvent::LaneLost { node: lane.peer().id(), unsent: of_shard });
        }
        for parcel in by_shard.into_values().flatten() {
            self.park(parcel);
        }
        self.letters_back(lane, letters);
    }

    /// A message that never left, as it was before. A tell waits no longer than if it had found its way at once.
    fn unpack(&self, lane: &Lane, unsent: Unsent<Waiter>, now: Millis) -> Option<Parked> {
        let (frame, waiter, until) = match unsent {
            Unsent::Ask { frame, waiter, deadline, .. } => (frame, Some(waiter), deadline),
            Unsent::Tell { frame, told } => (frame, None, told + self.node().settings().remote.tell_ttl),
        };
        let (head, payload) = match Frame::decode(&frame) {
            Ok(Frame::Ask(ask)) => (ask.head, ask.payload),
            Ok(Frame::Tell(tell)) => (tell.head, tell.payload),
            // The call of a large message: the message itself has not left.
            _ => {
                if let Some(waiter) = waiter {
                    waiter.fail(CallError::NoRoute { reason: "the connection was lost".into() });
                }
                return None;
            }
        };
        let payload = Bytes::copy_from_slice(payload);
        let own = if waiter.is_some() { until } else { Millis::MAX };
        let deadline = head.ttl.map_or(own, |ttl| own.min(now + ttl));
        let mut parcel = self.repack(lane, &head, payload, (waiter.is_some(), waiter), deadline).ok()?;
        parcel.expires = parcel.expires.min(until);
        Some(parcel)
    }

    /// A kind as we call it, from what a peer calls it.
    fn shard_from(&self, lane: &Lane, shard: ShardRef) -> Result<Shard, Violation> {
        let name = lane.peer().tables().kind_name(shard.kind);
        let kind = name.and_then(|name| self.node().kinds().iter().find(|kind| kind.name() == name));
        match kind {
            Some(kind) => {
                let island = self.node().island_of(lane.peer());
                Ok(Shard { island, kind: kind.index(), number: shard.number })
            }
            None => Err(Violation::Meaning(format!("no kind has number {}", shard.kind))),
        }
    }
}

fn is_letter(unsent: &Unsent<Waiter>) -> bool {
    let (Unsent::Ask { frame, .. } | Unsent::Tell { frame, .. }) = unsent;
    Frame::is_envelope(frame)
}

fn head_again(head: &Head<'_>, asks: bool, deadline: Millis) -> JobHead {
    let scope = CallScope { deadline: Some(deadline), trace: head.trace, chain: head.chain };
    let (inside, scope) = (true, Some(Arc::new(scope)));
    JobHead { call: None, asks, remote: false, inside, deadline, flags: head.flags, scope }
}

/// A shard of one of our kinds, by the number that we gave the kind.
pub(super) fn of_ours(shard: ShardRef) -> Shard {
    Shard::home(shard.kind.into(), shard.number)
}

/// Lanes may be made anew, their connections never are.
pub(super) fn lane_id(incoming: &Incoming) -> LaneId {
    LaneId(incoming.connection().0)
}
