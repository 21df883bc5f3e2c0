//! The lease record: the one place where beats and the end of a session are written.
//!
//! Because a beat and an end replace the same record by compare-and-swap, one of them always loses. A missing
//! record proves nothing: it is first written down as [`Lease::Missing`], and then it has a version too.

use serde::{Deserialize, Serialize};

use crate::identity::NodeId;
use crate::time::Millis;

/// A session as its holder names it when it claims: the id, and the time to live others judge it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// The id, drawn anew for every attempt to open a session and never used twice; it is the node's id as well.
    pub id: NodeId,
    /// How long the session lives after its last beat; it stands in every record, so that nobody judges by his own setting.
    pub ttl: Millis,
}

/// The value of a lease record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Lease {
    /// The holder beats. Written by the holder only.
    Live {
        /// Number of the attempt that wrote this, from 0 (the open) upwards.
        seq: u64,
        /// Random number of that attempt: a cloned process betrays itself by it.
        nonce: u64,
        /// The holder's time to live.
        #[serde(rename = "ttl_ms")]
        ttl: Millis,
    },
    /// Somebody who needed the record found none and wrote that down (PIN).
    Missing {
        /// The time to live as the owner record told it.
        #[serde(rename = "ttl_ms")]
        ttl: Millis,
    },
    /// The membership resolver stopped further beats (REVOKE); acts like a last beat.
    Revoked {
        /// The holder's time to live.
        #[serde(rename = "ttl_ms")]
        ttl: Millis,
        /// Who revoked it.
        #[serde(with = "as_text")]
        by: NodeId,
    },
    /// The session is over, for ever. The only evidence that allows taking its keys.
    Ended {
        /// Why it ended.
        why: EndReason,
        /// Who wrote it: the holder itself or an observer.
        #[serde(with = "as_text")]
        by: NodeId,
    },
}

/// Why a session ended; for people, no decision depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The holder closed it.
    Closed,
    /// Its beats stopped.
    Silent,
    /// Its record was missing and did not come back.
    Missing,
    /// It had been revoked.
    Revoked,
}

impl Lease {
    /// Whether the session is over for ever.
    pub const fn has_ended(&self) -> bool {
        matches!(self, Self::Ended { .. })
    }

    /// The time to live an observer counts with; `None` once ended.
    pub const fn ttl(&self) -> Option<Millis> {
        match self {
            Self::Live { ttl, .. } | Self::Missing { ttl } | Self::Revoked { ttl, .. } => Some(*ttl),
            Self::Ended { .. } => None,
        }
    }

    /// The reason an observer gives when it ends a lease it last saw in this state.
    pub const fn end_reason(&self) -> EndReason {
        match self {
            Self::Live { .. } => EndReason::Silent,
            Self::Missing { .. } => EndReason::Missing,
            Self::Revoked { .. } => EndReason::Revoked,
            Self::Ended { why, .. } => *why,
        }
    }
}

/// The store's own version of a lease record: grows with every write to it, also across deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseVersion(pub u64);

/// A lease record as somebody received it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeaseSeen {
    /// Whose lease it is.
    pub id: NodeId,
    /// The version received; an end names exactly this one.
    pub version: LeaseVersion,
    /// What it says.
    pub lease: Lease,
}

/// One attempt to beat: each has its own number, its own nonce, and names the version it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    /// The session that beats.
    pub session: Session,
    /// The attempt's number.
    pub seq: u64,
    /// The attempt's random number.
    pub nonce: u64,
    /// The version that the attempt replaces.
    pub expect: LeaseVersion,
}

/// What a compare-and-swap on a lease record came to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseAnswer {
    /// The write was applied and made this version.
    Applied(LeaseVersion),
    /// Nothing was written: the record is another one (or absent), as found.
    Found(Option<LeaseSeen>),
}

/// What became of a write to a lease record, as the machines take it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeaseOutcome {
    /// It was applied and made this version.
    Applied(LeaseVersion),
    /// Not applied: this was found instead.
    Found(Option<LeaseSeen>),
    /// Certainly never applied.
    Unavailable,
    /// May be applied now, or later.
    Unknown,
}

impl From<LeaseAnswer> for LeaseOutcome {
    fn from(answer: LeaseAnswer) -> Self {
        match answer {
            LeaseAnswer::Applied(version) => Self::Applied(version),
            LeaseAnswer::Found(found) => Self::Found(found),
        }
    }
}

/// Node ids as people see them in keys and logs.
mod as_text {
    use alloc::string::String;

    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::identity::NodeId;

    pub(super) fn serialize<S: Serializer>(id: &NodeId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<NodeId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
