//! What one seed of the remote workload does: which families of features and faults take part, and the numbers.
//!
//! A swarm, as in the workload of one node: each family is switched off in about half of the seeds.

use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_memory::NetworkSettings;
use archipelago_protocol::link::Overflow;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;

use crate::common::TTL;
use crate::world::{bind_of, fixed_bind_of};

/// One seed's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) clients_per_node: u64,
    /// Actors per kind.
    pub(crate) keys: u64,
    pub(crate) arbiters: [u16; NODES],
    pub(crate) ppm: [i32; NODES],
    /// Every node can host every kind, and has what it claimed first. Otherwise each node hosts one.
    pub(crate) all_host: bool,
    pub(crate) idle_after: u64,
    pub(crate) inbox: usize,
    pub(crate) lane_bytes: usize,
    /// What becomes of a message that finds its lane full.
    pub(crate) overflow: Overflow,
    /// How many asks may wait for room.
    pub(crate) waiting: usize,
    pub(crate) window_bytes: usize,
    pub(crate) parked: usize,
    /// After which silence a connection is given up.
    pub(crate) silence: u64,
    /// How many bytes the network takes that are not read.
    pub(crate) network_window: usize,
    /// A node listens at the same ports in each of its lives.
    pub(crate) fixed_ports: bool,
    /// How many look-ups in a thousand are wrong.
    pub(crate) wrong_locations: u32,
    // Features.
    pub(crate) nested: bool,
    pub(crate) refs: bool,
    pub(crate) large: bool,
    pub(crate) slow: bool,
    pub(crate) bursts: bool,
    pub(crate) cancels: bool,
    pub(crate) tiny_deadlines: bool,
    // Faults.
    pub(crate) calm: bool,
    pub(crate) partitions: bool,
    pub(crate) one_way: bool,
    pub(crate) slow_links: bool,
    pub(crate) resets: bool,
    pub(crate) kills: bool,
    pub(crate) dials: bool,
    pub(crate) crashes: bool,
    pub(crate) pauses: bool,
    pub(crate) store_faults: bool,
    /// Nodes come back by themselves after they have lost their session.
    pub(crate) rejoins: bool,
}

impl Plan {
    /// Draws a plan.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let calm = rng.chance(250);
        let mut fault = |per_mille| !calm && rng.chance(per_mille);
        let (partitions, one_way, slow_links) = (fault(450), fault(400), fault(400));
        let (resets, kills, dials) = (fault(450), fault(400), fault(300));
        let (crashes, pauses, store_faults) = (fault(350), fault(350), fault(250));
        let mut arbiter = || u16::try_from(1 + rng.below(2)).unwrap_or(1);
        let arbiters = [arbiter(), arbiter(), arbiter()];
        let skewed = rng.chance(400);
        let mut ppm = || if skewed { [0, 15_000, -15_000][rng.index(3)] } else { 0 };
        let ppm = [ppm(), ppm(), ppm()];
        let wrong_locations = if rng.chance(400) { 300 } else { 0 };
        let large = rng.chance(500);
        let narrow = rng.chance(400);
        // Bounds that refuse messages would make a calm seed lose some.
        let roomy = calm || rng.chance(400);
        Self {
            clients_per_node: 1 + rng.below(2),
            keys: 1 + rng.below(4),
            arbiters,
            ppm,
            all_host: rng.chance(350),
            idle_after: [200, 3_000][rng.index(2)],
            inbox: if roomy { 1_024 } else { 8 },
            lane_bytes: if roomy { 8 << 20 } else { 4 << 10 },
            waiting: if roomy { 1_024 } else { 8 },
            window_bytes: if narrow { 1 << 10 } else { 8 << 20 },
            parked: if roomy { 1_000 } else { 20 },
            silence: [800, 2_500][rng.index(2)],
            network_window: if narrow { 1 << 10 } else { 256 << 10 },
            fixed_ports: rng.chance(500),
            wrong_locations,
            nested: rng.chance(500),
            refs: rng.chance(500),
            large,
            slow: rng.chance(600),
            bursts: rng.chance(600),
            cancels: rng.chance(500),
            tiny_deadlines: rng.chance(400),
            calm,
            partitions,
            one_way,
            slow_links,
            resets,
            kills,
            dials,
            crashes,
            pauses,
            store_faults,
            rejoins: rng.chance(500),
            overflow: [Overflow::Fail, Overflow::Wait, Overflow::DropOldest][rng.index(3)],
        }
    }

    /// The numbers of one node.
    pub(crate) fn settings(&self, index: usize) -> NodeSettings {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(self.arbiters[index]);
        settings.inbox = self.inbox;
        settings.idle_after = Millis(self.idle_after);
        settings.stop_budget = Millis(2_000);
        settings.session_ttl = TTL;
        settings.session_rejoin = self.rejoins;
        settings.event_queue = 4_096;
        settings.remote.bind = if self.fixed_ports { fixed_bind_of(index) } else { bind_of(index) };
        settings.remote.frame = FRAME;
        settings.remote.largest = 64 << 10;
        settings.remote.lane_bytes = self.lane_bytes;
        settings.remote.overflow = self.overflow;
        settings.remote.lane_waiting = self.waiting;
        settings.remote.window_bytes = self.window_bytes;
        settings.remote.parked = self.parked;
        settings.remote.tell_ttl = TELL_TTL;
        settings.remote.handshake_limit = Millis(1_500);
        settings
    }

    /// The numbers of the network.
    pub(crate) fn network(&self) -> NetworkSettings {
        NetworkSettings {
            silence_limit: Millis(self.silence),
            dial_limit: Millis(700),
            lane_window: self.network_window,
            stream_window: self.network_window,
            ..NetworkSettings::default()
        }
    }

    /// How long one client waits between two rounds of messages, drawn anew each time.
    pub(crate) fn think(rng: &mut Rng) -> Duration {
        Duration::from_micros(rng.below(250_000))
    }
}

/// How many nodes there are, and kinds.
pub(crate) const NODES: usize = 3;
/// How often calls are looked at: by the lanes, and by the arbiter.
pub(crate) const SWEEP: Millis = Millis(25);
/// The longest message that travels with others.
pub(crate) const FRAME: usize = 2 << 10;
/// How long a tell waits for a connection.
pub(crate) const TELL_TTL: Millis = Millis(4_000);
