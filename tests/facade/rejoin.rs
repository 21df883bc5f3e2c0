//! A node that has lost its session comes back by itself, as another node, and what users hold stays good.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::eventually;
use archipelago::config::Loader;
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::NodeId;
use archipelago::prelude::*;
use archipelago::{Builder, Event, Notice, StopError};
use archipelago_directory::{CasAnswer, Read, Store, Write, lease_id};
use archipelago_protocol::session::{EndReason, Lease};

/// What really happened, in order: which node id began and ended what.
#[derive(Clone, Default)]
struct Truth(Arc<Mutex<Vec<(NodeId, &'static str)>>>);

impl Truth {
    fn note(&self, node: NodeId, what: &'static str) {
        self.0.lock().unwrap().push((node, what));
    }

    fn count(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|(_, noted)| *noted == what).count()
    }

    /// After the first line of a node there is none of an earlier one.
    fn assert_one_at_a_time(&self) {
        let lines = self.0.lock().unwrap().clone();
        let mut nodes: Vec<NodeId> = lines.iter().map(|(node, _)| *node).collect();
        nodes.dedup();
        let distinct: std::collections::BTreeSet<_> = nodes.iter().collect();
        assert_eq!(distinct.len(), nodes.len(), "lives overlap: {lines:?}");
    }
}

/// Notes when it goes.
struct Toiling(NodeId, Truth);

impl Drop for Toiling {
    fn drop(&mut self) {
        self.1.note(self.0, "dropped");
    }
}

/// Which node it lives on, and its generation there.
#[remote((u64, u64))]
struct Where;

/// Works for ever, detached from its actor.
#[remote]
struct Toil;

/// Blocks the thread.
#[remote]
struct Block {
    ms: u64,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Where, Toil, Block), lifecycle)]
struct Worker {
    truth: Truth,
    here: Option<Activation>,
}

impl Worker {
    fn node(&self) -> NodeId {
        self.here.as_ref().unwrap().node_id()
    }
}

impl Actor for Worker {
    type Context = Context<Self>;
}

impl Lifecycle for Worker {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.truth.note(here.node_id(), "activated");
        self.here = Some(here);
        Ok(())
    }
}

impl Handler<Where> for Worker {
    type Result = MessageResult<Where>;

    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> Self::Result {
        MessageResult((self.node().as_u64(), self.here.as_ref().unwrap().generation().as_u64()))
    }
}

impl Handler<Toil> for Worker {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: Toil, _: &mut Context<Self>) -> Self::Result {
        let (node, truth) = (self.node(), self.truth.clone());
        Box::pin(async move {
            let _toiling = Toiling(node, truth.clone());
            truth.note(node, "toils");
            loop {
                actix::clock::sleep(Duration::from_millis(5)).await;
                truth.note(node, "still toils");
            }
        })
    }
}

impl Handler<Block> for Worker {
    type Result = ();

    fn handle(&mut self, Block { ms }: Block, _: &mut Context<Self>) {
        self.truth.note(self.node(), "blocks");
        std::thread::sleep(Duration::from_millis(ms));
        self.truth.note(self.node(), "blocked");
    }
}

/// A node on threads of its own, whose store the test can reach.
struct Stage {
    node: Node,
    store: Arc<EmbeddedStore>,
    truth: Truth,
}

fn builder(keys: &[(&str, &str)]) -> Builder {
    let loader = Loader::new()
        .directory(env!("CARGO_TARGET_TMPDIR"))
        .environment(std::iter::empty::<(String, String)>())
        .set("session.ttl", "3s")
        .set("session.heartbeat", "500ms")
        .set("node.data_arbiters", "2");
    let loader = keys.iter().fold(loader, |loader, (key, value)| loader.set(*key, value));
    Node::builder().settings(loader.load().unwrap())
}

impl Stage {
    async fn new(keys: &[(&str, &str)]) -> Self {
        let (store, truth) = (Arc::new(EmbeddedStore::default()), Truth::default());
        let known = truth.clone();
        let node = builder(keys)
            .embedded_store(Arc::clone(&store))
            .actor_with(move |_, _| Worker { truth: known.clone(), here: None })
            .start()
            .await
            .unwrap();
        Self { node, store, truth }
    }

    /// Writes that the session has ended, as another node may: the next beat finds out.
    async fn end_session(&self) {
        let node = self.node.id();
        let id = lease_id(node);
        loop {
            let record = self.store.get(&id, Read::Linearizable).await.unwrap().unwrap();
            let ended = Lease::Ended { why: EndReason::Silent, by: NodeId::new(1) };
            let value = serde_json::to_vec(&ended).unwrap().into();
            let write = Write::Put { tag: record.tag.clone(), value, ttl: None };
            let answer = self.store.cas(&id, record.expect(), write, None).await.unwrap();
            if matches!(answer, CasAnswer::Applied(_)) {
                return;
            }
        }
    }

    /// Ends the session and waits until the node is back.
    async fn lose_and_return(&self) {
        let before = self.node.id();
        self.end_session().await;
        eventually("the node is back", || self.node.id() != before).await;
    }
}

/// Proves: C5, C11
#[actix::test]
async fn refs_handles_and_subscriptions_outlive_the_session() {
    let stage = Stage::new(&[]).await;
    let (node, first) = (&stage.node, stage.node.id());
    let mut events = node.events().subscribe();
    let actor = node.actor::<Worker>("a");
    let (message, untyped) = (actor.message_ref::<Where>(), node.actor_ref("Worker", "a"));
    let (_, generation) = actor.send(Where).await.unwrap();
    stage.lose_and_return().await;
    let second = node.id();
    let (on, later) = actor.send(Where).await.unwrap();
    assert_eq!(on, second.as_u64());
    assert!(later > generation, "{later} is not after {generation}");
    assert_eq!(message.send(Where).await, Ok((on, later)));
    assert_eq!(untyped.typed::<Worker>().unwrap().send(Where).await, Ok((on, later)));
    assert_eq!(node.actor::<Worker>("a").send(Where).await, Ok((on, later)));
    actor.tell(Where).unwrap();
    let (mut lives, mut opened) = (Vec::new(), Vec::new());
    while let Some(Notice::Event(event)) = events.try_next() {
        match event {
            Event::SessionLost { node, .. } => lives.push((node, None)),
            Event::SessionOpened { node } => opened.push(node),
            Event::Rejoined { before, now } => lives.push((before, Some(now))),
            _ => {}
        }
    }
    assert_eq!(lives, [(first, None), (first, Some(second))]);
    assert_eq!(opened, [second]);
    node.stop().await.unwrap();
    assert!(matches!(actor.send(Where).await, Err(CallError::NotServing { .. })));
}

/// Proves: C6, C41
#[actix::test]
async fn nothing_of_one_life_runs_in_the_next() {
    let stage = Stage::new(&[]).await;
    let actors: Vec<_> = (0..8).map(|n| stage.node.actor::<Worker>(format!("a{n}"))).collect();
    for life in 1..=3 {
        let toil: Vec<_> = actors.iter().map(|actor| actor.send(Toil)).collect();
        eventually("all toil", || stage.truth.count("toils") == life * actors.len()).await;
        stage.lose_and_return().await;
        for call in toil {
            assert_eq!(call.await, Err(CallError::Stopped), "it had started");
        }
        assert_eq!(stage.truth.count("dropped"), life * actors.len(), "all ended before the next life");
    }
    stage.truth.assert_one_at_a_time();
    stage.node.stop().await.unwrap();
}

#[actix::test]
async fn a_handler_that_blocks_its_thread_keeps_the_node_down() {
    let stage = Stage::new(&[("fence.on_stuck", "report")]).await;
    let (actor, before) = (stage.node.actor::<Worker>("a"), stage.node.id());
    let mut events = stage.node.events().subscribe();
    let blocked = actor.send(Block { ms: 3_500 });
    eventually("the handler blocks", || stage.truth.count("blocks") == 1).await;
    stage.end_session().await;
    while stage.truth.count("blocked") == 0 {
        assert_eq!(stage.node.id(), before, "a second life began beside the first");
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(blocked.await, Err(CallError::Stopped));
    eventually("the node is back", || stage.node.id() != before).await;
    assert_eq!(actor.send(Where).await.unwrap().0, stage.node.id().as_u64());
    let stuck = std::iter::from_fn(|| events.try_next())
        .filter(|notice| *notice == Notice::Event(Event::ArbitersStuck { node: before, arbiters: 1 }));
    assert_eq!(stuck.count(), 1, "it is said, and once");
    stage.node.stop().await.unwrap();
}

#[actix::test]
async fn calls_in_between_are_refused_and_a_stop_there_is_the_end() {
    let stage = Stage::new(&[]).await;
    let (actor, before) = (stage.node.actor::<Worker>("a"), stage.node.id());
    actor.send(Where).await.unwrap();
    stage.end_session().await;
    eventually("the node gives up", || stage.node.serving_for() == archipelago::Millis(0)).await;
    eventually("the arbiters end", || actor.tell(Where).is_err()).await;
    let error = actor.send(Where).await.unwrap_err();
    assert!(matches!(error, CallError::NotServing { .. }) && error.is_not_started(), "{error}");
    stage.node.stop().await.unwrap();
    assert_eq!(stage.node.stop().await, Err(StopError::Twice));
    assert!(!stage.node.session_lost().await.is_empty());
    actix::clock::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(stage.node.id(), before, "no life begins after a stop");
}

#[actix::test]
async fn a_node_that_may_not_rejoin_says_why_it_ends() {
    let stage = Stage::new(&[("session.rejoin", "false")]).await;
    let before = stage.node.id();
    stage.end_session().await;
    let ended = stage.node.run().await;
    assert!(matches!(ended, Err(StopError::SessionLost { .. })), "{ended:?}");
    assert_eq!(stage.node.id(), before);
}

#[remote(u32)]
struct Knock;

#[derive(Default, NamedActor)]
#[named_actor(handles(Knock))]
struct Porter(u32);

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Knock> for Porter {
    type Result = u32;

    fn handle(&mut self, _: Knock, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

#[actix::test]
async fn named_actors_stay_registered_and_the_address_stays() {
    let stage = Stage::new(&[
        ("transport.kind", "tcp"),
        ("transport.insecure", "true"),
        ("transport.bind", "127.0.0.1:0"),
    ])
    .await;
    let porter = stage.node.register("/porter", Porter::default().start()).unwrap();
    let (address, uri) = (stage.node.address(), porter.address());
    assert_ne!(address.port(), 0);
    assert_eq!(porter.send(Knock).await, Ok(1));
    stage.lose_and_return().await;
    assert_eq!(porter.send(Knock).await, Ok(2), "it is the same actor: nobody fences it");
    assert_eq!(stage.node.named::<Porter>("/porter").unwrap().send(Knock).await, Ok(3));
    assert_eq!((stage.node.address(), porter.address()), (address, uri));
    stage.node.stop().await.unwrap();
}
