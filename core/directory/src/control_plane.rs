//! Any [`Store`] as a [`ControlPlane`].
//!
//! One record per datacenter, replaced only by a compare-and-swap on the version that its leader saw, and only by a
//! leader whose epoch is not smaller than the record's. Whose lease has ended is judged by
//! [`DataCenterLiveness`] on what each listing shows.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::contract::{
    ControlPlane, ControlPlaneError, DataCenterEvent, DataCenterWatch, Epoch, Listing, Revision,
};
use archipelago_protocol::datacenter::{
    DataCenterId, DataCenterInfo, DataCenterLiveness, DataCenterRecord, DataCenterState, DataCenterVersion,
    LifeEvent, LivenessEvent,
};
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use async_trait::async_trait;

use crate::record::{Expect, Record, RecordId, Seen, Space, Version, Write};
use crate::store::{CasAnswer, Read, Records, Store, StoreError};
use crate::timer::Timer;
use crate::watch::{Told, View, Watcher};

mod value;

use value::{decode, encode};

/// The control plane above a store.
#[derive(Clone)]
pub struct StoreControlPlane {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    lease_ttl: Millis,
    liveness: Arc<Mutex<DataCenterLiveness>>,
}

/// What a control plane must be told; there is no default for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPlaneConfig {
    /// How long a datacenter counts as active after its last heartbeat, in milliseconds: at least three heartbeats.
    pub lease_ttl_ms: NonZeroU64,
}

/// The name of a datacenter's record.
pub fn data_center_id(id: &DataCenterId) -> RecordId {
    RecordId::new(Space::DATA_CENTERS, id.as_str())
}

impl StoreControlPlane {
    /// A control plane above `store`; `timer` is the clock on which leases are judged.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>, config: ControlPlaneConfig) -> Self {
        let lease_ttl = Millis(config.lease_ttl_ms.get());
        let liveness = Arc::new(Mutex::new(DataCenterLiveness::new(lease_ttl)));
        Self { store, timer, lease_ttl, liveness }
    }

    /// What was judged by the listings of this control plane so far.
    pub fn liveness(&self) -> DataCenterLiveness {
        self.judge().clone()
    }

    fn judge(&self) -> MutexGuard<'_, DataCenterLiveness> {
        self.liveness.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn read(&self, id: &DataCenterId) -> Result<Option<DataCenterRecord>, ControlPlaneError> {
        let record = self.store.get(&data_center_id(id), Read::Linearizable).await;
        record.map_err(|error| self.error(error))?.as_ref().map(decode).transpose()
    }

    /// Writes `record` over the version it names, or where there is none; the record as it stands then.
    async fn write(
        &self,
        mut record: DataCenterRecord,
        over: Option<DataCenterVersion>,
    ) -> Result<Written, ControlPlaneError> {
        let id = data_center_id(record.id());
        let write = Write::Put { tag: None, value: encode(&record)?, ttl: Some(engine_ttl(&record)) };
        let expect = over.map_or(Expect::Absent, at);
        match self.store.cas(&id, expect, write, None).await.map_err(|error| self.error(error))? {
            CasAnswer::Applied(version) => {
                record.version = DataCenterVersion(version.0);
                Ok(Written::Applied(record))
            }
            CasAnswer::Conflict(current) => {
                Ok(Written::Found(current.as_ref().map(decode).transpose()?.map(Box::new)))
            }
            CasAnswer::GuardFailed => Err(invalid("the store checked a guard that nobody asked for")),
        }
    }

    /// Writes what a leader decided from `seen`.
    async fn replace(
        &self,
        seen: &DataCenterRecord,
        next: DataCenterRecord,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        check_epoch(seen, next.epoch)?;
        let epoch = next.epoch;
        match self.write(next, Some(seen.version)).await? {
            Written::Applied(record) => Ok(record),
            Written::Found(current) => {
                current.as_ref().map_or(Ok(()), |current| check_epoch(current, epoch))?;
                Err(ControlPlaneError::Conflict { current })
            }
        }
    }

    /// The record that a registration writes over `found`; `None` if it stands already.
    fn registered(
        &self,
        info: &DataCenterInfo,
        epoch: Epoch,
        wall_ms: u64,
        found: Option<&DataCenterRecord>,
    ) -> Result<Option<DataCenterRecord>, ControlPlaneError> {
        let state = match found {
            None => DataCenterState::Registered,
            Some(found) => {
                check_epoch(found, epoch)?;
                let state = found.state.after(LifeEvent::Register).map_err(illegal)?;
                if (found.epoch, &found.info, found.state) == (epoch, info, state) {
                    return Ok(None);
                }
                state
            }
        };
        let lease_expiry_ms = self.lease_expiry(wall_ms);
        let (info, lease_ttl, version) = (info.clone(), self.lease_ttl, DataCenterVersion(0));
        Ok(Some(DataCenterRecord { info, state, epoch, lease_ttl, lease_expiry_ms, version }))
    }

    fn lease_expiry(&self, wall_ms: u64) -> u64 {
        wall_ms.saturating_add(self.lease_ttl.0)
    }

    async fn list(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError> {
        match self.store.list(Space::DATA_CENTERS, None).await {
            Ok(listed) => {
                let listing = readable(&listed);
                let (revision, records) = (listing.revision, listing.records.clone());
                self.judge().handle(self.timer.now(), LivenessEvent::Listed { revision, records });
                Ok(listing)
            }
            Err(error) => {
                self.judge().handle(self.timer.now(), LivenessEvent::Unanswered);
                Err(self.error(error))
            }
        }
    }

    fn error(&self, error: StoreError) -> ControlPlaneError {
        let backend = self.store.name();
        match error {
            StoreError::Unavailable { source } => ControlPlaneError::Unavailable { backend, source },
            StoreError::Unknown { source } => ControlPlaneError::Unknown { backend, source },
            StoreError::Compacted => invalid("the store compacted what is no history"),
            StoreError::Fatal { source } => {
                ControlPlaneError::Invalid { what: "the store cannot serve this", source: Some(source) }
            }
        }
    }
}

#[async_trait]
impl ControlPlane for StoreControlPlane {
    async fn register(
        &self,
        info: &DataCenterInfo,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        let mut found = self.read(info.id()).await?.map(Box::new);
        for _ in 0..REGISTER_ROUNDS {
            let next = self.registered(info, epoch, wall_ms, found.as_deref())?;
            match (next, found) {
                (None, Some(standing)) => return Ok(*standing),
                (None, None) => break,
                (Some(next), over) => match self.write(next, over.map(|over| over.version)).await? {
                    Written::Applied(record) => return Ok(record),
                    Written::Found(current) => found = current,
                },
            }
        }
        Err(ControlPlaneError::Conflict { current: self.read(info.id()).await?.map(Box::new) })
    }

    async fn heartbeat(
        &self,
        seen: &DataCenterRecord,
        epoch: Epoch,
        wall_ms: u64,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        let state = seen.state.after(LifeEvent::Heartbeat).map_err(illegal)?;
        let lease_expiry_ms = self.lease_expiry(wall_ms);
        let lease_ttl = self.lease_ttl;
        let next = DataCenterRecord { state, epoch, lease_ttl, lease_expiry_ms, ..seen.clone() };
        self.replace(seen, next).await
    }

    async fn set_state(
        &self,
        seen: &DataCenterRecord,
        state: DataCenterState,
        epoch: Epoch,
    ) -> Result<DataCenterRecord, ControlPlaneError> {
        let event = DataCenterState::asked_by(state).ok_or_else(|| invalid("nobody asks for that state"))?;
        let state = seen.state.after(event).map_err(illegal)?;
        let answer = if seen.state == state {
            check_epoch(seen, epoch)?;
            Err(ControlPlaneError::Conflict { current: self.read(seen.id()).await?.map(Box::new) })
        } else {
            self.replace(seen, DataCenterRecord { state, epoch, ..seen.clone() }).await
        };
        match answer {
            // The same change, made by an earlier attempt of the same leader.
            Err(ControlPlaneError::Conflict { current: Some(current) })
                if current.state == state && current.epoch == epoch =>
            {
                Ok(*current)
            }
            answer => answer,
        }
    }

    async fn list_active(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError> {
        let revision = self.list().await?.revision;
        let records = self.judge().active().into_iter().cloned().collect();
        Ok(Listing { records, revision })
    }

    async fn list_all(&self) -> Result<Listing<DataCenterRecord>, ControlPlaneError> {
        self.list().await
    }

    async fn watch(&self, from: Option<Revision>) -> Result<DataCenterWatch, ControlPlaneError> {
        let (store, timer, failed) = (Arc::clone(&self.store), Arc::clone(&self.timer), self.clone());
        let watcher = Watcher::new(store, timer, DataCenters, from);
        Ok(Box::pin(watcher.into_stream(event, move |error| failed.error(error))))
    }
}

enum Written {
    Applied(DataCenterRecord),
    Found(Option<Box<DataCenterRecord>>),
}

/// The view of a watch of all datacenters.
struct DataCenters;

impl View for DataCenters {
    type Entry = DataCenterRecord;
    type Id = DataCenterId;

    fn space(&self) -> Space {
        Space::DATA_CENTERS
    }

    fn entry(&self, record: &Record) -> Option<DataCenterRecord> {
        let decoded = decode(record);
        decoded.inspect_err(|error| tracing::warn!(record = %record.id, %error, "unreadable record")).ok()
    }

    fn id(&self, id: &RecordId) -> Option<DataCenterId> {
        id.key.parse().ok()
    }
}

fn event(told: Told<DataCenters>) -> DataCenterEvent {
    match told {
        Told::Snapshot { revision, entries } => DataCenterEvent::Snapshot { revision, records: entries },
        Told::Put { revision, entry } => DataCenterEvent::Put { revision, record: entry },
        Told::Gone { revision, id } => DataCenterEvent::Gone { revision, id },
    }
}

/// A record that cannot be read is left out: it must not stop the others.
fn readable(listed: &Records) -> Listing<DataCenterRecord> {
    let records = listed.records.iter().filter_map(|record| DataCenters.entry(record)).collect();
    Listing { records, revision: Revision(listed.position.0) }
}

fn at(version: DataCenterVersion) -> Expect {
    Expect::At(Seen { version: Version(version.0), tag: None })
}

fn check_epoch(found: &DataCenterRecord, epoch: Epoch) -> Result<(), ControlPlaneError> {
    if epoch.may_replace(found.epoch) {
        Ok(())
    } else {
        Err(ControlPlaneError::Superseded { by: found.epoch })
    }
}

fn illegal(transition: archipelago_protocol::datacenter::IllegalTransition) -> ControlPlaneError {
    ControlPlaneError::Invalid { what: "the state does not allow it", source: Some(Box::new(transition)) }
}

fn invalid(what: &'static str) -> ControlPlaneError {
    ControlPlaneError::Invalid { what, source: None }
}

/// Records of datacenters that have long been silent go by themselves; so an epoch never blocks one that was set up anew.
fn engine_ttl(record: &DataCenterRecord) -> Millis {
    match record.state {
        DataCenterState::Inactive => times::KEEP_ENDED,
        _ => times::engine_ttl(record.lease_ttl),
    }
}

/// A registration meets at most late writes of its own datacenter's leaders.
const REGISTER_ROUNDS: usize = 4;
