//! One frame on a lane.
//!
//! # Layout, version 1
//!
//! Numbers are little-endian. Every frame begins with its length (u32, of what follows) and its tag (u8).
//!
//! | tag | frame | body |
//! |---|---|---|
//! | 1 | ask | call u64, head, rest: payload |
//! | 2 | tell | head, rest: payload |
//! | 3 | reply | call u64, codec u8, rest: payload |
//! | 4 | fail | call u64, rest: error (postcard) |
//! | 5 | cancel | call u64 |
//! | 6 | return | reason u8, rest: the tag and body of the ask or tell |
//! | 7 | settle | shard, generation u64 |
//! | 8 | settled | shard, generation u64, hint |
//! | 9 | notice | shard, owner u64, generation u64 |
//! | 10, 11 | bye, bye-ack | |
//! | 12 | envelope | rest: an [`Envelope`](crate::message::Envelope), whose response is a reply or fail |
//! | 13 | large done | transfer u64 |
//! | 14 | void | rest: ignored |
//! | 15 | service ask | call u64, ttl in ms u32 (not all ones), service u16, rest: payload |
//! | 16 | large here | transfer u64, u8 0, or 1 and call u64 |
//! | 17 | large back | transfer u64, reason u8 |
//! | 18 | large gone | transfer u64 |
//!
//! *head*: ttl in ms u32 (all ones: none), flags u16, codec u8, extras u8 (bit 0 trace, bit 1 chain), shard, message u16,
//! generation u64, key (u8 length, text), then trace (u128, u64, u8) and chain (u8 count, u64 each) as the extras say.
//! *shard*: kind u16, number u64. *hint*: u8 0, or 1 and owner u64, generation u64. Kinds and messages are places in
//! the tables that the *receiver* of the ask or tell has sent in its handshake.

use core::fmt;

use super::{FrameError, FramePart};
use crate::call::CallError;
use crate::identity::{ActorKey, CorrelationId, Generation, IdField, NodeId};
use crate::message::{CallChain, CodecId, MessageFlags, TraceContext};
use crate::time::Millis;

/// A frame, borrowed from the bytes it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A message whose reply is awaited.
    Ask(Asked<'a>),
    /// A message nobody waits for.
    Tell(Told<'a>),
    /// The reply to an ask or a service ask.
    Reply {
        /// The call it ends.
        call: CorrelationId,
        /// How the payload is encoded.
        codec: CodecId,
        /// The encoded reply.
        payload: &'a [u8],
    },
    /// The end of a call that has no reply.
    Fail {
        /// The call it ends.
        call: CorrelationId,
        /// Why.
        error: CallError,
    },
    /// The caller waits no longer.
    Cancel {
        /// The call.
        call: CorrelationId,
    },
    /// An ask or tell comes back unstarted.
    Return(Returned<'a>),
    /// The sender stopped sending for this shard: give back what has not started, and say when that is done.
    Settle {
        /// The shard.
        shard: ShardRef,
        /// The generation that the sender knew.
        generation: Generation,
    },
    /// All that was sent for this shard is started, finished or returned.
    Settled {
        /// The shard.
        shard: ShardRef,
        /// The generation of the settle frame.
        generation: Generation,
        /// Where the shard is, if known better.
        hint: Option<Hint>,
    },
    /// Where a shard is now.
    Notice {
        /// The shard.
        shard: ShardRef,
        /// Where it is.
        hint: Hint,
    },
    /// The sender leaves: settle everything that goes to it.
    Bye,
    /// Nothing will be sent to the leaver any more.
    ByeAck,
    /// A message to a named actor, or between the nodes themselves.
    Envelope(&'a [u8]),
    /// A transfer on a stream of its own has arrived.
    LargeDone {
        /// The transfer.
        transfer: u64,
    },
    /// The place of a large message, which comes on a stream of its own.
    LargeHere {
        /// The transfer.
        transfer: u64,
        /// The call that waits; none for a tell. It is open from here on, and may be cancelled before the message comes.
        call: Option<CorrelationId>,
    },
    /// A large message comes back unstarted. Its sender still has it, so only the news travels.
    LargeBack {
        /// The transfer.
        transfer: u64,
        /// Why.
        reason: ReturnReason,
    },
    /// A large message whose place was sent does not come: its sender has given it up.
    LargeGone {
        /// The transfer.
        transfer: u64,
    },
    /// Nothing: what stood here was taken back before it left.
    Void,
    /// A request to a service of the node itself.
    Service {
        /// The call that waits.
        call: CorrelationId,
        /// How long the sender still waits.
        ttl: Millis,
        /// The service.
        service: u16,
        /// What it is asked.
        payload: &'a [u8],
    },
}

/// A message whose reply is awaited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The pending call on the sender's node.
    pub call: CorrelationId,
    /// To whom and how.
    pub head: Head<'a>,
    /// The encoded message.
    pub payload: &'a [u8],
}

/// A message nobody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told<'a> {
    /// To whom and how.
    pub head: Head<'a>,
    /// The encoded message.
    pub payload: &'a [u8],
}

/// What stands before the payload of an ask or tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    /// How long it is worth delivering; none for as long as it takes.
    pub ttl: Option<Millis>,
    /// What the message asks of the node that handles it.
    pub flags: MessageFlags,
    /// How the payload is encoded.
    pub codec: CodecId,
    /// The shard of its actor.
    pub shard: ShardRef,
    /// The message, by its place in the receiver's table.
    pub message: u16,
    /// The generation of the shard that the sender knows.
    pub generation: Generation,
    /// The key of its actor; not yet checked.
    pub key: KeyText<'a>,
    /// The trace it belongs to.
    pub trace: Option<TraceContext>,
    /// Who waits for it.
    pub chain: CallChain,
}

/// The key of an actor in a frame: at most 255 bytes, since its length is one byte there. Otherwise unchecked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyText<'a>(&'a str);

/// A shard: a kind by its place in the receiver's table, and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardRef {
    /// The kind's place.
    pub kind: u16,
    /// The number of the shard; that of a single actor is its hash.
    pub number: u64,
}

/// Where a shard is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hint {
    /// The node that owns it.
    pub owner: NodeId,
    /// Since which generation.
    pub generation: Generation,
}

/// An ask or tell that came back unstarted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned<'a> {
    /// Why.
    pub reason: ReturnReason,
    /// The call that waits; none for a tell.
    pub call: Option<CorrelationId>,
    /// As it was sent.
    pub head: Head<'a>,
    /// As it was sent.
    pub payload: &'a [u8],
}

/// Why a message came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReturnReason {
    /// The shard is not here.
    NotOwner,
    /// Too much waits for the shard while it moves.
    Overflow,
    /// An earlier message of the same lane and shard was returned: order.
    Sticky,
    /// The node may not serve any more.
    Fenced,
}

impl<'a> KeyText<'a> {
    /// The longest, in bytes.
    pub const MAX_LEN: usize = u8::MAX as usize;

    /// `text` as a key.
    ///
    /// # Errors
    ///
    /// `TooLarge`: its length does not fit the frame. No valid [`ActorKey`] is that long.
    pub const fn new(text: &'a str) -> Result<Self, FrameError> {
        if text.len() > Self::MAX_LEN {
            let len = text.len() as u64;
            return Err(FrameError::TooLarge { part: FramePart::Key, len, max: Self::MAX_LEN });
        }
        Ok(Self(text))
    }

    /// Its text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl<'a> From<&'a ActorKey> for KeyText<'a> {
    fn from(key: &'a ActorKey) -> Self {
        const { assert!(IdField::Key.max_len() <= KeyText::MAX_LEN) }
        Self(key.as_str())
    }
}

impl fmt::Display for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for KeyText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

impl ReturnReason {
    pub(super) const fn on_wire(self) -> u8 {
        match self {
            Self::NotOwner => 0,
            Self::Overflow => 1,
            Self::Sticky => 2,
            Self::Fenced => 3,
        }
    }

    pub(super) const fn from_wire(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::NotOwner),
            1 => Some(Self::Overflow),
            2 => Some(Self::Sticky),
            3 => Some(Self::Fenced),
            _ => None,
        }
    }
}

pub(super) const ASK: u8 = 1;
pub(super) const TELL: u8 = 2;
pub(super) const REPLY: u8 = 3;
pub(super) const FAIL: u8 = 4;
pub(super) const CANCEL: u8 = 5;
pub(super) const RETURN: u8 = 6;
pub(super) const SETTLE: u8 = 7;
pub(super) const SETTLED: u8 = 8;
pub(super) const NOTICE: u8 = 9;
pub(super) const BYE: u8 = 10;
pub(super) const BYE_ACK: u8 = 11;
pub(super) const ENVELOPE: u8 = 12;
pub(super) const LARGE_DONE: u8 = 13;
pub(super) const LARGE_HERE: u8 = 16;
pub(super) const LARGE_BACK: u8 = 17;
pub(super) const LARGE_GONE: u8 = 18;
pub(super) const VOID: u8 = 14;
pub(super) const SERVICE: u8 = 15;

pub(super) const NO_TTL: u32 = u32::MAX;
pub(super) const HEAD_BYTES: usize = 29;
pub(super) const TRACE: u8 = 1;
pub(super) const CHAIN: u8 = 2;

#[cfg(test)]
pub(super) mod arbitrary;

#[cfg(test)]
mod tests;
