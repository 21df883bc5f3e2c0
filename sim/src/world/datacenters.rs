//! Nodes of several datacenters in one world: each datacenter has a store of its own, and all share a control plane.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::num::NonZeroU64;
use std::rc::Rc;
use std::sync::Arc;

use archipelago_backend_conformance::{Faults, FaultyStore};
use archipelago_directory::{ControlPlaneConfig, Store, StoreControlPlane, StoreDirectory, StoreHomes};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::ControlPlane;
use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterRecord};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{Environment, EnvironmentTimer};
use archipelago_runtime::{NodeBuilder, NodeSettings};

use super::{Simulation, bind_of};
use crate::env::SimEnvironment;

/// The control plane that the datacenters of a world share, and what is wrong with the ways to it. Clones are the same.
#[derive(Clone)]
pub struct SimControlPlane {
    store: Arc<EmbeddedStore>,
    lease: Millis,
    ways: Rc<RefCell<Vec<Arc<FaultyStore>>>>,
    faults: Rc<Cell<Faults>>,
}

impl SimControlPlane {
    /// A control plane without records, with leases of this length.
    pub fn new(lease: Millis) -> Self {
        Self { store: Arc::default(), lease, ways: Rc::default(), faults: Rc::default() }
    }

    /// Sets what goes wrong between all nodes and the control plane from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.faults.set(faults);
        self.ways.borrow().iter().for_each(|way| way.set_faults(faults));
    }

    /// Lets every write through that was kept back.
    pub async fn flush_late(&self) {
        let ways = self.ways.borrow().clone();
        for way in ways {
            way.flush_late().await;
        }
    }

    /// All records as they stand, whatever is wrong with the ways.
    pub async fn records(&self) -> Vec<DataCenterRecord> {
        let timer = Arc::new(archipelago_backend_conformance::ImmediateTimer);
        let store: Arc<dyn Store> = Arc::clone(&self.store) as Arc<dyn Store>;
        let plane = StoreControlPlane::new(store, timer, self.config());
        plane.list_all().await.map(|listing| listing.records).unwrap_or_default()
    }

    fn config(&self) -> ControlPlaneConfig {
        ControlPlaneConfig { lease_ttl_ms: NonZeroU64::new(self.lease.0).unwrap_or(NonZeroU64::MIN) }
    }

    /// A new way to the control plane, for the node that lives in `env`.
    fn way(&self, env: &Arc<SimEnvironment>) -> Arc<dyn ControlPlane> {
        let timer = Arc::new(EnvironmentTimer(Arc::clone(env) as Arc<dyn Environment>));
        let inner: Arc<dyn Store> = Arc::clone(&self.store) as Arc<dyn Store>;
        let way = Arc::new(FaultyStore::new(inner, timer.clone(), env.random(), self.faults.get()));
        self.ways.borrow_mut().push(Arc::clone(&way));
        Arc::new(StoreControlPlane::new(way, timer, self.config()))
    }
}

impl Simulation {
    /// Adds `count` nodes of the datacenter that `info` describes. They share a store of their own, talk over the world's
    /// network, and know the other datacenters through `plane`.
    pub fn datacenter(
        mut self,
        plane: &SimControlPlane,
        info: &DataCenterInfo,
        count: usize,
        settings: &NodeSettings,
        build: impl Fn(NodeBuilder) -> NodeBuilder + 'static,
    ) -> Self {
        if self.ground.network.is_none() {
            self = self.with_network();
        }
        self.ground.observed = false;
        let (build, store) = (Rc::new(build), Arc::new(EmbeddedStore::default()));
        for _ in 0..count {
            let (mut settings, build) = (settings.clone(), Rc::clone(&build));
            settings.remote.bind = bind_of(self.plans.len());
            settings.remote.datacenter = info.id().to_string();
            settings.datacenter.info = info.clone();
            let (plane, store) = (plane.clone(), Arc::clone(&store));
            self = self.node_in(0, move |builder, env| {
                let store: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
                let timer = Arc::new(EnvironmentTimer(Arc::clone(env) as Arc<dyn Environment>));
                let builder = builder
                    .settings(settings.clone())
                    .directory(Arc::new(StoreDirectory::new(Arc::clone(&store), timer)))
                    .homes(Arc::new(StoreHomes::new(store)))
                    .control_plane(plane.way(env));
                build(builder)
            });
        }
        self
    }
}

impl fmt::Debug for SimControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimControlPlane").field("lease", &self.lease).finish_non_exhaustive()
    }
}
