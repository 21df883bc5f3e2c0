//! The store behind the directory, and how nodes know that they share one.

mod control_plane;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "foundationdb")]
mod foundationdb;
#[cfg(any(feature = "etcd", feature = "nats"))]
mod home;
#[cfg(feature = "nats")]
mod nats;
mod settle;

use std::sync::{Arc, OnceLock};

pub(crate) use control_plane::Plane;
use settle::Settling;

use archipelago_directory::{
    Store, StoreDirectory, StoreHomes, StoreRoutingTable, StoreStateStore, StoredTables, Timer,
};
use archipelago_embedded::{CarryError, Courier, EmbeddedConfig, EmbeddedStore, ServedStore, StoreServer};
use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::{Directory, Homes, RoutingTable, StateStore};
use archipelago_protocol::hash::stable_hash_parts;
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::ranges::TableSource;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{Environment, EnvironmentTimer};
use archipelago_runtime::{AskError, Connector, NodeBuilder, Service};
use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::Error;
use crate::config::{BackendKind, Conflict, Fault, Origins, Settings};

/// What a node's ownership stands on.
pub(crate) struct Backing {
    /// Through which it owns.
    pub(crate) directory: Arc<dyn Directory>,
    /// Where its persistent actors keep their states, unless the user has another place for them.
    pub(crate) states: Arc<dyn StateStore>,
    /// The tables of range-partitioned kinds.
    pub(crate) tables: Arc<dyn TableSource>,
    /// Where they are written.
    pub(crate) routing_table: Arc<dyn RoutingTable>,
    /// Where it is written which actors were placed in which datacenter.
    pub(crate) homes: Arc<dyn Homes>,
    /// What members tell each other about their store; they refuse each other unless it is the same.
    pub(crate) identity: String,
    /// What the start has to wait for.
    pub(crate) settling: Option<Settling>,
    part: Part,
}

/// The node's part in a store of several processes.
enum Part {
    None,
    Serves(StoreServer),
    Joins(Connector),
}

impl Backing {
    /// The backing that `settings` ask for; `given` is a store that other nodes of this process use, too.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for what cannot be used together, [`Error::Backend`] for a store that cannot be reached within
    /// its timeout. Nothing runs then.
    pub(crate) async fn new(
        settings: &Settings,
        origins: &Origins,
        given: Option<Arc<EmbeddedStore>>,
        env: &Arc<dyn Environment>,
    ) -> Result<Self, Error> {
        let kind = settings.backend.kind;
        if given.is_some() && kind != BackendKind::Embedded {
            let rule = Conflict::EmbeddedOnly { key: "backend.kind", kind };
            return Err(origins.refuse(&["backend.kind"], Fault::Conflict(rule)).into());
        }
        let timer: Arc<dyn Timer> = Arc::new(EnvironmentTimer(Arc::clone(env)));
        match kind {
            BackendKind::Embedded => Ok(Self::embedded(settings, given, env, timer)),
            #[cfg(feature = "etcd")]
            BackendKind::Etcd => etcd::backing(settings, origins, env, timer).await,
            #[cfg(feature = "nats")]
            BackendKind::Nats => nats::backing(settings, origins, env, timer).await,
            #[cfg(feature = "foundationdb")]
            BackendKind::FoundationDb => foundationdb::backing(settings, origins, timer).await,
            // Settings that ask for it were refused before.
            #[cfg(not(all(feature = "etcd", feature = "nats", feature = "foundationdb")))]
            kind => Err(Error::Backend { kind, source: "not in this build".into() }),
        }
    }

    fn embedded(
        settings: &Settings,
        given: Option<Arc<EmbeddedStore>>,
        env: &Arc<dyn Environment>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let embedded = &settings.backend.embedded;
        match &embedded.join {
            Some(address) => Self::joined(settings, address.clone(), timer),
            None if embedded.serve => Self::served(settings, given, env, timer),
            None => {
                let store = given.unwrap_or_default();
                let identity = own_identity(settings, &store, &**env);
                Self::on(store, timer, identity, Part::None)
            }
        }
    }

    /// A store outside this process, which all nodes reach by themselves.
    #[cfg(any(feature = "etcd", feature = "nats", feature = "foundationdb"))]
    fn outside(store: Arc<dyn Store>, timer: Arc<dyn Timer>, identity: String) -> Self {
        Self::on(store, timer, identity, Part::None)
    }

    fn on(store: Arc<dyn Store>, timer: Arc<dyn Timer>, identity: String, part: Part) -> Self {
        let states = Arc::new(StoreStateStore::new(Arc::clone(&store)));
        let homes = Arc::new(StoreHomes::new(Arc::clone(&store)));
        let routing_table: Arc<dyn RoutingTable> =
            Arc::new(StoreRoutingTable::new(Arc::clone(&store), Arc::clone(&timer)));
        let tables = Arc::new(StoredTables::new(Arc::clone(&routing_table)));
        let directory = Arc::new(StoreDirectory::new(store, timer));
        Self { directory, states, tables, routing_table, homes, identity, settling: None, part }
    }

    /// Serves the node's own store. It grants nothing until whatever an earlier process granted has run out.
    fn served(
        settings: &Settings,
        given: Option<Arc<EmbeddedStore>>,
        env: &Arc<dyn Environment>,
        timer: Arc<dyn Timer>,
    ) -> Self {
        let base = env.wall_millis().saturating_mul(1_000);
        let store = given
            .unwrap_or_else(|| Arc::new(EmbeddedStore::with_version_base(EmbeddedConfig::default(), base)));
        let quiet = times::observer_wait(Millis::from_duration(settings.session.ttl()));
        let server = StoreServer::new(Arc::clone(&store), env.random(), Arc::clone(&timer), quiet);
        tracing::warn!(
            %quiet,
            "this node serves its store to others: for development, the store is gone with this process"
        );
        let settling = Settling::new(Arc::clone(&store) as _, Arc::clone(&timer), quiet);
        // The address of this node follows: its port may not be known yet.
        Self::on(store, timer, SERVED_AT.to_owned(), Part::Serves(server)).settling(settling)
    }

    fn settling(self, settling: Settling) -> Self {
        Self { settling: Some(settling), ..self }
    }

    fn joined(settings: &Settings, address: NodeAddress, timer: Arc<dyn Timer>) -> Self {
        let connector = Connector::new();
        let identity = format!("{SERVED_AT}{address}");
        let courier =
            Arc::new(OverTheNetwork { connector: connector.clone(), address, service: STORE_SERVICE });
        let store = ServedStore::new(courier, Arc::clone(&timer));
        let node = connector.clone();
        store.on_new_instance(Box::new(move || node.give_up("the served store was started anew")));
        let store: Arc<dyn Store> = Arc::new(store);
        let quiet = times::observer_wait(Millis::from_duration(settings.session.ttl()));
        let settling = Settling::new(Arc::clone(&store), Arc::clone(&timer), quiet);
        Self::on(store, timer, identity, Part::Joins(connector)).settling(settling)
    }

    /// Whether other nodes join the store of this one.
    pub(crate) const fn is_served(&self) -> bool {
        matches!(self.part, Part::Serves(_))
    }

    /// Gives the node its part.
    pub(crate) fn take_part(self, builder: NodeBuilder) -> NodeBuilder {
        match self.part {
            Part::None => builder,
            Part::Serves(server) => builder.service(STORE_SERVICE, Arc::new(ServesStore(server))),
            Part::Joins(connector) => builder.connector(connector),
        }
    }
}

/// Answers the requests of other nodes to the store.
struct ServesStore(StoreServer);

impl Service for ServesStore {
    fn serve(&self, _from: NodeId, request: Bytes) -> BoxFuture<'static, Result<Bytes, CallError>> {
        let answer = self.0.serve(request);
        Box::pin(async move { Ok(answer.await) })
    }
}

/// Carries requests to the node that serves the store.
struct OverTheNetwork {
    connector: Connector,
    address: NodeAddress,
    /// The number of the service that answers there.
    service: u16,
}

impl Courier for OverTheNetwork {
    fn carry(&self, request: Bytes, timeout: Millis) -> BoxFuture<'static, Result<Bytes, CarryError>> {
        let (connector, address, service) = (self.connector.clone(), self.address.clone(), self.service);
        Box::pin(async move {
            let answer = connector.ask(address, service, request, timeout).await;
            answer.map_err(|error| match error {
                AskError::NotSent { reason } => CarryError::NotSent { reason },
                other => CarryError::Unknown { reason: other.to_string() },
            })
        })
    }
}

/// What `name` says; empty, which is no check, if configuration says where kinds live: then there need not be a store in
/// common.
fn identity_in(settings: &Settings, name: impl FnOnce() -> String) -> String {
    if settings.cluster.placed.is_empty() { name() } else { String::new() }
}

fn own_identity(settings: &Settings, store: &Arc<EmbeddedStore>, env: &dyn Environment) -> String {
    // The address tells the stores of this process apart, the random key those of others; hashed with a key that nobody is
    // told, the address says nothing about this process's memory.
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let key = PROCESS.get_or_init(|| env.random()).to_string();
    let address = Arc::as_ptr(store).addr().to_string();
    identity_in(settings, || format!("embedded-{:016x}", stable_hash_parts(&[&key, &address])))
}

/// Before the address of a node whose store others join.
const SERVED_AT: &str = "embedded at ";
/// The number of the service that answers for the store.
const STORE_SERVICE: u16 = 1;

#[cfg(test)]
mod tests {
    use archipelago_runtime::env::{HostEnvironment, Threads};

    use super::*;

    #[test]
    fn nodes_that_share_a_store_have_its_identity_and_others_have_another() {
        let settings = Settings::default();
        let (shared, own) = (Arc::default(), Arc::default());
        // Nodes of one process may have environments of their own.
        let of = |store: &Arc<EmbeddedStore>| {
            own_identity(&settings, store, &HostEnvironment::new(Threads::Current))
        };
        assert_eq!(of(&shared), of(&Arc::clone(&shared)));
        assert_ne!(of(&shared), of(&own));
    }

    #[test]
    fn where_kinds_are_placed_by_hand_no_store_is_compared() {
        let mut settings = Settings::default();
        settings.cluster.placed.insert("Account".to_owned(), "host:4710".parse().unwrap());
        assert_eq!(own_identity(&settings, &Arc::default(), &HostEnvironment::new(Threads::Current)), "");
    }
}
