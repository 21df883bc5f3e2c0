//! Clients of a store that is away again and again: what they are told fits, unless the store lies.

#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "the clock stands still while anybody can go on: the same happens on every machine"
)]

mod through;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use archipelago_backend_conformance::linearizability::{Chaos, ChaosError, ChaosRun, Summary};
use archipelago_backend_conformance::{Faults, FaultyStore};
use archipelago_directory::{
    CasAnswer, Expect, Guard, Read, Record, RecordId, Sleep, Space, Store, StoreError, Timer, Write,
};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use through::{Hand, Through};
use tokio::time::Instant;

/// Proves: R208, R212
#[test]
fn lost_replies_and_late_writes_are_explained() {
    let summary = run(Lie::None).unwrap();
    let Summary { keys, answered, refused, unknown, acknowledged } = summary;
    assert!([keys, answered, refused, unknown, acknowledged].iter().all(|&n| n > 50), "{summary:?}");
}

/// A crash that takes with it what was acknowledged.
#[test]
fn a_store_that_loses_what_it_acknowledged_is_caught() {
    let error = run(Lie::Loses).unwrap_err();
    assert!(matches!(error, ChaosError::NotLinearizable(_) | ChaosError::BrokenPromise(_)), "{error}");
}

#[test]
fn a_store_that_grants_a_key_twice_is_caught() {
    let error = run(Lie::GrantsTwice).unwrap_err();
    assert!(matches!(error, ChaosError::NotLinearizable(_) | ChaosError::BrokenPromise(_)), "{error}");
}

/// `Unavailable` promises that nothing was written, now or later.
#[test]
fn a_store_that_writes_what_it_refused_is_caught() {
    let error = run(Lie::WritesWhatItRefused).unwrap_err();
    assert!(matches!(error, ChaosError::NotLinearizable(_) | ChaosError::BrokenPromise(_)), "{error}");
}

/// Some time of everything that a network does to requests, above a store that tells `lie`.
fn run(lie: Lie) -> Result<Summary, ChaosError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let timer: Arc<dyn Timer> = Arc::new(VirtualTimer(Instant::now()));
        let lying = Arc::new(Through::new(Lying { lie, count: AtomicU64::new(0) }));
        let store = Arc::new(FaultyStore::new(lying, Arc::clone(&timer), 1, Faults::default()));
        let chaos = Chaos { pause: Millis(6), ..Chaos::default() };
        let doors: Vec<Arc<dyn Store>> = vec![Arc::clone(&store) as _];
        let run = ChaosRun::prepare(chaos, doors, timer).await;
        let stop = AtomicBool::new(false);
        let hurting = async {
            for round in 0..ROUNDS {
                let away = if round % 4 == 3 { 900 } else { 20 };
                let (lost_reply, late, max_delay) = (20, 20, Millis(3));
                let faults = Faults { unavailable: away, lost_reply, late, max_delay, ..Faults::default() };
                store.set_faults(faults);
                tokio::time::sleep(Duration::from_millis(60)).await;
                store.apply_late().await;
            }
            store.set_faults(Faults::default());
            store.flush_late().await;
            stop.store(true, Ordering::Relaxed);
        };
        futures_util::future::join(run.run(&stop), hurting).await;
        run.check().await
    })
}

const ROUNDS: u32 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    /// Every hundredth owner record is gone after it was acknowledged.
    Loses,
    /// Every tenth write that should be refused replaces what stands there.
    GrantsTwice,
    /// Every hundredth owner record is written, and said not to be.
    WritesWhatItRefused,
}

struct Lying {
    lie: Lie,
    count: AtomicU64,
}

impl Lying {
    fn every(&self, n: u64, lie: Lie, id: &RecordId) -> bool {
        let turn = self.lie == lie && id.space == Space::OWNERS;
        turn && self.count.fetch_add(1, Ordering::Relaxed) % n == n - 1
    }
}

async fn current(store: &dyn Store, id: &RecordId) -> Result<Expect, StoreError> {
    let now = store.get(id, Read::Linearizable).await?;
    Ok(now.as_ref().map_or(Expect::Absent, Record::expect))
}

#[async_trait]
impl Hand for Lying {
    async fn cas(
        &self,
        behind: &dyn Store,
        id: &RecordId,
        (expect, write, guard): (Expect, Write, Option<Guard>),
    ) -> Result<CasAnswer, StoreError> {
        let answer = behind.cas(id, expect, write.clone(), guard.clone()).await?;
        let puts = matches!(write, Write::Put { .. });
        match answer {
            CasAnswer::Applied(_) if puts && self.every(100, Lie::Loses, id) => {
                behind.cas(id, current(behind, id).await?, Write::Delete, None).await?;
                Ok(answer)
            }
            CasAnswer::Applied(_) if puts && self.every(100, Lie::WritesWhatItRefused, id) => {
                Err(StoreError::Unavailable { source: "it says".into() })
            }
            CasAnswer::Conflict(_) if puts && self.every(10, Lie::GrantsTwice, id) => {
                behind.cas(id, current(behind, id).await?, write, guard).await
            }
            answer => Ok(answer),
        }
    }
}

struct VirtualTimer(Instant);

impl Timer for VirtualTimer {
    fn now(&self) -> Millis {
        Millis::from_duration(self.0.elapsed())
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }
}
