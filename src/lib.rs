//! archipelago turns ordinary actix actors into a distributed system.
//!
//! Actors get addresses that say who they are and not where: `node.actor::<Account>("alice")` is the same actor
//! for everybody, is activated by its first message, runs at most once, and goes when it is idle. Handlers stay
//! plain actix handlers.
//!
//! # Start here
//!
//! - [`remote`] and [`VirtualActor`](macro@VirtualActor) declare messages and actors.
//! - [`BuildNode::builder`] starts a [`Node`]; [`config`] says what it can be told, and which transport it uses
//!   (cargo features `quic` and `tcp`) and which store (`etcd`, `nats` and `foundationdb`; one in memory is always there).
//! - The cargo feature `admin` shows over HTTP what a node knows, and lets an operator change something; `prometheus` adds its
//!   metrics, `dashboard` a page for people.
//! - [`ActorRef`] sends; [`CallError::outcome`] tells a failed caller whether the handler may have run.
//! - [`Lifecycle`] runs code when an actor comes and goes; [`Persistent`] keeps its state in between, and
//!   [`Migrate`] takes it along when the actor moves to another node.

mod admin;
mod builder;
pub mod config;
mod error;
mod inspect;
mod network;
mod node_settings;
pub mod prelude;
mod store;

#[cfg(feature = "admin")]
pub use archipelago_admin::{AdminService, admin};
#[cfg(feature = "prometheus")]
pub use archipelago_admin::{MetricsError, install_metrics};
pub use archipelago_macros::{NamedActor, RemoteMessage, VirtualActor, remote};
pub use archipelago_protocol::activation::{DeactivateReason, Interleave};
pub use archipelago_protocol::call::{CallError, ForeignNamespace, Outcome, Queue, UnknownMessage};
pub use archipelago_protocol::contract::TableVersion;
pub use archipelago_protocol::identity;
pub use archipelago_protocol::message::{Codec, MessageFlags, TraceContext};
pub use archipelago_protocol::placement::{Cached, KindLayout, ShardCount, ShardCountError};
pub use archipelago_protocol::ranges::{
    ChangeRefusal, KeyRange, KnownTable, RangeTable, RouteEntry, TableSource,
};
pub use archipelago_protocol::time::Millis;
pub use archipelago_protocol::watch::Termination;
pub use archipelago_runtime::{
    AcceptedBy, Activation, ActorRef, BoxError, Call, CallOptions, ClusterMember, DeadLetter, Event,
    EventStream, InCall, InboundMessage, Lifecycle, METRICS, MessageEnvelope, MessageRef, MessageTable,
    Metric, MetricKind, Migrate, NameError, NamedActor, NamedRef, NamedTable, Node, NodeSettings, Notice,
    Persistent, PlaceError, PlacedActor, RangeError, RemoteDeadLetter, RemoteMessage, Saving, SendRemote,
    ShardEnvelope, ShardRegion, Sharding, Spawned, StartError, StateError, StopError, SubscribeInbound,
    Subscription, TraceBridge, TransportActor, UntypedRef, VirtualActor, Watch, current_trace,
    describe_metrics, env, in_call, remaining,
};
pub use builder::{BuildNode, Builder};
pub use error::Error;

/// How messages become bytes, and what a codec of your own must be: a [`PayloadCodec`](codec::PayloadCodec), which messages name
/// by `#[remote(.., codec = MyCodec)]`.
pub mod codec {
    pub use archipelago_protocol::message::{CodecError, CodecId, Json, PayloadCodec, Postcard};
}

/// The datacenters as a node sees them, policies that choose among them, and what a control plane of your own must be. Its rules
/// are the suite `control_plane_conformance` of `archipelago-backend-conformance`.
pub mod datacenter {
    pub use archipelago_protocol::contract::{
        ControlPlane, ControlPlaneError, DataCenterEvent, DataCenterWatch, Epoch, Listing, Revision,
    };
    pub use archipelago_protocol::datacenter::{
        ChooseDataCenter, DataCenterCandidate, DataCenterId, DataCenterInfo, DataCenterMap, DataCenterRecord,
        DataCenterState, DataCenterTarget, DataCenterVersion, HomeByKey, MapEntry, NearestFirst, NoCandidate,
        RegionFirst, TargetError, WantedDataCenter,
    };
    pub use archipelago_runtime::Reach;
}

/// What becomes of a move of a shard, and what a strategy of your own needs to know.
pub mod handoff {
    pub use archipelago_protocol::handoff::{
        AllocateShards, Allocations, HandOffOutcome, Host, KindBalance, LeastShards, RefuseReason, ShardMove,
        StayReason, WeighLoad,
    };
    pub use archipelago_runtime::Rebalance;
}

/// What a strategy or a rule of your own needs to know about the members of a cluster.
pub mod membership {
    pub use archipelago_protocol::membership::{
        LeaderProvider, Member, MemberEvent, MemberStatus, NodeLoad, Sides, SplitBrain,
    };
}

/// What a rule of your own for who is asked first to own a shard must be.
pub mod placement {
    pub use archipelago_protocol::identity::{Kind, NodeAddress, NodeId};
    pub use archipelago_protocol::placement::{
        Candidate, ChooseNode, LeastLoaded, Local, Random, Spread, Wanted,
    };
}

/// What a transport of your own must be. Its rules are the suite of `archipelago-transport-conformance`.
pub mod transport {
    pub use archipelago_protocol::contract::{
        CloseCode, CloseReason, Connection, Endpoint, PeerIdentity, RecvStream, SendStream, Streams,
        Transport, TransportError,
    };
}

/// What a store of your own for the states of actors must be. Its rules are the suite `state_store_conformance` of
/// `archipelago-backend-conformance`.
pub mod state {
    pub use archipelago_protocol::contract::{Schema, StateStore, StateStoreError, StoredState};
    pub use archipelago_protocol::identity::{ActorId, Generation};
}

/// The embedded backend: a store in memory, for one process.
pub mod embedded {
    use std::num::NonZeroU64;
    use std::sync::Arc;
    use std::time::Duration;

    use archipelago_directory::{ControlPlaneConfig, StoreControlPlane};
    pub use archipelago_embedded::{EmbeddedConfig, EmbeddedStateStore, EmbeddedStore, state_store};
    use archipelago_protocol::contract::ControlPlane;
    use archipelago_protocol::time::Millis;
    use archipelago_runtime::env::{EnvironmentTimer, HostEnvironment, Threads};

    /// The control plane above an embedded store, with leases of `lease`: for nodes of several datacenters in one process.
    pub fn control_plane(store: Arc<EmbeddedStore>, lease: Duration) -> Arc<dyn ControlPlane> {
        let millis = Millis::from_duration(lease).0;
        let config = ControlPlaneConfig { lease_ttl_ms: NonZeroU64::new(millis).unwrap_or(NonZeroU64::MIN) };
        let timer = Arc::new(EnvironmentTimer(Arc::new(HostEnvironment::new(Threads::Current))));
        Arc::new(StoreControlPlane::new(store, timer, config))
    }
}

/// For the code that the macros write. No part of the public interface.
#[doc(hidden)]
pub mod __private {
    pub use {actix, archipelago_protocol as protocol, archipelago_runtime as runtime, serde};
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmePrograms;

#[cfg(doctest)]
#[doc = include_str!("../docs/tutorial.md")]
struct TutorialPrograms;
