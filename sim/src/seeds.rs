//! A test that runs many seeds and says how to run the one that failed.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::sometimes::take_fired;

/// Runs `test` once for each seed. If it panics, the seed is named with the way to run it alone: with the variable
/// `ARCHIPELAGO_SIM_SEED` set to it, the same test runs that seed and no other.
///
/// # Panics
///
/// As `test` does, after naming the seed; or if the variable is set to something that is not a number.
pub fn for_each_seed<T>(seeds: impl IntoIterator<Item = u64>, test: impl FnMut(u64) -> T) -> Vec<T> {
    match replayed() {
        Some(seed) => run(vec![seed], test),
        None => run(seeds, test),
    }
}

/// As [`for_each_seed`], and together the seeds must have come to every place in `points`: a test that never meets its
/// difficulty proves nothing. Places are noted with [`sometimes!`](crate::sometimes). A seed that is run alone owes nothing.
///
/// ```
/// use archipelago_sim::{Simulation, for_each_seed_reaching, sometimes};
///
/// const PLACES: [&str; 2] = ["heads", "tails"];
///
/// for_each_seed_reaching(1..=20, &PLACES, |seed| {
///     Simulation::new(seed).run(async |world| match world.below(2) {
///         0 => sometimes!(PLACES, "heads"),
///         _ => sometimes!(PLACES, "tails"),
///     });
/// });
/// ```
///
/// # Panics
///
/// As [`for_each_seed`]; if there are no seeds; or if a place was never reached, with the names of all such.
pub fn for_each_seed_reaching<T>(
    seeds: impl IntoIterator<Item = u64>,
    points: &[&'static str],
    test: impl FnMut(u64) -> T,
) -> Vec<T> {
    match replayed() {
        Some(seed) => run(vec![seed], test),
        None => run_reaching(seeds, points, test),
    }
}

/// The one seed to run, if it is named.
fn replayed() -> Option<u64> {
    let only = std::env::var(ONLY).ok()?;
    Some(only.parse().expect("ARCHIPELAGO_SIM_SEED is the number of a seed"))
}

fn run_reaching<T>(
    seeds: impl IntoIterator<Item = u64>,
    points: &[&'static str],
    mut test: impl FnMut(u64) -> T,
) -> Vec<T> {
    // What an earlier test on this thread has reached does not count.
    take_fired();
    let mut reached = BTreeSet::new();
    let outputs = run(seeds, |seed| {
        let output = test(seed);
        reached.extend(take_fired());
        output
    });
    assert!(!outputs.is_empty(), "no seed was run, so nothing is proved");
    let missed: Vec<_> = points.iter().filter(|point| !reached.contains(*point)).collect();
    assert!(missed.is_empty(), "{} seeds never came to {missed:?}", outputs.len());
    outputs
}

fn run<T>(seeds: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64) -> T) -> Vec<T> {
    seeds.into_iter().map(|seed| one(seed, &mut test)).collect()
}

fn one<T>(seed: u64, test: &mut impl FnMut(u64) -> T) -> T {
    match catch_unwind(AssertUnwindSafe(|| test(seed))) {
        Ok(value) => value,
        Err(panic) => fail(seed, panic),
    }
}

fn fail(seed: u64, panic: Box<dyn Any + Send>) -> ! {
    // The harness runs each test in a thread that bears its name.
    let test = std::thread::current().name().unwrap_or("the test").to_owned();
    eprintln!("seed {seed} failed; replay: {ONLY}={seed} cargo test {test}");
    resume_unwind(panic)
}

const ONLY: &str = "ARCHIPELAGO_SIM_SEED";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_runs_once_in_order() {
        assert_eq!(for_each_seed(3..6, |seed| seed * 2), [6, 8, 10]);
    }

    const PLACES: [&str; 3] = ["even", "odd", "negative"];

    fn note_parity(seed: u64) {
        if seed.is_multiple_of(2) {
            crate::sometimes!(PLACES, "even");
        } else {
            crate::sometimes!(PLACES, "odd");
        }
    }

    fn told(panicked: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(panicked)).expect_err("it fails");
        panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| Some((*panic.downcast_ref::<&str>()?).to_owned()))
            .unwrap()
    }

    #[test]
    fn seeds_that_together_come_everywhere_pass() {
        assert_eq!(run_reaching(1..=2, &PLACES[..2], note_parity).len(), 2);
    }

    #[test]
    fn what_no_seed_came_to_is_named() {
        let told = told(|| drop(run_reaching([1, 3], &PLACES, note_parity)));
        assert!(told.contains(r#"["even", "negative"]"#), "{told}");
    }

    #[test]
    fn what_was_reached_before_the_first_seed_does_not_count() {
        note_parity(2);
        let told = told(|| drop(run_reaching([1], &PLACES[..2], note_parity)));
        assert!(told.contains("even"), "{told}");
    }

    #[test]
    fn without_a_seed_nothing_is_proved() {
        assert!(told(|| drop(run_reaching([], &[], note_parity))).contains("no seed"));
    }

    #[test]
    fn the_first_failure_ends_the_sweep_with_its_own_panic() {
        let mut ran = Vec::new();
        let panic = catch_unwind(AssertUnwindSafe(|| {
            for_each_seed(1..10, |seed| {
                ran.push(seed);
                assert_ne!(seed, 3, "three is wrong");
            })
        }));
        assert!(panic.is_err());
        assert_eq!(ran, [1, 2, 3]);
    }
}
