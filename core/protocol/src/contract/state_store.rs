//! The state of actors between their activations.

use alloc::boxed::Box;
use alloc::string::String;

use async_trait::async_trait;
use bytes::Bytes;

use super::BoxError;
use crate::identity::{ActorId, Generation};

/// Keeps one state per actor, for whoever owns the actor now and for nobody who owned it before.
///
/// An owner may be stopped for a minute between two of its steps and not know it, so no clock and no lock keeps its late
/// save away from its successor's state. The generation does: it is stored with the state, by the load already, and grows
/// with every owner (FENCE-ON-LOAD).
///
/// # Every implementation
///
/// - *load_of_nothing_is_none*: an actor without a state is no error.
/// - *load_shows_the_last_save*: whatever was saved and answered is what the next load shows, byte for byte, whoever loads.
/// - *load_fences_before_it_reads*: from the moment a load is answered no save or delete of a lower generation is applied,
///   also if nothing was ever saved, and also one that was sent before.
/// - *stale_load_is_refused*: a load of a lower generation than the highest seen is `Fenced`; it reads nothing.
/// - *stale_save_is_refused*: so is a save; the state stays as it is.
/// - *stale_delete_is_refused*: so is a delete.
/// - *same_generation_goes_on*: loads, saves and deletes of the highest generation are taken, as often as they come.
/// - *delete_keeps_the_fence*: after a delete there is no state, and lower generations are refused as before.
/// - *a_save_given_up_never_overtakes*: a save whose future was dropped, or whose outcome is unknown, is not applied after
///   a later save or load of the same owner was answered.
/// - *actors_are_apart*: nothing that happens to one actor's state is seen in another's.
/// - *too_large_is_refused_before_it_is_sent*: a state that the store cannot hold is `TooLarge`, and the one before stays.
/// - *state_store_is_cancel_safe*: a dropped future may or may not have written, now or later; it corrupts nothing.
///
/// It need not order saves that are under way at the same time: the runtime sends one at a time per actor. It need not list
/// states, nor forget the fence of an actor that nobody uses any more.
#[async_trait]
pub trait StateStore: Send + Sync + 'static {
    /// Makes `generation` the one below which nothing is taken any more, and then reads the state.
    ///
    /// # Errors
    ///
    /// - `Fenced`: somebody owned the actor later than the caller. Nothing changed.
    /// - `Unavailable`, `Unknown`: no state is known; the fence may stand. Load again.
    /// - `Invalid`: what is stored is no state.
    async fn load(
        &self,
        actor: &ActorId,
        generation: Generation,
    ) -> Result<Option<StoredState>, StateStoreError>;

    /// Replaces the state, whatever it was.
    ///
    /// # Errors
    ///
    /// - `Fenced`, `TooLarge`, `Unavailable`, `Invalid`: certainly not written, now or later.
    /// - `Unknown`: may be written now or later, but not after a later save or load of this owner was answered.
    async fn save(
        &self,
        actor: &ActorId,
        generation: Generation,
        state: &StoredState,
    ) -> Result<(), StateStoreError>;

    /// Removes the state; nothing happens if there is none. The fence stays.
    ///
    /// # Errors
    ///
    /// As for [`save`](Self::save).
    async fn delete(&self, actor: &ActorId, generation: Generation) -> Result<(), StateStoreError>;
}

/// A state as bytes, and how to read them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredState {
    /// What kind of state it is.
    pub schema: Schema,
    /// The state itself.
    pub bytes: Bytes,
}

/// The name and the version of a layout of states.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Schema {
    /// The name of the type, or what the user chose: without control characters, at most [`Schema::MAX_NAME`] bytes.
    pub name: String,
    /// The number of its layout.
    pub version: u32,
}

impl Schema {
    /// The longest name, in bytes.
    pub const MAX_NAME: usize = 200;

    /// The layout `version` of the states called `name`.
    pub fn new(name: impl Into<String>, version: u32) -> Self {
        Self { name: name.into(), version }
    }

    /// Whether the name is one that every store can keep.
    pub fn is_valid(&self) -> bool {
        let length = 1..=Self::MAX_NAME;
        length.contains(&self.name.len()) && !self.name.chars().any(char::is_control)
    }
}

impl core::fmt::Display for Schema {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} v{}", self.name, self.version)
    }
}

/// Why a [`StateStore`] did not do what it was asked, sorted by what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateStoreError {
    /// Somebody owns the actor, or owned it, later than the caller; nothing was written. Stop: this activation is over.
    #[error("the actor has been loaded under generation {by}, later than this one")]
    Fenced {
        /// The highest generation that was seen.
        by: Generation,
    },
    /// The state is larger than the store takes; nothing was written. Keep less, or keep it elsewhere.
    #[error("the state has {size} bytes, the store takes {limit}")]
    TooLarge {
        /// Its size in bytes, with what the store adds.
        size: usize,
        /// The largest that the store takes.
        limit: usize,
    },
    /// The store did not take the request: certainly not written. Try again later.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// No answer came: may be written now or later. Save again, or load.
    #[error("the outcome of a write to {backend} is unknown")]
    Unknown {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// The request cannot be granted as it is, or what is stored cannot be read; nothing was written. Repeating it will not
    /// help.
    #[error("invalid: {what}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
        /// The underlying error, if there is one.
        source: Option<BoxError>,
    },
}

impl StateStoreError {
    /// Whether the same request may succeed later.
    pub const fn is_worth_repeating(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::Unknown { .. })
    }

    /// Whether the state may have been written, or may still be.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_store_did_not_answer_is_worth_repeating() {
        let unavailable = StateStoreError::Unavailable { backend: "b", source: "away".into() };
        let unknown = StateStoreError::Unknown { backend: "b", source: "lost".into() };
        assert!(unavailable.is_worth_repeating() && !unavailable.is_unknown());
        assert!(unknown.is_worth_repeating() && unknown.is_unknown());
        let finals = [
            StateStoreError::Fenced { by: Generation::new(2) },
            StateStoreError::TooLarge { size: 2, limit: 1 },
            StateStoreError::Invalid { what: "w", source: None },
        ];
        assert!(finals.iter().all(|error| !error.is_worth_repeating() && !error.is_unknown()));
    }

    #[test]
    fn a_schema_has_a_name_that_every_store_can_keep() {
        assert!(Schema::new("bank.Account", 0).is_valid());
        assert!(Schema::new("k".repeat(Schema::MAX_NAME), 1).is_valid());
        for name in ["", "a\nb", &"k".repeat(Schema::MAX_NAME + 1)] {
            assert!(!Schema::new(name, 1).is_valid(), "{name:?}");
        }
        assert_eq!(alloc::format!("{}", Schema::new("Account", 3)), "Account v3");
    }
}
