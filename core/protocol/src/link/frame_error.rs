//! What can be wrong with the bytes of a frame.

use core::fmt;

use crate::message::{TraceContextError, UnknownFlags};

/// Why bytes from a peer are no frame. The connection they came by is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The frame ends inside a part.
    #[error("the frame ends in its {part}")]
    Truncated {
        /// The part.
        part: FramePart,
    },
    /// A part is not well formed.
    #[error("the {part} of the frame is malformed")]
    Malformed {
        /// The part.
        part: FramePart,
    },
    /// The frame, or a part of it, is longer than allowed. Nothing was allocated for it.
    #[error("the {part} has {len} bytes, at most {max} are allowed")]
    TooLarge {
        /// The part.
        part: FramePart,
        /// Its length.
        len: u64,
        /// The longest allowed.
        max: usize,
    },
    /// No such frame exists in this version.
    #[error("unknown frame tag {tag}")]
    UnknownTag {
        /// The tag found.
        tag: u8,
    },
    /// The flags are not valid.
    #[error(transparent)]
    Flags(#[from] UnknownFlags),
    /// The trace context is not valid.
    #[error(transparent)]
    Trace(#[from] TraceContextError),
}

/// The parts of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramePart {
    /// The whole frame.
    Frame,
    /// Call id, time to live, flags, codec, kind and message.
    Head,
    /// The key of the actor.
    Key,
    /// The trace context.
    Trace,
    /// Who waits for the call.
    Chain,
    /// The error of a failed call.
    Error,
    /// Owner and generation of a shard.
    Shard,
}

impl fmt::Display for FramePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Frame => "frame",
            Self::Head => "head",
            Self::Key => "key",
            Self::Trace => "trace",
            Self::Chain => "call chain",
            Self::Error => "error",
            Self::Shard => "shard",
        })
    }
}
