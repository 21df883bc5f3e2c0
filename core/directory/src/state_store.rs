//! Any [`Store`] as a [`StateStore`].
//!
//! One record per actor: the highest generation that has loaded it, and its state, if there is one. Every operation reads
//! the record and replaces it by a compare-and-swap on the version read, also the load, and also if the generation stands
//! there already. So whatever was sent before and lands later meets another version and changes nothing. The record is
//! never deleted, since the fence is in it.

use std::sync::Arc;

use archipelago_protocol::contract::{StateStore, StateStoreError, StoredState};
use archipelago_protocol::identity::{ActorId, Generation};
use async_trait::async_trait;

use crate::record::{Expect, Record, RecordId, Space, Write};
use crate::store::{CasAnswer, Read, Store, StoreError};

mod value;

use value::{Value, decode, encode};

/// The states of actors above a store.
#[derive(Clone)]
pub struct StoreStateStore {
    store: Arc<dyn Store>,
}

/// The name of an actor's state record.
pub fn state_id(actor: &ActorId) -> RecordId {
    RecordId::new(Space::STATES, actor.to_string())
}

impl StoreStateStore {
    /// The states above `store`: the directory's, or one of their own.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Replaces the record of `actor` by what `next` makes of its state; answers the state that stood there.
    async fn replace(
        &self,
        actor: &ActorId,
        generation: Generation,
        next: impl Fn(Option<&StoredState>) -> Option<StoredState> + Send,
    ) -> Result<Option<StoredState>, StateStoreError> {
        let id = state_id(actor);
        let read = self.store.get(&id, Read::Linearizable).await;
        let mut found = read.map_err(|error| self.error(error))?;
        for _ in 0..ROUNDS {
            let state = unfenced(found.as_ref(), generation)?;
            let value = encode(&Value { generation, state: next(state.as_ref()) })?;
            self.check_size(value.len())?;
            let expect = found.as_ref().map_or(Expect::Absent, Record::expect);
            let write = Write::Put { tag: None, value, ttl: None };
            let answer = self.store.cas(&id, expect, write, None).await;
            match answer.map_err(|error| self.error(error))? {
                CasAnswer::Applied(_) => return Ok(state),
                CasAnswer::Conflict(current) => found = current,
                CasAnswer::GuardFailed => {
                    return Err(invalid("the store checked a guard that nobody asked for"));
                }
            }
        }
        let source = "others keep writing the same state".into();
        Err(StateStoreError::Unavailable { backend: self.store.name(), source })
    }

    fn check_size(&self, size: usize) -> Result<(), StateStoreError> {
        let limit = self.store.max_value();
        if size > limit { Err(StateStoreError::TooLarge { size, limit }) } else { Ok(()) }
    }

    fn error(&self, error: StoreError) -> StateStoreError {
        let backend = self.store.name();
        match error {
            StoreError::Unavailable { source } => StateStoreError::Unavailable { backend, source },
            StoreError::Unknown { source } => StateStoreError::Unknown { backend, source },
            StoreError::Compacted => invalid("the store compacted what is no history"),
            StoreError::Fatal { source } => {
                StateStoreError::Invalid { what: "the store cannot serve this", source: Some(source) }
            }
        }
    }
}

#[async_trait]
impl StateStore for StoreStateStore {
    async fn load(
        &self,
        actor: &ActorId,
        generation: Generation,
    ) -> Result<Option<StoredState>, StateStoreError> {
        self.replace(actor, generation, |state| state.cloned()).await
    }

    async fn save(
        &self,
        actor: &ActorId,
        generation: Generation,
        state: &StoredState,
    ) -> Result<(), StateStoreError> {
        if !state.schema.is_valid() {
            return Err(invalid("the name of the schema cannot be kept"));
        }
        self.replace(actor, generation, |_| Some(state.clone())).await.map(drop)
    }

    async fn delete(&self, actor: &ActorId, generation: Generation) -> Result<(), StateStoreError> {
        self.replace(actor, generation, |_| None).await.map(drop)
    }
}

/// The state in a record that `generation` may still replace.
fn unfenced(found: Option<&Record>, generation: Generation) -> Result<Option<StoredState>, StateStoreError> {
    let Some(record) = found else { return Ok(None) };
    let value = decode(record)?;
    if value.generation > generation {
        return Err(StateStoreError::Fenced { by: value.generation });
    }
    Ok(value.state)
}

fn invalid(what: &'static str) -> StateStoreError {
    StateStoreError::Invalid { what, source: None }
}

/// One owner writes at a time, so what it meets is at most the late writes of those before it.
const ROUNDS: usize = 16;
