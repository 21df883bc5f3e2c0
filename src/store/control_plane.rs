//! From `[control_plane]` to the registry of datacenters.

use std::num::NonZeroU64;
use std::sync::Arc;

use archipelago_directory::{ControlPlaneConfig, Store, StoreControlPlane, Timer};
use archipelago_embedded::{EmbeddedConfig, EmbeddedStore, ServedStore, StoreServer};
use archipelago_protocol::contract::ControlPlane;
use archipelago_protocol::datacenter::EMBEDDED_LEASE;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{Environment, EnvironmentTimer};
use archipelago_runtime::{Connector, NodeBuilder};

use super::{OverTheNetwork, Part, ServesStore};
use crate::Error;
use crate::config::{BackendKind, Conflict, ControlPlaneKind, Fault, Origins, Settings};

/// The control plane of a node, and its part in one of several processes.
pub(crate) struct Plane {
    plane: Option<Arc<dyn ControlPlane>>,
    part: Part,
}

impl Plane {
    /// The control plane that `settings` ask for; `given` is an embedded one that other nodes of this process use, too.
    ///
    /// # Errors
    ///
    /// As [`Backing::new`](super::Backing::new).
    pub(crate) async fn new(
        settings: &Settings,
        origins: &Origins,
        given: Option<Arc<EmbeddedStore>>,
        env: &Arc<dyn Environment>,
    ) -> Result<Self, Error> {
        let own = &settings.control_plane;
        let ControlPlaneKind::In(kind) = own.kind else {
            return match given {
                Some(_) => Err(unwanted(origins, BackendKind::Embedded)),
                None => Ok(Self { plane: None, part: Part::None }),
            };
        };
        if given.is_some() && kind != BackendKind::Embedded {
            return Err(unwanted(origins, kind));
        }
        let timer: Arc<dyn Timer> = Arc::new(EnvironmentTimer(Arc::clone(env)));
        let (store, part): (Arc<dyn Store>, Part) = match kind {
            BackendKind::Embedded => embedded(settings, given, env, &timer),
            #[cfg(feature = "etcd")]
            BackendKind::Etcd => {
                let section = "control_plane.etcd";
                (super::etcd::connect(&own.etcd, section, origins, env, &timer).await?, Part::None)
            }
            #[cfg(feature = "nats")]
            BackendKind::Nats => {
                (super::nats::connect(&own.nats, "control_plane.nats", origins, env).await?, Part::None)
            }
            #[cfg(feature = "foundationdb")]
            BackendKind::FoundationDb => {
                let section = "control_plane.foundationdb";
                (super::foundationdb::connect(&own.foundationdb, section, origins, &timer).await?, Part::None)
            }
            // Settings that ask for it were refused before.
            #[cfg(not(all(feature = "etcd", feature = "nats", feature = "foundationdb")))]
            kind => return Err(Error::Backend { kind, source: "not in this build".into() }),
        };
        let config = ControlPlaneConfig { lease_ttl_ms: lease(settings) };
        Ok(Self { plane: Some(Arc::new(StoreControlPlane::new(store, timer, config))), part })
    }

    /// One that the caller brings along.
    pub(crate) const fn given(plane: Arc<dyn ControlPlane>) -> Self {
        Self { plane: Some(plane), part: Part::None }
    }

    /// Whether there is one.
    pub(crate) const fn is_some(&self) -> bool {
        self.plane.is_some()
    }

    /// Gives the node its part.
    pub(crate) fn take_part(self, builder: NodeBuilder) -> NodeBuilder {
        let builder = match self.plane {
            Some(plane) => builder.control_plane(plane),
            None => builder,
        };
        match self.part {
            Part::None => builder,
            Part::Serves(server) => builder.service(CONTROL_PLANE_SERVICE, Arc::new(ServesStore(server))),
            Part::Joins(connector) => builder.connector(connector),
        }
    }
}

fn embedded(
    settings: &Settings,
    given: Option<Arc<EmbeddedStore>>,
    env: &Arc<dyn Environment>,
    timer: &Arc<dyn Timer>,
) -> (Arc<dyn Store>, Part) {
    let own = &settings.control_plane.embedded;
    if let Some(address) = own.join.clone() {
        let connector = Connector::new();
        let courier =
            OverTheNetwork { connector: connector.clone(), address, service: CONTROL_PLANE_SERVICE };
        return (Arc::new(ServedStore::new(Arc::new(courier), Arc::clone(timer))), Part::Joins(connector));
    }
    // Versions go on from those of an earlier process, so that nobody takes the new records for old ones.
    let base = env.wall_millis().saturating_mul(1_000);
    let anew = || Arc::new(EmbeddedStore::with_version_base(EmbeddedConfig::default(), base));
    let store = given.unwrap_or_else(anew);
    if !own.serve {
        return (store, Part::None);
    }
    let server = StoreServer::new(Arc::clone(&store), env.random(), Arc::clone(timer), Millis::ZERO);
    (store, Part::Serves(server))
}

fn unwanted(origins: &Origins, kind: BackendKind) -> Error {
    let rule = Conflict::EmbeddedOnly { key: "control_plane.kind", kind };
    origins.refuse(&["control_plane.kind"], Fault::Conflict(rule)).into()
}

fn lease(settings: &Settings) -> NonZeroU64 {
    let millis = Millis::from_duration(settings.control_plane.lease());
    NonZeroU64::new(millis.0).unwrap_or(EMBEDDED)
}

const EMBEDDED: NonZeroU64 = NonZeroU64::new(EMBEDDED_LEASE.0).expect("a lease is longer than nothing");

/// The number of the service that answers for a control plane that this node serves.
const CONTROL_PLANE_SERVICE: u16 = 2;
