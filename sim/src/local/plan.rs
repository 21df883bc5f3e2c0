//! What one seed does: which families of features and faults take part, and the numbers of the node.
//!
//! A swarm: each family is switched off in about half of the seeds, so that one fault cannot always hide what
//! another would show.

use std::time::Duration;

use archipelago_backend_conformance::Rng;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;

/// One seed's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) clients: u64,
    pub(crate) keys: u64,
    pub(crate) arbiters: u16,
    pub(crate) inbox: usize,
    pub(crate) pending: usize,
    pub(crate) ingress: usize,
    /// How many in a thousand clients send from outside the node's threads.
    pub(crate) outside: u32,
    pub(crate) idle_after: u64,
    pub(crate) ppm: i32,
    // Features.
    pub(crate) slow: bool,
    pub(crate) stops: bool,
    pub(crate) nested: bool,
    pub(crate) bank: bool,
    pub(crate) bursts: bool,
    pub(crate) cancels: bool,
    pub(crate) tiny_deadlines: bool,
    pub(crate) slow_hooks: bool,
    // User code that misbehaves.
    pub(crate) panics: bool,
    pub(crate) failing_hooks: bool,
    // Faults.
    pub(crate) node_stops: bool,
    pub(crate) crashes: bool,
    pub(crate) pauses: bool,
    pub(crate) zombies: bool,
    pub(crate) store_faults: bool,
}

impl Plan {
    /// Draws a plan.
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let calm = rng.chance(250);
        let mut fault = |per_mille| !calm && rng.chance(per_mille);
        let (node_stops, crashes, pauses) = (fault(400), fault(350), fault(350));
        let (zombies, store_faults) = (fault(300), fault(400));
        Self {
            clients: 2 + rng.below(5),
            keys: 1 + rng.below(5),
            arbiters: u16::try_from(1 + rng.below(3)).unwrap_or(1),
            inbox: [3, 16, 1_024][rng.index(3)],
            pending: if rng.chance(200) { 12 } else { 65_536 },
            ingress: [8, 65_536][rng.index(2)],
            outside: [0, 400, 1_000][rng.index(3)],
            idle_after: [15, 60, 400, 5_000][rng.index(4)],
            ppm: [0, 0, 15_000, -15_000][rng.index(4)],
            slow: rng.chance(650),
            stops: rng.chance(500),
            nested: rng.chance(500),
            bank: rng.chance(500),
            bursts: rng.chance(500),
            cancels: rng.chance(500),
            tiny_deadlines: rng.chance(400),
            slow_hooks: rng.chance(500),
            panics: rng.chance(400),
            failing_hooks: rng.chance(300),
            node_stops,
            crashes,
            pauses,
            zombies,
            store_faults,
        }
    }

    /// True if nothing worse than an orderly stop can happen to the node: then nothing accepted may be lost.
    pub(crate) const fn loses_nothing(&self) -> bool {
        !(self.crashes || self.pauses || self.zombies || self.store_faults)
    }

    /// The numbers of the node.
    pub(crate) fn settings(&self) -> NodeSettings {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(self.arbiters);
        settings.inbox = self.inbox;
        settings.pending_calls = self.pending;
        settings.ingress = self.ingress;
        settings.idle_after = Millis(self.idle_after);
        settings.activate_timeout = ACTIVATE_TIMEOUT;
        settings.deactivate_timeout = DEACTIVATE_TIMEOUT;
        settings.stop_budget = Millis(2_000);
        settings.session_ttl = Millis(3_000);
        // The script brings nodes back: a zombie that did so itself would be a second one in the place of the first.
        settings.session_rejoin = false;
        settings.event_queue = 4_096;
        settings
    }

    /// How long one client waits between two rounds of messages, drawn anew each time.
    pub(crate) fn think(&self, rng: &mut Rng) -> Duration {
        // Around the idle time, so that messages meet passivation in every phase.
        let base = self.idle_after.clamp(20, 150);
        Duration::from_micros(rng.below(base * 2_000))
    }
}

/// How long `on_activate` may take in the workload.
pub(crate) const ACTIVATE_TIMEOUT: Millis = Millis(300);
/// How long `on_deactivate` may take in the workload.
pub(crate) const DEACTIVATE_TIMEOUT: Millis = Millis(200);
