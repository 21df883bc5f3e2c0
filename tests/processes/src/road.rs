//! Over what two processes talk, and with which papers.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, SyncArbiter};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::Transport;
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use archipelago_quic::{QuicSettings, QuicTransport};
use archipelago_runtime::env::{Environment, EnvironmentTimer, HostEnvironment, Threads};
use archipelago_runtime::{Node, NodeBuilder, NodeSettings, StartError};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use archipelago_tls::{Credentials, DevelopmentAuthority, Validity};

use crate::actors::Scribe;
use crate::desk::{Clerk, Desk};

/// A transport, as a node is configured for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Road {
    /// QUIC.
    Quic,
    /// TCP with TLS.
    Tls,
    /// TCP without protection.
    Tcp,
}

impl Road {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Quic, Self::Tls, Self::Tcp];

    /// Its name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quic => "quic",
            Self::Tls => "tls",
            Self::Tcp => "tcp",
        }
    }

    /// The road with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|road| road.name() == name)
    }

    fn transport(self, papers: &Papers) -> Arc<dyn Transport> {
        match self {
            Self::Quic => {
                let settings = QuicSettings { silence_limit: SILENCE, ..QuicSettings::default() };
                Arc::new(QuicTransport::new(settings, papers.credentials()))
            }
            Self::Tls => Arc::new(TcpTransport::new(tcp_settings(), Security::Tls(papers.credentials()))),
            Self::Tcp => Arc::new(TcpTransport::new(tcp_settings(), Security::Insecure)),
        }
    }
}

fn tcp_settings() -> TcpSettings {
    TcpSettings { silence_limit: SILENCE, ..TcpSettings::default() }
}

/// What a node proves itself with: authority, certificate and key as PEM.
#[derive(Clone, Debug)]
pub struct Papers {
    /// The three texts.
    pub pems: [String; 3],
}

impl Papers {
    /// Papers of a new authority that nobody else trusts.
    ///
    /// # Panics
    ///
    /// If none can be made.
    pub fn new() -> Self {
        Self::valid(Validity::Current)
    }

    /// Papers whose certificate has this validity, and others of the same authority that are valid.
    ///
    /// # Panics
    ///
    /// If none can be made.
    pub fn valid(validity: Validity) -> Self {
        let authority = DevelopmentAuthority::in_memory().expect("an authority can be made");
        let issued = authority.issue(NAME, validity).expect("a certificate can be issued");
        Self { pems: [authority.certificate().to_owned(), issued.certificate, issued.key] }
    }

    fn credentials(&self) -> Credentials {
        let [ca, certificate, key] = &self.pems;
        Credentials::from_pem(ca.as_bytes(), certificate.as_bytes(), key.as_bytes(), NAME)
            .expect("valid papers")
    }
}

impl Default for Papers {
    fn default() -> Self {
        Self::new()
    }
}

/// A node of this process that finds the scribes at `host`.
///
/// # Errors
///
/// As [`NodeBuilder::start`].
pub async fn caller(
    road: Road,
    papers: &Papers,
    host: NodeAddress,
    change: impl FnOnce(&mut NodeSettings),
) -> Result<Node, StartError> {
    let mut settings = settings();
    settings.remote.placed = BTreeMap::from([("Scribe".to_owned(), host)]);
    change(&mut settings);
    builder(road, papers, settings).remote_actor::<Scribe>().start().await
}

/// A light client of this process that knows `host` and nothing else.
///
/// # Errors
///
/// As [`NodeBuilder::start`].
pub async fn client(road: Road, papers: &Papers, host: NodeAddress) -> Result<Node, StartError> {
    builder(road, papers, settings()).remote_actor::<Scribe>().client([host]).start().await
}

pub(crate) async fn hosting(road: Road, papers: &Papers, namespace: &str) -> Result<Node, StartError> {
    let node = builder(road, papers, settings()).namespace(namespace).actor::<Scribe>().start().await?;
    node.register("/desk", Desk::default().start()).expect("the path is free");
    node.register("/clerk", SyncArbiter::start(2, || Clerk)).expect("the path is free");
    Ok(node)
}

fn builder(road: Road, papers: &Papers, settings: NodeSettings) -> NodeBuilder {
    on_store(road, papers, Arc::new(EmbeddedStore::default())).settings(settings)
}

/// A node of this process in the making, over plain TCP, that shares `store` with others, and its directory.
pub fn node(store: &Arc<EmbeddedStore>) -> NodeBuilder {
    on_store(Road::Tcp, &Papers { pems: Default::default() }, Arc::clone(store)).settings(settings())
}

fn on_store(road: Road, papers: &Papers, store: Arc<EmbeddedStore>) -> NodeBuilder {
    over(road.transport(papers), store)
}

/// A node of this process in the making, over any transport, that has a store of its own.
pub fn node_over(transport: Arc<dyn Transport>) -> NodeBuilder {
    over(transport, Arc::new(EmbeddedStore::default())).settings(settings())
}

fn over(transport: Arc<dyn Transport>, store: Arc<EmbeddedStore>) -> NodeBuilder {
    let env = HostEnvironment::new(Threads::Own).with_transport(transport);
    let env: Arc<dyn Environment> = Arc::new(env);
    let timer = Arc::new(EnvironmentTimer(Arc::clone(&env)));
    NodeBuilder::new(env, Arc::new(archipelago_embedded::directory(store, timer)))
}

/// The numbers of a node in these tests.
pub fn settings() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.stop_budget = Millis(2_000);
    // A host that was frozen for some seconds must not have lost its session meanwhile.
    settings.session_ttl = Millis(30_000);
    settings
}

const NAME: &str = "process.tests";
/// Short, so that a frozen peer is noticed within a test.
const SILENCE: std::time::Duration = std::time::Duration::from_secs(2);
