//! Settings of the embedded backend.

use std::num::NonZeroUsize;

/// Settings of an [`EmbeddedStore`](crate::EmbeddedStore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedConfig {
    /// How many changes a watch may fall behind before it must list again.
    pub history: NonZeroUsize,
}

impl Default for EmbeddedConfig {
    fn default() -> Self {
        Self { history: NonZeroUsize::new(4_096).expect("not zero") }
    }
}
