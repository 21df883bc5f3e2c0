//! What the tests of the workloads share.

use std::process::Command;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_sim::{Sweep, Workload};

/// Sweeps so many seeds: every promise must hold and have been looked at, every difficulty must have been met.
pub(crate) fn holds(workload: Workload, seeds: u64, length: Duration) {
    let mut sweep = Sweep::of(workload);
    for seed in 1..=seeds {
        sweep.run(seed, length);
    }
    for failed in &sweep.failed {
        eprintln!("{}", failed.tail.join("\n"));
        let violation = failed.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        let (seed, seconds, name) = (failed.seed, length.as_secs(), workload.name());
        eprintln!("seed {seed}: {violation}");
        eprintln!("replay: cargo xtask sim --workload {name} --from {seed} --seeds 1 --seconds {seconds}");
    }
    assert!(sweep.failed.is_empty(), "{} seeds failed", sweep.failed.len());
    assert_eq!(sweep.never_evaluated(), [], "a promise that is never looked at is not kept");
    assert_eq!(sweep.never_reached(), [""; 0], "a difficulty that is never met is not overcome");
}

/// The same seeds twice give the same runs, down to the last step.
pub(crate) fn repeats(workload: Workload, seeds: &[u64], length: Duration) {
    for seed in seeds.iter().copied() {
        let [first, second] = [(); 2].map(|()| workload.run(seed, length));
        assert!(first.sent > 100, "seed {seed} did nothing");
        assert_eq!(first, second, "seed {seed}");
    }
}

/// A seed has the same hash in this process and, each time, in another one.
pub(crate) fn repeats_elsewhere(workload: Workload, seed: u64, length: Duration) {
    let there = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-sim"));
        let (seed, seconds) = (seed.to_string(), length.as_secs().to_string());
        let words = ["--workload", workload.name(), "--replay", &seed, "--seconds", &seconds];
        let output = command.args(words).output().expect("the simulator can be started");
        assert!(output.status.success());
        String::from_utf8(output.stdout).expect("it writes text")
    };
    let (here, first) = (workload.run(seed, length).hash, there());
    assert!(first.contains(&format!("{here:016x}")), "{here:016x} here, there {first}");
    assert_eq!(first, there());
}

#[remote(u32)]
pub(crate) struct Tick;

/// Counts in memory.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick))]
pub(crate) struct Counter(u32);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Tick> for Counter {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}
