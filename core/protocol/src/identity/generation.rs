//! The fencing token of an owned key.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Counts the owners of one key: it grows with every change of owner and is never set back, not even by a delete.
///
/// The directory hands it out (it is the version of the key's record); a write under a smaller generation than the
/// current one is refused. Generations of different keys cannot be compared, except those of a partition with its parents'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u64);

impl Generation {
    /// The generation with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
