//! How the directory fails, sorted by what the caller does next.

use alloc::boxed::Box;

use crate::contract::OwnerRecord;
use crate::identity::{NodeId, OwnedKey};

/// An error of an engine's client, kept as the source of ours.
pub type BoxError = Box<dyn core::error::Error + Send + Sync + 'static>;

/// Why an operation of the [`Directory`](super::Directory) did not come to its result.
///
/// `Unavailable` and `Unknown` stay apart all the way up: after the first the write has not happened and never
/// will, after the second it may happen now, or much later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The record is not the one the caller named; nothing was written. Go on from `current`.
    #[error("the record has changed")]
    Conflict {
        /// What stands there now, `None` if nothing does.
        current: Option<Box<OwnerRecord>>,
    },
    /// The caller's session is over; nothing was written. Stop everything and open another session.
    #[error("session {id} is over")]
    SessionLost {
        /// The session that is over.
        id: NodeId,
    },
    /// The key is a partition that was divided or merged, and is never owned again; nothing was written. Look up the
    /// routing table.
    #[error("{key} has been retired")]
    Retired {
        /// The key.
        key: OwnedKey,
    },
    /// A partition that the key was made of is still owned; nothing was written. Claim again once its owner has retired
    /// it, or its session has ended.
    #[error("{} has not been retired by its owner {}", parent.placement.key, parent.placement.node)]
    NotRetired {
        /// The owner record in the way.
        parent: Box<OwnerRecord>,
    },
    /// The store did not take the request: certainly not applied. Try again later.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// No answer came: may be applied now or later. Act as if it was not; read before you retry.
    #[error("the outcome of a write to {backend} is unknown")]
    Unknown {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// The request cannot be granted as it is, or a stored record cannot be read; nothing was written. Repeating
    /// it will not help.
    #[error("invalid: {what}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
        /// The underlying error, if there is one.
        source: Option<BoxError>,
    },
}

impl DirectoryError {
    /// Whether the write may have been applied, or may still be.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}
