//! The session protocol above this store, on an engine that breaks below it.

use std::sync::Arc;

use archipelago_backend_conformance::{ManualTimer, Plan, Summary, World};
use archipelago_foundationdb::{Breakage, MemoryEngine};
use futures_util::FutureExt;

use crate::support::store;

/// Two layers of faults: those of the engine, which the store must hide, and above it those of the network, which it cannot.
/// `ARCHIPELAGO_TEST_SEED=<seed>` replays a failing world.
///
/// Proves: R180, R205, R220
#[test]
fn sessions_are_safe_and_heal_on_an_engine_that_breaks() {
    let seeds = match std::env::var("ARCHIPELAGO_TEST_SEED") {
        Ok(seed) => seed.parse().map(|seed| seed..seed + 1).unwrap(),
        Err(_) => 0..60,
    };
    let (mut total, mut unknown, mut late) = (Summary::default(), 0, 0);
    for seed in seeds.clone() {
        let breakage = Breakage {
            refused: 50,
            unknown_applied: 100,
            unknown_lost: 50,
            unknown_late: 100,
            too_old: 20,
            short_page: 100,
            shared_version: 300,
            ..Breakage::default()
        };
        let engine = MemoryEngine::new(seed, breakage);
        let timer = ManualTimer::default();
        let store = store(&engine, &timer).now_or_never().expect("answers at once");
        let one = World::new(seed, Plan::draw(seed), Arc::new(store)).run();
        total.granted += one.granted;
        total.takeovers += one.takeovers;
        total.ended += one.ended;
        total.transfers += one.transfers;
        unknown += engine.tally().unknown;
        late += engine.tally().late;
    }
    eprintln!("{total:?}, {unknown} unknown, {late} late");
    if seeds.end - seeds.start > 50 {
        let Summary { granted, takeovers, ended, transfers, .. } = total;
        let all = [granted, takeovers, ended, transfers, unknown, late];
        assert!(all.iter().all(|&count| count > 20), "an idle sweep proves nothing: {total:?}");
    }
}
