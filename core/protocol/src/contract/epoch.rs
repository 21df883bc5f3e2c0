//! The fencing of decisions: which holder of a role wrote a record.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::identity::Generation;

/// The generation of a role's owner record, as the decisions of its holder carry it (EPOCH).
///
/// A holder writes over a record only if the record's epoch is not greater than its own; otherwise another has taken
/// office since, and it steps down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Whether the holder at this epoch may write over a record of epoch `written`.
    pub const fn may_replace(self, written: Self) -> bool {
        written.0 <= self.0
    }
}

impl From<Generation> for Epoch {
    fn from(generation: Generation) -> Self {
        Self(generation.as_u64())
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
