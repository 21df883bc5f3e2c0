//! Any [`Store`] as [`Homes`]: one record per actor that was placed on purpose, written where there is none and never changed.

use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, Homes};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::ActorId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::leases::unasked_guard;
use crate::record::{Expect, Record, RecordId, Space, Write};
use crate::store::{CasAnswer, Read, Store, StoreError};
use crate::value::{decode, encode};

/// The homes of actors above a store.
#[derive(Clone)]
pub struct StoreHomes {
    store: Arc<dyn Store>,
}

/// The name of an actor's home record.
pub fn home_id(actor: &ActorId) -> RecordId {
    RecordId::new(Space::HOMES, actor.to_string())
}

#[derive(Debug, Serialize, Deserialize)]
struct Value {
    datacenter: DataCenterId,
}

impl StoreHomes {
    /// The homes above `store`: that of the directory.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    async fn read(&self, actor: &ActorId) -> Result<Option<(Record, DataCenterId)>, DirectoryError> {
        let read = self.store.get(&home_id(actor), Read::Linearizable).await;
        match read.map_err(|error| self.error(error))? {
            Some(record) => {
                let Value { datacenter } = decode(&record)?;
                Ok(Some((record, datacenter)))
            }
            None => Ok(None),
        }
    }

    async fn cas(&self, actor: &ActorId, expect: Expect, write: Write) -> Result<CasAnswer, DirectoryError> {
        let answer = self.store.cas(&home_id(actor), expect, write, None).await;
        answer.map_err(|error| self.error(error))
    }

    fn error(&self, error: StoreError) -> DirectoryError {
        let backend = self.store.name();
        match error {
            StoreError::Unavailable { source } => DirectoryError::Unavailable { backend, source },
            StoreError::Unknown { source } => DirectoryError::Unknown { backend, source },
            StoreError::Compacted => {
                DirectoryError::Invalid { what: "the store compacted what is no history", source: None }
            }
            StoreError::Fatal { source } => {
                DirectoryError::Invalid { what: "the store cannot serve this", source: Some(source) }
            }
        }
    }
}

#[async_trait]
impl Homes for StoreHomes {
    async fn home_of(&self, actor: &ActorId) -> Result<Option<DataCenterId>, DirectoryError> {
        Ok(self.read(actor).await?.map(|(_, home)| home))
    }

    async fn settle_home(
        &self,
        actor: &ActorId,
        home: &DataCenterId,
    ) -> Result<DataCenterId, DirectoryError> {
        let put = Write::Put { tag: None, value: encode(&Value { datacenter: home.clone() })?, ttl: None };
        for _ in 0..ROUNDS {
            match self.cas(actor, Expect::Absent, put.clone()).await? {
                CasAnswer::Applied(_) => return Ok(home.clone()),
                CasAnswer::Conflict(Some(record)) => {
                    return decode::<Value>(&record).map(|value| value.datacenter);
                }
                // Forgotten between the attempt and its answer.
                CasAnswer::Conflict(None) => {}
                CasAnswer::GuardFailed => return Err(unasked_guard()),
            }
        }
        let source = "others keep forgetting the same home".into();
        Err(DirectoryError::Unavailable { backend: self.store.name(), source })
    }

    async fn forget_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<bool, DirectoryError> {
        let Some((record, _)) = self.read(actor).await?.filter(|(_, stands)| stands == home) else {
            return Ok(false);
        };
        let answer = self.cas(actor, record.expect(), Write::Delete).await?;
        Ok(matches!(answer, CasAnswer::Applied(_)))
    }
}

/// One settles and one forgets, seldom at the same time.
const ROUNDS: usize = 4;
