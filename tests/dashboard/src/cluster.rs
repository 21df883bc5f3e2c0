//! Three nodes of one datacenter and one of another, each on a thread of its own: ending the thread kills the node as a power cut
//! would, without a word to anybody. The first node serves the dashboard.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use actix_web::{App, HttpServer, web};
use archipelago::datacenter::{ControlPlane, DataCenterState};
use archipelago::embedded::{EmbeddedStore, control_plane};
use archipelago::identity::ActorKey;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, ShardCount, Sharding, admin};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::actors::{Guest, Shelf};
use crate::http::{Answer, request};

/// What the API wants to know before anything is changed.
pub const TOKEN: &str = "a-token-for-the-tests";

/// What a cluster is like.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// The API and the page stand below this path of an application, instead of at the root of a port of their own.
    pub below: &'static str,
    /// Nothing is shown without the token.
    pub guarded: bool,
    /// There is another datacenter.
    pub another: bool,
    /// What the first node is called, if not `north-1`.
    pub first: Option<&'static str>,
}

/// Nodes that run.
pub struct Cluster {
    /// Where the API of the first node is, without a slash in the end.
    pub url: String,
    at: SocketAddr,
    below: &'static str,
    nodes: Vec<Member>,
    _folder: TempDir,
}

/// A node and its thread.
struct Member {
    node: Node,
    /// Dropped, it ends the thread.
    power: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Cluster {
    /// Starts all nodes and waits until each sees all of its own.
    ///
    /// # Panics
    ///
    /// If one does not start, or they do not find each other.
    pub async fn start(wanted: Wanted) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("token"), TOKEN).expect("it can be written");
        let (store, plane) = (Arc::default(), control_plane(Arc::new(EmbeddedStore::default()), LEASE));
        let found = Founding { wanted, folder: folder.path(), plane: &plane };
        let names = [wanted.first.unwrap_or("north-1"), "north-2", "north-3"];
        let mut nodes: Vec<Member> = names.iter().map(|name| found.node("north", name, &store)).collect();
        if wanted.another {
            nodes.push(found.node("south", "south-1", &Arc::default()));
        }
        let first = nodes[0].node.clone();
        let at = if wanted.below.is_empty() {
            archipelago_admin::served_at(&first).expect("the first node serves its API")
        } else {
            serve_below(&first, wanted.below)
        };
        let below = wanted.below;
        let cluster = Self { url: format!("http://{at}{below}"), at, below, nodes, _folder: folder };
        cluster.until("they see each other", || cluster.is_complete(wanted.another)).await;
        cluster
    }

    fn is_complete(&self, another: bool) -> bool {
        let up = |one: &Member| {
            let members = one.node.members();
            members.iter().filter(|member| member.status == MemberStatus::Up).count() == NORTH
        };
        let map = self.node(0).datacenters();
        let active = map.entries.iter().filter(|entry| entry.standing == DataCenterState::Active).count();
        self.nodes[..NORTH].iter().all(up) && (!another || active == 2)
    }

    /// A node, by its number from 0. Killed ones keep their numbers.
    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number].node
    }

    /// Kills a node.
    pub fn kill(&mut self, number: usize) {
        self.nodes[number].kill();
    }

    /// Greets a guest once from the first node.
    pub async fn greet(&self, key: &str) {
        self.node(0).actor::<Guest>(key).send(crate::Greet).await.expect("the guest answers");
    }

    /// What the API of the first node answers.
    ///
    /// # Panics
    ///
    /// If it does not, or refuses.
    pub fn api(&self, path: &str) -> Value {
        let answer = self.ask("GET", &format!("/v1/{path}"), Some(TOKEN), "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    }

    /// Sends any request to where the API of the first node is.
    ///
    /// # Panics
    ///
    /// If nobody answers.
    pub fn ask(&self, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
        let path = format!("{}{path}", self.below);
        request(self.at, method, &path, token, body).expect("the API answers")
    }

    /// Waits until a condition holds.
    ///
    /// # Panics
    ///
    /// If it does not within half a minute.
    pub async fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !condition() {
            assert!(Instant::now() < until, "never happened: {what}");
            actix::clock::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Member {
    fn start(build: impl FnOnce() -> Builder + Send + 'static) -> Self {
        let (tell, told) = mpsc::channel();
        let (power, cut) = oneshot::channel::<()>();
        let thread = std::thread::spawn(move || {
            actix::System::new().block_on(async move {
                let node = build().start().await.expect("the node starts");
                tell.send(node).expect("somebody waits for it");
                // Never sent, only dropped.
                cut.await.unwrap_or_default();
            });
        });
        let node = told.recv().expect("the node starts");
        Self { node, power: Some(power), thread: Some(thread) }
    }

    fn kill(&mut self) {
        drop(self.power.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked is as dead as one that ended.
            drop(thread.join());
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What all nodes of a cluster are made of.
struct Founding<'a> {
    wanted: Wanted,
    folder: &'a Path,
    plane: &'a Arc<dyn ControlPlane>,
}

impl Founding<'_> {
    fn node(&self, town: &'static str, name: &str, store: &Arc<EmbeddedStore>) -> Member {
        let (first, wanted) = (name != "north-2" && name != "north-3" && town == "north", self.wanted);
        let mut keys = vec![
            ("node.name", name.to_owned()),
            ("node.version", "1.2.3".to_owned()),
            ("transport.kind", "tcp".to_owned()),
            ("transport.insecure", "true".to_owned()),
            ("transport.bind", "127.0.0.1:0".to_owned()),
            ("session.ttl", "3s".to_owned()),
            ("session.heartbeat", "900ms".to_owned()),
            ("membership.leader", "oldest".to_owned()),
            // An actor whose shard moves is gone until its next message: what is counted here must stay.
            ("sharding.rebalance", "false".to_owned()),
            ("admin.token_file", self.folder.join("token").display().to_string()),
            ("admin.guard_reads", wanted.guarded.to_string()),
        ];
        if first && wanted.below.is_empty() {
            keys.extend([("admin.serve", "true".to_owned()), ("admin.bind", "127.0.0.1:0".to_owned())]);
        }
        if wanted.another {
            keys.extend(datacenter(town));
        }
        let (folder, store) = (self.folder.to_owned(), Arc::clone(store));
        let plane = wanted.another.then(|| Arc::clone(self.plane));
        Member::start(move || {
            let loader = archipelago::config::Loader::new().directory(folder);
            let loader = loader.environment(std::iter::empty::<(String, String)>());
            let loader = keys.into_iter().fold(loader, |loader, (key, value)| loader.set(key, &value));
            let settings = loader.load().expect("the settings are valid");
            let shards = ShardCount::new(SHARDS).expect("it is a power of two");
            let builder = Node::builder().settings(settings).embedded_store(store).on_current_arbiter();
            let builder = match plane {
                Some(plane) => builder.control_plane(plane),
                None => builder,
            };
            builder
                .shard(Sharding::new(|_, _| Guest::default()).shards(shards))
                .shard(Sharding::new(|_, _| Shelf).ranges([ActorKey::new("m").expect("it is a key")]))
        })
    }
}

fn datacenter(town: &str) -> Vec<(&'static str, String)> {
    vec![
        ("datacenter.name", town.to_owned()),
        ("datacenter.region", "europe".to_owned()),
        ("datacenter.placement", "nearest".to_owned()),
        ("control_plane.kind", "embedded".to_owned()),
        ("control_plane.lease_ttl", "6s".to_owned()),
        ("datacenter.heartbeat", "2s".to_owned()),
        ("datacenter.refresh", "1s".to_owned()),
        ("datacenter.leader_check", "300ms".to_owned()),
    ]
}

/// The API as a part of an application, for as long as the process lives.
fn serve_below(node: &Node, below: &'static str) -> SocketAddr {
    let (node, (tell, told)) = (node.clone(), mpsc::channel());
    drop(std::thread::spawn(move || {
        actix::System::new().block_on(async move {
            let app = move || App::new().service(web::scope(below).service(admin(&node)));
            let server =
                HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").expect("it listens");
            tell.send(server.addrs()[0]).expect("somebody waits for it");
            server.run().await
        })
    }));
    told.recv().expect("the application serves")
}

const LEASE: Duration = Duration::from_secs(6);
const PATIENCE: Duration = Duration::from_secs(30);
const NORTH: usize = 3;
/// Of the guests.
const SHARDS: u16 = 32;
