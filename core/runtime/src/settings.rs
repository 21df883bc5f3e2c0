//! The numbers a node runs with.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago_protocol::datacenter::DiscoverySettings;
use archipelago_protocol::handoff::{AllocateShards, CoordinatorLimits, LeastShards};
use archipelago_protocol::identity::{ActorKey, NodeAddress};
use archipelago_protocol::membership::MembershipSettings;
use archipelago_protocol::placement::{CacheLimits, ChooseNode, KindLayout, Spread};
use archipelago_protocol::session::OnStuck;
use archipelago_protocol::time::Millis;

use crate::datacenter::{DataCenterSettings, Reach};
use crate::remote::RemoteSettings;

/// The bounds and times of a node. The facade reads them from configuration; the defaults are these.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NodeSettings {
    /// A name for people. Default `node`.
    pub name: String,
    /// Where the node says it can be reached. Default `localhost:0`: nowhere, it has no transport.
    pub address: NodeAddress,
    /// The roles of this node.
    pub roles: Vec<String>,
    /// The version of the software that it runs, in numbers as [`version_of`](archipelago_protocol::handoff::version_of)
    /// reads them. While nodes of different versions are up, shards go to those of the newest. Default: that of this library.
    pub version: String,
    /// How many data arbiters the node has; `None` means half the cores, at least one.
    pub data_arbiters: Option<u16>,
    /// How long `stop` lets running work finish. Default 30 s.
    pub stop_budget: Millis,
    /// The deadline of a call that names none. Default 5 s.
    pub call_timeout: Millis,
    /// How many jobs may wait in one actor's inbox. Default 1,024.
    pub inbox: usize,
    /// How many jobs of one actor may run at the same time, if its kind interleaves. Default 1,024.
    pub interleaved: u32,
    /// How many calls may be pending on one arbiter. Default 65,536.
    pub pending_calls: usize,
    /// How many messages from other threads may wait at one arbiter. Default 65,536.
    pub ingress: usize,
    /// When an idle actor is deactivated; `Millis::MAX` means never. Default 10 min.
    pub idle_after: Millis,
    /// The same for single kinds.
    pub idle_after_by_kind: BTreeMap<String, Millis>,
    /// How many actors may be active on the node; above it the least recently used go. Default 1,000,000.
    pub max_active: usize,
    /// How long `on_activate` may take, and the loading of a state before it. Default 30 s.
    pub activate_timeout: Millis,
    /// How long `on_deactivate` may take, and the last save of a state beside it. Default 10 s.
    pub deactivate_timeout: Millis,
    /// How many events a slow subscriber may be behind. Default 1,024.
    pub event_queue: usize,
    /// How many watches the node keeps, its own and those of other nodes. Default 16,384.
    pub watches: usize,
    /// How long the node's session lives without a beat. Default 6 s.
    pub session_ttl: Millis,
    /// How often the session beats, at least three times in its life. Default 2 s.
    pub session_heartbeat: Millis,
    /// Whether the node comes back under a new id after it has lost its session. Default true.
    pub session_rejoin: bool,
    /// What to do about a handler that blocks its thread when the session is over. Default: abort the process.
    pub fence_on_stuck: OnStuck,
    /// How it takes part in the cluster, if it has a transport.
    pub membership: MembershipSettings,
    /// Which nodes are asked to own what nobody owns. Default: spread evenly.
    pub placement: Arc<dyn ChooseNode>,
    /// The same for single kinds.
    pub placement_by_kind: BTreeMap<String, Arc<dyn ChooseNode>>,
    /// How kinds are divided that are not divided into [`ShardCount::DEFAULT`](archipelago_protocol::placement::ShardCount::DEFAULT) shards; the same on all nodes.
    pub layout_by_kind: BTreeMap<String, KindLayout>,
    /// Where the keys of kinds that are divided by ranges are divided at first; none begins as one range. Only the first table
    /// of a kind is made so.
    pub cuts_by_kind: BTreeMap<String, Vec<ActorKey>>,
    /// What the node remembers about the places of single actors.
    pub placement_cache: CacheSettings,
    /// The roles of which a node needs one to host a kind; a kind that is not named lives anywhere.
    pub roles_by_kind: BTreeMap<String, Vec<String>>,
    /// How shards that have an owner are kept in balance.
    pub sharding: ShardingSettings,
    /// Its datacenter, if it has a control plane.
    pub datacenter: DataCenterSettings,
    /// In which datacenters actors may live, if there is more than one. Default: wherever they are found.
    pub reach: Reach,
    /// The same for single kinds.
    pub reach_by_kind: BTreeMap<String, Reach>,
    /// How actors are looked for in other datacenters.
    pub discovery: DiscoverySettings,
    /// How it meets other nodes, if it has a transport.
    pub remote: RemoteSettings,
}

/// What a node remembers about the places of actors that have records of their own.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CacheSettings {
    /// How many places each data arbiter remembers, and for how long without a use. Default 65,536 and a minute.
    pub limits: CacheLimits,
    /// Whether every change of a record is followed, so that places are right before they are used. Costs each node
    /// the traffic of all changes. Default false: a place that has become wrong is found out by its first use.
    pub watch: bool,
}

/// How shards that have an owner are kept in balance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ShardingSettings {
    /// Whether this node, if it has the duty to look after shards, moves them for the sake of balance. Default true.
    /// Without, shards move by order, away from nodes that leave, and what a dead node has owned goes to others.
    pub rebalance: bool,
    /// How much the node with that duty asks for, and how often.
    pub limits: CoordinatorLimits,
    /// Where shards should be. Default: as many on each node.
    pub strategy: Arc<dyn AllocateShards>,
    /// The same for single kinds.
    pub strategy_by_kind: BTreeMap<String, Arc<dyn AllocateShards>>,
}

impl ShardingSettings {
    /// What the node asks for if it has the duty to look after shards.
    pub(crate) fn duty(&self) -> CoordinatorLimits {
        let per_round = if self.rebalance { self.limits.per_round } else { 0 };
        CoordinatorLimits { per_round, ..self.limits }
    }

    /// Where shards of `kind` should be.
    pub fn strategy_of(&self, kind: &str) -> &dyn AllocateShards {
        &**self.strategy_by_kind.get(kind).unwrap_or(&self.strategy)
    }
}

impl Default for ShardingSettings {
    fn default() -> Self {
        Self {
            rebalance: true,
            limits: CoordinatorLimits::default(),
            strategy: Arc::new(LeastShards),
            strategy_by_kind: BTreeMap::new(),
        }
    }
}

impl NodeSettings {
    /// Which nodes are asked to own shards of `kind`.
    pub fn placement_of(&self, kind: &str) -> &dyn ChooseNode {
        &**self.placement_by_kind.get(kind).unwrap_or(&self.placement)
    }

    /// How `kind` is divided.
    pub fn layout_of(&self, kind: &str) -> KindLayout {
        self.layout_by_kind.get(kind).copied().unwrap_or_default()
    }

    /// Where the keys of `kind` are divided at first.
    pub fn cuts_of(&self, kind: &str) -> Vec<ActorKey> {
        self.cuts_by_kind.get(kind).cloned().unwrap_or_default()
    }

    /// With how many single actors an arbiter has to do at most: those that it hosts, and those whose places it knows
    /// or looks for. Beyond that, messages to others are refused.
    pub(crate) fn single_actors(&self) -> usize {
        self.max_active.saturating_add(self.placement_cache.limits.entries.saturating_mul(2))
    }

    /// Whether the roles of this node let it host `kind`.
    pub fn may_host(&self, kind: &str) -> bool {
        let wanted = self.roles_by_kind.get(kind);
        wanted.is_none_or(|wanted| wanted.iter().any(|role| self.roles.contains(role)))
    }

    /// In which datacenters actors of `kind` may live.
    pub fn reach_of(&self, kind: &str) -> &Reach {
        self.reach_by_kind.get(kind).unwrap_or(&self.reach)
    }

    /// Whether `kind` was asked to live in other datacenters, too: what it has if nothing is said is no wish.
    pub(crate) fn wants_abroad(&self, kind: &str) -> bool {
        match self.reach_by_kind.get(kind) {
            Some(own) => !matches!(own, Reach::Local),
            None => matches!(self.reach, Reach::Home(_)),
        }
    }

    /// The idle time of `kind`.
    pub fn idle_after(&self, kind: &str) -> Millis {
        self.idle_after_by_kind.get(kind).copied().unwrap_or(self.idle_after)
    }
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            name: "node".to_owned(),
            address: NodeAddress::new("localhost", 0).expect("a plain host name is valid"),
            roles: Vec::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            data_arbiters: None,
            stop_budget: Millis(30_000),
            call_timeout: Millis(5_000),
            inbox: 1_024,
            interleaved: 1_024,
            pending_calls: 65_536,
            ingress: 65_536,
            idle_after: Millis(600_000),
            idle_after_by_kind: BTreeMap::new(),
            max_active: 1_000_000,
            activate_timeout: Millis(30_000),
            deactivate_timeout: Millis(10_000),
            event_queue: 1_024,
            watches: 16_384,
            session_ttl: Millis(6_000),
            session_heartbeat: Millis(2_000),
            session_rejoin: true,
            fence_on_stuck: OnStuck::Abort,
            membership: MembershipSettings::default(),
            placement: Arc::new(Spread),
            placement_by_kind: BTreeMap::new(),
            layout_by_kind: BTreeMap::new(),
            cuts_by_kind: BTreeMap::new(),
            placement_cache: CacheSettings::default(),
            roles_by_kind: BTreeMap::new(),
            sharding: ShardingSettings::default(),
            datacenter: DataCenterSettings::default(),
            reach: Reach::default(),
            reach_by_kind: BTreeMap::new(),
            discovery: DiscoverySettings::default(),
            remote: RemoteSettings::default(),
        }
    }
}
