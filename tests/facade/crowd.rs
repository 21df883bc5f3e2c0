//! No more actors are active than may be, unless they have work.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use crate::support::{Log, Probe, SayDetached, builder_with, eventually, say};
use archipelago::prelude::*;
use archipelago::{Event, Notice, Termination};
use futures_util::FutureExt;
use futures_util::future::join_all;
use metrics_util::debugging::{DebugValue, DebuggingRecorder};

async fn node_for(max_active: &str, log: &Log) -> Node {
    let log = log.clone();
    let keys = [("actors.max_active", max_active), ("actors.idle_after", "never")];
    builder_with(&keys).actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

/// Whether an actor is active, without activating it.
async fn is_active(node: &Node, key: &str) -> bool {
    let watch = node.actor::<Probe>(key).watch().await.unwrap();
    watch.now_or_never() != Some(Termination::NotActive)
}

#[actix::test]
async fn the_least_recently_used_makes_room() {
    let log = Log::default();
    let node = node_for("3", &log).await;
    let actor = |key: &str| node.actor::<Probe>(key);
    for key in ["a", "b", "c"] {
        actor(key).send(say(key)).await.unwrap();
        // So that each was used at a time of its own.
        actix::clock::sleep(std::time::Duration::from_millis(30)).await;
    }
    actor("a").send(say("again")).await.unwrap();
    let evicted = actor("b").watch().await.unwrap();
    actor("d").send(say("d")).await.unwrap();
    let how = evicted.await;
    assert!(
        matches!(how, Termination::Ended { reason: DeactivateReason::Evicted, .. }),
        "b was used least recently: {how:?}"
    );
    assert_eq!(actor("b").send(say("back")).await, Ok(1), "it comes back with its next message");
    node.stop().await.unwrap();
}

#[actix::test]
async fn actors_with_work_stay_and_are_served_although_there_are_too_many() {
    let log = Log::default();
    let node = node_for("2", &log).await;
    let mut events = node.events().subscribe();
    let slow = |n: u32| SayDetached { what: format!("{n}"), ms: 400 };
    let busy: Vec<_> = (0..5).map(|n| node.actor::<Probe>(n.to_string()).send(slow(n))).collect();
    for call in busy {
        assert_eq!(call.await, Ok(()), "nobody was refused or stopped");
    }
    let told = std::iter::from_fn(|| events.try_next())
        .any(|notice| matches!(notice, Notice::Event(Event::ActorsOverBound { bound: 2, .. })));
    assert!(told, "it is said that there are too many");
    for _ in 0..1_000 {
        let mut active = 0;
        for n in 0..5 {
            active += u32::from(is_active(&node, &n.to_string()).await);
        }
        if active <= 2 {
            return node.stop().await.unwrap();
        }
        actix::clock::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("they do not go when they can");
}

/// With thousands of active actors each one that goes costs a few looks, and each use costs one: those that were not used
/// since are not walked through.
#[actix::test]
async fn making_room_does_not_walk_through_all_actors() {
    const ACTIVE: u32 = 3_000;
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    // A snapshot begins to count anew.
    let looks = || {
        let all = snapshotter.snapshot().into_vec();
        let of = |(key, _, _, value): &(metrics_util::CompositeKey, _, _, DebugValue)| {
            let ours = key.key().name() == "archipelago_room_looks_total";
            if let (true, DebugValue::Counter(count)) = (ours, value) { *count } else { 0 }
        };
        all.iter().map(of).sum::<u64>()
    };
    let log = Log::default();
    let node = node_for(&ACTIVE.to_string(), &log).await;
    let all =
        |keys: Vec<String>| join_all(keys.into_iter().map(|key| node.actor::<Probe>(key).send(say("x"))));
    let first = all((0..ACTIVE).map(|n| n.to_string()).collect()).await;
    assert!(first.iter().all(Result::is_ok));
    assert_eq!(looks(), 0, "there is room for all of them");
    for round in 0..3_usize {
        let later = all((0..100).map(|n| format!("new-{round}-{n}")).collect()).await;
        assert!(later.iter().all(Result::is_ok));
        let gone = || log.count("deactivate Evicted") >= 100 * (round + 1);
        eventually("the hundred that were used least recently have gone", gone).await;
        let (looked, uses) = (looks(), if round == 0 { u64::from(ACTIVE) + 100 } else { 100 });
        assert!(
            (100..=500 + uses).contains(&looked),
            "round {round}: {looked} looks for 100 that went and {uses} uses, of {ACTIVE}"
        );
    }
    node.stop().await.unwrap();
}
