//! What nodes tell each other about membership, and its form on the wire.
//!
//! Frames travel on the control lane, one message each. The decoder refuses what is longer than
//! [`MembershipFrame::MAX_BYTES`] before it reads it, and what names more than a view may hold; it never panics.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::gossip_state::GossipState;
use super::{Member, MemberStatus, NodeLoad};
use crate::identity::{NodeId, NodeInfo};
use crate::time::Millis;

/// One message of membership.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MembershipFrame {
    /// A new node asks to be let in; answered by [`Self::Delta`].
    Join(NodeInfo),
    /// What the sender's view amounts to; answered if the receiver's differs.
    Digest(Digest),
    /// Parts of the sender's view.
    Delta(Delta),
    /// Are you there?
    Heartbeat,
    /// I am.
    HeartbeatAnswer,
    /// Please ask this node whether it is there: it does not answer me.
    ProbeRequest {
        /// Whom to ask.
        subject: NodeId,
    },
    /// It is there.
    ProbeAnswer {
        /// Who was asked.
        subject: NodeId,
    },
    /// The receiver's id is removed, or down, in the sender's view.
    Gone,
}

/// A view in brief: enough to see whether two views differ, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Digest {
    /// The fingerprint of the whole view.
    pub fingerprint: u64,
    /// Fingerprints of its parts; a member's part follows from its id and their number.
    pub parts: Vec<u32>,
    /// Who has seen this view, one bit for each member in the order of their ids. Means something only to a
    /// receiver with the same fingerprint.
    pub seen: Vec<u8>,
    /// New loads, in passing.
    pub loads: Vec<(NodeId, NodeLoad)>,
    /// Whether this answers another digest, so that it is not answered itself.
    pub is_answer: bool,
}

/// Parts of a view: those that differed from what the other side had.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delta {
    /// The fingerprint of the sender's whole view.
    pub fingerprint: u64,
    /// Fingerprints of the parts of the sender's whole view, so that the receiver can answer in kind.
    pub parts: Vec<u32>,
    /// The members of the parts sent.
    pub members: Vec<MemberWord>,
    /// The removed of the parts sent, and how much longer to remember them.
    pub tombstones: Vec<(NodeId, Millis)>,
    /// Whether the receiver, if it knows more, is to send its own.
    pub wants_answer: bool,
}

/// Everything that a view holds under one member's id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MemberWord {
    /// The member.
    pub member: Member,
    /// How many words of it the view holds.
    pub clock: u64,
    /// The version of what it observed.
    pub observed: u64,
    /// Whom it does not reach.
    pub unreachable: Vec<NodeId>,
    /// Its load, if it was told.
    pub load: Option<NodeLoad>,
}

impl MembershipFrame {
    /// The longest frame.
    pub const MAX_BYTES: usize = 1 << 20;

    /// The bytes of the frame.
    ///
    /// # Errors
    ///
    /// `TooLong`; the machine makes no such frame.
    pub fn encode(&self) -> Result<Vec<u8>, MembershipFrameError> {
        let bytes = postcard::to_allocvec(self).map_err(|_| MembershipFrameError::Malformed)?;
        let len = bytes.len();
        if len > Self::MAX_BYTES { Err(MembershipFrameError::TooLong { len }) } else { Ok(bytes) }
    }

    /// Reads a frame; the whole of `bytes` must be one.
    ///
    /// # Errors
    ///
    /// The bytes are too long, are no frame, or name more than a view may hold.
    pub fn decode(bytes: &[u8]) -> Result<Self, MembershipFrameError> {
        let len = bytes.len();
        if len > Self::MAX_BYTES {
            return Err(MembershipFrameError::TooLong { len });
        }
        let (frame, rest) =
            postcard::take_from_bytes::<Self>(bytes).map_err(|_| MembershipFrameError::Malformed)?;
        if !rest.is_empty() {
            return Err(MembershipFrameError::Malformed);
        }
        if frame.is_bounded() { Ok(frame) } else { Err(MembershipFrameError::Unbounded) }
    }

    fn is_bounded(&self) -> bool {
        match self {
            Self::Join(info) => Member::is_bounded(info),
            Self::Digest(digest) => digest.is_bounded(),
            Self::Delta(delta) => delta.is_bounded(),
            _ => true,
        }
    }
}

impl Digest {
    /// The most parts.
    pub const MAX_PARTS: usize = 64;
    /// The most loads.
    pub const MAX_LOADS: usize = 32;

    fn is_bounded(&self) -> bool {
        (1..=Self::MAX_PARTS).contains(&self.parts.len())
            && self.seen.len() <= GossipState::MAX_MEMBERS.div_ceil(8)
            && self.loads.len() <= Self::MAX_LOADS
    }
}

impl Delta {
    fn is_bounded(&self) -> bool {
        let marks: usize = self.members.iter().map(|word| word.unreachable.len()).sum();
        (1..=Digest::MAX_PARTS).contains(&self.parts.len())
            && self.members.len() <= GossipState::MAX_MEMBERS
            && self.tombstones.len() <= GossipState::MAX_TOMBSTONES
            && marks <= GossipState::MAX_MARKS
            && self.members.iter().all(MemberWord::is_sound)
    }
}

impl MemberWord {
    /// The removed are told as tombstones only.
    fn is_sound(&self) -> bool {
        self.member.status != MemberStatus::Removed && Member::is_bounded(&self.member.info)
    }
}

/// Why bytes are no frame of membership. Drop them and count them; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipFrameError {
    /// They are too many.
    #[error("a frame of membership has {len} bytes, at most {} are allowed", MembershipFrame::MAX_BYTES)]
    TooLong {
        /// How many.
        len: usize,
    },
    /// They do not read as a frame.
    #[error("the bytes are no frame of membership")]
    Malformed,
    /// The frame names more than a view may hold, or what no view holds.
    #[error("the frame of membership breaks the bounds of a view")]
    Unbounded,
}

#[cfg(test)]
mod tests;
