//! Knowing when the last of several parts is gone.

use std::sync::Arc;

use super::{Follower, Shown};

/// Held by everything that has to be gone before the other end is told.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    _alive: Arc<Shown<()>>,
}

/// The other end: waits until every [`Stay`] is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    alive: Follower<()>,
}

impl Stay {
    /// The first of the stays, and who waits for the last.
    pub(crate) fn begin() -> (Self, Departure) {
        let shown = Shown::new(());
        let alive = shown.follow();
        (Self { _alive: Arc::new(shown) }, Departure { alive })
    }
}

impl Departure {
    /// Waits until all stays have ended.
    pub(crate) async fn complete(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await {}
    }
}
