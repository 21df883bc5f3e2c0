//! The control plane's rules on the embedded store, and what it asks of a store for each.

#![allow(clippy::unwrap_used)]

mod through;

use std::future::Future;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::{ImmediateTimer, control_plane_conformance};
use archipelago_directory::{
    CasAnswer, ControlPlaneConfig, Expect, Guard, Read, Record, RecordId, Store, StoreControlPlane,
    StoreError, Write,
};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{ControlPlane, Epoch};
use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterRecord, DataCenterState};
use async_trait::async_trait;
use futures_util::FutureExt;
use through::{Hand, Through};

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    let fixture = ControlPlaneFixture::new(Arc::new(EmbeddedStore::default()), Arc::new(ImmediateTimer));
    rule(fixture).now_or_never().expect("the control plane answers at once");
}

control_plane_conformance!(run);

/// What a store was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Get,
    List,
    Watch,
    /// With a value of so many bytes.
    Write(usize),
}

/// Writes down what a store is asked.
#[derive(Default)]
struct Noting {
    asked: Mutex<Vec<Asked>>,
}

impl Noting {
    fn note(&self, asked: Asked) {
        self.asked.lock().unwrap().push(asked);
    }

    fn take(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Hand for Noting {
    async fn get(&self, behind: &dyn Store, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.note(Asked::Get);
        behind.get(id, read).await
    }

    async fn cas(
        &self,
        behind: &dyn Store,
        id: &RecordId,
        (expect, write, guard): (Expect, Write, Option<Guard>),
    ) -> Result<CasAnswer, StoreError> {
        self.note(Asked::Write(match &write {
            Write::Put { value, .. } => value.len(),
            Write::Delete => 0,
        }));
        behind.cas(id, expect, write, guard).await
    }

    fn lists(&self) {
        self.note(Asked::List);
    }

    fn watches(&self) {
        self.note(Asked::Watch);
    }
}

fn plane() -> (Arc<Through<Noting>>, StoreControlPlane) {
    let store = Arc::new(Through::new(Noting::default()));
    let config = ControlPlaneConfig { lease_ttl_ms: std::num::NonZeroU64::new(30_000).unwrap() };
    let plane =
        StoreControlPlane::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(ImmediateTimer), config);
    (store, plane)
}

async fn active(plane: &StoreControlPlane, name: &str) -> DataCenterRecord {
    let gateways = ["10.0.0.1:4710".parse().unwrap(), "10.0.0.2:4710".parse().unwrap()];
    let info = DataCenterInfo::new(name, "eu", "a").unwrap().with_endpoints(gateways.to_vec()).unwrap();
    let registered = plane.register(&info, Epoch(1), 1_000).await.unwrap();
    plane.heartbeat(&registered, Epoch(1), 2_000).await.unwrap()
}

/// Proves: R383
#[test]
fn all_active_datacenters_are_read_by_one_query_however_many_there_are() {
    let (store, plane) = plane();
    let listing = async {
        for number in 0..40 {
            active(&plane, &format!("dc-{number}")).await;
        }
        store.hand.take();
        plane.list_active().await.unwrap()
    };
    assert_eq!(listing.now_or_never().unwrap().records.len(), 40);
    assert_eq!(store.hand.take(), [Asked::List]);
}

/// The record is one value, replaced as a whole; what the heartbeat changes of it is the lease and the version.
///
/// Proves: R382
#[test]
fn a_heartbeat_is_one_small_write_that_renews_the_lease_and_the_version() {
    let (store, plane) = plane();
    let beats = async {
        let before = active(&plane, "main").await;
        store.hand.take();
        let after = plane.heartbeat(&before, Epoch(1), 12_000).await.unwrap();
        (before, after)
    };
    let (before, after) = beats.now_or_never().unwrap();
    let asked = store.hand.take();
    assert!(matches!(asked[..], [Asked::Write(bytes)] if bytes < 300), "{asked:?}");
    assert_eq!((after.state, after.lease_expiry_ms), (DataCenterState::Active, 42_000));
    assert!(after.version > before.version);
    let (lease_expiry_ms, version) = (before.lease_expiry_ms, before.version);
    assert_eq!(DataCenterRecord { lease_expiry_ms, version, ..after }, before);
}
