//! Any [`Store`] as a [`RoutingTable`].
//!
//! One record per kind, never deleted, replaced only by a compare-and-swap on the version that the manager saw, and only
//! by one whose epoch is not smaller than the record's. A table that divides or merges partitions is saved only once the
//! directory says that their own parents are retired.

use std::sync::Arc;

use archipelago_protocol::contract::{
    Epoch, RecordVersion, RoutingTable, RoutingTableError, SavedTable, TableVersion, TableWatch,
};
use archipelago_protocol::identity::{Kind, OwnedKey, PartitionName};
use archipelago_protocol::ranges::RangeTable;
use async_trait::async_trait;
use futures_util::StreamExt;

use crate::record::{Expect, Record, RecordId, Seen, Space, Version, Write};
use crate::store::{CasAnswer, Read, Store, StoreError};
use crate::timer::Timer;
use crate::value::{OwnerState, decode_owner_state, owner_id};
use crate::watch::{Told, View, Watcher};

mod value;

use value::{decode, encode};

/// The routing tables above a store: the one in which the directory keeps the owner records.
#[derive(Clone)]
pub struct StoreRoutingTable {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
}

/// The name of a kind's table record.
pub fn table_id(kind: &Kind) -> RecordId {
    RecordId::new(Space::TABLES, kind.as_str())
}

impl StoreRoutingTable {
    /// The tables above `store`; `timer` paces the mending of broken watches.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>) -> Self {
        Self { store, timer }
    }

    async fn write(
        &self,
        kind: &Kind,
        mut next: SavedTable,
        over: Option<RecordVersion>,
    ) -> Result<Written, RoutingTableError> {
        let value = encode(&next)?;
        if value.len() > self.store.max_value() {
            return Err(invalid("the table is longer than the store takes"));
        }
        let write = Write::Put { tag: None, value, ttl: None };
        let expect = over.map_or(Expect::Absent, at);
        let answer = self.store.cas(&table_id(kind), expect, write, None).await;
        match answer.map_err(|error| self.error(error))? {
            CasAnswer::Applied(version) => {
                next.record = RecordVersion(version.0);
                Ok(Written::Applied(next))
            }
            CasAnswer::Conflict(current) => {
                Ok(Written::Found(current.as_ref().map(decode).transpose()?.map(Box::new)))
            }
            CasAnswer::GuardFailed => Err(invalid("the store checked a guard that nobody asked for")),
        }
    }

    async fn require_retired(&self, kind: &Kind, partition: &PartitionName) -> Result<(), RoutingTableError> {
        let key = OwnedKey::Range { kind: kind.clone(), partition: partition.clone() };
        let record = self.store.get(&owner_id(&key), Read::Linearizable).await;
        let record = record.map_err(|error| self.error(error))?;
        match record.as_ref().map(decode_owner_state).transpose() {
            Ok(Some(OwnerState::Retired)) => Ok(()),
            Ok(_) => Err(RoutingTableError::NotRetired { partition: partition.clone() }),
            Err(error) => Err(RoutingTableError::Invalid {
                what: "the owner record of a parent cannot be read",
                source: Some(Box::new(error)),
            }),
        }
    }

    fn error(&self, error: StoreError) -> RoutingTableError {
        let backend = self.store.name();
        match error {
            StoreError::Unavailable { source } => RoutingTableError::Unavailable { backend, source },
            StoreError::Unknown { source } => RoutingTableError::Unknown { backend, source },
            StoreError::Compacted => invalid("the store compacted what is no history"),
            StoreError::Fatal { source } => {
                RoutingTableError::Invalid { what: "the store cannot serve this", source: Some(source) }
            }
        }
    }
}

#[async_trait]
impl RoutingTable for StoreRoutingTable {
    async fn load(&self, kind: &Kind) -> Result<Option<SavedTable>, RoutingTableError> {
        let record = self.store.get(&table_id(kind), Read::Linearizable).await;
        record.map_err(|error| self.error(error))?.as_ref().map(decode).transpose()
    }

    async fn save(
        &self,
        kind: &Kind,
        table: &RangeTable,
        expected: Option<&SavedTable>,
        epoch: Epoch,
    ) -> Result<SavedTable, RoutingTableError> {
        expected.map_or(Ok(()), |seen| check_epoch(seen, epoch))?;
        let successor = table.succeed(expected.and_then(|seen| seen.table.as_ref()));
        let successor = successor.map_err(|error| RoutingTableError::Invalid {
            what: "the table may not follow the one before it",
            source: Some(Box::new(error)),
        })?;
        for partition in &successor.must_be_retired {
            self.require_retired(kind, partition).await?;
        }
        let next = following(expected, epoch, Some(table.clone()));
        match self.write(kind, next, expected.map(|seen| seen.record)).await? {
            Written::Applied(saved) => Ok(saved),
            Written::Found(current) => {
                current.as_ref().map_or(Ok(()), |current| check_epoch(current, epoch))?;
                Err(RoutingTableError::Conflict { current })
            }
        }
    }

    async fn seal(&self, kind: &Kind, epoch: Epoch) -> Result<SavedTable, RoutingTableError> {
        let mut found = self.load(kind).await?.map(Box::new);
        for _ in 0..SEAL_ROUNDS {
            let seen = found.as_deref();
            seen.map_or(Ok(()), |seen| check_epoch(seen, epoch))?;
            if let Some(own) = seen.filter(|seen| seen.epoch == epoch) {
                return Ok(own.clone());
            }
            let next = following(seen, epoch, seen.and_then(|seen| seen.table.clone()));
            match self.write(kind, next, seen.map(|seen| seen.record)).await? {
                Written::Applied(saved) => return Ok(saved),
                Written::Found(current) => found = current,
            }
        }
        Err(RoutingTableError::Conflict { current: found })
    }

    async fn watch(&self, kind: &Kind) -> Result<TableWatch, RoutingTableError> {
        let (store, timer, failed) = (Arc::clone(&self.store), Arc::clone(&self.timer), self.clone());
        let watcher = Watcher::new(store, timer, TableOf(kind.clone()), None);
        let told = watcher.into_stream(current, move |error| failed.error(error));
        // A table that cannot be read is an error of its own, not the absence of one.
        Ok(Box::pin(told.map(|current| current.and_then(|current| current))))
    }
}

enum Written {
    Applied(SavedTable),
    Found(Option<Box<SavedTable>>),
}

/// What one told change means: the table that stands now, or why it cannot be read.
type Current = Result<Option<SavedTable>, RoutingTableError>;

/// The view of a watch of one kind's table.
struct TableOf(Kind);

impl View for TableOf {
    type Entry = Result<SavedTable, RoutingTableError>;
    type Id = ();

    fn space(&self) -> Space {
        Space::TABLES
    }

    fn entry(&self, record: &Record) -> Option<Self::Entry> {
        self.id(&record.id).map(|()| decode(record))
    }

    fn id(&self, id: &RecordId) -> Option<()> {
        (id.key == self.0.as_str()).then_some(())
    }
}

fn current(told: Told<TableOf>) -> Current {
    match told {
        Told::Snapshot { mut entries, .. } => entries.pop().transpose(),
        Told::Put { entry, .. } => entry.map(Some),
        Told::Gone { .. } => Ok(None),
    }
}

fn following(seen: Option<&SavedTable>, epoch: Epoch, table: Option<RangeTable>) -> SavedTable {
    let version = TableVersion(seen.map_or(0, |seen| seen.version.0) + 1);
    SavedTable { version, record: RecordVersion(0), epoch, table }
}

fn at(version: RecordVersion) -> Expect {
    Expect::At(Seen { version: Version(version.0), tag: None })
}

fn check_epoch(found: &SavedTable, epoch: Epoch) -> Result<(), RoutingTableError> {
    if epoch.may_replace(found.epoch) {
        Ok(())
    } else {
        Err(RoutingTableError::Superseded { by: found.epoch })
    }
}

fn invalid(what: &'static str) -> RoutingTableError {
    RoutingTableError::Invalid { what, source: None }
}

/// A seal meets at most the late writes of earlier managers.
const SEAL_ROUNDS: usize = 6;
