//! A test that runs many seeds and says how to run the one that failed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Runs `test` once for each seed. If it panics, the seed is named with the way to run it alone: with the variable
/// `ARCHIPELAGO_SIM_SEED` set to it, the same test runs that seed and no other.
///
/// # Panics
///
/// As `test` does, after naming the seed; or if the variable is set to something that is not a number.
pub fn for_each_seed<T>(seeds: impl IntoIterator<Item = u64>, mut test: impl FnMut(u64) -> T) -> Vec<T> {
    let only = std::env::var(ONLY).ok();
    let only = only.map(|text| text.parse::<u64>().expect("ARCHIPELAGO_SIM_SEED is the number of a seed"));
    let seeds: Vec<u64> = only.map_or_else(|| seeds.into_iter().collect(), |seed| vec![seed]);
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
