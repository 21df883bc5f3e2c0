//! The simulated store of a world, and the observer who ends the sessions of nodes that fell silent.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::{Faults, FaultyStore, Rng};
use archipelago_directory::{
    CasAnswer, Read, Space, Store, StoreDirectory, StoreRoutingTable, StoreStateStore, Write, lease_id,
};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{Directory, RoutingTable, StateStore};
use archipelago_protocol::identity::{NodeId, OwnedKey};
use archipelago_protocol::session::{EndReason, Lease, LeaseVersion, times};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{Environment, EnvironmentTimer};

use super::beats::{Beats, Side, Tap};
use crate::clock::TrueClock;
use crate::env::SimEnvironment;

/// One store, and every node's way to it.
pub(crate) struct Stores {
    inner: Arc<dyn Store>,
    beats: Arc<Beats>,
    /// The way of each life of each node; writes kept back on a dead node's way may still come through.
    ways: RefCell<Vec<Arc<FaultyStore>>>,
    faults: Cell<Faults>,
    truth: TrueClock,
    /// The observer's own, unspoilt view.
    observer: StoreDirectory,
    late_applied: Cell<u64>,
}

/// What a node reaches the store by.
pub(crate) struct Way {
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) states: Arc<dyn StateStore>,
    pub(crate) tables: Arc<dyn RoutingTable>,
}

impl Stores {
    /// A store without records, whose lease writes are noted in `beats`, with those of the other datacenters: no two sessions have
    /// one id.
    pub(crate) fn new(truth: TrueClock, beats: Arc<Beats>) -> Self {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::default());
        let inner: Arc<dyn Store> =
            Arc::new(Tap { inner: store, beats: Arc::clone(&beats), side: Side::Store });
        let env: Arc<dyn Environment> = Arc::new(SimEnvironment::new(truth, 0, OBSERVER));
        let observer = StoreDirectory::new(Arc::clone(&inner), Arc::new(EnvironmentTimer(env)));
        let (ways, faults, late_applied) = (RefCell::default(), Cell::default(), Cell::default());
        Self { inner, beats, ways, faults, truth, observer, late_applied }
    }

    /// A new way to the store, for the node that lives in `env`.
    pub(crate) fn way(&self, env: &Arc<SimEnvironment>, seed: u64) -> Way {
        let timer = Arc::new(EnvironmentTimer(Arc::clone(env) as Arc<dyn Environment>));
        let way = FaultyStore::new(Arc::clone(&self.inner), timer.clone(), seed, self.faults.get());
        let way = Arc::new(way);
        self.ways.borrow_mut().push(Arc::clone(&way));
        let tap = Tap { inner: way, beats: Arc::clone(&self.beats), side: Side::Node(Arc::clone(env)) };
        let tap: Arc<dyn Store> = Arc::new(tap);
        let states = StoreStateStore::new(Arc::clone(&tap));
        let tables = StoreRoutingTable::new(Arc::clone(&tap), timer.clone());
        let directory = Arc::new(StoreDirectory::new(tap, timer));
        Way { directory, states: Arc::new(states), tables: Arc::new(tables) }
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.faults.set(faults);
        self.ways.borrow().iter().for_each(|way| way.set_faults(faults));
    }

    pub(crate) const fn beats(&self) -> &Arc<Beats> {
        &self.beats
    }

    /// How many writes came through after their sender had been told that their outcome is unknown.
    pub(crate) const fn late_applied(&self) -> u64 {
        self.late_applied.get()
    }

    /// Lets writes that were kept back through, one now and then, for ever.
    pub(crate) async fn let_late_writes_through(self: Rc<Self>, mut rng: Rng) {
        loop {
            TrueClock::sleep(Duration::from_millis(20 + rng.below(1_500))).await;
            let ways: Vec<_> =
                self.ways.borrow().iter().filter(|way| way.late_writes() > 0).cloned().collect();
            if !ways.is_empty() && ways[rng.index(ways.len())].apply_late().await {
                self.late_applied.set(self.late_applied.get() + 1);
            }
        }
    }

    /// Ends the sessions that fall silent, as an observer must: after watching each stand still for long enough.
    pub(crate) async fn observe(self: Rc<Self>) {
        let mut still: BTreeMap<NodeId, (LeaseVersion, Duration)> = BTreeMap::new();
        loop {
            TrueClock::sleep(LOOK_EVERY).await;
            for (seen, ttl) in self.live_leases().await {
                let (version, since) = still.entry(seen.0).or_insert((seen.1, self.truth.elapsed()));
                if *version != seen.1 {
                    (*version, *since) = (seen.1, self.truth.elapsed());
                } else if self.truth.elapsed() - *since >= times::observer_wait(ttl).to_duration() {
                    let (by, why) = (NodeId::new(OBSERVER), EndReason::Silent);
                    // If a beat came first, it is seen next time.
                    drop(self.observer.end_session(seen.0, seen.1, by, why).await);
                }
            }
        }
    }

    /// Removes the lease of `node` if it is live; false if it is not.
    pub(crate) async fn expire(&self, node: NodeId) -> bool {
        let id = lease_id(node);
        let Ok(Some(record)) = self.inner.get(&id, Read::Linearizable).await else { return false };
        let live = matches!(serde_json::from_slice(&record.value), Ok(Lease::Live { .. }));
        let removed = async { self.inner.cas(&id, record.expect(), Write::Delete, None).await };
        live && matches!(removed.await, Ok(CasAnswer::Applied(_)))
    }

    /// Waits until the session of `node` has ended.
    pub(crate) async fn ended(&self, node: NodeId) {
        while let Ok(Some(seen)) = self.observer.lease(node).await
            && !seen.lease.has_ended()
        {
            TrueClock::sleep(LOOK_EVERY).await;
        }
    }

    /// Whether there is a lease of `node`.
    pub(crate) async fn knows(&self, node: NodeId) -> bool {
        matches!(self.observer.lease(node).await, Ok(Some(_)))
    }

    /// Who owns `key`.
    pub(crate) async fn owner(&self, key: &OwnedKey) -> Option<NodeId> {
        Some(self.observer.lookup(key).await.ok()??.placement.node)
    }

    async fn live_leases(&self) -> Vec<((NodeId, LeaseVersion), Millis)> {
        let listed =
            self.inner.list(Space::LEASES, None).await.map(|listed| listed.records).unwrap_or_default();
        let live = listed.into_iter().filter_map(|record| {
            let ttl = serde_json::from_slice::<Lease>(&record.value).ok()?.ttl()?;
            Some(((record.id.key.parse().ok()?, LeaseVersion(record.version.0)), ttl))
        });
        live.collect()
    }
}

/// How often the observer looks.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The observer's id, and the seed of its environment.
const OBSERVER: u64 = 7;
