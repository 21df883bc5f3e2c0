//! A modest sweep of the project's own workload, and the same seed twice.

use std::process::Command;
use std::time::Duration;

use archipelago_sim::{Workload, run_seed};

/// Proves: R88, R93, R97, R250, R253, R262, R263, R265, R267, R268, R269, R273, R311, R313, R319, R449, R450, R451,
/// R471, R473, R474
#[test]
fn thirty_seeds_hold_every_promise_and_meet_every_difficulty() {
    crate::common::holds(Workload::Local, 30, Duration::from_secs(120));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    crate::common::repeats(Workload::Local, &[3, 14, 19], Duration::from_secs(60));
}

#[test]
fn different_seeds_give_different_runs() {
    let [first, second] = [1, 2].map(|seed| run_seed(seed, Duration::from_secs(10)).hash);
    assert_ne!(first, second);
}

#[test]
fn the_same_seed_gives_the_same_run_in_another_process() {
    crate::common::repeats_elsewhere(Workload::Local, 14, Duration::from_secs(60));
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
