//! The time after a served store's start in which it grants nothing.
//!
//! The store is new, but the cluster may not be: nodes of other processes may hold keys by leases that an earlier store
//! gave and this one has never heard of. They stop by themselves within W of that store's death, and W after its own start
//! this one may give the same keys away.
//!
//! Refused are writes to all spaces but those of sessions: owner records are what grants, so claims, hand-overs and
//! reassertions wait. Leases and posters are written all the while. They grant nothing by themselves, a session opened
//! here is known here, and the holder of an older one is better told at once that its lease is gone.

use std::fmt;
use std::sync::Arc;

use archipelago_directory::{RecordId, Space, StoreError, Timer};
use archipelago_protocol::time::Millis;

pub(crate) struct Quiet {
    timer: Arc<dyn Timer>,
    until: Millis,
}

impl Quiet {
    pub(crate) fn new(timer: Arc<dyn Timer>, length: Millis) -> Self {
        let until = timer.now() + length;
        Self { timer, until }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.timer.now() >= self.until
    }

    /// Refuses a write to these records if it could grant anything.
    pub(crate) fn check<'a>(&self, ids: impl IntoIterator<Item = &'a RecordId>) -> Result<(), StoreError> {
        if ids.into_iter().all(|id| GRANT_NOTHING.contains(&id.space)) {
            return Ok(());
        }
        let left = self.until - self.timer.now();
        Err(StoreError::Unavailable { source: Box::new(StillQuiet { left }) })
    }
}

impl fmt::Debug for Quiet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quiet").field("until", &self.until).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the served store started recently and grants nothing for another {left}: \
     nodes may still hold what an earlier one granted"
)]
struct StillQuiet {
    left: Millis,
}

/// Records that grant nothing: how a kind is divided is agreed on before anybody can own any of it.
const GRANT_NOTHING: [Space; 3] = [Space::LEASES, Space::NODES, Space::KINDS];
