//! The session protocol above a store where everything goes wrong.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use archipelago_backend_conformance::{Plan, Summary, World};
use archipelago_embedded::EmbeddedStore;

fn run(seed: u64) -> Summary {
    World::new(seed, Plan::draw(seed), Arc::new(EmbeddedStore::default())).run()
}

/// P1–P5 of the session protocol in many small worlds. `ARCHIPELAGO_TEST_SEED=<seed>` replays a failing one.
///
/// Proves: R180, R205, R220, R231
#[test]
fn sessions_are_safe_and_heal_whatever_goes_wrong() {
    let seeds = match std::env::var("ARCHIPELAGO_TEST_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
        Err(_) => 0..500,
    };
    let mut total = Summary::default();
    for seed in seeds.clone() {
        let one = run(seed);
        total.granted += one.granted;
        total.refused_grants += one.refused_grants;
        total.takeovers += one.takeovers;
        total.lost += one.lost;
        total.ended += one.ended;
        total.transfers += one.transfers;
        total.reasserted += one.reasserted;
        total.late += one.late;
        total.checked += one.checked;
    }
    eprintln!("{total:?}");
    if seeds.end - seeds.start > 100 {
        let Summary { granted, refused_grants, takeovers, lost, ended, transfers, reasserted, late, checked } =
            total;
        let all = [granted, refused_grants, takeovers, lost, ended, transfers, reasserted, late, checked];
        assert!(all.iter().all(|&count| count > 20), "an idle sweep proves nothing: {total:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_world() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
