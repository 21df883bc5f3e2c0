//! Clients on threads of their own: what they are answered is explained by one order, unless the store is broken.

#![allow(clippy::unwrap_used)]

mod through;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};

use archipelago_backend_conformance::ImmediateTimer;
use archipelago_backend_conformance::linearizability::{NotLinearizable, Workload};
use archipelago_directory::{
    CasAnswer, Expect, Guard, Read, Record, RecordId, Space, Store, StoreDirectory, StoreError, Write,
};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::Directory;
use async_trait::async_trait;
use futures_util::FutureExt;
use through::{Hand, Through};

/// Runs each client on a thread of its own; how many requests were answered.
fn run(store: Arc<dyn Store>, workload: Workload) -> Result<usize, NotLinearizable> {
    let directory: Arc<dyn Directory> = Arc::new(StoreDirectory::new(store, Arc::new(ImmediateTimer)));
    let history = workload.prepare(&*directory).now_or_never().unwrap();
    let clients = workload.clients(&directory, &history);
    let start = Barrier::new(clients.len());
    std::thread::scope(|scope| {
        for client in clients {
            let start = &start;
            scope.spawn(move || {
                start.wait();
                client.now_or_never().expect("the store answers at once");
            });
        }
    });
    history.check()
}

/// Proves: R208, R212, R221
#[test]
fn the_embedded_store_is_linearizable_on_threads() {
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::default());
    let mut answered = 0;
    for seed in 0..100 {
        let yielding = Arc::new(Through::to(Arc::clone(&store), Broken::new(Fault::None)));
        answered += run(yielding, Workload { seed, ..Workload::default() }).unwrap();
    }
    assert_eq!(answered, 100 * 36, "every request was answered and explained");
}

/// The check objects to a store whose compare-and-swap does not compare.
#[test]
fn a_store_that_does_not_compare_is_caught() {
    assert!(first_caught(Fault::BlindWrites).is_some());
}

/// And to one whose reads lag behind its answers.
#[test]
fn a_store_that_reads_the_past_is_caught() {
    assert!(first_caught(Fault::OldReads).is_some());
}

/// And to one whose versions start again after a delete (mutant 23).
#[test]
fn a_store_that_forgets_its_versions_is_caught() {
    assert!(first_caught(Fault::VersionsStartAgain).is_some());
}

/// The first of a hundred workloads whose answers no order explains.
fn first_caught(fault: Fault) -> Option<u64> {
    (0..100).find(|&seed| {
        let store = Arc::new(Through::new(Broken::new(fault)));
        run(store, Workload { seed, ..Workload::default() }).is_err()
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Every fifth write of an owner record replaces whatever stands there.
    BlindWrites,
    /// Every third read of an owner record shows what stood there before.
    OldReads,
    /// Owner records are numbered from 1 after each delete.
    VersionsStartAgain,
}

/// Gives a store a fault, and lets other threads in before each write.
struct Broken {
    fault: Fault,
    count: AtomicU64,
    past: Mutex<BTreeMap<RecordId, Option<Record>>>,
    /// The version that each owner record pretends to start at.
    base: Mutex<BTreeMap<RecordId, u64>>,
}

impl Broken {
    fn new(fault: Fault) -> Self {
        let (past, base) = (Mutex::default(), Mutex::default());
        Self { fault, count: AtomicU64::new(0), past, base }
    }

    fn every(&self, n: u64, fault: Fault, id: &RecordId) -> bool {
        let turn = self.count.fetch_add(1, Ordering::Relaxed) % n == n - 1;
        self.fault == fault && id.space == Space::OWNERS && turn
    }

    fn base(&self, id: &RecordId) -> u64 {
        self.base.lock().unwrap().get(id).copied().unwrap_or(0)
    }

    fn shown(&self, record: Option<Record>) -> Option<Record> {
        record.map(|mut record| {
            record.version.0 = record.version.0.saturating_sub(self.base(&record.id));
            record
        })
    }
}

#[async_trait]
impl Hand for Broken {
    async fn get(&self, behind: &dyn Store, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        if self.every(3, Fault::OldReads, id)
            && let Some(old) = self.past.lock().unwrap().get(id)
        {
            return Ok(old.clone());
        }
        Ok(self.shown(behind.get(id, read).await?))
    }

    async fn cas(
        &self,
        behind: &dyn Store,
        id: &RecordId,
        (mut expect, write, guard): (Expect, Write, Option<Guard>),
    ) -> Result<CasAnswer, StoreError> {
        std::thread::yield_now();
        let now = behind.get(id, Read::Linearizable).await?;
        if self.every(5, Fault::BlindWrites, id) {
            expect = now.as_ref().map_or(Expect::Absent, Record::expect);
        } else if let Expect::At(seen) = &mut expect {
            seen.version.0 += self.base(id);
        }
        self.past.lock().unwrap().insert(id.clone(), now);
        let deletes = write == Write::Delete;
        match behind.cas(id, expect, write, guard).await? {
            CasAnswer::Applied(mut version) => {
                let base = self.base(id);
                if deletes && self.fault == Fault::VersionsStartAgain && id.space == Space::OWNERS {
                    self.base.lock().unwrap().insert(id.clone(), version.0);
                }
                version.0 = version.0.saturating_sub(base);
                Ok(CasAnswer::Applied(version))
            }
            CasAnswer::Conflict(found) => Ok(CasAnswer::Conflict(self.shown(found))),
            CasAnswer::GuardFailed => Ok(CasAnswer::GuardFailed),
        }
    }
}
