//! Whether a lane has room for one more ask or tell, and what is thrown out for it.
//!
//! A frame's length is known only when it is written, so it is written first and taken away again if there is no room.
//!
//! The bound is one of memory: it counts what waits, the notes about it, and the batch that the transport was given last
//! and may not have taken yet. A receiver that stands still costs its senders no more than the bound.

use bytes::BytesMut;

use super::super::scan::write_frame_or;
use super::super::{FrameError, FramePart};
use super::waiting::{Message, MessageKind, NOTE};
use super::{LaneBound, Outbox, Overflow, Refused};
use crate::identity::CorrelationId;

impl<W> Outbox<W> {
    /// The id of the next call, and the oldest ask that must go for it if there is no room.
    pub(super) fn next_call(&self) -> Result<(CorrelationId, Option<Message>), Refused> {
        if self.calls.len() < self.settings.calls {
            return Ok((self.calls.next_id(), None));
        }
        let full = Refused::Overloaded { of: LaneBound::Calls, bound: self.settings.calls };
        if !self.drops_oldest() {
            return Err(full);
        }
        let freed = |message: Message| match message.kind {
            MessageKind::Ask(id) => Some((id.next_turn(), Some(message))),
            MessageKind::Tell { .. } => None,
        };
        self.waiting.live_messages().find_map(freed).ok_or(full)
    }

    /// Writes an ask or tell and says where, or leaves everything as it was.
    pub(super) fn write_message<E: From<Refused>>(
        &mut self,
        bound: usize,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<u64, E> {
        self.check_room(1 + NOTE, bound)?;
        let at = self.waiting.end();
        let refuse = |error| Refused::from(error).into();
        write_frame_or(self.waiting.buffer(), self.settings.frame, write, refuse)?;
        let len = (self.waiting.end() - at) as usize;
        let taken = self.check_room(len + NOTE, bound).and_then(|()| self.check_not_void(at));
        taken.inspect_err(|_| self.waiting.truncate(at))?;
        Ok(at)
    }

    /// Whether there is room for `len` bytes, or can be made.
    fn check_room(&self, len: usize, bound: usize) -> Result<(), Refused> {
        let held = if self.drops_oldest() { 0 } else { self.held() };
        if held + len <= bound {
            return Ok(());
        }
        Err(Refused::Overloaded { of: LaneBound::Bytes, bound: self.settings.bytes })
    }

    /// What the lane uses memory for, answers aside.
    const fn held(&self) -> usize {
        self.waiting.live() + self.waiting.notes() + self.taken
    }

    /// A void frame is one taken back, so nobody may write one.
    fn check_not_void(&self, at: u64) -> Result<(), Refused> {
        let part = FramePart::Frame;
        if self.waiting.is_void(at) { Err(FrameError::Malformed { part }.into()) } else { Ok(()) }
    }

    /// Makes what was written at `at` a message, and throws out the oldest ones if there are too many bytes now.
    pub(super) fn enqueue(&mut self, at: u64, kind: MessageKind) {
        self.waiting.push(at, kind);
        while self.drops_oldest() && self.waiting.live() + self.waiting.notes() > self.settings.bytes {
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

    /// How many bytes may wait when an ask is queued.
    pub(super) const fn ask_bound(&self) -> usize {
        match self.settings.overflow {
            Overflow::Wait => self.settings.bytes.saturating_mul(2),
            Overflow::Fail | Overflow::DropOldest => self.settings.bytes,
        }
    }

    const fn drops_oldest(&self) -> bool {
        matches!(self.settings.overflow, Overflow::DropOldest)
    }
}
