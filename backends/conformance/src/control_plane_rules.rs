//! The rules of [`ControlPlane`], each as a function that panics when it is broken.

use std::num::NonZeroU64;
use std::sync::Arc;

use archipelago_directory::{
    ControlPlaneConfig, Expect, Read, Store, StoreControlPlane, Timer, Write, data_center_id,
};
use archipelago_protocol::contract::{ControlPlane, ControlPlaneError, Epoch};
use archipelago_protocol::datacenter::{DataCenterId, DataCenterInfo, DataCenterRecord, DataCenterState};
use archipelago_protocol::time::Millis;

mod reading;
mod writing;

pub use reading::*;
pub use writing::*;

/// A fresh control plane, and the store underneath, with which a rule plays the engine's part.
#[derive(Clone)]
pub struct ControlPlaneFixture {
    /// The control plane under test, with a lease of [`LEASE`].
    pub control_plane: Arc<dyn ControlPlane>,
    /// The store underneath.
    pub store: Arc<dyn Store>,
    /// The clock that rules about time go by.
    pub timer: Arc<dyn Timer>,
}

/// The length of a datacenter's lease in the rules: short enough to be waited for.
pub const LEASE: Millis = Millis(1_500);

impl ControlPlaneFixture {
    /// The control plane above `store`. A store behind a network needs a timer that really waits.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>) -> Self {
        let lease_ttl_ms = NonZeroU64::new(LEASE.0).expect("not zero");
        let config = ControlPlaneConfig { lease_ttl_ms };
        let control_plane = StoreControlPlane::new(Arc::clone(&store), Arc::clone(&timer), config);
        Self { control_plane: Arc::new(control_plane), store, timer }
    }

    pub(crate) async fn register(&self, name: &str, epoch: u64) -> DataCenterRecord {
        self.control_plane.register(&info(name), Epoch(epoch), WALL).await.expect("registers")
    }

    pub(crate) async fn beat(&self, seen: &DataCenterRecord) -> DataCenterRecord {
        self.control_plane.heartbeat(seen, seen.epoch, WALL).await.expect("beats")
    }

    /// Registers and beats once.
    pub(crate) async fn activate(&self, name: &str, epoch: u64) -> DataCenterRecord {
        self.beat(&self.register(name, epoch).await).await
    }

    pub(crate) async fn set(&self, seen: &DataCenterRecord, state: DataCenterState) -> DataCenterRecord {
        self.control_plane.set_state(seen, state, seen.epoch).await.expect("changes its state")
    }

    pub(crate) async fn active(&self) -> Vec<DataCenterRecord> {
        self.control_plane.list_active().await.expect("lists").records
    }

    /// The record as the store holds it.
    pub(crate) async fn stored(&self, name: &str) -> Option<DataCenterRecord> {
        let all = self.control_plane.list_all().await.expect("lists").records;
        all.into_iter().find(|record| record.info.name() == name)
    }

    /// Deletes a record behind everybody's back, as an engine's TTL may at any time.
    pub(crate) async fn expire(&self, id: &DataCenterId) {
        let id = data_center_id(id);
        let record = self.store.get(&id, Read::Linearizable).await.expect("reads");
        let expect = record.map_or(Expect::Absent, |record| record.expect());
        self.store.cas(&id, expect, Write::Delete, None).await.expect("deletes");
    }
}

pub(crate) fn info(name: &str) -> DataCenterInfo {
    let endpoints = vec!["10.0.0.1:4710".parse().expect("valid")];
    let info = DataCenterInfo::new(name, "", "").expect("valid");
    info.with_endpoints(endpoints).expect("valid")
}

/// What a conflict shows.
pub(crate) fn conflict<T: std::fmt::Debug>(answer: Result<T, ControlPlaneError>) -> Option<DataCenterRecord> {
    match answer {
        Err(ControlPlaneError::Conflict { current }) => current.map(|current| *current),
        other => panic!("no conflict: {other:?}"),
    }
}

pub(crate) fn superseded<T: std::fmt::Debug>(answer: Result<T, ControlPlaneError>) -> Epoch {
    match answer {
        Err(ControlPlaneError::Superseded { by }) => by,
        other => panic!("not superseded: {other:?}"),
    }
}

/// A wall clock that stands still, long ago: it decides nothing.
pub(crate) const WALL: u64 = 1_000;
