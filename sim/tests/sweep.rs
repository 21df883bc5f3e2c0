//! A modest sweep of the project's own workload, and the same seed twice.

use std::process::Command;
use std::time::Duration;

use archipelago_sim::{Sweep, run_seed};

/// Proves: R88, R93, R97, R250, R253, R262, R263, R265, R267, R268, R269, R273, R311, R313, R319, R449, R450, R451,
/// R471, R473, R474
#[test]
fn thirty_seeds_hold_every_promise_and_meet_every_difficulty() {
    let mut sweep = Sweep::new();
    for seed in 1..=30 {
        sweep.run(seed, Duration::from_secs(120));
    }
    for failed in &sweep.failed {
        eprintln!("{}", failed.tail.join("\n"));
        let violation = failed.violation.as_ref().map(ToString::to_string).unwrap_or_default();
        eprintln!("seed {0}: {violation}\nreplay: cargo xtask sim --from {0} --seeds 1", failed.seed);
    }
    assert!(sweep.failed.is_empty(), "{} seeds failed", sweep.failed.len());
    assert_eq!(sweep.never_evaluated(), [], "a promise that is never looked at is not kept");
    assert_eq!(sweep.never_reached(), [""; 0], "a difficulty that is never met is not overcome");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 14, 19] {
        let [first, second] = [(); 2].map(|()| run_seed(seed, Duration::from_secs(60)));
        assert!(first.sent > 100, "seed {seed} did nothing");
        assert_eq!(first, second, "seed {seed}");
    }
}

#[test]
fn different_seeds_give_different_runs() {
    let [first, second] = [1, 2].map(|seed| run_seed(seed, Duration::from_secs(10)).hash);
    assert_ne!(first, second);
}

#[test]
fn the_same_seed_gives_the_same_run_in_another_process() {
    let hashes = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-sim"));
        let output = command.args(["--replay", "14", "--seconds", "60"]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let here = run_seed(14, Duration::from_secs(60)).hash;
    let there = hashes();
    assert!(there.contains(&format!("{here:016x}")), "{here:016x} here, there {there}");
    assert_eq!(there, hashes());
}

#[test]
fn a_sweep_ends_with_one_line_that_counts() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_archipelago-sim"));
    let output = command.args(["--from", "5", "--seeds", "2", "--seconds", "5"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with(" passed, 0 failed"), "{text}");
    assert!(output.status.success());
}
