//! One lane: what goes to one arbiter of one peer, and who waits for an answer from there.
//!
//! A lane outlives its connections. What has not been given to a connection waits for the next one, within its deadline
//! and the lane's bound; what was given and is unanswered ends as unknown when the connection is lost.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::Streams;
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::link::{
    Dropped, Frame, InboundCalls, LargeArrivals, Outbox, OutboxSettings, Refused,
};
use archipelago_protocol::message::CodecId;
use archipelago_protocol::peer::Seat;
use archipelago_protocol::route::Patience;
use archipelago_protocol::time::Millis;
use bytes::{Bytes, BytesMut};

use super::drive::Violation;
use super::incoming::Incoming;
use super::large_in::Brought;
use super::large_room::LargeRoom;
use super::peer::Peer;
use super::waiter::{Payload, Waiter};
use super::writer::Writer;
use crate::node::NodeShared;

/// The calls of a lane, and what it has to send.
pub(crate) struct Lane {
    /// Its place among the lanes of its arbiter.
    index: u16,
    peer: Arc<Peer>,
    to: Seat,
    settings: OutboxSettings,
    outbox: RefCell<Outbox<Waiter>>,
    /// Large messages whose place has come and who have not, and those that came before their place.
    large: RefCell<LargeArrivals<Brought>>,
    /// What is too large for a frame and waits.
    large_room: LargeRoom,
    /// What was thrown out for lack of room and nobody has been told of yet.
    overflow: RefCell<Vec<Dropped<Waiter>>>,
    inbound: RefCell<InboundCalls>,
    connection: RefCell<Option<Connected>>,
    /// When the last frame came, by the coarse clock.
    heard: Cell<Millis>,
    /// When the rest of the node was last told so.
    told_of: Cell<Millis>,
    /// When the lane's link was last told that another one has reached the peer.
    reached: Cell<Millis>,
    /// How long what waits without a connection does so.
    patience: Cell<Patience>,
    /// Requests of the peer that wait for something before they are answered: settles and services.
    waiting_requests: Cell<usize>,
    /// The other side has taken leave of this one.
    goodbye: Cell<bool>,
    /// The other side leaves.
    left: Cell<bool>,
    writer: Writer,
}

/// The connection of a lane.
struct Connected {
    incoming: Arc<Incoming>,
    streams: Arc<dyn Streams>,
}

/// How often the rest of the node is told that a peer lives: well within the period of heartbeats.
const TELL_OF_LIFE: Millis = Millis(100);

/// A sender that gives nobody a turn must not pile up what it throws out.
const MUCH_OVERFLOW: usize = 256;

/// Settles and requests to services that may wait at a time: one for every shard of a few hundred kinds.
const MOST_REQUESTS: usize = 65_536;

fn late_answer() {
    metrics::counter!("archipelago_late_replies_total", "arbiter" => "remote").increment(1);
}

impl Lane {
    pub(super) fn new(index: u16, peer: Arc<Peer>, to: Seat, settings: OutboxSettings) -> Self {
        Self {
            index,
            peer,
            to,
            settings,
            inbound: RefCell::new(InboundCalls::new(settings.calls)),
            outbox: RefCell::new(Outbox::new(index, settings)),
            overflow: RefCell::default(),
            large: RefCell::default(),
            large_room: LargeRoom::default(),
            connection: RefCell::default(),
            heard: Cell::new(Millis::ZERO),
            told_of: Cell::new(Millis::ZERO),
            reached: Cell::new(Millis::ZERO),
            patience: Cell::default(),
            waiting_requests: Cell::new(0),
            goodbye: Cell::new(false),
            left: Cell::new(false),
            writer: Writer::default(),
        }
    }

    // ---- out ----

    /// Sends a frame whose answer is awaited.
    ///
    /// # Errors
    ///
    /// The waiter back, and why nothing was sent.
    pub(super) fn ask<E: From<Refused>>(
        &self,
        deadline: Millis,
        waiter: Waiter,
        write: impl FnOnce(&mut BytesMut, CorrelationId) -> Result<(), E>,
    ) -> Result<CorrelationId, (Waiter, E)> {
        let (asked, dropped) = {
            let mut outbox = self.outbox.borrow_mut();
            (outbox.ask(deadline, waiter, write), outbox.dropped())
        };
        self.note_overflow(dropped);
        self.wake();
        asked
    }

    /// Sends a frame nobody waits for; `told` is when it was sent first.
    ///
    /// # Errors
    ///
    /// Why nothing was sent.
    pub(super) fn tell<E: From<Refused>>(
        &self,
        now: Millis,
        told: Millis,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let dropped = self.outbox.borrow_mut().tell_again(now, told, write)?;
        self.note_overflow(dropped);
        self.wake();
        Ok(())
    }

    fn note_overflow(&self, dropped: Dropped<Waiter>) {
        if !dropped.is_empty() {
            self.overflow.borrow_mut().push(dropped);
        }
    }

    /// Answers what came over `incoming`; nothing is sent if that connection has ended.
    ///
    /// # Errors
    ///
    /// What `write` answers.
    pub(super) fn answer<E: From<Refused>>(
        &self,
        incoming: &Incoming,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_connected_by(incoming) {
            self.outbox.borrow_mut().answer(write)?;
            self.wake();
        }
        Ok(())
    }

    /// The reply to a call has come; a late one is counted and dropped.
    pub(super) fn end_with_reply(
        &self,
        call: CorrelationId,
        codec: CodecId,
        payload: Payload<'_>,
        node: &Arc<NodeShared>,
    ) {
        match self.end(call) {
            Some(waiter) => waiter.reply(codec, payload, node),
            None => late_answer(),
        }
    }

    /// A call has ended without a reply.
    pub(super) fn end_with_failure(&self, call: CorrelationId, error: CallError) {
        match self.end(call) {
            Some(waiter) => waiter.fail_there(error),
            None => late_answer(),
        }
    }

    /// Ends a call that was answered; an ask that has waited for that may go.
    fn end(&self, call: CorrelationId) -> Option<Waiter> {
        let (waiter, others_wait) = {
            let mut outbox = self.outbox.borrow_mut();
            (outbox.end(call), outbox.asks_in_line() > 0)
        };
        if others_wait {
            self.wake();
        }
        waiter
    }

    /// Sends a frame that only means something on the present connection.
    pub(super) fn say(&self, frame: &Frame<'_>) {
        if let Err(error) = self.try_say(frame) {
            tracing::error!(%error, "a control frame could not be written");
        }
    }

    /// The same for a frame that may be too long.
    ///
    /// # Errors
    ///
    /// It is.
    pub(super) fn try_say(&self, frame: &Frame<'_>) -> Result<(), Refused> {
        if self.connection.borrow().is_some() {
            self.outbox.borrow_mut().answer(|out| {
                frame.encode(out);
                Ok::<_, Refused>(())
            })?;
            self.wake();
        }
        Ok(())
    }

    // ---- for the connection ----

    /// All that waits and has room, to be written at once.
    pub(super) fn take_batch(&self, now: Millis) -> Option<Bytes> {
        self.outbox.borrow_mut().take(now)
    }

    /// The task that writes.
    pub(super) const fn writer(&self) -> &Writer {
        &self.writer
    }

    /// A connection is there: what waits can go.
    pub(super) fn opened(&self, incoming: &Arc<Incoming>, streams: Arc<dyn Streams>, now: Millis) {
        *self.inbound.borrow_mut() = InboundCalls::new(self.settings.calls);
        self.left.set(false);
        *self.large.borrow_mut() = LargeArrivals::default();
        *self.connection.borrow_mut() = Some(Connected { incoming: Arc::clone(incoming), streams });
        self.outbox.borrow_mut().opened(now);
        self.wake();
    }

    /// The connection is gone.
    pub(super) fn disconnected(&self, incoming: &Incoming) {
        if self.is_connected_by(incoming) {
            *self.connection.borrow_mut() = None;
            self.writer.gone();
        }
    }

    /// Whether so much was thrown out that nobody has been told of that it should not wait for the next sweep.
    pub(super) fn has_much_overflow(&self) -> bool {
        self.overflow.borrow().len() >= MUCH_OVERFLOW
    }

    /// What was thrown out for lack of room.
    pub(super) fn take_overflow(&self) -> Vec<Dropped<Waiter>> {
        std::mem::take(&mut self.overflow.borrow_mut())
    }

    /// The place of a large message has come: what its stream brought, if that was here before. Its call is open from
    /// here on.
    pub(super) fn mark(
        &self,
        transfer: u64,
        call: Option<CorrelationId>,
    ) -> Result<Option<Brought>, Violation> {
        if let Some(call) = call {
            self.inbound.borrow_mut().open(call).map_err(|fault| Violation::Meaning(fault.to_string()))?;
        }
        let announced = self.large.borrow_mut().announced(transfer, call);
        announced.map_err(|fault| Violation::Meaning(fault.to_string()))
    }

    /// The large messages of the present connection.
    pub(super) const fn large(&self) -> &RefCell<LargeArrivals<Brought>> {
        &self.large
    }

    /// The calls that came over the present connection.
    pub(super) const fn inbound(&self) -> &RefCell<InboundCalls> {
        &self.inbound
    }

    /// What the lane has to send.
    pub(super) const fn outbox(&self) -> &RefCell<Outbox<Waiter>> {
        &self.outbox
    }

    /// Whether what waits without a connection should look for its way again: its actor may live elsewhere by now.
    pub(super) fn should_look_again(&self, now: Millis) -> bool {
        let waits = self.outbox.borrow().waiting_bytes() > 0;
        let mut patience = self.patience.get();
        let over = patience.is_over(now, self.is_connected(), waits);
        self.patience.set(patience);
        over
    }

    /// Something has come over the lane.
    #[inline]
    pub(super) fn hears(&self, now: Millis) {
        self.heard.set(now);
        // Others look at it from other threads, and need not know exactly.
        if now.since(self.told_of.get()) >= TELL_OF_LIFE {
            self.told_of.set(now);
            self.peer.hears(now);
        }
    }

    /// When something last came over the lane.
    pub(super) fn heard(&self) -> Millis {
        self.heard.get()
    }

    /// Whether its link should be told now that the peer can be reached: not again and again.
    pub(super) fn is_news(&self, now: Millis) -> bool {
        let due = now.since(self.reached.get()) >= Patience::LIMIT;
        if due {
            self.reached.set(now);
        }
        due
    }

    /// A request of the peer waits before it is answered, until [`request_over`](Self::request_over).
    pub(super) fn request_waits(&self) -> Result<(), Violation> {
        if self.waiting_requests.get() >= MOST_REQUESTS {
            return Err(Violation::Meaning("too many requests are under way".to_owned()));
        }
        self.waiting_requests.set(self.waiting_requests.get() + 1);
        Ok(())
    }

    pub(super) fn request_over(&self) {
        self.waiting_requests.set(self.waiting_requests.get().saturating_sub(1));
    }

    /// How many bytes of answers wait for the peer to read them.
    pub(super) fn unread_answers(&self) -> usize {
        self.outbox.borrow().answer_bytes()
    }

    // ---- getters ----

    pub(super) fn is_connected_by(&self, incoming: &Incoming) -> bool {
        let connection = self.connection.borrow();
        connection.as_ref().is_some_and(|now| now.incoming.connection() == incoming.connection())
    }

    /// The other side knows that this one leaves, and has nothing here any more.
    pub(super) fn goodbye(&self) {
        self.goodbye.set(true);
    }

    /// The other side leaves; true if that was known.
    pub(super) fn is_left(&self) -> bool {
        self.left.replace(true)
    }

    /// Whether the other side has said that it leaves.
    pub(super) fn has_left(&self) -> bool {
        self.left.get()
    }

    /// Says that this side leaves; the answer to an earlier word does not count any more.
    pub(super) fn say_bye(&self) {
        self.goodbye.set(false);
        self.say(&Frame::Bye);
    }

    pub(super) fn said_goodbye(&self) -> bool {
        self.goodbye.get()
    }

    /// The number of the connection it has now.
    pub(super) fn connection(&self) -> Option<u64> {
        self.connection.borrow().as_ref().map(|now| now.incoming.connection().0)
    }

    pub(super) fn is_connected(&self) -> bool {
        self.connection.borrow().is_some()
    }

    pub(super) const fn index(&self) -> u16 {
        self.index
    }

    pub(super) const fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    pub(super) const fn to(&self) -> Seat {
        self.to
    }

    /// The streams of the present connection.
    pub(super) fn streams(&self) -> Option<(Arc<Incoming>, Arc<dyn Streams>)> {
        let connection = self.connection.borrow();
        connection.as_ref().map(|now| (Arc::clone(&now.incoming), Arc::clone(&now.streams)))
    }

    /// What is too large for a frame and waits.
    pub(super) const fn large_room(&self) -> &LargeRoom {
        &self.large_room
    }

    /// The longest payload that travels in a frame.
    pub(super) const fn frame_limit(&self) -> usize {
        self.settings.frame
    }

    /// Makes the connection write what waits.
    pub(super) fn wake(&self) {
        self.writer.wake();
    }
}
