//! Waiting for a store that is new and grants nothing yet.
//!
//! A served store, and a NATS stream, cannot know what an earlier one granted, and grant nothing until that has run out. A node
//! that starts meanwhile has a session but can own no actor: its first calls would fail. So its start waits.
//!
//! The store is asked by a write that can change nothing: it wants to delete a version of a record that nobody ever writes.

use std::sync::Arc;

use archipelago_directory::{Expect, RecordId, Seen, Space, Store, StoreError, Timer, Version, Write};
use archipelago_protocol::time::Millis;

/// A store that may be too new to grant anything.
pub(crate) struct Settling {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    limit: Millis,
}

impl Settling {
    /// A store that grants nothing for `length` after it began, whenever that was.
    pub(super) fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>, length: Millis) -> Self {
        Self { store, timer, limit: length + BEYOND }
    }

    /// Waits until the store grants, or for a little longer than it may need.
    pub(crate) async fn wait(self) {
        let deadline = self.timer.now() + self.limit;
        let mut told = false;
        while let Some(error) = self.refusal().await {
            if self.timer.now() >= deadline {
                tracing::warn!(%error, "the store grants nothing yet; the node starts all the same");
                return;
            }
            if !std::mem::replace(&mut told, true) {
                tracing::info!(%error, "the start waits until the store grants something");
            }
            self.timer.sleep(LOOK).await;
        }
    }

    /// Why the store takes no write; none if it does, or never will.
    async fn refusal(&self) -> Option<String> {
        let nobodys = RecordId::new(Space::OWNERS, "settled");
        let expect = Expect::At(Seen { version: Version(1), tag: None });
        match self.store.cas(&nobodys, expect, Write::Delete, None).await {
            Err(StoreError::Unavailable { source } | StoreError::Unknown { source }) => {
                Some(source.to_string())
            }
            Ok(_) | Err(_) => None,
        }
    }
}

/// How often the store is asked.
const LOOK: Millis = Millis(100);
/// How much longer than needed a start waits: clocks differ, and the store may be slow.
const BEYOND: Millis = Millis(1_000);

#[cfg(test)]
mod tests {
    use archipelago_embedded::{EmbeddedStore, StoreServer};
    use archipelago_runtime::env::{EnvironmentTimer, HostEnvironment, Threads};

    use super::*;

    fn timer() -> Arc<dyn Timer> {
        Arc::new(EnvironmentTimer(Arc::new(HostEnvironment::new(Threads::Current))))
    }

    #[actix::test]
    async fn a_store_that_grants_at_once_is_not_waited_for_and_not_changed() {
        let (store, timer) = (Arc::new(EmbeddedStore::default()), timer());
        let before = timer.now();
        Settling::new(Arc::clone(&store) as _, Arc::clone(&timer), Millis(60_000)).wait().await;
        assert!(timer.now() - before < Millis(30_000));
        assert!(store.list(Space::OWNERS, None).await.unwrap().records.is_empty());
    }

    #[actix::test]
    async fn a_store_that_grants_nothing_yet_is_waited_for() {
        let (store, timer) = (Arc::new(EmbeddedStore::default()), timer());
        let before = timer.now();
        let _server = StoreServer::new(Arc::clone(&store), 7, Arc::clone(&timer), Millis(400));
        Settling::new(store, Arc::clone(&timer), Millis(60_000)).wait().await;
        let waited = timer.now() - before;
        assert!((Millis(400)..Millis(30_000)).contains(&waited), "{waited}");
    }

    #[actix::test]
    async fn a_store_that_does_not_settle_is_given_up() {
        let (store, timer) = (Arc::new(EmbeddedStore::default()), timer());
        let before = timer.now();
        let _server = StoreServer::new(Arc::clone(&store), 7, Arc::clone(&timer), Millis(600_000));
        Settling::new(store, Arc::clone(&timer), Millis(0)).wait().await;
        let waited = timer.now() - before;
        assert!((BEYOND..Millis(300_000)).contains(&waited), "{waited}");
    }
}
