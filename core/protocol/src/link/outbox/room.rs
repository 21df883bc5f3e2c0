//! Whether a lane has room for one more ask or tell, who waits for room, and what is thrown out for it.
//!
//! A frame's length is known only when it is written, so it is written first and taken away again if there is no room.
//!
//! The bound is one of memory: it counts what waits, the notes about it, and the batch that the transport was given last
//! and may not have taken yet. A receiver that stands still costs its senders no more than the bound. What the transport
//! has cannot be thrown out any more: so with [`Overflow::DropOldest`] no more than half of the bound waits, which makes no
//! batch larger than the other half. Asks in line are counted apart.

use bytes::BytesMut;

use super::super::scan::write_frame_or;
use super::super::ttl::change_ttl;
use super::super::{FrameError, FramePart};
use super::waiting::{Message, MessageKind, NOTE};
use super::{LaneBound, Outbox, Overflow, Refused};
use crate::identity::CorrelationId;
use crate::time::Millis;

/// Where an ask goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// To what the next batch is made of.
    Buffer,
    /// Behind those who wait for that.
    Line,
}

impl<W> Outbox<W> {
    /// The id of the next call, and the oldest ask that must go for it if there is no room.
    pub(super) fn next_call(&self) -> Result<(CorrelationId, Option<Message>), Refused> {
        if self.calls.len() < self.settings.calls {
            return Ok((self.calls.next_id(), None));
        }
        let full = self.full(LaneBound::Calls);
        if !self.drops_oldest() {
            return Err(full);
        }
        let freed = |message: Message| match message.kind {
            MessageKind::Ask(id) => Some((id.next_turn(), Some(message))),
            MessageKind::Tell { .. } => None,
        };
        self.waiting.live_messages().find_map(freed).ok_or(full)
    }

    /// Writes an ask or tell behind everything else and says where; `room` says where it stays. If that is nowhere, leaves
    /// everything as it was.
    pub(super) fn write_message<E: From<Refused>>(
        &mut self,
        room: impl Fn(&Self, usize) -> Result<Room, Refused>,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(u64, Room), E> {
        room(self, 1 + NOTE)?;
        let at = self.waiting.end();
        let refuse = |error| Refused::from(error).into();
        write_frame_or(self.waiting.buffer(), self.settings.frame, write, refuse)?;
        let len = (self.waiting.end() - at) as usize;
        let found = self.check_not_void(at).and_then(|()| room(self, len + NOTE));
        let found = found.inspect_err(|_| self.waiting.truncate(at))?;
        Ok((at, found))
    }

    /// Whether there is room for a tell of `len` bytes, or can be made. It never passes asks that wait for room.
    pub(super) fn room_for_tell(&self, len: usize) -> Result<Room, Refused> {
        if !self.line.is_empty() {
            let of = if self.may_send_call() { LaneBound::Bytes } else { LaneBound::Calls };
            return Err(self.full(of));
        }
        if self.fits(len) { Ok(Room::Buffer) } else { Err(self.full(LaneBound::Bytes)) }
    }

    /// Whether there is room for an ask of `len` bytes, or can be made, or may be waited for.
    pub(super) fn room_for_ask(&self, len: usize) -> Result<Room, Refused> {
        let may_wait = self.settings.overflow == Overflow::Wait;
        match self.room_for_tell(len) {
            Ok(Room::Buffer) if self.may_send_call() => Ok(Room::Buffer),
            Err(full) if !may_wait => Err(full),
            _ => self.room_in_line(len),
        }
    }

    /// Whether there is room in line; what never fits into the buffer has none.
    fn room_in_line(&self, len: usize) -> Result<Room, Refused> {
        if self.line.len() >= self.settings.line() {
            return Err(self.full(LaneBound::Waiting));
        }
        let fits = self.line.bytes() + len <= self.settings.bytes;
        if fits { Ok(Room::Line) } else { Err(self.full(LaneBound::Bytes)) }
    }

    /// Lets asks out of the line, in order, as far as there is room.
    pub(super) fn let_in(&mut self, now: Millis) {
        while self.may_send_call() {
            let room = self.settings.bytes.saturating_sub(self.held());
            let Some(mut ask) = self.line.next_if(|first| first.weight() <= room) else { return };
            let at = self.waiting.end();
            if let Some(call) = self.calls.find_mut(ask.id) {
                call.at = at;
                let left = call.deadline - now;
                change_ttl(ask.body_mut(), |_| left);
            }
            self.waiting.buffer().extend_from_slice(ask.frame());
            self.waiting.push(at, MessageKind::Ask(ask.id));
        }
    }

    /// Whether one more call may be sent. Those in line are among the calls of a lane, so fewer than the bound are sent.
    fn may_send_call(&self) -> bool {
        self.calls.len() - self.line.len() < self.settings.calls - self.settings.line() || self.drops_oldest()
    }

    /// Whether `len` bytes have room in the buffer, or can be given it.
    fn fits(&self, len: usize) -> bool {
        let held = if self.drops_oldest() { 0 } else { self.held() };
        held + len <= self.most_waiting()
    }

    /// What the lane uses memory for, answers and asks in line aside.
    pub(super) const fn held(&self) -> usize {
        self.waiting.live() + self.waiting.notes() + self.taken
    }

    /// How many bytes may wait in the buffer while the transport has nothing.
    const fn most_waiting(&self) -> usize {
        if self.drops_oldest() { self.settings.bytes / 2 } else { self.settings.bytes }
    }

    fn full(&self, of: LaneBound) -> Refused {
        let bound = match of {
            LaneBound::Bytes => self.settings.bytes,
            LaneBound::Calls => self.settings.calls,
            LaneBound::Waiting => self.settings.line(),
        };
        Refused::Overloaded { of, bound }
    }

    /// A void frame is one taken back, so nobody may write one.
    fn check_not_void(&self, at: u64) -> Result<(), Refused> {
        let part = FramePart::Frame;
        if self.waiting.is_void(at) { Err(FrameError::Malformed { part }.into()) } else { Ok(()) }
    }

    /// Makes what was written at `at` a message, and throws out the oldest ones if there are too many bytes now.
    pub(super) fn enqueue(&mut self, at: u64, kind: MessageKind) {
        self.waiting.push(at, kind);
        while self.drops_oldest() && self.waiting.live() + self.waiting.notes() > self.most_waiting() {
            let Some(oldest) = self.waiting.oldest() else { break };
            self.throw_out(oldest);
        }
        self.tidy();
    }

    pub(super) fn throw_out(&mut self, message: Message) {
        match message.kind {
            MessageKind::Ask(id) => {
                let ended = self.give_up(id);
                self.dropped.calls.extend(ended);
            }
            MessageKind::Tell { .. } => {
                let frame = self.take_back(message.at);
                self.dropped.tells.push(frame);
            }
        }
    }

    const fn drops_oldest(&self) -> bool {
        matches!(self.settings.overflow, Overflow::DropOldest)
    }
}
