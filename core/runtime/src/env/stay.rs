//! Knowing when the last of several parts is gone.

use tokio::sync::watch;

/// Held by everything that has to be gone before the other end is told.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    _alive: watch::Sender<()>,
}

/// The other end: waits until every [`Stay`] is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Departure {
    alive: watch::Receiver<()>,
}

impl Stay {
    /// The first of the stays, and who waits for the last.
    pub(crate) fn begin() -> (Self, Departure) {
        let (stay, alive) = watch::channel(());
        (Self { _alive: stay }, Departure { alive })
    }
}

impl Departure {
    /// Waits until all stays have ended.
    pub(crate) async fn complete(&self) {
        let mut alive = self.alive.clone();
        while alive.changed().await.is_ok() {}
    }
}
