//! Any [`Store`] as [`Homes`]: one record per actor that was placed on purpose, written where there is
//! none. Whoever settles the same home again writes the same once more, so that nobody takes it back from under him.

use std::sync::Arc;

use archipelago_protocol::contract::{DirectoryError, HomeStamp, Homes, SettledHome};
use archipelago_protocol::datacenter::DataCenterId;
use archipelago_protocol::identity::ActorId;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::leases::unasked_guard;
use crate::record::{Expect, Record, RecordId, Seen, Space, Version, Write};
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

    /// Writes a home that stands once more: then whoever wrote it first cannot take it back. False if it does not stand any more.
    async fn join(&self, actor: &ActorId, standing: &Record, put: Write) -> Result<bool, DirectoryError> {
        match self.cas(actor, standing.expect(), put).await? {
            CasAnswer::Applied(_) => Ok(true),
            CasAnswer::Conflict(_) => Ok(false),
            CasAnswer::GuardFailed => Err(unasked_guard()),
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
        let read = self.store.get(&home_id(actor), Read::Linearizable).await;
        let record = read.map_err(|error| self.error(error))?;
        record.map(|record| home_in(&record)).transpose()
    }

    async fn settle_home(&self, actor: &ActorId, home: &DataCenterId) -> Result<SettledHome, DirectoryError> {
        let put = Write::Put { tag: None, value: encode(&Value { datacenter: home.clone() })?, ttl: None };
        for _ in 0..ROUNDS {
            let standing = match self.cas(actor, Expect::Absent, put.clone()).await? {
                CasAnswer::Applied(version) => {
                    return Ok(SettledHome { home: home.clone(), made: Some(HomeStamp(version.0)) });
                }
                CasAnswer::Conflict(Some(record)) => record,
                // Forgotten between the attempt and its answer.
                CasAnswer::Conflict(None) => continue,
                CasAnswer::GuardFailed => return Err(unasked_guard()),
            };
            let stands = home_in(&standing)?;
            if stands != *home || self.join(actor, &standing, put.clone()).await? {
                return Ok(SettledHome { home: stands, made: None });
            }
        }
        let source = "others keep writing the same home".into();
        Err(DirectoryError::Unavailable { backend: self.store.name(), source })
    }

    async fn forget_home(&self, actor: &ActorId, made: HomeStamp) -> Result<bool, DirectoryError> {
        let expect = Expect::At(Seen { version: Version(made.0), tag: None });
        let answer = self.cas(actor, expect, Write::Delete).await?;
        Ok(matches!(answer, CasAnswer::Applied(_)))
    }
}

fn home_in(record: &Record) -> Result<DataCenterId, DirectoryError> {
    decode::<Value>(record).map(|value| value.datacenter)
}

/// How often a home is tried to be settled while others settle or forget the same.
const ROUNDS: usize = 16;
