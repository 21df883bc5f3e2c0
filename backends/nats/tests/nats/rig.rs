//! What the tests of this backend share: servers, stores, and a limit to every wait.
//!
//! Each test starts a server of its own: it takes some hundredths of a second, tests run in processes of their own or
//! side by side, and many of them hurt their server.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archipelago_backend_conformance::restart_rules::Server;
use archipelago_directory::{CasAnswer, Expect, RecordId, Sleep, Space, Store, Timer, Version, Write};
use archipelago_nats::{NatsConfig, NatsStore};
use archipelago_protocol::time::Millis;
use archipelago_test_servers::{ServerProcess, nats};
use async_trait::async_trait;
use bytes::Bytes;

/// Runs `test` on a server of its own, or skips it if there is no program for it.
pub(crate) fn with_server<F: Future<Output = ()>>(test: impl FnOnce(ServerProcess) -> F) {
    with_server_told(|_| String::new(), test);
}

/// The same with more in the server's configuration, which may use files of its folder.
pub(crate) fn with_server_told<F: Future<Output = ()>>(
    more: impl Fn(&std::path::Path) -> String + Send + Sync + 'static,
    test: impl FnOnce(ServerProcess) -> F,
) {
    let Some(program) = nats::program() else { return };
    let server = nats::start(program, more);
    block_on(test(server));
}

/// The same with one that acknowledges a write when it is on disk, as the documentation asks.
pub(crate) fn with_durable_server<F: Future<Output = ()>>(test: impl FnOnce(ServerProcess) -> F) {
    let Some(program) = nats::program() else { return };
    block_on(test(nats::start_durable(program)));
}

/// Runs `test`, which hurts no server, on a store of its own: on the server that the environment names, or on a new one.
pub(crate) fn with_store<F: Future<Output = ()>>(test: impl FnOnce(Arc<NatsStore>) -> F) {
    match nats::named() {
        Some(address) => block_on(async { test(connect(apart(&address)).await).await }),
        None => with_server(async |server| test(store(&server).await).await),
    }
}

/// Settings with a stream that no other test has.
fn apart(address: &str) -> NatsConfig {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos();
    let name = format!("test-{now}-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let mut config = NatsConfig::default();
    config.urls = vec![address.to_owned().try_into().expect("an address")];
    config.stream = name.clone().try_into().expect("a name");
    config.prefix = name.try_into().expect("a name");
    config.replicas = 1.try_into().expect("a number");
    config.settle = Duration::ZERO;
    config
}

/// Waits for a test, but not for ever.
pub(crate) fn block_on(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(LIMIT, test).await.expect("the test ends in time");
    });
}

/// The same on one thread, so that what it uses is all that is used.
pub(crate) fn block_on_one_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(LIMIT, test).await.expect("the test ends in time");
    });
}

/// Settings for a single server, which is trusted from its first moment on.
pub(crate) fn config(server: &ServerProcess) -> NatsConfig {
    let mut config = NatsConfig::default();
    config.urls = vec![nats::url(server).try_into().expect("an address")];
    config.replicas = 1.try_into().expect("a number");
    config.settle = Duration::ZERO;
    config
}

/// A server that rules restart: it is killed, and started on what is on its disk.
pub(crate) struct Restarting(Arc<Mutex<ServerProcess>>);

impl Restarting {
    /// Takes the server over.
    pub(crate) fn new(server: ServerProcess) -> Arc<Self> {
        Arc::new(Self(Arc::new(Mutex::new(server))))
    }
}

#[async_trait]
impl Server for Restarting {
    async fn restart(&self) {
        let server = Arc::clone(&self.0);
        let restarted = tokio::task::spawn_blocking(move || server.lock().unwrap().restart());
        restarted.await.unwrap();
    }
}

/// A store on `server`.
pub(crate) async fn store(server: &ServerProcess) -> Arc<NatsStore> {
    connect(config(server)).await
}

/// A store with these settings.
pub(crate) async fn connect(config: NatsConfig) -> Arc<NatsStore> {
    Arc::new(NatsStore::connect(config).await.expect("connects"))
}

/// An owner record.
pub(crate) fn owner(key: &str) -> RecordId {
    RecordId::new(Space::OWNERS, key)
}

/// A write of `value`, tagged `tag`.
pub(crate) fn put(tag: &str, value: impl Into<Bytes>) -> Write {
    Write::Put { tag: Some(tag.into()), value: value.into(), ttl: None }
}

/// Writes, and is answered that it was applied.
pub(crate) async fn write(store: &dyn Store, id: &RecordId, expect: Expect, write: Write) -> Version {
    match store.cas(id, expect, write, None).await.expect("answers") {
        CasAnswer::Applied(version) => version,
        other => panic!("{id}: {other:?}"),
    }
}

/// Looks again and again until `look` finds something.
pub(crate) async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    for _ in 0..600 {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// The real clock.
pub(crate) struct RealTimer(tokio::time::Instant);

impl RealTimer {
    /// A clock that begins now.
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self(tokio::time::Instant::now()))
    }
}

impl Timer for RealTimer {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.0.elapsed().as_millis()).expect("not so long"))
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(tokio::time::sleep(Duration::from_millis(length.0)))
    }
}

const LIMIT: Duration = Duration::from_secs(60);
