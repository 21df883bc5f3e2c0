//! Watching actors of other nodes: their end, the end of their process, and of their session.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago::prelude::*;
use archipelago::{Termination, Watch};
use archipelago_embedded::EmbeddedStore;
use archipelago_process_tests::{Bell, Desk, Fleet, Note, Ring, Scale, Scribe, Store, node, settings};
use archipelago_protocol::call::Queue;
use archipelago_runtime::CallOptions;

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");

async fn told(watch: Watch) -> Termination {
    tokio::time::timeout(Duration::from_secs(20), watch).await.expect("the watch is told")
}

/// The scribes and a desk are on the first node, the second watches. Each keeps two watches.
async fn two() -> (Node, Node) {
    let store = Arc::new(EmbeddedStore::default());
    let mut settings = settings();
    settings.watches = 2;
    let hosting = node(&store).settings(settings.clone()).actor::<Scribe>().start().await.unwrap();
    let watching = node(&store).settings(settings).remote_actor::<Scribe>().start().await.unwrap();
    (hosting, watching)
}

#[actix::test]
async fn an_activation_on_another_node_is_watched() {
    let (hosting, watching) = two().await;
    let actor = watching.actor::<Scribe>("a");
    assert_eq!(told(actor.watch().await.unwrap()).await, Termination::NotActive);
    actor.send(Note(1)).await.unwrap();
    assert_eq!(told(watching.actor::<Scribe>("b").watch().await.unwrap()).await, Termination::NotActive);
    let watch = actor.watch().await.unwrap();
    hosting.actor::<Scribe>("a").deactivate().unwrap();
    let how = told(watch).await;
    assert!(
        matches!(how, Termination::Ended { node, reason: DeactivateReason::Requested, .. } if node == hosting.id()),
        "{how:?}"
    );
    actor.send(Note(1)).await.unwrap();
    let watch = actor.watch().await.unwrap();
    hosting.stop().await.unwrap();
    let how = told(watch).await;
    let stopping = matches!(how, Termination::Ended { reason: DeactivateReason::NodeStopping, .. });
    assert!(stopping || how == Termination::NodeGone { node: hosting.id() }, "{how:?}");
    watching.stop().await.unwrap();
}

#[actix::test]
async fn a_node_keeps_so_many_watches_of_others_and_one_that_is_dropped_there_makes_room() {
    let (hosting, watching) = two().await;
    let actor = watching.actor::<Scribe>("a");
    actor.send(Note(1)).await.unwrap();
    let kept = actor.watch().await.unwrap();
    let own = hosting.actor::<Scribe>("a").watch().await.unwrap();
    let refused = actor.watch().await.map(|_| ());
    assert_eq!(refused, Err(CallError::Overloaded { queue: Queue::Watches, bound: 2 }));
    drop(kept);
    let since = Instant::now();
    let again = loop {
        if let Ok(watch) = actor.watch().await {
            break watch;
        }
        assert!(since.elapsed() < Duration::from_secs(5), "no room was made");
    };
    hosting.actor::<Scribe>("a").deactivate().unwrap();
    assert_eq!(told(again).await, told(own).await);
    watching.stop().await.unwrap();
    hosting.stop().await.unwrap();
}

#[actix::test]
async fn a_named_actor_of_another_node_is_watched() {
    let (hosting, watching) = two().await;
    let desk = hosting.register("/desk", Desk::default().start()).unwrap();
    let there = watching.resolve::<Desk>(&desk.address()).unwrap();
    let watch = there.watch().await.unwrap();
    hosting.unregister("/desk");
    assert_eq!(told(watch).await, Termination::Unregistered);
    assert_eq!(told(there.watch().await.unwrap()).await, Termination::NotActive);
    watching.stop().await.unwrap();
    hosting.stop().await.unwrap();
}

/// A process that is killed says nothing: the end of its session does.
#[actix::test]
async fn the_end_of_a_killed_process_is_told() {
    let Some(store) = Store::etcd() else { return };
    let mut fleet = Fleet::start(MEMBER, store.settings(Scale::of_this_run()), 1).await;
    let node = fleet.node.clone();
    let patient = CallOptions::new().timeout(Duration::from_secs(20));
    let actor = node.actor::<Bell>("a");
    actor.send_with(Ring, patient).await.unwrap();
    let watch = actor.watch().await.unwrap();
    let since = Instant::now();
    fleet.members[0].kill();
    assert_eq!(told(watch).await, Termination::NodeGone { node: fleet.members[0].node });
    eprintln!("told {:?} after the kill", since.elapsed());
    node.stop().await.unwrap();
}
