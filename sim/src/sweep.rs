//! Many seeds, one after the other, and what they came to together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::cluster::{run_cluster_seed, run_handoff_seed};
use crate::common::Outcome;
use crate::datacenters::run_datacenters_seed;
use crate::invariants::Invariant;
use crate::local::run_seed;
use crate::remote::run_remote_seed;
use crate::sometimes::{CLUSTER_POINTS, DATACENTER_POINTS, HANDOFF_POINTS, POINTS, REMOTE_POINTS};

/// What the seeds of a sweep do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workload {
    /// One node, and everything that user code may do on it.
    #[default]
    Local,
    /// Three nodes that talk to each other over a network that fails.
    Remote,
    /// Three to five nodes that all host the same kinds, and come and go.
    Cluster,
    /// The same, and shards move between them under load.
    Handoff,
    /// Two or three clusters that know of each other, and ways between them that fail.
    Datacenters,
}

impl Workload {
    /// The workload with this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Local, Self::Remote, Self::Cluster, Self::Handoff, Self::Datacenters];
        all.into_iter().find(|workload| workload.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Remote => "remote",
            Self::Cluster => "cluster",
            Self::Handoff => "handoff",
            Self::Datacenters => "datacenters",
        }
    }

    /// Runs one seed of it for `length` of virtual time, and then until all is quiet.
    pub fn run(self, seed: u64, length: Duration) -> Outcome {
        match self {
            Self::Local => run_seed(seed, length),
            Self::Remote => run_remote_seed(seed, length),
            Self::Cluster => run_cluster_seed(seed, length),
            Self::Handoff => run_handoff_seed(seed, length),
            Self::Datacenters => run_datacenters_seed(seed, length),
        }
    }

    const fn invariants(self) -> [&'static [Invariant]; 2] {
        match self {
            Self::Local => [Invariant::LOCAL, &[]],
            Self::Remote => [Invariant::REMOTE, &[]],
            Self::Cluster => [Invariant::CLUSTER, &[]],
            Self::Handoff => [Invariant::CLUSTER, Invariant::HANDOFF],
            Self::Datacenters => [Invariant::DATACENTERS, &[]],
        }
    }

    const fn points(self) -> &'static [&'static str] {
        match self {
            Self::Local => &POINTS,
            Self::Remote => &REMOTE_POINTS,
            Self::Cluster => &CLUSTER_POINTS,
            Self::Handoff => &HANDOFF_POINTS,
            Self::Datacenters => &DATACENTER_POINTS,
        }
    }
}

/// The sum of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// What the seeds do.
    pub workload: Workload,
    /// How many seeds held every promise.
    pub passed: u64,
    /// Those that did not.
    pub failed: Vec<Outcome>,
    /// How much virtual time passed in all.
    pub simulated: Duration,
    /// How many messages were sent in all.
    pub sent: u64,
    /// How often each promise was looked at.
    pub evaluated: BTreeMap<Invariant, u64>,
    /// The places of [`POINTS`], [`REMOTE_POINTS`], [`CLUSTER_POINTS`], [`HANDOFF_POINTS`] or
    /// [`DATACENTER_POINTS`] that were reached.
    pub reached: BTreeSet<&'static str>,
}

impl Sweep {
    /// An empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty sum of seeds of this workload.
    pub fn of(workload: Workload) -> Self {
        Self { workload, ..Self::default() }
    }

    /// Runs one seed and adds it; whether it held every promise.
    pub fn run(&mut self, seed: u64, length: Duration) -> bool {
        self.add(self.workload.run(seed, length))
    }

    /// Adds what became of a seed; whether it held every promise.
    pub fn add(&mut self, outcome: Outcome) -> bool {
        self.simulated += outcome.simulated;
        self.sent += outcome.sent;
        for (invariant, count) in &outcome.evaluated {
            *self.evaluated.entry(*invariant).or_default() += count;
        }
        self.reached.extend(&outcome.reached);
        let held = outcome.violation.is_none();
        if held {
            self.passed += 1;
        } else {
            self.failed.push(outcome);
        }
        held
    }

    /// Promises that were never looked at: a sweep with one of them has proved nothing about it.
    pub fn never_evaluated(&self) -> Vec<Invariant> {
        let missing = |invariant: &&Invariant| !self.evaluated.contains_key(*invariant);
        self.workload.invariants().into_iter().flatten().filter(missing).copied().collect()
    }

    /// Places that were never reached.
    pub fn never_reached(&self) -> Vec<&'static str> {
        self.workload.points().iter().filter(|point| !self.reached.contains(*point)).copied().collect()
    }
}
