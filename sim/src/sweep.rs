//! Many seeds, one after the other, and what they came to together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::invariants::Invariant;
use crate::sometimes::POINTS;
use crate::workload::{Outcome, run_seed};

/// The sum of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
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
    /// The places of [`POINTS`] that were reached.
    pub reached: BTreeSet<&'static str>,
}

impl Sweep {
    /// An empty sum.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs one seed and adds it.
    pub fn run(&mut self, seed: u64, length: Duration) -> bool {
        let outcome = run_seed(seed, length);
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
        Invariant::ALL.into_iter().filter(|invariant| !self.evaluated.contains_key(invariant)).collect()
    }

    /// Places that were never reached.
    pub fn never_reached(&self) -> Vec<&'static str> {
        POINTS.into_iter().filter(|point| !self.reached.contains(point)).collect()
    }
}
