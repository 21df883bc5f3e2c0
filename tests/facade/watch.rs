//! Being told when an actor has ended: whatever ends it, and only then.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::time::Duration;

use crate::support::{Deactivate, Log, Panic, Probe, SayDetached, builder_with, eventually, say};
use archipelago::prelude::*;
use archipelago::{Queue, Termination, Watch};

async fn probe_node(log: &Log, keys: &[(&str, &str)]) -> Node {
    let log = log.clone();
    builder_with(keys).actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

async fn told(watch: Watch) -> Termination {
    actix::clock::timeout(Duration::from_secs(5), watch).await.expect("the watch is told")
}

fn reason(how: Termination) -> DeactivateReason {
    match how {
        Termination::Ended { reason, .. } => reason,
        other => panic!("it ended with {other:?}"),
    }
}

#[actix::test]
async fn watching_tells_why_an_activation_ended() {
    let log = Log::default();
    let node = probe_node(&log, &[("actors.idle_after", "150ms")]).await;
    let actor = node.actor::<Probe>("a");
    for (expected, end) in [
        (DeactivateReason::Requested, Some(0)),
        (DeactivateReason::Panicked, Some(1)),
        (DeactivateReason::Requested, Some(2)),
        (DeactivateReason::Idle, None),
    ] {
        actor.send(say("x")).await.unwrap();
        let (first, second) =
            (actor.watch().await.unwrap(), node.actor_ref("Probe", "a").watch().await.unwrap());
        match end {
            Some(0) => actor.deactivate().unwrap(),
            Some(1) => drop(actor.send(Panic).await),
            Some(_) => actor.tell(Deactivate).unwrap(),
            None => {}
        }
        let how = told(first).await;
        assert_eq!(reason(how), expected);
        assert_eq!(told(second).await, how, "everybody is told the same");
        assert!(matches!(how, Termination::Ended { node: on, .. } if on == node.id()));
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_that_is_not_active_is_not_activated_by_being_watched() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    assert_eq!(told(node.actor::<Probe>("a").watch().await.unwrap()).await, Termination::NotActive);
    node.actor::<Probe>("b").send(say("x")).await.unwrap();
    assert_eq!(told(node.actor::<Probe>("a").watch().await.unwrap()).await, Termination::NotActive);
    assert_eq!(log.count("activate"), 1, "only b came to life");
    node.stop().await.unwrap();
}

#[actix::test]
async fn watching_keeps_nothing_alive_and_a_stop_is_told() {
    let log = Log::default();
    let node = probe_node(&log, &[("actors.idle_after", "never")]).await;
    let actor = node.actor::<Probe>("a");
    actor.send(say("x")).await.unwrap();
    let watch = actor.watch().await.unwrap();
    node.stop().await.unwrap();
    assert_eq!(reason(told(watch).await), DeactivateReason::NodeStopping);
    assert!(actor.watch().await.is_err(), "a stopped node tells nothing");
}

/// The end is told when nothing of the activation runs any more, and the next activation is another one.
#[actix::test]
async fn the_end_is_told_after_the_last_handler() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let actor = node.actor::<Probe>("a");
    let slow = actor.send(SayDetached { what: "slow".to_owned(), ms: 100 });
    eventually("it runs", || log.count("begin slow") == 1).await;
    let watch = actor.watch().await.unwrap();
    actor.deactivate().unwrap();
    told(watch).await;
    assert_eq!((log.count("slow"), log.count("gone")), (1, 1));
    slow.await.unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn watches_are_bounded_and_one_that_is_dropped_makes_room() {
    let node = probe_node(&Log::default(), &[("events.watches", "2")]).await;
    let actor = node.actor::<Probe>("a");
    actor.send(say("x")).await.unwrap();
    let (first, second) = (actor.watch().await.unwrap(), actor.watch().await.unwrap());
    let refused = actor.watch().await.map(|_| ());
    assert_eq!(refused, Err(CallError::Overloaded { queue: Queue::Watches, bound: 2 }));
    for _ in 0..100 {
        drop(actor.watch().await);
    }
    drop(first);
    let third = actor.watch().await.unwrap();
    actor.deactivate().unwrap();
    assert_eq!(reason(told(second).await), DeactivateReason::Requested);
    assert_eq!(reason(told(third).await), DeactivateReason::Requested);
    node.stop().await.unwrap();
}

#[remote]
struct Quit;

#[derive(Default, NamedActor)]
#[named_actor(handles(Quit))]
struct Porter;

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Quit> for Porter {
    type Result = ();

    fn handle(&mut self, _: Quit, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[actix::test]
async fn a_named_actor_is_watched_until_it_stops_or_gives_its_path_back() {
    let node = probe_node(&Log::default(), &[]).await;
    let porter = node.register("/porter", Porter.start()).unwrap();
    let watch = porter.watch().await.unwrap();
    porter.send(Quit).await.unwrap();
    assert_eq!(told(watch).await, Termination::Stopped);
    assert_eq!(told(porter.watch().await.unwrap()).await, Termination::NotActive);
    node.unregister("/porter");
    let porter = node.register("/porter", Porter.start()).unwrap();
    let watch = porter.watch().await.unwrap();
    node.unregister("/porter");
    assert_eq!(told(watch).await, Termination::Unregistered);
    node.stop().await.unwrap();
}
