//! What one lane still has to send, and the calls that wait for an answer on it.
//!
//! [`Outbox`] decides what goes out in which order, what is refused, and which of reply, deadline, cancellation and loss
//! ends a call. It writes to no socket and wakes nobody: whoever owns the lane takes the batches and sets the timer.
//!
//! The lane is *down* at first, and after [`lost`](Outbox::lost) until [`opened`](Outbox::opened). Asks and tells wait
//! meanwhile; answers (replies, failures, returned messages and control frames) belong to one connection and vanish with it.
//! A frame is *given* when it was part of a batch that was taken: from then on its outcome is in other hands.
//!
//! With [`Overflow::Wait`] asks that find no room stand in a line behind the buffer, and enter it in order as room is made.
//!
//! Invariants: every waiter that went in comes out exactly once. A call reported as not given never goes out afterwards:
//! its frame is void by then. Asks and tells go out in the order in which they came in.

use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use self::calls::{Call, Calls};
use self::line::{Line, Standing, is_in_line};
use self::room::Room;
use self::waiting::{Message, MessageKind, Waiting};
use super::scan::{write_frame, write_frame_or};
use super::ttl::change_ttl;
use super::{Frame, FrameError};
use crate::identity::CorrelationId;
use crate::time::Millis;

mod abandoned;
mod calls;
mod ended;
mod line;
mod room;
mod settings;
mod waiting;

pub use ended::{Drained, Dropped, EndedCall, Expired, Unsent};
pub use settings::{LaneBound, OutboxSettings, Overflow, Refused};

/// The sending side of one lane; `W` is whoever waits for an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Outbox<W> {
    settings: OutboxSettings,
    calls: Calls<W>,
    waiting: Waiting,
    /// Asks that wait for room.
    line: Line,
    /// Bytes of asks and tells in the last batch: the transport may not have taken them all yet.
    taken: usize,
    /// Thrown out and not yet reported.
    dropped: Dropped<W>,
    is_up: bool,
    /// When the lane went up or down last.
    changed: Millis,
    /// When the times to live in the frames were right last; later frames are right since they were written.
    ttl_at: Millis,
    /// Nothing in the buffer has waited since before this.
    emptied: Millis,
    /// No tell that waits is older than this.
    oldest_tell: Millis,
}

impl<W> Outbox<W> {
    /// An empty outbox of a lane that is down.
    pub fn new(lane: u16, settings: OutboxSettings) -> Self {
        Self {
            settings,
            calls: Calls::new(lane),
            waiting: Waiting::default(),
            line: Line::default(),
            taken: 0,
            dropped: Dropped::default(),
            is_up: false,
            changed: Millis::ZERO,
            ttl_at: Millis::ZERO,
            emptied: Millis::ZERO,
            oldest_tell: Millis::MAX,
        }
    }

    /// Queues a frame whose answer `waiter` awaits until `deadline`; `write` gets the call's id and writes tag and body.
    ///
    /// With [`Overflow::DropOldest`] others may have been thrown out for it: see [`dropped`](Self::dropped). With
    /// [`Overflow::Wait`] it may have to wait for room.
    ///
    /// # Errors
    ///
    /// What `write` answers, or a [`Refused`], and the waiter back. Nothing changed.
    pub fn ask<E: From<Refused>>(
        &mut self,
        deadline: Millis,
        waiter: W,
        write: impl FnOnce(&mut BytesMut, CorrelationId) -> Result<(), E>,
    ) -> Result<CorrelationId, (W, E)> {
        let (id, replaced) = match self.next_call() {
            Ok(next) => next,
            Err(refused) => return Err((waiter, refused.into())),
        };
        let (at, room) = match self.write_message(Self::room_for_ask, |out| write(out, id)) {
            Ok(written) => written,
            Err(error) => return Err((waiter, error)),
        };
        if room == Room::Line {
            let at = self.line.join(id, self.waiting.split_off(at));
            self.calls.open(Call { waiter, deadline, at });
            return Ok(id);
        }
        if let Some(replaced) = replaced {
            self.throw_out(replaced);
        }
        self.calls.open(Call { waiter, deadline, at });
        self.enqueue(at, MessageKind::Ask(id));
        Ok(id)
    }

    /// Queues a frame that nobody waits for, and says what was thrown out for it.
    ///
    /// # Errors
    ///
    /// What `write` answers, or a [`Refused`]. Nothing changed.
    pub fn tell<E: From<Refused>>(
        &mut self,
        now: Millis,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<Dropped<W>, E> {
        self.tell_again(now, now, write)
    }

    /// As [`tell`](Self::tell), of a message that was `told` before and has not left by another way: it does not wait longer
    /// for that.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    pub fn tell_again<E: From<Refused>>(
        &mut self,
        now: Millis,
        told: Millis,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<Dropped<W>, E> {
        let (at, _) = self.write_message(Self::room_for_tell, write)?;
        let age = u32::try_from(now.since(told).0).unwrap_or(u32::MAX);
        self.enqueue(at, MessageKind::Tell { told, age });
        self.oldest_tell = self.oldest_tell.min(told);
        Ok(self.dropped())
    }

    /// Queues a reply, a failure, a returned message or a control frame: never refused for lack of room, or two nodes that
    /// return messages to each other could block. While the lane is down it is not even written: whoever it is for has
    /// gone.
    ///
    /// # Errors
    ///
    /// What `write` answers, or the frame is too long. Nothing changed.
    pub fn answer<E: From<Refused>>(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_up {
            return Ok(());
        }
        let refuse = |error| Refused::from(error).into();
        write_frame_or(self.waiting.buffer(), self.settings.frame, write, refuse)
    }

    /// All that waits, as far as there is room for it, to be written at once; from now on it counts as given. `None` while
    /// the lane is down. Call it when the transport has taken the batch before: until then that one counts against the bound.
    pub fn take(&mut self, now: Millis) -> Option<Bytes> {
        if !self.is_up {
            return None;
        }
        self.taken = 0;
        if now.since(self.emptied) > STALE && !self.waiting.is_empty() {
            self.set_ttls(now);
        }
        self.emptied = now;
        self.let_in(now);
        self.oldest_tell = Millis::MAX;
        self.taken = self.waiting.live();
        self.waiting.take()
    }

    /// Ends a call whose reply, failure or return has come. `None`: it has ended before, or was never given.
    pub fn end(&mut self, id: CorrelationId) -> Option<W> {
        self.calls.find(id).filter(|call| self.waiting.is_given(call.at))?;
        self.calls.end(id).map(|call| call.waiter)
    }

    /// Ends a call whose caller has gone. Its frame is taken back, or a cancel frame is sent after it.
    pub fn cancel(&mut self, id: CorrelationId) -> Option<W> {
        let ended = self.give_up(id)?;
        self.tidy();
        Some(ended.waiter)
    }

    /// Ends the calls whose deadline has come, and takes back the tells that have waited too long for a connection.
    ///
    /// While the lane is down a tell waits at most [`tell_ttl`](OutboxSettings::tell_ttl) after it was told or after the
    /// connection was lost, whichever is later.
    pub fn sweep(&mut self, now: Millis) -> Expired<W> {
        let due = self.calls.due(now);
        let calls = due.into_iter().filter_map(|id| self.give_up(id)).collect();
        self.calls.refresh_earliest(now);
        let tells = self.take_back_tells(now);
        self.tidy();
        self.let_in(now);
        Expired { calls, tells, dropped: self.dropped() }
    }

    /// The connection is lost. Returns the waiters of the given calls, whose outcome is unknown; asks and tells not given
    /// stay, answers do not.
    pub fn lost(&mut self, now: Millis) -> Vec<W> {
        if self.is_up {
            self.is_up = false;
            self.changed = now;
        }
        self.taken = 0;
        let calls = &mut self.calls;
        self.waiting.keep_messages(|kind, at| follow(calls, kind, at));
        self.end_given()
    }

    /// A new connection stands: what waited may go, with the time it has left.
    pub fn opened(&mut self, now: Millis) {
        self.set_ttls(now);
        self.emptied = now;
        self.is_up = true;
        self.changed = now;
    }

    /// Writes into each frame that waits how much time it has left at `now`.
    fn set_ttls(&mut self, now: Millis) {
        let (calls, ttl_at) = (&self.calls, self.ttl_at);
        self.waiting.change(|kind, frame| match kind {
            MessageKind::Ask(id) => {
                let deadline = calls.find(id).map_or(Millis::ZERO, |call| call.deadline);
                change_ttl(frame, |_| deadline - now);
            }
            MessageKind::Tell { told, age } => {
                let written = told + Millis(age.into());
                change_ttl(frame, |left| left - now.since(written.max(ttl_at)));
            }
        });
        self.ttl_at = now;
        self.line.change(|id, frame| {
            let deadline = calls.find(id).map_or(Millis::ZERO, |call| call.deadline);
            change_ttl(frame, |_| deadline - now);
        });
    }

    /// The peer is gone for ever: gives back everything, with the time it has left. The outbox is then empty, and down.
    pub fn drain(&mut self, now: Millis) -> Drained<W> {
        self.set_ttls(now);
        let given = self.end_given();
        let in_line = |ask: Standing| (MessageKind::Ask(ask.id), Bytes::from(ask.into_body()));
        let mut waiting = self.waiting.drain();
        waiting.extend(self.line.drain().into_iter().map(in_line));
        let unsent = waiting.into_iter().filter_map(|(kind, frame)| self.unsent(kind, frame)).collect();
        self.is_up = false;
        (self.taken, self.oldest_tell) = (0, Millis::MAX);
        Drained { given, unsent, dropped: self.dropped() }
    }

    /// What [`ask`](Self::ask) has thrown out and nobody has fetched. [`sweep`](Self::sweep) brings it too.
    pub fn dropped(&mut self) -> Dropped<W> {
        core::mem::take(&mut self.dropped)
    }

    /// When to sweep next; nothing ends earlier. `None` if nothing can end by time.
    pub fn next_sweep(&self) -> Option<Millis> {
        if !self.dropped.is_empty() {
            return Some(Millis::ZERO);
        }
        let tells = (!self.is_up && self.oldest_tell < Millis::MAX).then(|| self.tells_expire());
        self.calls.earliest().into_iter().chain(tells).min()
    }

    /// Whether the call has not ended.
    pub fn is_pending(&self, id: CorrelationId) -> bool {
        self.calls.find(id).is_some()
    }

    /// Whether nothing is left to send.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.line.is_empty()
    }

    /// How many asks wait for room.
    pub fn asks_in_line(&self) -> usize {
        self.line.len()
    }

    /// The end of the line now, for [`is_past`](Self::is_past).
    pub const fn end_of_line(&self) -> u64 {
        self.line.end()
    }

    /// Whether all asks have left the line that stood there when this was its end: whatever is written now goes behind them.
    pub fn is_past(&self, end_of_line: u64) -> bool {
        self.line.is_past(end_of_line)
    }

    /// Whether the lane has a connection.
    pub const fn is_up(&self) -> bool {
        self.is_up
    }

    /// How many bytes of asks and tells wait, with those in line.
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting.live() + self.line.bytes()
    }

    /// How many bytes of answers wait.
    pub fn answer_bytes(&self) -> usize {
        self.waiting.answers()
    }

    /// How many calls wait for an answer, given or not.
    pub fn pending_calls(&self) -> usize {
        self.calls.len()
    }

    /// Ends a call that gets no answer.
    fn give_up(&mut self, id: CorrelationId) -> Option<EndedCall<W>> {
        let Call { waiter, at, .. } = self.calls.end(id)?;
        let given = self.waiting.is_given(at);
        if given {
            self.write_cancel(id);
        } else if is_in_line(at) {
            self.line.leave(at);
        } else {
            self.waiting.void(at);
        }
        Some(EndedCall { id, waiter, given })
    }

    fn write_cancel(&mut self, id: CorrelationId) {
        let write = |out: &mut BytesMut| {
            Frame::Cancel { call: id }.encode(out);
            Ok::<_, FrameError>(())
        };
        // Neither empty nor too long, so it cannot be refused.
        let _ = write_frame(self.waiting.buffer(), usize::MAX, write);
    }

    fn take_back_tells(&mut self, now: Millis) -> Vec<Bytes> {
        if self.is_up || now < self.tells_expire() {
            return Vec::new();
        }
        let (since, ttl) = (self.changed, self.settings.tell_ttl);
        let told = |message: Message| match message.kind {
            MessageKind::Tell { told, .. } => Some((told, message.at)),
            MessageKind::Ask(_) => None,
        };
        let (due, stay): (Vec<_>, Vec<_>) = self
            .waiting
            .live_messages()
            .filter_map(told)
            .partition(|(told, _)| since.max(*told) + ttl <= now);
        self.oldest_tell = stay.into_iter().map(|(told, _)| told).min().unwrap_or(Millis::MAX);
        due.into_iter().map(|(_, at)| self.take_back(at)).collect()
    }

    /// No tell expires earlier while the lane is down.
    fn tells_expire(&self) -> Millis {
        self.changed.max(self.oldest_tell) + self.settings.tell_ttl
    }

    fn take_back(&mut self, at: u64) -> Bytes {
        let frame = Bytes::copy_from_slice(self.waiting.frame(at));
        self.waiting.void(at);
        frame
    }

    fn unsent(&mut self, kind: MessageKind, frame: Bytes) -> Option<Unsent<W>> {
        match kind {
            MessageKind::Tell { told, .. } => Some(Unsent::Tell { told, frame }),
            MessageKind::Ask(id) => {
                let Call { waiter, deadline, .. } = self.calls.end(id)?;
                Some(Unsent::Ask { id, waiter, deadline, frame })
            }
        }
    }

    fn end_given(&mut self) -> Vec<W> {
        let given = self.calls.ids(|call| self.waiting.is_given(call.at));
        given.into_iter().filter_map(|id| self.calls.end(id)).map(|call| call.waiter).collect()
    }

    /// Void frames must not fill the memory: while the lane is down, or while the transport does not take the last batch.
    fn tidy(&mut self) {
        if self.waiting.is_worth_clearing(self.settings.bytes) {
            let calls = &mut self.calls;
            self.waiting.clear_away(|kind, at| follow(calls, kind, at));
        }
    }
}

/// What has waited for longer says how much time it has left when it leaves. The transport may not take anything for a while.
const STALE: Millis = Millis(100);

/// A message that waits is in another place now.
fn follow<W>(calls: &mut Calls<W>, kind: MessageKind, at: u64) {
    if let MessageKind::Ask(id) = kind
        && let Some(call) = calls.find_mut(id)
    {
        call.at = at;
    }
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
