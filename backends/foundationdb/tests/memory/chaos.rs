//! Servers that lose commits, go away and come back while many clients use them: what those were told fits together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use archipelago_backend_conformance::ManualTimer;
use archipelago_backend_conformance::linearizability::{Chaos, ChaosRun, Summary};
use archipelago_directory::{Store, Timer};
use archipelago_foundationdb::{Breakage, FoundationDbConfig, MemoryEngine};
use archipelago_protocol::time::Millis;
use futures_util::future::join;

use crate::support::{run, settings, store_with};

/// Proves: R208, R212
#[test]
fn servers_hurt_under_load_lose_nothing_acknowledged_and_grant_nothing_twice() {
    for seed in 0..SEEDS {
        let summary = run(|timer| hurt_under_load(seed, timer));
        eprintln!("{summary:?}");
        let Summary { keys, answered, refused, unknown, acknowledged } = summary;
        let enough = keys > 30 && answered > 300 && refused > 5 && unknown > 5 && acknowledged > 100;
        assert!(enough, "an idle run proves nothing: {summary:?}");
    }
}

async fn hurt_under_load(seed: u64, timer: ManualTimer) -> Summary {
    let engine = MemoryEngine::new(seed, Breakage::default());
    let config = FoundationDbConfig { request_timeout: PATIENCE, ..settings() };
    let mut doors: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..2 {
        doors.push(Arc::new(store_with(&engine, &timer, config.clone()).await));
    }
    let clock: Arc<dyn Timer> = Arc::new(timer.clone());
    let chaos = ChaosRun::prepare(Chaos { seed, ..Chaos::default() }, doors, clock).await;
    let stop = AtomicBool::new(false);
    let hurting = async {
        for round in 0..ROUNDS {
            engine.set_breakage(BREAKAGE);
            timer.sleep(Millis(300)).await;
            engine.stop();
            // Now and then for longer than a request waits.
            timer.sleep(if round % 3 == 2 { Millis(900) } else { Millis(120) }).await;
            engine.start();
        }
        engine.set_breakage(Breakage::default());
        engine.land_all();
        stop.store(true, Ordering::Relaxed);
    };
    join(chaos.run(&stop), hurting).await;
    chaos.check().await.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
}

/// What a cluster does to commits and reads besides going away.
const BREAKAGE: Breakage = Breakage {
    refused: 50,
    unknown_applied: 50,
    unknown_lost: 50,
    unknown_late: 50,
    timed_out: 30,
    too_old: 20,
    future_version: 20,
    short_page: 100,
    watch_refused: 0,
    watch_deaf: 0,
    shared_version: 200,
    waits: 300,
};
const PATIENCE: Duration = Duration::from_millis(500);
const ROUNDS: u32 = 20;
const SEEDS: u64 = 4;
