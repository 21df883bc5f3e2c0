//! What became of one seed, and how a workload is run and judged.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::ledger::Ground;
use crate::invariants::{Invariant, Violation};
use crate::sometimes::take_fired;
use crate::world::{Simulation, World};

/// What became of one seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The hash of every recorded step.
    pub hash: u64,
    /// How many nodes there were, up or down.
    pub nodes: usize,
    /// How much virtual time passed.
    pub simulated: Duration,
    /// How many messages were sent.
    pub sent: u64,
    /// How many of them were handled.
    pub handled: u64,
    /// How often each invariant was looked at.
    pub evaluated: BTreeMap<Invariant, u64>,
    /// The places of [`POINTS`](crate::POINTS) that were reached.
    pub reached: BTreeSet<&'static str>,
    /// The first promise that was broken, if one was.
    pub violation: Option<Violation>,
    /// Those that were broken after it, each once.
    pub further: Vec<Violation>,
    /// The plan and the last steps before the end, if one was.
    pub tail: Vec<String>,
}

impl Outcome {
    /// How a promise was broken, if it was, whichever was broken first.
    pub fn broken(&self, invariant: Invariant) -> Option<&Violation> {
        self.violation.iter().chain(&self.further).find(|violation| violation.invariant == invariant)
    }
}

/// The truth of a run, once there is one.
pub(crate) type Shared<T> = Arc<OnceLock<Arc<T>>>;

/// The truth, as actors ask for it.
pub(crate) fn known<T>(shared: &OnceLock<Arc<T>>) -> &Arc<T> {
    shared.get().expect("actors are made for messages, and those are sent after the truth is known")
}

/// Runs `script` in a world, and judges by the truth that is made for it.
pub(crate) fn run_judged<T: Ground>(
    (seed, plan): (u64, &dyn Debug),
    simulation: Simulation,
    shared: &Shared<T>,
    truth: impl FnOnce(&World) -> T,
    script: impl AsyncFnOnce(&World, &Arc<T>),
) -> Outcome {
    drop(take_fired());
    let run = simulation.run(async |world| {
        // The nodes were started before there was a truth; they have had no message yet.
        let truth = Arc::clone(shared.get_or_init(|| Arc::new(truth(&world))));
        script(&world, &truth).await;
        let ledger = truth.ledger();
        let (evaluated, mut broken) = ledger.judge().verdict();
        let further = broken.split_off(broken.len().min(1));
        let violation = broken.pop();
        let mut tail = Vec::new();
        if violation.is_some() {
            tail.push(format!("{plan:?}"));
            tail.extend(world.trace(|trace| trace.tail()));
        }
        (world.node_count(), ledger.totals(), evaluated, (violation, further), tail)
    });
    let (nodes, (sent, handled), evaluated, (violation, further), tail) = run.output;
    let (hash, simulated, reached) = (run.hash, run.simulated, take_fired());
    Outcome { seed, hash, nodes, simulated, sent, handled, evaluated, reached, violation, further, tail }
}
