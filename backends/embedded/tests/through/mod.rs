//! A store with a hand in between: whatever the hand does not change goes straight through to the store behind it.

use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Write,
};
use archipelago_embedded::EmbeddedStore;
use async_trait::async_trait;

/// What is done to requests on their way to the store `behind`.
#[async_trait]
pub(crate) trait Hand: Send + Sync + 'static {
    /// On the way of [`Store::get`].
    async fn get(&self, behind: &dyn Store, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        behind.get(id, read).await
    }

    /// On the way of [`Store::cas`].
    async fn cas(
        &self,
        behind: &dyn Store,
        id: &RecordId,
        (expect, write, guard): (Expect, Write, Option<Guard>),
    ) -> Result<CasAnswer, StoreError> {
        behind.cas(id, expect, write, guard).await
    }

    /// The store is about to be listed.
    fn lists(&self) {}

    /// The store is about to be watched.
    fn watches(&self) {}
}

/// The store.
pub(crate) struct Through<H> {
    behind: Arc<dyn Store>,
    pub(crate) hand: H,
}

impl<H: Hand> Through<H> {
    /// In front of a store of its own.
    pub(crate) fn new(hand: H) -> Self {
        Self::to(Arc::new(EmbeddedStore::default()), hand)
    }

    /// In front of the store `behind`.
    pub(crate) fn to(behind: Arc<dyn Store>, hand: H) -> Self {
        Self { behind, hand }
    }
}

#[async_trait]
impl<H: Hand> Store for Through<H> {
    fn name(&self) -> &'static str {
        self.behind.name()
    }

    fn checks_guards(&self) -> bool {
        self.behind.checks_guards()
    }

    fn max_value(&self) -> usize {
        self.behind.max_value()
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.hand.get(&*self.behind, id, read).await
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        self.hand.cas(&*self.behind, id, (expect, write, guard)).await
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.hand.lists();
        self.behind.list(space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.hand.watches();
        self.behind.watch(space, after).await
    }
}
