//! What the tests share: a clock that moves when nothing else does, and stores on an engine in memory.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use archipelago_backend_conformance::ManualTimer;
use archipelago_backend_conformance::restart_rules::Server;
use archipelago_directory::{
    CasAnswer, Change, Expect, Read, Record, RecordId, Space, Store, StoreError, StoreWatch, Timer, Version,
    Write,
};
use archipelago_foundationdb::{Breakage, FoundationDbConfig, FoundationDbStore, MemoryEngine};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;

/// Runs a test on one thread. Whenever it waits for nothing but time, time passes; one that hangs fails.
pub(crate) fn run<T, F: Future<Output = T>>(test: impl FnOnce(ManualTimer) -> F) -> T {
    let timer = ManualTimer::default();
    let mut test = pin!(test(timer.clone()));
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    for _ in 0..LIMIT {
        if let Poll::Ready(result) = test.as_mut().poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        if !woken.0.swap(false, Ordering::SeqCst) {
            timer.advance(TICK);
        }
    }
    panic!("the test hangs");
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The servers of an engine in memory: nobody is served for a while, then versions leap and what was open is lost.
pub(crate) struct Servers {
    pub(crate) engine: MemoryEngine,
    pub(crate) timer: ManualTimer,
}

#[async_trait]
impl Server for Servers {
    async fn restart(&self) {
        self.engine.stop();
        self.timer.sleep(AWAY).await;
        self.engine.start();
    }
}

/// An engine on which nothing goes wrong.
pub(crate) fn calm() -> MemoryEngine {
    MemoryEngine::new(0, Breakage::default())
}

/// A store above `engine`.
pub(crate) async fn store(engine: &MemoryEngine, timer: &ManualTimer) -> FoundationDbStore {
    store_with(engine, timer, settings()).await
}

pub(crate) async fn store_with(
    engine: &MemoryEngine,
    timer: &ManualTimer,
    config: FoundationDbConfig,
) -> FoundationDbStore {
    FoundationDbStore::open(Arc::new(engine.clone()), &config, Arc::new(timer.clone())).await.unwrap()
}

pub(crate) fn settings() -> FoundationDbConfig {
    FoundationDbConfig { watch_poll: Duration::from_millis(200), ..FoundationDbConfig::default() }
}

/// Changes are kept for 100 milliseconds, which is ten commits.
pub(crate) fn forgetful() -> FoundationDbConfig {
    FoundationDbConfig {
        request_timeout: Duration::from_millis(20),
        watch_poll: Duration::from_millis(20),
        history: Duration::from_millis(100),
        ..FoundationDbConfig::default()
    }
}

pub(crate) fn owner(key: &str) -> RecordId {
    RecordId::new(Space::OWNERS, key)
}

pub(crate) fn put(tag: &str, value: &str) -> Write {
    Write::Put { tag: Some(tag.into()), value: Bytes::from(value.to_owned()), ttl: None }
}

/// Writes a record where there is none.
pub(crate) async fn create(store: &dyn Store, key: &str) -> Version {
    applied(store.cas(&owner(key), Expect::Absent, put("a", key), None).await)
}

pub(crate) fn applied(answer: Result<CasAnswer, StoreError>) -> Version {
    match answer {
        Ok(CasAnswer::Applied(version)) => version,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn current(store: &dyn Store, key: &str) -> Option<Record> {
    store.get(&owner(key), Read::Linearizable).await.unwrap()
}

pub(crate) async fn next(watch: &mut StoreWatch) -> Change {
    watch.next().await.unwrap().unwrap()
}

const AWAY: Millis = Millis(700);
const TICK: Millis = Millis(10);
const LIMIT: usize = 500_000;
