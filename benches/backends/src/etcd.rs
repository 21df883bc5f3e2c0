//! etcd: our store, and transactions of the same shape by its plain client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archipelago_directory::Store;
use archipelago_etcd::{EtcdConfig, EtcdStore};
use archipelago_test_servers::etcd::EtcdServer;
use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp, PutOptions, Txn, TxnOp, WatchOptions};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::sync::Mutex;

use crate::contestant::{Contestant, Ours, Pair, RealTimer};
use crate::measure::MOST;

/// A server of our own.
pub(crate) struct Engine {
    server: EtcdServer,
    pairs: AtomicU32,
}

impl Engine {
    pub(crate) fn start() -> Option<Self> {
        Some(Self { server: EtcdServer::start()?, pairs: AtomicU32::new(0) })
    }

    /// A new pair, below prefixes that nobody has used.
    pub(crate) async fn pair(&self) -> Pair {
        let n = self.pairs.fetch_add(1, Ordering::Relaxed);
        let store = self.store(format!("/ours{n}")).await;
        let raw = Raw::new(&self.server.address(), format!("/raw{n}")).await;
        Pair { ours: Arc::new(Ours::new(store).await), raw: Arc::new(raw) }
    }

    /// Our store, below a prefix that nobody has used.
    pub(crate) async fn store(&self, prefix: String) -> Arc<dyn Store> {
        let (endpoints, request_timeout) = (vec![self.server.address()], Duration::from_secs(20));
        let config = EtcdConfig { endpoints, prefix, request_timeout, ..EtcdConfig::default() };
        Arc::new(EtcdStore::connect(&config, RealTimer::start()).await.unwrap())
    }
}

struct Raw {
    client: Client,
    prefix: String,
    /// What the sessions' records hang on.
    lease: i64,
    revisions: Vec<Mutex<i64>>,
}

impl Raw {
    async fn new(address: &str, prefix: String) -> Self {
        let mut client = Client::connect([address], None).await.unwrap();
        let lease = client.lease_grant(360, None).await.unwrap().id();
        let mut revisions = Vec::new();
        for worker in 0..MOST {
            let put = client.put(format!("{prefix}/lease/{worker}"), LEASE, None).await.unwrap();
            revisions.push(Mutex::new(put.header().unwrap().revision()));
        }
        client.put(format!("{prefix}/node/0"), LEASE, None).await.unwrap();
        Self { client, prefix, lease, revisions }
    }

    fn key(&self, key: u32) -> String {
        format!("{}/own/shard/Bench/{key}", self.prefix)
    }
}

#[async_trait]
impl Contestant for Raw {
    async fn claim(&self, key: u32) {
        let (key, node) = (self.key(key), format!("{}/node/0", self.prefix));
        let tagged = format!("{}/by-tag/own/0000000000000001/{key}", self.prefix);
        let txn = Txn::new()
            .when([
                Compare::mod_revision(key.as_str(), CompareOp::Equal, 0),
                Compare::create_revision(node, CompareOp::Greater, 0),
            ])
            .and_then([TxnOp::put(key.as_str(), OWNER, None), TxnOp::put(tagged, OWNER, None)])
            .or_else([TxnOp::get(key.as_str(), None)]);
        assert!(self.client.kv_client().txn(txn).await.unwrap().succeeded());
    }

    async fn lookup(&self, key: u32) {
        for key in [self.key(key), format!("{}/lease/0", self.prefix)] {
            assert_eq!(self.client.kv_client().get(key, None).await.unwrap().count(), 1);
        }
    }

    async fn renew(&self, worker: usize) {
        let mut revision = self.revisions[worker].lock().await;
        let key = format!("{}/lease/{worker}", self.prefix);
        let hanging = PutOptions::new().with_lease(self.lease);
        let txn = Txn::new()
            .when([Compare::mod_revision(key.as_str(), CompareOp::Equal, *revision)])
            .and_then([TxnOp::put(key.as_str(), LEASE, Some(hanging))])
            .or_else([TxnOp::get(key.as_str(), None)]);
        let answer = self.client.kv_client().txn(txn).await.unwrap();
        assert!(answer.succeeded());
        *revision = answer.header().unwrap().revision();
    }

    async fn watch(&self) -> BoxStream<'static, u32> {
        let all = format!("{}/own/", self.prefix);
        let watch = self.client.watch_client().watch(all, Some(WatchOptions::new().with_prefix())).await;
        let number =
            |key: &[u8]| std::str::from_utf8(key).unwrap().rsplit('/').next().unwrap().parse().unwrap();
        let keys = watch.unwrap().flat_map(move |response| {
            let response = response.unwrap();
            let keys = response.events().iter().filter_map(|event| event.kv()).map(|pair| number(pair.key()));
            stream::iter(keys.collect::<Vec<u32>>())
        });
        keys.boxed()
    }
}

/// As long as what our records say.
const OWNER: &str = r#"{"tag":"0000000000000001","session":"0000000000000001","ttl_ms":60000}"#;
const LEASE: &str = r#"{"state":"live","seq":1000,"nonce":1000,"ttl_ms":60000}"#;
