//! The settings of a node: one struct per section, with the defaults.
//!
//! `[backend]`, `[cluster]`, `[transport]` and `[lanes]` have files of their own. Each field is a type that refuses what makes no sense (zero queues, a lease shorter than three heartbeats).
//! What holds between keys ([`Conflict`](super::Conflict)) is checked when they are loaded and when a node starts.

use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use archipelago_protocol::identity::{ActorKey, Namespace};
use archipelago_protocol::placement::{KindLayout, ShardCount};
use archipelago_protocol::session::OnStuck;
use humantime_serde::re::humantime::format_duration;
use serde::{Deserialize, Serialize};

use super::admin::AdminSettings;
use super::backend::{BackendKind, BackendSettings};
use super::cluster::ClusterSettings;
use super::control_plane::ControlPlaneSettings;
use super::datacenter::DataCenterSettings;
use super::lanes::LaneSettings;
use super::leaf::arbiters;
use super::membership::{MembershipSettings, Placement};
use super::optional;
use super::placement::{CacheSettings, Divided};
use super::reach::Reach;
use super::sharding::{ShardingSettings, Strategy};
use super::span::{self, Idle};
use super::transport::TransportSettings;

/// Everything a node can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// The cluster's namespace: part of every actor id. Messages never cross it.
    pub namespace: Namespace,
    /// This process.
    pub node: NodeSettings,
    /// Messages to actors.
    pub calls: CallSettings,
    /// Virtual actors.
    pub actors: ActorSettings,
    /// Subscriptions to events.
    pub events: EventSettings,
    /// The lease of this node in the directory.
    pub session: SessionSettings,
    /// What happens when it is lost and something still runs.
    pub fence: FenceSettings,
    /// The store behind the directory.
    pub backend: BackendSettings,
    /// How shards that have an owner are kept in balance.
    pub sharding: ShardingSettings,
    /// The other nodes.
    pub cluster: ClusterSettings,
    /// The datacenter of this node.
    pub datacenter: DataCenterSettings,
    /// Where the datacenters know each other from.
    pub control_plane: ControlPlaneSettings,
    /// How nodes follow each other.
    pub membership: MembershipSettings,
    /// How this node reaches them.
    pub transport: TransportSettings,
    /// Messages to them.
    pub lanes: LaneSettings,
    /// The admin API.
    pub admin: AdminSettings,
}

impl Settings {
    /// The defaults of a node on this backend.
    #[must_use]
    pub fn of_backend(kind: BackendKind) -> Self {
        let mut settings = Self { session: SessionSettings::of_backend(kind), ..Self::default() };
        settings.backend.kind = kind;
        settings
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: Namespace::new("default").expect("the default is a namespace"),
            node: NodeSettings::default(),
            calls: CallSettings::default(),
            actors: ActorSettings::default(),
            events: EventSettings::default(),
            session: SessionSettings::default(),
            fence: FenceSettings::default(),
            backend: BackendSettings::default(),
            cluster: ClusterSettings::default(),
            datacenter: DataCenterSettings::default(),
            control_plane: ControlPlaneSettings::default(),
            membership: MembershipSettings::default(),
            sharding: ShardingSettings::default(),
            transport: TransportSettings::default(),
            lanes: LaneSettings::default(),
            admin: AdminSettings::default(),
        }
    }
}

/// `[node]`: this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NodeSettings {
    /// The name people know it by, in logs and in the dashboard. Need not be unique.
    pub name: String,
    /// What it is for; kinds can be bound to roles.
    pub roles: BTreeSet<String>,
    /// The version of your software; none is that of this library. While nodes of different versions are up, shards go to
    /// those of the newest.
    #[serde(with = "optional")]
    pub version: Option<String>,
    /// Threads that run actors; none ("auto") is half the cores, at least one.
    #[serde(with = "arbiters")]
    pub data_arbiters: Option<NonZeroU16>,
    /// How long a stop may take before what is left is dropped.
    #[serde(with = "span")]
    pub stop_budget: Duration,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            roles: BTreeSet::new(),
            version: None,
            data_arbiters: None,
            stop_budget: Duration::from_secs(30),
        }
    }
}

/// `[calls]`: messages to actors, and how many of them may wait where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct CallSettings {
    /// The deadline of a call that names none.
    #[serde(with = "span")]
    pub timeout: Duration,
    /// Messages that may wait in one actor's inbox.
    pub inbox: NonZeroU32,
    /// Messages of one actor that may be handled at the same time, if its kind interleaves.
    pub interleaved: NonZeroU32,
    /// Calls of one lane that may await their answer.
    pub pending: NonZeroU32,
    /// Messages from foreign threads that may wait to enter the node.
    pub ingress: NonZeroU32,
}

impl Default for CallSettings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(5),
            inbox: count::<1024>(),
            interleaved: count::<1024>(),
            pending: count::<65_536>(),
            ingress: count::<65_536>(),
        }
    }
}

/// `[actors]`: virtual actors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ActorSettings {
    /// When an idle actor is deactivated.
    pub idle_after: Idle,
    /// How many actors may be active on the node; above it the least recently used go.
    pub max_active: NonZeroU32,
    /// How long `on_activate` may take, and the loading of a state before it, until the activation is given up.
    #[serde(with = "span")]
    pub activate_timeout: Duration,
    /// How long `on_deactivate` may take, and the last save of a state beside it, until they are given up.
    #[serde(with = "span")]
    pub deactivate_timeout: Duration,
    /// Which nodes are asked to own actors that nobody owns.
    pub placement: Placement,
    /// `[actors.cache]`: what is remembered about the places of actors that have records of their own.
    pub cache: CacheSettings,
    /// How far messages go; none is `discover` with a control plane and `local` without.
    #[serde(with = "optional")]
    pub reach: Option<Reach>,
    /// `[actors.kinds.<Kind>]`: what differs for one kind.
    pub kinds: BTreeMap<String, KindSettings>,
}

impl ActorSettings {
    /// When an idle actor of `kind` is deactivated: what its own section says, else what holds for all.
    #[must_use]
    pub fn idle_after_of(&self, kind: &str) -> Idle {
        self.kinds.get(kind).and_then(|own| own.idle_after).unwrap_or(self.idle_after)
    }
}

impl Default for ActorSettings {
    fn default() -> Self {
        Self {
            idle_after: Idle::After(Duration::from_secs(600)),
            max_active: count::<1_000_000>(),
            activate_timeout: Duration::from_secs(30),
            deactivate_timeout: Duration::from_secs(10),
            placement: Placement::Spread,
            cache: CacheSettings::default(),
            reach: None,
            kinds: BTreeMap::new(),
        }
    }
}

/// `[actors.kinds.<Kind>]`: what differs for one kind of actor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct KindSettings {
    /// When an idle actor of this kind is deactivated; none is what holds for all.
    pub idle_after: Option<Idle>,
    /// Which nodes are asked to own actors of this kind; none is what holds for all.
    pub placement: Option<Placement>,
    /// Where shards of this kind should be; none is what holds for all.
    pub strategy: Option<Strategy>,
    /// What the kind is divided into, shards if nothing is said; the same on all nodes.
    pub divided: Option<Divided>,
    /// Into how many shards the kind is divided, 256 if nothing is said; the same on all nodes.
    pub shards: Option<ShardCount>,
    /// The keys at which a kind that is divided into ranges is divided at first, each the first one of a range. They count only
    /// while the cluster has no ranges of the kind.
    pub split_at: Option<BTreeSet<ActorKey>>,
    /// The roles of which a node needs one to host the kind; with none it lives anywhere.
    pub roles: Option<BTreeSet<String>>,
    /// How far messages to actors of this kind go; none is what holds for all.
    pub reach: Option<Reach>,
}

impl KindSettings {
    /// How the kind is divided, if anything is said about it.
    #[must_use]
    pub fn layout(&self) -> Option<KindLayout> {
        match self.divided {
            Some(Divided::Actors) => Some(KindLayout::Actor),
            Some(Divided::Ranges) => Some(KindLayout::Range),
            Some(Divided::Shards) => Some(KindLayout::sharded(self.shards.unwrap_or_default())),
            None => self.shards.map(KindLayout::sharded),
        }
    }
}

/// `[events]`: subscriptions to events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct EventSettings {
    /// Events that may wait for one subscriber.
    pub subscriber_queue: NonZeroU32,
    /// Watches that this node keeps, its own and those of other nodes.
    pub watches: NonZeroU32,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self { subscriber_queue: count::<1024>(), watches: count::<16_384>() }
    }
}

/// `[session]`: the lease of this node in the directory.
///
/// Invariant: the lease lasts at least three heartbeats, so that two of them may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "SessionFields")]
pub struct SessionSettings {
    #[serde(with = "span")]
    ttl: Duration,
    #[serde(with = "span")]
    heartbeat: Duration,
    rejoin: bool,
}

/// A lease shorter than three heartbeats: one or two late renewals would end it. Raise `ttl` or lower
/// `heartbeat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a ttl of {} is shorter than 3 heartbeats of {}: at least {} is needed",
    format_duration(*ttl),
    format_duration(*heartbeat),
    format_duration(heartbeat.saturating_mul(HEARTBEATS_PER_TTL))
)]
pub struct TtlTooShort {
    /// The lease.
    pub ttl: Duration,
    /// The time between two renewals.
    pub heartbeat: Duration,
}

impl SessionSettings {
    /// A lease of `ttl`, renewed every `heartbeat`.
    ///
    /// # Errors
    ///
    /// [`TtlTooShort`] if fewer than three heartbeats fit into the lease.
    pub fn new(ttl: Duration, heartbeat: Duration) -> Result<Self, TtlTooShort> {
        if ttl < heartbeat.saturating_mul(HEARTBEATS_PER_TTL) {
            return Err(TtlTooShort { ttl, heartbeat });
        }
        Ok(Self { ttl, heartbeat, rejoin: true })
    }

    /// The defaults of a node on this backend.
    #[must_use]
    pub fn of_backend(kind: BackendKind) -> Self {
        Self { ttl: kind.session_ttl(), heartbeat: HEARTBEAT, rejoin: true }
    }

    /// The same for a node that comes back by itself after it has lost its lease, or does not.
    #[must_use]
    pub fn rejoining(self, rejoin: bool) -> Self {
        Self { rejoin, ..self }
    }

    /// Whether the node comes back by itself, under a new id, after it has lost its lease.
    #[must_use]
    pub fn rejoins(&self) -> bool {
        self.rejoin
    }

    /// How long the directory keeps this node without hearing from it.
    #[must_use]
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The time between two renewals.
    #[must_use]
    pub fn heartbeat(&self) -> Duration {
        self.heartbeat
    }
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self::of_backend(BackendKind::Embedded)
    }
}

impl TryFrom<SessionFields> for SessionSettings {
    type Error = TtlTooShort;

    fn try_from(fields: SessionFields) -> Result<Self, TtlTooShort> {
        Ok(Self::new(fields.ttl, fields.heartbeat)?.rejoining(fields.rejoin))
    }
}

/// What is written in `[session]`, before the rule between its fields is checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionFields {
    #[serde(with = "span")]
    ttl: Duration,
    #[serde(with = "span")]
    heartbeat: Duration,
    rejoin: bool,
}

/// `[fence]`: what happens when the lease is lost and something still runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct FenceSettings {
    /// What to do about a handler that blocks its thread past the fence.
    pub on_stuck: OnStuck,
}

/// A default queue length; zero does not compile.
pub(super) const fn count<const N: u32>() -> NonZeroU32 {
    const { NonZeroU32::new(N).expect("a queue holds at least one") }
}

const HEARTBEATS_PER_TTL: u32 = 3;
const HEARTBEAT: Duration = Duration::from_secs(2);
