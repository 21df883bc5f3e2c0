//! The frames of one lane that wait, in one buffer.
//!
//! Asks and tells are *messages*: they count against the bound, can be taken back (made void in place) and outlive a
//! connection. All else (*answers*) belongs to the connection it was written for.
//!
//! Places are counted from the first byte that the lane ever held, so that "was it given to the transport?" is one
//! comparison.
//!
//! Invariants: `messages` is in the order of the buffer; `live` is the length of the messages that are not void, and
//! `count` is how many these are.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::{Bytes, BytesMut};

use super::super::frame::VOID;
use super::super::scan::LEN_BYTES;
use crate::identity::CorrelationId;
use crate::time::Millis;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Waiting {
    out: BytesMut,
    /// The place of the first byte in `out`.
    base: u64,
    messages: VecDeque<Message>,
    /// So many messages at the front are void.
    skip: usize,
    live: usize,
    count: usize,
    void: usize,
}

/// An ask or tell in the buffer; void if its tag says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Message {
    pub(super) at: u64,
    pub(super) kind: MessageKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum MessageKind {
    Ask(CorrelationId),
    Tell {
        /// When it was told.
        told: Millis,
        /// So many milliseconds later it was written into this lane.
        age: u32,
    },
}

impl Waiting {
    /// Where frames are written; each one must be followed by [`push`](Self::push) or taken away again, or be an answer.
    pub(super) fn buffer(&mut self) -> &mut BytesMut {
        &mut self.out
    }

    /// Makes the frame from `at` to the end of the buffer a message.
    pub(super) fn push(&mut self, at: u64, kind: MessageKind) {
        self.live += (self.end() - at) as usize;
        self.count += 1;
        self.messages.push_back(Message { at, kind });
    }

    /// Takes the frame from `at` to the end of the buffer out again, with its length.
    pub(super) fn split_off(&mut self, at: u64) -> Vec<u8> {
        let frame = self.out[(at - self.base) as usize..].to_vec();
        self.truncate(at);
        frame
    }

    /// Takes away everything from `at` on, which is not a message yet.
    pub(super) fn truncate(&mut self, at: u64) {
        self.out.truncate((at - self.base) as usize);
    }

    /// Gives everything away, unless it is all void.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        let worthless = self.is_empty();
        self.base = self.end();
        self.messages.clear();
        (self.skip, self.live, self.count, self.void) = (0, 0, 0, 0);
        if worthless {
            self.out.clear();
            return None;
        }
        Some(self.out.split().freeze())
    }

    /// Gives the messages away, each without its length, and forgets the answers.
    pub(super) fn drain(&mut self) -> Vec<(MessageKind, Bytes)> {
        let (base, messages) = (self.base, self.live_messages().collect::<Vec<_>>());
        let all = self.take().unwrap_or_default();
        let frame = |message: Message| {
            let from = (message.at - base) as usize;
            (message.kind, all.slice(from + LEN_BYTES..from + frame_len(&all[from..])))
        };
        messages.into_iter().map(frame).collect()
    }

    /// Makes a message void.
    pub(super) fn void(&mut self, at: u64) {
        let frame = self.frame_mut(at);
        frame[0] = VOID;
        let len = frame.len() + LEN_BYTES;
        self.live -= len;
        self.count -= 1;
        self.void += len;
    }

    /// Whether so much is void that [`clear_away`](Self::clear_away) pays: its work is paid for by what was made void. Of
    /// `bound` bytes no more than a sixteenth stays void for long.
    pub(super) fn is_worth_clearing(&self, bound: usize) -> bool {
        let len = self.out.len();
        self.void > WORTH_CLEARING && (self.void > len / 2 || self.void > bound.max(len) / 16)
    }

    /// Takes the void frames away where they are, without memory for a copy, and reports where each message is now.
    pub(super) fn clear_away(&mut self, mut moved: impl FnMut(MessageKind, u64)) {
        let (out, base) = (&mut self.out, self.base);
        let (mut read, mut written) = (0, 0);
        self.messages.retain_mut(|message| {
            let from = (message.at - base) as usize;
            let to = from + frame_len(&out[from..]);
            let live = out[from + LEN_BYTES] != VOID;
            // What lies before it are answers.
            let keep = if live { to } else { from };
            out.copy_within(read..keep, written);
            if live {
                message.at = base + (written + from - read) as u64;
                moved(message.kind, message.at);
            }
            written += keep - read;
            read = to;
            live
        });
        out.copy_within(read.., written);
        let len = written + out.len() - read;
        out.truncate(len);
        (self.skip, self.void) = (0, 0);
    }

    /// Copies the messages to a new buffer, without answers and void frames, and reports where each message is now.
    pub(super) fn keep_messages(&mut self, mut moved: impl FnMut(MessageKind, u64)) {
        let old = core::mem::take(&mut self.out);
        let mut new = BytesMut::with_capacity(self.live);
        let base = self.base;
        self.messages.retain_mut(|message| {
            let from = (message.at - base) as usize;
            let live = old[from + LEN_BYTES] != VOID;
            if live {
                message.at = base + new.len() as u64;
                moved(message.kind, message.at);
                new.extend_from_slice(&old[from..from + frame_len(&old[from..])]);
            }
            live
        });
        self.out = new;
        (self.skip, self.void) = (0, 0);
    }

    /// The messages that are not void, oldest first.
    pub(super) fn live_messages(&self) -> impl Iterator<Item = Message> + '_ {
        self.messages.iter().skip(self.skip).copied().filter(|message| !self.is_void(message.at))
    }

    /// The oldest message that is not void.
    pub(super) fn oldest(&mut self) -> Option<Message> {
        while self.messages.get(self.skip).is_some_and(|message| self.is_void(message.at)) {
            self.skip += 1;
        }
        self.messages.get(self.skip).copied()
    }

    /// Changes messages that are not void: their tags and bodies, oldest first.
    pub(super) fn change(&mut self, mut each: impl FnMut(MessageKind, &mut [u8])) {
        for n in 0..self.messages.len() {
            let Message { at, kind } = self.messages[n];
            let frame = self.frame_mut(at);
            if frame[0] != VOID {
                each(kind, frame);
            }
        }
    }

    /// Tag and body of the frame at `at`.
    pub(super) fn frame(&self, at: u64) -> &[u8] {
        let from = (at - self.base) as usize;
        let rest = &self.out[from..];
        &rest[LEN_BYTES..frame_len(rest)]
    }

    /// Whether the frame at `at` was taken back.
    pub(super) fn is_void(&self, at: u64) -> bool {
        self.frame(at)[0] == VOID
    }

    /// Whether the transport has it.
    pub(super) const fn is_given(&self, at: u64) -> bool {
        at < self.base
    }

    /// The place of the next frame.
    pub(super) fn end(&self) -> u64 {
        self.base + self.out.len() as u64
    }

    /// Bytes of messages.
    pub(super) const fn live(&self) -> usize {
        self.live
    }

    /// Bytes of notes about messages.
    pub(super) const fn notes(&self) -> usize {
        self.count * NOTE
    }

    /// Bytes of answers.
    pub(super) fn answers(&self) -> usize {
        self.out.len() - self.live - self.void
    }

    /// Whether there is nothing but void frames.
    pub(super) fn is_empty(&self) -> bool {
        self.out.len() == self.void
    }

    fn frame_mut(&mut self, at: u64) -> &mut [u8] {
        let from = (at - self.base) as usize;
        let rest = &mut self.out[from..];
        let len = frame_len(rest);
        &mut rest[LEN_BYTES..len]
    }
}

/// The length of the first frame of `bytes`, with the length itself.
fn frame_len(bytes: &[u8]) -> usize {
    let len = bytes.first_chunk::<LEN_BYTES>().map_or(0, |len| u32::from_le_bytes(*len));
    LEN_BYTES + len as usize
}

/// Less is not worth the work.
const WORTH_CLEARING: usize = 4_096;

/// What is noted about a message besides its frame, in bytes.
pub(super) const NOTE: usize = size_of::<Message>();
