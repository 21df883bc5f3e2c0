//! The settings of a node and how they are read.
//!
//! Layers, weakest first: the defaults in code, `archipelago.toml`, `archipelago.<profile>.toml`, environment
//! variables, builder calls. [`Loader`] reads and merges them; [`Settings`] is what comes out. Keys are
//! checked in each layer before the merge, so one [`ConfigError`] names every mistake, each with its file and
//! line or its variable.
//!
//! # Environment
//!
//! - `ARCHIPELAGO_CONFIG` names the file to read instead of `archipelago.toml`; it must exist.
//! - `ARCHIPELAGO_PROFILE` names the profile; the file of a named profile must exist.
//! - `ARCHIPELAGO_SECTION__KEY` sets `section.key`. A key outside every section has an empty section:
//!   `ARCHIPELAGO__NAMESPACE`. The name of an actor kind keeps its case:
//!   `ARCHIPELAGO_ACTORS__KINDS__Account__IDLE_AFTER`, `ARCHIPELAGO_CLUSTER__PLACED__Account`.
//! - Every other variable, `ARCHIPELAGO_TEST_*` among them, is not configuration.
//!
//! Durations are text (`"500ms"`, `"10min"`), sizes too (`"64 MiB"`), and a secret is the name of a file that
//! holds it. Where a value may be absent, empty text is none.

mod admin;
mod backend;
mod cluster;
mod conflict;
mod control_plane;
mod datacenter;
mod error;
mod etcd;
mod foundationdb;
mod lanes;
mod layer;
mod leaf;
mod load;
mod membership;
mod nats;
mod optional;
mod origins;
mod placement;
mod reach;
mod schema;
mod secret;
mod settings;
mod sharding;
mod size;
mod span;
mod transport;

pub use crate::inspect::Inspection;
pub use admin::AdminSettings;
pub use archipelago_protocol::session::OnStuck;
pub use backend::{BackendKind, BackendSettings, EmbeddedSettings, UnknownBackend};
pub use cluster::ClusterSettings;
pub use conflict::Conflict;
pub use control_plane::{ControlPlaneKind, ControlPlaneSettings};
pub use datacenter::{
    DataCenterPlacement, DataCenterSettings, Gateways, OnSilence, OnStale, OnStaleSettings,
};
pub use error::{ConfigError, Fault, Origin, Problem};
pub use etcd::{EtcdSettings, EtcdTlsSettings};
pub use foundationdb::FoundationDbSettings;
pub use lanes::{LaneSettings, Overflow};
pub use load::Loader;
pub use membership::{Leader, MembershipSettings, Placement, SplitBrain};
pub use nats::{NatsSettings, NatsTlsSettings};
pub(crate) use origins::Origins;
pub use placement::{CacheSettings, Divided};
pub use reach::Reach;
pub use secret::{Secret, SecretError, SecretFile};
pub use settings::{
    ActorSettings, CallSettings, EventSettings, FenceSettings, KindSettings, NodeSettings, SessionSettings,
    Settings, TtlTooShort,
};
pub use sharding::{ShardingSettings, Strategy};
pub use size::{BadSize, Size};
pub use span::{Idle, Pause};
pub use transport::{Host, TransportKind, TransportSettings};
#[cfg(any(feature = "quic", feature = "tcp"))]
pub(crate) use transport::{Proof, Security};

#[cfg(test)]
mod tests;
