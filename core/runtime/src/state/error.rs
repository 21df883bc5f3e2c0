//! Why a state was not loaded or saved.

use archipelago_protocol::contract::{Schema, StateStoreError};

/// Why a state was not loaded or saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// The store did not do it; its error says whether the state may be written all the same.
    #[error(transparent)]
    Store(#[from] StateStoreError),
    /// What is stored is of a name or version that this build does not know. Nothing was changed. Teach
    /// [`Persistent::upgrade`](super::Persistent::upgrade) to read it.
    #[error("the stored state is {stored}, and this actor reads {expected}")]
    UnknownSchema {
        /// What is stored.
        stored: Schema,
        /// What the actor reads.
        expected: Schema,
    },
    /// What is stored has the right name and version and cannot be read all the same. Nothing was changed.
    #[error("the stored state cannot be read as {schema}: {reason}")]
    Unreadable {
        /// What it should be.
        schema: Schema,
        /// What the decoder says.
        reason: String,
    },
    /// The actor's state has no form as bytes; nothing was written.
    #[error("the state cannot be written as {schema}: {reason}")]
    Unwritable {
        /// What it should become.
        schema: Schema,
        /// What the encoder says.
        reason: String,
    },
    /// The activation has ended; nothing was written. The state belongs to the next one.
    #[error("the activation has ended")]
    Ended,
    /// The actor is not declared `persistent`, or is not the one of this activation; nothing was written.
    #[error("{kind} is not a persistent actor of this activation")]
    NotPersistent {
        /// Its kind.
        kind: &'static str,
    },
}

impl StateError {
    /// Whether the state may have been written, or may still be.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_unknown())
    }

    /// Whether another node has the actor by now, so that this activation can save nothing any more.
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Store(StateStoreError::Fenced { .. }))
    }

    /// The outcome as a label of a metric.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Store(StateStoreError::Fenced { .. }) => "fenced",
            Self::Store(StateStoreError::TooLarge { .. }) => "too_large",
            Self::Store(StateStoreError::Unavailable { .. }) => "unavailable",
            Self::Store(StateStoreError::Unknown { .. }) => "unknown",
            Self::Store(_) => "invalid",
            Self::UnknownSchema { .. } => "unknown_schema",
            Self::Unreadable { .. } => "unreadable",
            Self::Unwritable { .. } => "unwritable",
            Self::Ended => "ended",
            Self::NotPersistent { .. } => "not_persistent",
        }
    }
}
