//! Why bytes are not an envelope.

use core::fmt;

use super::{TraceContextError, UnknownFlags};
use crate::identity::{ActorIdError, ActorPathError};

/// The bytes are not an envelope, or the envelope does not fit the format. Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The sender speaks another version, or these bytes are no envelope at all.
    #[error("the first byte is {found:#04x}, not an envelope of a version known here")]
    BadVersion {
        /// The first byte.
        found: u8,
    },
    /// The bytes end too early.
    #[error("the envelope ends in the middle of its {part}")]
    Truncated {
        /// What was being read.
        part: EnvelopePart,
    },
    /// A length is over its bound; nothing was allocated for it.
    #[error("the {part} has {len} bytes, at most {max} are allowed")]
    TooLarge {
        /// What is too large.
        part: EnvelopePart,
        /// The length it claims, or has.
        len: u64,
        /// The greatest allowed length.
        max: usize,
    },
    /// The header has a bit, a tag or a number that this version does not write.
    #[error("the {part} is malformed")]
    Malformed {
        /// Where it stands.
        part: EnvelopePart,
    },
    /// A flag has no meaning here.
    #[error(transparent)]
    InvalidFlags(#[from] UnknownFlags),
    /// The target or sender is not an actor id.
    #[error("the actor id in the header is not valid")]
    InvalidActorId(#[from] ActorIdError),
    /// The target or sender is not an actor path.
    #[error("the actor path in the header is not valid")]
    InvalidActorPath(#[from] ActorPathError),
    /// The trace context is not one.
    #[error("the trace context in the header is not valid")]
    InvalidTrace(#[from] TraceContextError),
    /// Bytes follow the payload.
    #[error("{count} bytes follow the envelope")]
    TrailingBytes {
        /// How many.
        count: usize,
    },
}

/// Which part of an envelope an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EnvelopePart {
    /// The fixed part and the correlation id.
    Header,
    /// The remaining time to live.
    TimeToLive,
    /// The target or the sender.
    Address,
    /// The name of the message.
    TypeHint,
    /// The trace context.
    Trace,
    /// The call chain.
    CallChain,
    /// The extension area.
    Extensions,
    /// The payload.
    Payload,
}

impl fmt::Display for EnvelopePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "header",
            Self::TimeToLive => "time to live",
            Self::Address => "address",
            Self::TypeHint => "type hint",
            Self::Trace => "trace context",
            Self::CallChain => "call chain",
            Self::Extensions => "extension area",
            Self::Payload => "payload",
        })
    }
}
