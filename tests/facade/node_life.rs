//! A node starts, serves, drains and stops.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Log, Probe, SayDetached, SayLater, builder, builder_with, eventually, say};
use archipelago::embedded::EmbeddedStore;
use archipelago::prelude::*;
use archipelago::{Event, Notice, StopError};

async fn probe_node(log: &Log, keys: &[(&str, &str)]) -> Node {
    let log = log.clone();
    builder_with(keys).actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

#[actix::test]
async fn a_stop_finishes_what_is_under_way_and_runs_every_hook() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let calls: Vec<_> = (0..5)
        .map(|n| node.actor::<Probe>(format!("a{n}")).send(SayLater { what: "done".to_owned(), ms: 30 }))
        .collect();
    let waiting = node.actor::<Probe>("a0").send(say("waiting"));
    eventually("all handlers start", || log.count("begin done") == 5).await;
    node.stop().await.unwrap();
    for call in calls {
        assert_eq!(call.await, Ok(1));
    }
    assert_eq!(waiting.await, Ok(2), "it had been accepted, so it was handled");
    assert_eq!(log.count("deactivate NodeStopping"), 5);
    assert_eq!(log.count("gone"), 5, "every hook ran to its end");
}

#[actix::test]
async fn a_stopped_node_answers_that_it_does_not_serve() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let alice = node.actor::<Probe>("alice");
    node.stop().await.unwrap();
    let error = alice.send(say("x")).await.unwrap_err();
    assert!(matches!(error, CallError::NotServing { .. }), "{error}");
    assert!(error.is_not_started());
    assert!(matches!(alice.tell(say("x")), Err(CallError::NotServing { .. })));
    assert_eq!(node.stop().await, Err(StopError::Twice));
}

#[actix::test]
async fn a_stop_keeps_to_its_budget_and_counts_what_it_could_not_finish() {
    let log = Log::default();
    let node = probe_node(&log, &[("node.stop_budget", "100ms")]).await;
    let stuck = node.actor::<Probe>("stuck").send(SayDetached { what: "never".to_owned(), ms: 60_000 });
    let behind = node.actor::<Probe>("stuck").send(say("behind"));
    eventually("the handler starts", || log.count("begin never") == 1).await;
    let start = Instant::now();
    assert_eq!(node.stop().await, Err(StopError::Unfinished { jobs: 2, actors: 1 }));
    assert!(start.elapsed() < Duration::from_secs(2), "took {:?}", start.elapsed());
    assert_eq!(stuck.await, Err(CallError::Stopped), "it had started: unknown");
    assert!(behind.await.unwrap_err().is_not_started());
    assert_eq!(log.count("never"), 0, "its future was cancelled");
}

/// Proves: R485
#[actix::test]
async fn the_life_of_a_node_shows_in_its_events() {
    let node = builder().start().await.unwrap();
    let mut events = node.events().subscribe();
    node.stop().await.unwrap();
    assert_eq!(events.next().await, Some(Notice::Event(Event::NodeStopping { node: node.id() })));
}

/// Proves: R21, R26, R27, R28, R29
#[actix::test]
async fn a_node_id_is_drawn_anew_and_stays_for_life() {
    let log = Log::default();
    let (first, second) = (probe_node(&log, &[]).await, probe_node(&log, &[]).await);
    assert_ne!(first.id(), second.id());
    let id = first.id();
    first.actor::<Probe>("x").send(say("x")).await.unwrap();
    first.actor::<Probe>("x").deactivate().unwrap();
    eventually("deactivation", || log.count("gone") == 1).await;
    assert_eq!(first.id(), id);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
}

/// Proves: R228
#[actix::test]
async fn two_nodes_on_one_store_never_both_serve_an_actor() {
    let log = Log::default();
    let store = Arc::new(EmbeddedStore::default());
    let start = |store: &Arc<EmbeddedStore>| {
        let log = log.clone();
        builder().embedded_store(Arc::clone(store)).actor_with(move |_, _| Probe::new(&log)).start()
    };
    let first = start(&store).await.unwrap();
    let second = start(&store).await.unwrap();
    assert_eq!(first.actor::<Probe>("x").send(say("x")).await, Ok(1));
    let refused = second.actor::<Probe>("x").send(say("x")).await.unwrap_err();
    let why =
        format!("this part of kind Probe is owned by node {}, and this node has no transport", first.id());
    assert_eq!(refused.to_string(), format!("the node does not serve: {why}"));
    first.stop().await.unwrap();
    assert_eq!(second.actor::<Probe>("x").send(say("x")).await, Ok(1), "what it owned was given back");
    second.stop().await.unwrap();
}

/// Proves: R37, R230, C13
#[actix::test]
async fn a_later_owner_has_a_greater_generation() {
    let store = Arc::new(EmbeddedStore::default());
    let mut generations = Vec::new();
    for _ in 0..3 {
        let seen = Arc::new(std::sync::Mutex::new(None));
        let sink = Arc::clone(&seen);
        let node = builder()
            .embedded_store(Arc::clone(&store))
            .actor_with(move |_, _| Generational { seen: Arc::clone(&sink) })
            .start()
            .await
            .unwrap();
        node.actor::<Generational>("x").send(Touch).await.unwrap();
        generations.push(seen.lock().unwrap().unwrap());
        node.stop().await.unwrap();
    }
    assert!(generations.is_sorted_by(|a, b| a < b), "{generations:?}");
}

#[remote]
struct Touch;

#[derive(VirtualActor)]
#[virtual_actor(handles(Touch), lifecycle)]
struct Generational {
    seen: Arc<std::sync::Mutex<Option<archipelago::identity::Generation>>>,
}

impl Actor for Generational {
    type Context = Context<Self>;
}

impl Lifecycle for Generational {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        *self.seen.lock().unwrap() = Some(here.generation());
        Ok(())
    }
}

impl Handler<Touch> for Generational {
    type Result = ();
    fn handle(&mut self, _: Touch, _: &mut Context<Self>) {}
}

#[actix::test]
async fn a_bad_namespace_stops_the_start_with_words() {
    let refused = Node::builder().namespace("not a namespace").start().await.unwrap_err();
    assert!(refused.to_string().contains("namespace"), "{refused}");
}
