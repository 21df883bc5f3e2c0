//! Why a handshake was refused.

use alloc::string::{String, ToString};
use core::fmt;

use super::link_events::DialFailure;

/// The answer to a hello that does not fit. Nothing else travels on that connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    /// For programs.
    pub reason: RefusalReason,
    /// For people; at most [`MAX_TEXT`](Self::MAX_TEXT) bytes.
    pub text: String,
}

impl Refusal {
    /// The longest text that travels, in bytes.
    pub const MAX_TEXT: usize = 1_024;

    /// A refusal with a text, which is cut at a character boundary if it is too long.
    pub fn new(reason: RefusalReason, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let mut end = text.len().min(Self::MAX_TEXT);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        Self { reason, text }
    }
}

impl From<RefusalReason> for Refusal {
    fn from(reason: RefusalReason) -> Self {
        Self::new(reason, reason.to_string())
    }
}

/// Why a handshake was refused, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RefusalReason {
    /// The hello could not be read.
    Malformed,
    /// The two have no version in common.
    Version,
    /// The other side belongs to another cluster.
    Cluster,
    /// The other side has another namespace.
    Namespace,
    /// A member of another datacenter.
    Datacenter,
    /// The node dialled itself.
    Ourselves,
    /// Another node was expected at this address.
    Addressee,
    /// Another arbiter was expected at this port.
    Seat,
    /// The two do not see the same store.
    Store,
    /// This version does not know peers of that kind.
    Kind,
    /// Both dialled, and the other connection was chosen; or a newer one has overtaken this.
    Race,
    /// The node stops.
    Stopping,
    /// The node has as many clients as it takes.
    Clients,
    /// The node is not who it says, as far as is known of that one.
    Identity,
    /// A reason that this version does not know.
    Other(u16),
}

impl RefusalReason {
    /// Its number on the wire.
    pub const fn as_u16(self) -> u16 {
        match self {
            Self::Malformed => 0,
            Self::Version => 1,
            Self::Cluster => 2,
            Self::Namespace => 3,
            Self::Datacenter => 4,
            Self::Ourselves => 5,
            Self::Addressee => 6,
            Self::Seat => 7,
            Self::Store => 8,
            Self::Kind => 9,
            Self::Race => 10,
            Self::Stopping => 11,
            Self::Clients => 12,
            Self::Identity => 13,
            Self::Other(code) => code,
        }
    }

    /// The reason with this number.
    pub const fn from_u16(code: u16) -> Self {
        match code {
            0 => Self::Malformed,
            1 => Self::Version,
            2 => Self::Cluster,
            3 => Self::Namespace,
            4 => Self::Datacenter,
            5 => Self::Ourselves,
            6 => Self::Addressee,
            7 => Self::Seat,
            8 => Self::Store,
            9 => Self::Kind,
            10 => Self::Race,
            11 => Self::Stopping,
            12 => Self::Clients,
            13 => Self::Identity,
            other => Self::Other(other),
        }
    }

    /// What a dial that was refused for this reason means to its link.
    pub const fn dial_failure(self) -> DialFailure {
        match self {
            Self::Race => DialFailure::Race,
            Self::Stopping | Self::Clients => DialFailure::Unreachable,
            _ => DialFailure::Refused,
        }
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "the hello could not be read",
            Self::Version => "no common version of the protocol",
            Self::Cluster => "another cluster",
            Self::Namespace => "another namespace",
            Self::Datacenter => "another datacenter",
            Self::Ourselves => "the node dialled itself",
            Self::Addressee => "another node is at this address",
            Self::Seat => "another arbiter is at this port",
            Self::Store => "another store",
            Self::Kind => "an unknown kind of peer",
            Self::Race => "another connection between the same two was chosen",
            Self::Stopping => "the node stops",
            Self::Clients => "the node has as many clients as it takes",
            Self::Identity => "not who it says",
            Self::Other(code) => return write!(f, "reason {code}"),
        })
    }
}
