//! Splits, merges and moves, crashes and restarts, ways that are cut, nodes that stand still, and a store that loses answers and
//! carries writes out late, all at once; then peace.

use archipelago_sim::for_each_seed_reaching;

use super::pages::{Book, in_order, one_at_a_time};
use super::tempest::{PLACES, storm};

/// Proves: R337
#[test]
fn whatever_fails_no_actor_is_active_twice_and_all_are_served_again() {
    for_each_seed_reaching(1..=SEEDS * repetitions(), &PLACES, |seed| {
        let book = storm(seed).0;
        one_at_a_time(&book);
        in_order(&book);
    });
}

/// Those who wait for a range are woken in the same order each time, and so go on in the same order.
#[test]
fn the_same_storm_comes_twice() {
    for seed in 1..=3 {
        let ((first, hash), (second, again)) = (storm(seed), storm(seed));
        let written = |book: &Book| format!("{:?}", book.lock().unwrap());
        assert_eq!((written(&first), hash), (written(&second), again), "seed {seed}");
    }
}

/// How many times as many storms come as with every change: a soak asks for more.
fn repetitions() -> u64 {
    match std::env::var("ARCHIPELAGO_TEST_SOAK") {
        Ok(times) => times.parse().expect("ARCHIPELAGO_TEST_SOAK is a number"),
        Err(_) => 1,
    }
}

const SEEDS: u64 = 200;
