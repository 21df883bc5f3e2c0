//! The rules of [`StateStore`], each as a function that panics when it is broken.
//!
//! They need nothing but the state store itself, so a store of your own is tested like ours:
//! [`StateStoreFixture::of`] takes any.

use std::sync::Arc;

use archipelago_directory::{Store, StoreStateStore};
use archipelago_protocol::contract::{Schema, StateStore, StateStoreError, StoredState};
use archipelago_protocol::identity::{ActorId, Generation};

mod fencing;
mod keeping;

pub use fencing::*;
pub use keeping::*;

/// A fresh state store.
#[derive(Clone)]
pub struct StateStoreFixture {
    /// The state store under test.
    pub states: Arc<dyn StateStore>,
    /// A size in bytes that it certainly does not take.
    pub too_large: usize,
}

impl StateStoreFixture {
    /// The states above `store`.
    pub fn new(store: Arc<dyn Store>) -> Self {
        let too_large = store.max_value() + 1;
        Self::of(Arc::new(StoreStateStore::new(store)), too_large)
    }

    /// Any state store, and a size in bytes that it does not take.
    pub fn of(states: Arc<dyn StateStore>, too_large: usize) -> Self {
        Self { states, too_large }
    }

    pub(crate) async fn load(&self, actor: &str, generation: u64) -> Option<StoredState> {
        self.try_load(actor, generation).await.expect("loads")
    }

    pub(crate) async fn try_load(
        &self,
        actor: &str,
        generation: u64,
    ) -> Result<Option<StoredState>, StateStoreError> {
        self.states.load(&id(actor), Generation::new(generation)).await
    }

    pub(crate) async fn save(&self, actor: &str, generation: u64, text: &str) {
        self.try_save(actor, generation, text).await.expect("saves");
    }

    pub(crate) async fn try_save(
        &self,
        actor: &str,
        generation: u64,
        text: &str,
    ) -> Result<(), StateStoreError> {
        self.states.save(&id(actor), Generation::new(generation), &state(text)).await
    }

    pub(crate) async fn try_delete(&self, actor: &str, generation: u64) -> Result<(), StateStoreError> {
        self.states.delete(&id(actor), Generation::new(generation)).await
    }
}

pub(crate) fn id(actor: &str) -> ActorId {
    actor.parse().expect("an id")
}

pub(crate) fn state(text: &str) -> StoredState {
    StoredState { schema: Schema::new("Account", 1), bytes: text.as_bytes().to_vec().into() }
}

/// By whom the caller was fenced.
pub(crate) fn fenced<T: std::fmt::Debug>(answer: Result<T, StateStoreError>) -> u64 {
    match answer {
        Err(StateStoreError::Fenced { by }) => by.as_u64(),
        other => panic!("not fenced: {other:?}"),
    }
}

pub(crate) const ALICE: &str = "bank::Account/alice";
pub(crate) const BOB: &str = "bank::Account/bob";
