//! The control plane's rules on the embedded store, and what it asks of a store for each.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::{ImmediateTimer, control_plane_conformance};
use archipelago_directory::{
    CasAnswer, ControlPlaneConfig, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store,
    StoreControlPlane, StoreError, StoreWatch, Write,
};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{ControlPlane, Epoch};
use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterRecord, DataCenterState};
use async_trait::async_trait;
use futures_util::FutureExt;

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

/// A store that writes down what it is asked.
#[derive(Default)]
struct Noting {
    inner: EmbeddedStore,
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
impl Store for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.note(Asked::Get);
        self.inner.get(id, read).await
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        self.note(Asked::Write(match &write {
            Write::Put { value, .. } => value.len(),
            Write::Delete => 0,
        }));
        self.inner.cas(id, expect, write, guard).await
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.note(Asked::List);
        self.inner.list(space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.note(Asked::Watch);
        self.inner.watch(space, after).await
    }
}

fn plane() -> (Arc<Noting>, StoreControlPlane) {
    let store = Arc::new(Noting::default());
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
        store.take();
        plane.list_active().await.unwrap()
    };
    assert_eq!(listing.now_or_never().unwrap().records.len(), 40);
    assert_eq!(store.take(), [Asked::List]);
}

/// The record is one value, replaced as a whole; what the heartbeat changes of it is the lease and the version.
///
/// Proves: R382
#[test]
fn a_heartbeat_is_one_small_write_that_renews_the_lease_and_the_version() {
    let (store, plane) = plane();
    let beats = async {
        let before = active(&plane, "main").await;
        store.take();
        let after = plane.heartbeat(&before, Epoch(1), 12_000).await.unwrap();
        (before, after)
    };
    let (before, after) = beats.now_or_never().unwrap();
    let asked = store.take();
    assert!(matches!(asked[..], [Asked::Write(bytes)] if bytes < 300), "{asked:?}");
    assert_eq!((after.state, after.lease_expiry_ms), (DataCenterState::Active, 42_000));
    assert!(after.version > before.version);
    let (lease_expiry_ms, version) = (before.lease_expiry_ms, before.version);
    assert_eq!(DataCenterRecord { lease_expiry_ms, version, ..after }, before);
}
