//! The records of datacenters, as somebody reads them who is no node.

use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago::datacenter::{ControlPlane, DataCenterEvent, DataCenterRecord};
use archipelago_directory::{ControlPlaneConfig, Store as DirectoryStore, StoreControlPlane, Timer};
use archipelago_etcd::{EtcdConfig, EtcdStore};
use archipelago_nats::{NatsConfig, NatsStore};
use archipelago_runtime::env::{EnvironmentTimer, HostEnvironment, Threads};
use archipelago_test_servers::nats;
use futures_util::StreamExt;

use crate::datacenter::LEASE;
use crate::store::{REGISTRY, Store};

/// Every record that one datacenter has had since it is followed, in order.
pub struct Followed {
    seen: Arc<Mutex<Vec<DataCenterRecord>>>,
}

impl Followed {
    /// Follows a datacenter in the registry that is in `store`.
    pub fn begin(store: &Store, datacenter: &'static str) -> Self {
        let address = match store {
            Store::Etcd(server) => server.address(),
            Store::Nats(server) => nats::url(server),
        };
        let (kind, seen) = (store.name(), Arc::default());
        let followed = Self { seen: Arc::clone(&seen) };
        // It ends with the test.
        std::thread::spawn(move || {
            actix::System::new().block_on(follow(kind, &address, datacenter, &seen));
        });
        followed
    }

    /// All so far.
    pub fn records(&self) -> Vec<DataCenterRecord> {
        lock(&self.seen).clone()
    }

    /// The newest.
    pub fn newest(&self) -> Option<DataCenterRecord> {
        lock(&self.seen).last().cloned()
    }
}

/// A record that is gone is noted as nothing: whoever waits for the next one sees that none comes.
async fn follow(kind: &str, address: &str, datacenter: &str, seen: &Mutex<Vec<DataCenterRecord>>) {
    let mut watch = plane(kind, address).await.watch(None).await.expect("the registry can be watched");
    while let Some(event) = watch.next().await {
        let records = match event.expect("the registry answers") {
            DataCenterEvent::Snapshot { records, .. } => records,
            DataCenterEvent::Put { record, .. } => vec![record],
            DataCenterEvent::Gone { id, .. } if id.as_str() == datacenter => panic!("{id} is gone"),
            DataCenterEvent::Gone { .. } => Vec::new(),
        };
        lock(seen).extend(records.into_iter().filter(|record| record.id().as_str() == datacenter));
    }
}

async fn plane(kind: &str, address: &str) -> StoreControlPlane {
    let timer: Arc<dyn Timer> = Arc::new(EnvironmentTimer(Arc::new(HostEnvironment::new(Threads::Current))));
    let store: Arc<dyn DirectoryStore> = if kind == "etcd" {
        let endpoints = vec![address.to_owned()];
        let config = EtcdConfig { endpoints, prefix: format!("/{REGISTRY}"), ..EtcdConfig::default() };
        Arc::new(EtcdStore::connect(&config, Arc::clone(&timer)).await.expect("etcd answers"))
    } else {
        let mut config = NatsConfig::default();
        config.urls = vec![address.to_owned().try_into().expect("the address of a server")];
        config.stream = REGISTRY.to_owned().try_into().expect("a plain name");
        config.prefix = REGISTRY.to_owned().try_into().expect("a plain name");
        config.replicas = 1.try_into().expect("one is enough");
        config.create_stream = false;
        Arc::new(NatsStore::connect(config).await.expect("NATS answers"))
    };
    let lease = u64::try_from(LEASE.as_millis()).ok().and_then(NonZeroU64::new).expect("a lease is short");
    StoreControlPlane::new(store, timer, ControlPlaneConfig { lease_ttl_ms: lease })
}

fn lock(seen: &Mutex<Vec<DataCenterRecord>>) -> MutexGuard<'_, Vec<DataCenterRecord>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}
