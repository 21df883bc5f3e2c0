//! The nodes that are measured: one in each of two processes, one data arbiter each.

use std::collections::BTreeMap;
use std::sync::Arc;

use archipelago::prelude::*;
use archipelago_bench_raw::quic_settings;
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::Transport;
use archipelago_protocol::identity::NodeAddress;
use archipelago_quic::QuicTransport;
use archipelago_runtime::env::{Environment, EnvironmentTimer, HostEnvironment, Threads};
use archipelago_runtime::{Node, NodeBuilder, NodeSettings, RemoteSettings, StartError};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use archipelago_tls::Credentials;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 100 bytes of payload, as the baseline has.
#[derive(Clone, Copy)]
pub(crate) struct Payload([u8; 100]);

impl Payload {
    pub(crate) const fn new() -> Self {
        Self([7; 100])
    }
}

/// As one piece: serde would write an array byte by byte.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(Whole)
    }
}

struct Whole;

impl Visitor<'_> for Whole {
    type Value = Payload;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("100 bytes")
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Payload, E> {
        bytes.try_into().map(Payload).map_err(|_| E::invalid_length(bytes.len(), &self))
    }
}

#[remote(Payload)]
pub(crate) struct Echo(pub(crate) Payload);

#[remote(())]
pub(crate) struct Note(pub(crate) Payload);

#[remote(u64)]
pub(crate) struct Count;

#[remote(u64)]
pub(crate) struct Blob(pub(crate) Vec<u8>);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Echo, Note, Count, Blob))]
pub(crate) struct Target {
    notes: u64,
}

impl Actor for Target {
    type Context = Context<Self>;
}

impl Handler<Echo> for Target {
    type Result = MessageResult<Echo>;
    fn handle(&mut self, Echo(payload): Echo, _: &mut Context<Self>) -> Self::Result {
        MessageResult(payload)
    }
}

impl Handler<Note> for Target {
    type Result = ();
    fn handle(&mut self, _: Note, _: &mut Context<Self>) {
        self.notes += 1;
    }
}

impl Handler<Blob> for Target {
    type Result = u64;
    fn handle(&mut self, Blob(bytes): Blob, _: &mut Context<Self>) -> u64 {
        bytes.len() as u64
    }
}

impl Handler<Count> for Target {
    type Result = u64;
    fn handle(&mut self, _: Count, _: &mut Context<Self>) -> u64 {
        self.notes
    }
}

/// Over what the nodes talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Road {
    Tcp,
    Tls,
    Quic,
}

impl Road {
    pub(crate) const ALL: [Self; 3] = [Self::Tcp, Self::Tls, Self::Quic];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Quic => "quic",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|road| road.name() == name)
    }

    fn transport(self, credentials: Credentials) -> Arc<dyn Transport> {
        match self {
            Self::Tcp => Arc::new(TcpTransport::new(TcpSettings::default(), Security::Insecure)),
            Self::Tls => Arc::new(TcpTransport::new(TcpSettings::default(), Security::Tls(credentials))),
            Self::Quic => Arc::new(QuicTransport::new(quic_settings(), credentials)),
        }
    }
}

/// A node that hosts the target, or one that knows it at `host`.
pub(crate) async fn start(
    road: Road,
    credentials: Credentials,
    host: Option<NodeAddress>,
) -> Result<Node, StartError> {
    start_with(road, credentials, host, RemoteSettings::default()).await
}

/// The same with these numbers.
pub(crate) async fn start_with(
    road: Road,
    credentials: Credentials,
    host: Option<NodeAddress>,
    remote: RemoteSettings,
) -> Result<Node, StartError> {
    let env = HostEnvironment::new(Threads::Own).with_transport(road.transport(credentials));
    let env: Arc<dyn Environment> = Arc::new(env);
    let timer = Arc::new(EnvironmentTimer(Arc::clone(&env)));
    let directory = archipelago_embedded::directory(Arc::new(EmbeddedStore::default()), timer);
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.remote = remote;
    let builder = |settings| NodeBuilder::new(env, Arc::new(directory)).settings(settings);
    match host {
        None => builder(settings).actor::<Target>().start().await,
        Some(address) => {
            settings.remote.placed = BTreeMap::from([("Target".to_owned(), address)]);
            builder(settings).remote_actor::<Target>().start().await
        }
    }
}
