//! What the tests share: a runtime, a clock, prefixes of their own, and a road to etcd that can be blocked.

use std::future::Future;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use archipelago_backend_conformance::restart_rules::Server;
use archipelago_directory::{
    CasAnswer, Expect, Record, RecordId, Sleep, Space, Store, StoreError, Timer, Version, Write,
};
use archipelago_etcd::{EtcdConfig, EtcdStore};
use archipelago_protocol::time::Millis;
use archipelago_test_servers::ServerProcess;
use archipelago_test_servers::etcd::EtcdServer;
use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Runs a test on a runtime of its own; one that hangs fails.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LIMIT, test).await.expect("ends within a minute") })
}

/// Real time.
pub(crate) struct RealTimer(Instant);

impl RealTimer {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Timer for RealTimer {
    fn now(&self) -> Millis {
        Millis::from_duration(self.0.elapsed())
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }
}

/// Settings for `address`, with a prefix that no other test has.
pub(crate) fn settings(address: &str) -> EtcdConfig {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let (process, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let prefix = format!("/archipelago-test/{now}-{process}-{n}");
    // Generous, so that a busy machine fails nothing; tests about time set their own.
    let request_timeout = Duration::from_secs(20);
    EtcdConfig { endpoints: vec![address.to_owned()], prefix, request_timeout, ..EtcdConfig::default() }
}

/// The same, with times short enough to wait for.
pub(crate) fn hasty(address: &str) -> EtcdConfig {
    let (request_timeout, watch_idle) = (Duration::from_millis(600), Duration::from_millis(200));
    EtcdConfig { request_timeout, watch_idle, ..settings(address) }
}

/// A server that is restarted by rules.
pub(crate) struct Restarting {
    server: Arc<Mutex<EtcdServer>>,
    end: fn(&mut ServerProcess),
}

impl Restarting {
    /// Ends it with `end`, whenever it is to be restarted.
    pub(crate) fn new(server: EtcdServer, end: fn(&mut ServerProcess)) -> Arc<Self> {
        Arc::new(Self { server: Arc::new(Mutex::new(server)), end })
    }
}

#[async_trait]
impl Server for Restarting {
    async fn restart(&self) {
        let (server, end) = (Arc::clone(&self.server), self.end);
        let restarted = tokio::task::spawn_blocking(move || {
            let mut server = server.lock().unwrap();
            end(&mut server);
            server.restart();
        });
        restarted.await.unwrap();
    }
}

pub(crate) async fn connect(config: &EtcdConfig) -> EtcdStore {
    EtcdStore::connect(config, RealTimer::new()).await.unwrap()
}

/// etcd's own client, to see what is really there and to play the operator.
pub(crate) async fn operator(address: &str) -> etcd_client::Client {
    etcd_client::Client::connect([address], None).await.unwrap()
}

pub(crate) fn owner(key: &str) -> RecordId {
    RecordId::new(Space::OWNERS, key)
}

pub(crate) fn put(tag: &str, value: &str) -> Write {
    Write::Put { tag: Some(tag.into()), value: Bytes::from(value.to_owned()), ttl: None }
}

/// Writes a record where there is none.
pub(crate) async fn create(store: &dyn Store, id: &RecordId, tag: &str) -> Version {
    applied(store.cas(id, Expect::Absent, put(tag, "{}"), None).await)
}

pub(crate) fn applied(answer: Result<CasAnswer, StoreError>) -> Version {
    match answer {
        Ok(CasAnswer::Applied(version)) => version,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn current(store: &dyn Store, id: &RecordId) -> Result<Option<Record>, StoreError> {
    store.get(id, archipelago_directory::Read::Linearizable).await
}

/// Tries again until it works.
pub(crate) async fn eventually<T, E: std::fmt::Debug, F: Future<Output = Result<T, E>>>(
    mut attempt: impl FnMut() -> F,
) -> T {
    loop {
        match attempt().await {
            Ok(result) => return result,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A road to a server that a test can block without either side noticing.
pub(crate) struct Road {
    pub(crate) address: String,
    /// Every connection made before it last changed is stuck.
    blocked: watch::Sender<usize>,
    accepted: Arc<AtomicUsize>,
}

impl Road {
    /// A road to the server at `address`.
    pub(crate) async fn to(address: &str) -> Self {
        let target = address.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (blocked, accepted) = (watch::Sender::new(0), Arc::new(AtomicUsize::new(0)));
        let (blocks, count) = (blocked.subscribe(), Arc::clone(&accepted));
        tokio::spawn(async move {
            while let Ok((inward, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let mut blocks = blocks.clone();
                blocks.mark_unchanged();
                tokio::spawn(travel(inward, target.clone(), blocks));
            }
        });
        Self { address, blocked, accepted }
    }

    /// Blocks all connections that there are, without closing them. New ones are free.
    pub(crate) fn block(&self) {
        self.blocked.send_modify(|times| *times += 1);
    }

    /// How many connections were made.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A target that is not there closes the connection at once.
async fn travel(mut inward: TcpStream, target: String, mut blocks: watch::Receiver<usize>) {
    let Ok(mut outward) = TcpStream::connect(target).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut inward, &mut outward) => {}
        _ = blocks.changed() => std::future::pending().await,
    }
}

const LIMIT: Duration = Duration::from_secs(60);
