//! The network of a world: one host per node, and the faults on the ways between them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archipelago_memory::{DialAnswer, Link, MemoryNetwork, NetworkSettings, Stats, TokioTimer};
use archipelago_protocol::contract::Transport;
use archipelago_protocol::identity::NodeAddress;

use super::World;
use super::eyes::{Eyes, Watched};
use crate::clock::TrueClock;

/// The network, and what is wrong with it now.
pub(crate) struct Network {
    inner: MemoryNetwork,
    truth: TrueClock,
    eyes: Arc<Eyes>,
    /// From whom nothing passes to whom, and since when.
    cuts: RefCell<BTreeMap<(usize, usize), Duration>>,
}

impl Network {
    pub(crate) fn new(settings: NetworkSettings, seed: u64, truth: TrueClock) -> Self {
        let inner = MemoryNetwork::new(settings, seed ^ SALT, Arc::new(TokioTimer::start()));
        #[cfg(feature = "mutants")]
        inner.set_mutant(crate::mutants::network_mutant());
        Self { inner, truth, eyes: Arc::new(Eyes::new(truth)), cuts: RefCell::default() }
    }

    /// The way of a new life of node `index` into the network.
    pub(crate) fn transport(&self, index: usize) -> Arc<dyn Transport> {
        let host = self.inner.host(&host_of(index));
        Arc::new(Watched::new(host, Arc::clone(&self.eyes)))
    }

    pub(crate) fn crash(&self, index: usize) {
        self.inner.crash(&host_of(index));
    }

    pub(crate) fn freeze(&self, index: usize) {
        self.inner.freeze(&host_of(index));
        self.eyes.disturb();
    }

    pub(crate) fn thaw(&self, index: usize) {
        self.inner.thaw(&host_of(index));
    }

    fn cut(&self, from: usize, to: usize) {
        self.inner.partition_one_way(&host_of(from), &host_of(to));
        self.cuts.borrow_mut().entry((from, to)).or_insert_with(|| self.truth.elapsed());
        self.eyes.disturb();
    }

    fn heal(&self, a: usize, b: usize) {
        self.inner.heal(&host_of(a), &host_of(b));
        self.inner.reset_links(&host_of(a), &host_of(b));
        self.cuts.borrow_mut().retain(|way, _| *way != (a, b) && *way != (b, a));
    }
}

/// Faults between nodes. Without a network they do nothing.
impl World {
    /// Nothing passes between these two nodes any more, and nobody is told.
    pub fn partition(&self, a: usize, b: usize) {
        self.partition_one_way(a, b);
        self.partition_one_way(b, a);
    }

    /// Nothing passes from node `from` to node `to` any more, and nobody is told.
    pub fn partition_one_way(&self, from: usize, to: usize) {
        self.record("partition", from as u64, to as u64);
        self.on_network(|network| network.cut(from, to));
    }

    /// Everything passes between these two nodes again, as fast as at the beginning.
    pub fn heal(&self, a: usize, b: usize) {
        self.record("heal", a as u64, b as u64);
        self.on_network(|network| network.heal(a, b));
    }

    /// Makes the way from node `from` to node `to` slow, lossy or forgetful, until [`heal`](Self::heal).
    pub fn slow_link(&self, from: usize, to: usize, link: Link) {
        self.record("slow link", from as u64, to as u64);
        self.on_network(|network| {
            network.eyes.disturb();
            network.inner.set_link(&host_of(from), &host_of(to), link);
        });
    }

    /// Drops all connections of a node: both sides find them lost at once.
    pub fn reset_connections(&self, index: usize) {
        self.record("reset", index as u64, 0);
        self.on_network(|network| network.inner.reset(&host_of(index)));
    }

    /// Breaks the connections between these two nodes after the next `bytes` bytes from `from` to `to`, or the next one.
    pub fn kill_connections_after(&self, from: usize, to: usize, bytes: u64) {
        self.record("kill after", (from * 16 + to) as u64, bytes);
        self.on_network(|network| network.inner.kill_after(&host_of(from), &host_of(to), bytes));
    }

    /// How a node answers those who dial it, from now on.
    pub fn answer_dials(&self, index: usize, answer: DialAnswer) {
        self.record("dials", index as u64, u64::from(answer != DialAnswer::Normal));
        self.on_network(|network| network.inner.set_dials(&host_of(index), answer));
    }

    /// What the network has done so far; nothing without one.
    pub fn network_stats(&self) -> Stats {
        self.on_network(|network| network.inner.stats()).unwrap_or_default()
    }

    /// How many connections have a side that is held, and how many bytes are under way or unread.
    pub fn network_load(&self) -> (usize, usize) {
        self.on_network(|network| (network.inner.connections(), network.inner.buffered())).unwrap_or_default()
    }

    /// For how long nothing has passed in one direction between these two; `None` if everything does.
    pub(crate) fn cut_for(&self, a: usize, b: usize) -> Option<Duration> {
        let since = |network: &Network| {
            let cuts = network.cuts.borrow();
            [(a, b), (b, a)].iter().filter_map(|way| cuts.get(way).copied()).min()
        };
        self.on_network(since).flatten().map(|since| self.now().saturating_sub(since))
    }

    pub(super) fn on_network<T>(&self, act: impl FnOnce(&Network) -> T) -> Option<T> {
        self.inner.network.as_ref().map(act)
    }
}

/// Where node `index` of a world with a network listens: to be set as `remote.bind` in its settings.
///
/// # Panics
///
/// Never: the names of hosts are valid.
pub fn bind_of(index: usize) -> NodeAddress {
    NodeAddress::new(&host_of(index), 0).expect("letters and digits make a valid host")
}

/// As [`bind_of`], at the same ports in each life of the node.
pub(crate) fn fixed_bind_of(index: usize) -> NodeAddress {
    NodeAddress::new(&host_of(index), PORT).expect("letters and digits make a valid host")
}

/// The host of node `index`.
pub(crate) fn host_of(index: usize) -> String {
    format!("node-{index}")
}

/// Keeps the network's chances apart from those of the world.
const SALT: u64 = 0x6e65_7477_6f72_6b21;
/// Where control arbiters listen, if ports are fixed.
const PORT: u16 = 7_000;
