//! NATS: our store, and messages of the same shape by its plain client.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archipelago_directory::Store;
use archipelago_nats::{NatsConfig, NatsStore};
use archipelago_test_servers::{ServerProcess, nats};
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::stream::{Config, Stream};
use async_nats::jetstream::{self, Context};
use async_nats::{HeaderMap, HeaderValue};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use tokio::sync::Mutex;

use crate::contestant::{Contestant, Ours, Pair};
use crate::measure::MOST;

/// A server of our own, which syncs every write to disk as it must.
pub(crate) struct Engine {
    server: ServerProcess,
    pairs: AtomicU32,
}

impl Engine {
    pub(crate) fn start() -> Option<Self> {
        Some(Self { server: nats::start_durable(nats::program()?), pairs: AtomicU32::new(0) })
    }

    /// A new pair, with streams of their own.
    pub(crate) async fn pair(&self) -> Pair {
        let n = self.pairs.fetch_add(1, Ordering::Relaxed);
        let store = self.store(&format!("ours{n}")).await;
        let raw = Raw::new(&nats::url(&self.server), format!("raw{n}")).await;
        Pair { ours: Arc::new(Ours::new(store).await), raw: Arc::new(raw) }
    }

    /// Our store, in a stream of its own.
    pub(crate) async fn store(&self, name: &str) -> Arc<dyn Store> {
        let mut config = NatsConfig::default();
        config.urls = vec![nats::url(&self.server).try_into().expect("an address")];
        config.stream = name.to_owned().try_into().expect("a name");
        config.prefix = name.to_owned().try_into().expect("a name");
        config.replicas = 1.try_into().expect("a number");
        config.request_timeout = Duration::from_secs(20);
        config.settle = Duration::ZERO;
        Arc::new(NatsStore::connect(config).await.unwrap())
    }
}

struct Raw {
    client: async_nats::Client,
    context: Context,
    stream: Stream,
    prefix: String,
    sequences: Vec<Mutex<u64>>,
}

impl Raw {
    async fn new(address: &str, prefix: String) -> Self {
        let client = async_nats::connect(address).await.unwrap();
        let context = jetstream::new(client.clone());
        let config = Config {
            name: prefix.clone(),
            subjects: vec![format!("{prefix}.>")],
            max_messages_per_subject: 8,
            allow_rollup: true,
            allow_direct: true,
            allow_message_ttl: true,
            ..Config::default()
        };
        let stream = context.create_stream(config).await.unwrap();
        let raw = Self { client, context, stream, prefix, sequences: Vec::new() };
        let mut sequences = Vec::new();
        for worker in 0..MOST {
            sequences.push(Mutex::new(raw.store(raw.lease(worker), 0, LEASE, None).await));
        }
        Self { sequences, ..raw }
    }

    fn key(&self, key: u32) -> String {
        format!("{}.own.shard.Bench.{key}", self.prefix)
    }

    fn lease(&self, worker: usize) -> String {
        format!("{}.lease.{worker}", self.prefix)
    }

    async fn store(&self, subject: String, replaces: u64, value: &'static str, ttl: Option<&str>) -> u64 {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", HeaderValue::from(replaces));
        headers.insert("Nats-Expected-Last-Subject-Sequence-Subject", subject.as_str());
        match ttl {
            Some(ttl) => {
                headers.insert("Nats-TTL", ttl);
                headers.insert("Nats-Rollup", "sub");
            }
            None => headers.insert("Tag", "0000000000000001"),
        }
        let sent = self.context.publish_with_headers(subject, headers, Bytes::from_static(value.as_bytes()));
        sent.await.unwrap().await.unwrap().sequence
    }
}

#[async_trait]
impl Contestant for Raw {
    async fn claim(&self, key: u32) {
        self.store(self.key(key), 0, OWNER, None).await;
    }

    async fn lookup(&self, key: u32) {
        for subject in [self.key(key), self.lease(0)] {
            self.stream.get_last_raw_message_by_subject(&subject).await.unwrap();
        }
    }

    async fn renew(&self, worker: usize) {
        let mut sequence = self.sequences[worker].lock().await;
        *sequence = self.store(self.lease(worker), *sequence, LEASE, Some("360s")).await;
    }

    async fn watch(&self) -> BoxStream<'static, u32> {
        let config = OrderedConfig {
            deliver_subject: self.client.new_inbox(),
            filter_subject: format!("{}.own.>", self.prefix),
            deliver_policy: DeliverPolicy::New,
            ..OrderedConfig::default()
        };
        let messages = self.stream.create_consumer(config).await.unwrap().messages().await.unwrap();
        let number = |subject: &str| subject.rsplit('.').next().unwrap().parse().unwrap();
        messages.map(move |message| number(&message.unwrap().subject)).boxed()
    }
}

/// As long as what our records say.
const OWNER: &str = r#"{"session":"0000000000000001","ttl_ms":60000}"#;
const LEASE: &str = r#"{"state":"live","seq":1000,"nonce":1000,"ttl_ms":60000}"#;
