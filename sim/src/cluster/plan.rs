//! What one seed of the cluster workload does: which families of faults take part, and the numbers.
//!
//! A swarm, as in the other workloads: each family is switched off in about half of the seeds. In a calm seed nothing is
//! wrong, but nodes may leave and come back all the same.

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_memory::NetworkSettings;
use archipelago_protocol::placement::{CacheLimits, ChooseNode, LeastLoaded, Local, Random, Spread};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;

use crate::common::TTL;
use crate::world::{bind_of, fixed_bind_of};

/// One seed's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) nodes: usize,
    pub(crate) clients_per_node: u64,
    /// Counters per kind.
    pub(crate) keys: u64,
    pub(crate) arbiters: Vec<u16>,
    pub(crate) ppm: Vec<i32>,
    pub(crate) strategy: Strategy,
    pub(crate) idle_after: u64,
    /// After which silence a connection is given up.
    pub(crate) silence: u64,
    /// How long a view must stand still before a split is judged.
    pub(crate) stable_after: u64,
    /// A node listens at the same ports in each of its lives.
    pub(crate) fixed_ports: bool,
    // Features.
    pub(crate) nested: bool,
    pub(crate) slow: bool,
    /// Some handlers take so long that a shard that moves has to wait for them.
    pub(crate) long: bool,
    pub(crate) bursts: bool,
    // What happens to the nodes.
    pub(crate) calm: bool,
    pub(crate) leaves: bool,
    pub(crate) crashes: bool,
    pub(crate) pauses: bool,
    pub(crate) partitions: bool,
    pub(crate) one_way: bool,
    /// One node, or a group of them, is cut off from all others, but not from the store.
    pub(crate) isolates: bool,
    pub(crate) splits: bool,
    pub(crate) resets: bool,
    pub(crate) store_faults: bool,
    /// How many orders to move a shard are given for each other blow; zero in the workload without moves.
    pub(crate) moves: usize,
    pub(crate) slow_links: bool,
    pub(crate) kills: bool,
    pub(crate) dials: bool,
    /// Nodes are killed while they start and while they leave.
    pub(crate) kills_in_between: bool,
    /// Clocks change their rates.
    pub(crate) rates: bool,
    /// The store loses leases that are live.
    pub(crate) expiries: bool,
    /// How many times in a thousand something odd happens where it may.
    pub(crate) oddities: u32,
    /// The actors of the last kind have records of their own.
    pub(crate) singles: bool,
    /// How many of their places are remembered, for how many milliseconds, and whether their records are followed.
    pub(crate) cache: (usize, u64, bool),
}

/// Who is asked to own what nobody owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    Spread,
    Local,
    Random,
    LeastLoaded,
}

impl Plan {
    /// Draws a plan.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let calm = rng.chance(250);
        let leaves = rng.chance(600);
        let mut fault = |per_mille| !calm && rng.chance(per_mille);
        let (crashes, pauses, store_faults) = (fault(500), fault(450), fault(350));
        let (partitions, one_way, resets) = (fault(400), fault(350), fault(350));
        let (slow_links, kills, dials) = (fault(300), fault(300), fault(300));
        let (kills_in_between, rates, expiries) = (fault(300), fault(300), fault(250));
        let (isolates, splits) = (fault(250), fault(250));
        let oddities = if fault(400) { 30 } else { 0 };
        let nodes = 3 + rng.index(3);
        let skewed = rng.chance(400);
        Self {
            nodes,
            clients_per_node: 1 + rng.below(2),
            keys: 1 + rng.below(8),
            arbiters: (0..nodes).map(|_| u16::try_from(1 + rng.below(2)).unwrap_or(1)).collect(),
            ppm: (0..nodes).map(|_| if skewed { [0, 15_000, -15_000][rng.index(3)] } else { 0 }).collect(),
            strategy: Strategy::ALL[rng.index(4)],
            idle_after: [200, 3_000][rng.index(2)],
            silence: [800, 2_500][rng.index(2)],
            stable_after: [2_000, 20_000][rng.index(2)],
            fixed_ports: rng.chance(500),
            nested: rng.chance(500),
            slow: rng.chance(600),
            long: false,
            bursts: rng.chance(600),
            calm,
            leaves,
            crashes,
            pauses,
            partitions,
            one_way,
            isolates,
            splits,
            resets,
            store_faults,
            moves: 0,
            slow_links,
            kills,
            dials,
            kills_in_between,
            rates,
            expiries,
            oddities,
            singles: rng.chance(600),
            cache: ([1, 3, 65_536][rng.index(3)], [300, 60_000][rng.index(2)], rng.chance(400)),
        }
    }

    /// The same plan with shards that move.
    pub(crate) fn with_moves(mut self, rng: &mut Rng) -> Self {
        self.moves = 2 + rng.index(6);
        self.long = self.slow && rng.chance(500);
        self
    }

    /// The numbers of one node.
    pub(crate) fn settings(&self, index: usize) -> NodeSettings {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(self.arbiters[index]);
        settings.idle_after = Millis(self.idle_after);
        settings.stop_budget = Millis(2_000);
        settings.session_ttl = TTL;
        settings.event_queue = 4_096;
        settings.placement = self.strategy.choice();
        settings.placement_cache.limits = CacheLimits { entries: self.cache.0, idle: Millis(self.cache.1) };
        settings.placement_cache.watch = self.cache.2;
        settings.membership.stable_after = Millis(self.stable_after);
        settings.remote.bind = if self.fixed_ports { fixed_bind_of(index) } else { bind_of(index) };
        settings.remote.tell_ttl = TELL_TTL;
        settings.remote.handshake_limit = Millis(1_500);
        settings
    }

    /// The numbers of the network.
    pub(crate) fn network(&self) -> NetworkSettings {
        NetworkSettings {
            silence_limit: Millis(self.silence),
            dial_limit: Millis(700),
            ..NetworkSettings::default()
        }
    }

    /// How long one client waits between two rounds of messages, drawn anew each time.
    pub(crate) fn think(rng: &mut Rng) -> Duration {
        Duration::from_micros(rng.below(400_000))
    }
}

impl Strategy {
    const ALL: [Self; 4] = [Self::Spread, Self::Local, Self::Random, Self::LeastLoaded];

    fn choice(self) -> Arc<dyn ChooseNode> {
        match self {
            Self::Spread => Arc::new(Spread),
            Self::Local => Arc::new(Local),
            Self::Random => Arc::new(Random),
            Self::LeastLoaded => Arc::new(LeastLoaded),
        }
    }
}

/// How many kinds of counters there are; every node hosts all of them.
pub(crate) const KINDS: usize = 2;
/// How often calls are looked at: by the lanes, and by the arbiter.
pub(crate) const SWEEP: Millis = Millis(25);
/// How long a tell waits for a connection.
pub(crate) const TELL_TTL: Millis = Millis(4_000);
