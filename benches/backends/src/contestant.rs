//! Who takes part: our directory above a store, or a plain client that sends the same requests.

use std::sync::Arc;
use std::time::Instant;

use archipelago_directory::{Sleep, Store, StoreDirectory, Timer};
use archipelago_protocol::contract::{Directory, Entry, PlacementDecision, WatchEvent, WatchScope};
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey};
use archipelago_protocol::session::{Beat, LeaseAnswer, LeaseVersion, Session};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::Mutex;

use crate::measure::MOST;

/// What is measured. Every failure ends the run.
#[async_trait]
pub(crate) trait Contestant: Send + Sync + 'static {
    /// Claims a key that nobody has.
    async fn claim(&self, key: u32);

    /// Asks who owns a key, and whether that session lives.
    async fn lookup(&self, key: u32);

    /// Renews the session of one worker.
    async fn renew(&self, worker: usize);

    /// The keys claimed from now on.
    async fn watch(&self) -> BoxStream<'static, u32>;
}

/// Ours, and the plain client.
pub(crate) struct Pair {
    pub(crate) ours: Arc<dyn Contestant>,
    pub(crate) raw: Arc<dyn Contestant>,
}

/// A directory above any store.
pub(crate) struct Ours {
    directory: StoreDirectory,
    leases: Vec<Mutex<Renewals>>,
}

struct Renewals {
    seq: u64,
    version: LeaseVersion,
}

impl Ours {
    pub(crate) async fn new(store: Arc<dyn Store>) -> Self {
        let directory = StoreDirectory::new(store, RealTimer::start());
        let mut leases = Vec::new();
        for worker in 0..MOST {
            let answer = directory.open_session(session(worker), 0).await.unwrap();
            let LeaseAnswer::Applied(version) = answer else { panic!("{answer:?}") };
            leases.push(Mutex::new(Renewals { seq: 0, version }));
        }
        directory.announce(&info()).await.unwrap();
        Self { directory, leases }
    }
}

#[async_trait]
impl Contestant for Ours {
    async fn claim(&self, key: u32) {
        let decision = self.directory.claim(&owned(key), session(0), None).await.unwrap();
        assert!(matches!(decision, PlacementDecision::Placed(_)), "{decision:?}");
    }

    async fn lookup(&self, key: u32) {
        self.directory.lookup(&owned(key)).await.unwrap().expect("was claimed");
    }

    async fn renew(&self, worker: usize) {
        let mut lease = self.leases[worker].lock().await;
        lease.seq += 1;
        let beat = Beat { session: session(worker), seq: lease.seq, nonce: lease.seq, expect: lease.version };
        let answer = self.directory.beat(beat).await.unwrap();
        let LeaseAnswer::Applied(version) = answer else { panic!("{answer:?}") };
        lease.version = version;
    }

    async fn watch(&self) -> BoxStream<'static, u32> {
        let mut watch = self.directory.watch(WatchScope::Owners, None).await.unwrap();
        watch.next().await.expect("goes on").expect("a snapshot");
        let keys = watch.filter_map(async |event| match event.unwrap() {
            WatchEvent::Put { entry: Entry::Owner(record), .. } => number(&record.placement.key),
            _ => None,
        });
        keys.boxed()
    }
}

/// Real time.
pub(crate) struct RealTimer(Instant);

impl RealTimer {
    pub(crate) fn start() -> Arc<Self> {
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

fn owned(key: u32) -> OwnedKey {
    OwnedKey::shard(Kind::new("Bench").expect("a name"), key)
}

fn number(key: &OwnedKey) -> Option<u32> {
    match key {
        OwnedKey::Shard { shard, .. } => Some(*shard),
        _ => None,
    }
}

fn session(worker: usize) -> Session {
    Session { id: NodeId::new(worker as u64 + 1), ttl: Millis(60_000) }
}

fn info() -> NodeInfo {
    NodeInfo {
        id: session(0).id,
        name: "bench".to_owned(),
        address: NodeAddress::new("127.0.0.1", 4_700).expect("an address"),
        roles: std::collections::BTreeSet::new(),
        version: "0.1.0".to_owned(),
        kinds: Default::default(),
    }
}
