//! Actors come to life with their first message, go when they are idle, and lose nothing on the way.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::support::{
    Deactivate, Log, Panic, PanicDetached, Probe, SayAtomically, SayDetached, SayLater, StopYourself,
    builder, builder_with, eventually, say,
};
use archipelago::prelude::*;
use futures_util::future::join_all;

async fn node_with_probe(log: &Log) -> Node {
    let log = log.clone();
    builder().actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

/// Proves: R22, R255, R276, R296
#[actix::test]
async fn a_ref_activates_nothing_and_the_first_message_does() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    actix::clock::sleep(Duration::from_millis(20)).await;
    assert!(log.lines().is_empty(), "a ref must not activate");
    assert_eq!(alice.send(say("hello")).await, Ok(1));
    assert_eq!(log.lines(), ["activate", "active", "hello"]);
    node.stop().await.unwrap();
}

/// Proves: R253, R266, R269, R271, R272
#[actix::test]
async fn concurrent_first_messages_activate_once_and_all_wait_for_it() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    let calls = join_all((0..50).map(|n| alice.send(say(&format!("m{n}"))))).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    assert_eq!(log.count("activate"), 1);
    let lines = log.lines();
    assert_eq!(lines[1], "active", "nothing is handled before on_activate has succeeded");
    let expected: Vec<String> = (0..50).map(|n| format!("m{n}")).collect();
    assert_eq!(lines[2..], expected, "first come, first served");
    node.stop().await.unwrap();
}

/// Proves: R449, R246, R274
#[actix::test]
async fn a_failed_activation_answers_every_waiting_caller_and_leaves_nothing_behind() {
    let log = Log::default();
    let fails = Arc::new(AtomicU32::new(1));
    let (probe_log, probe_fails) = (log.clone(), Arc::clone(&fails));
    let node =
        builder().actor_with(move |_, _| Probe::failing(&probe_log, &probe_fails)).start().await.unwrap();
    let alice = node.actor::<Probe>("alice");
    let calls = join_all([alice.send(say("one")), alice.send(say("two"))]).await;
    for call in calls {
        let error = call.unwrap_err();
        assert_eq!(error, CallError::ActivationFailed { reason: "the storage is away".into() });
        assert!(error.is_not_started());
    }
    assert_eq!(alice.send(say("three")).await, Ok(1), "the next message activates anew");
    assert_eq!(log.lines(), ["activate", "activate", "active", "three"]);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_factory_that_fails_or_panics_is_an_activation_failure() {
    let node = builder()
        .try_actor_with::<Probe>(|id, _| match id.key().as_str() {
            "panics" => panic!("as asked"),
            _ => Err("no such account".into()),
        })
        .start()
        .await
        .unwrap();
    let failed = node.actor::<Probe>("missing").send(say("x")).await;
    assert_eq!(failed, Err(CallError::ActivationFailed { reason: "no such account".into() }));
    let panicked = node.actor::<Probe>("panics").send(say("x")).await;
    assert_eq!(panicked, Err(CallError::ActivationFailed { reason: "its factory panicked".into() }));
    node.stop().await.unwrap();
}

/// Proves: R247, R248, R256, R311, R313, R315, R316, R317
#[actix::test]
async fn an_idle_actor_is_deactivated_with_its_hook_and_comes_back_on_demand() {
    let log = Log::default();
    let probe_log = log.clone();
    let keys = [("actors.idle_after", "40ms")];
    let node = builder_with(&keys).actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
    let charlie = node.actor::<Probe>("charlie");
    assert_eq!(charlie.send(say("one")).await, Ok(1));
    eventually("idle deactivation", || log.count("gone") == 1).await;
    assert_eq!(log.lines(), ["activate", "active", "one", "deactivate Idle", "gone"]);
    assert_eq!(charlie.send(say("two")).await, Ok(1), "a new instance starts from nothing");
    assert_eq!(log.count("activate"), 2);
    node.stop().await.unwrap();
}

/// Proves: R318, R78
#[actix::test]
async fn messages_that_suppress_keep_alive_do_not_keep_an_actor_alive() {
    let log = Log::default();
    let probe_log = log.clone();
    let keys = [("actors.idle_after", "150ms")];
    let node = builder_with(&keys).actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
    let quiet = CallOptions::new().flags(MessageFlags::SUPPRESS_KEEP_ALIVE);
    let alice = node.actor::<Probe>("alice");
    alice.send(say("wake")).await.unwrap();
    for _ in 0..200 {
        if log.count("deactivate Idle") > 0 {
            break;
        }
        alice.send_with(say("poll"), quiet).await.unwrap();
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
    assert!(log.count("deactivate Idle") > 0, "polling kept the actor alive");
    node.stop().await.unwrap();
}

/// Proves: R319, R247
#[actix::test]
async fn an_actor_can_be_deactivated_by_itself_and_by_others() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    alice.send(Deactivate).await.unwrap();
    eventually("deactivation by itself", || log.count("gone") == 1).await;
    alice.send(say("again")).await.unwrap();
    alice.deactivate().unwrap();
    eventually("deactivation by others", || log.count("gone") == 2).await;
    assert_eq!(log.count("deactivate Requested"), 2);
    node.stop().await.unwrap();
}

/// Proves: R263, R268, C18, C20
#[actix::test]
async fn no_accepted_message_is_lost_when_an_actor_is_deactivated_under_load() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    let mut calls = Vec::new();
    for n in 0..200 {
        calls.push(alice.send(say(&format!("m{n}"))));
        if n % 20 == 7 {
            alice.deactivate().unwrap();
        }
        if n % 15 == 0 {
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    let answers = join_all(calls).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
    let handled: Vec<String> = log.lines().into_iter().filter(|line| line.starts_with('m')).collect();
    let sent: Vec<String> = (0..200).map(|n| format!("m{n}")).collect();
    assert_eq!(handled, sent, "all of them, once, in order");
    assert!(log.count("activate") > 1, "the actor was deactivated in between");
    node.stop().await.unwrap();
}

/// Proves: R260, R262, R265
#[actix::test]
async fn async_handlers_of_every_sort_run_one_at_a_time() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    let (later, detached, atomic, plain) = (
        alice.send(SayLater { what: "a".to_owned(), ms: 20 }),
        alice.send(SayDetached { what: "b".to_owned(), ms: 15 }),
        alice.send(SayAtomically { what: "c".to_owned(), ms: 10 }),
        alice.send(say("d")),
    );
    assert_eq!(later.await, Ok(1));
    assert_eq!(detached.await, Ok(()));
    assert_eq!(atomic.await, Ok(2));
    assert_eq!(plain.await, Ok(3));
    assert_eq!(log.lines()[2..], ["begin a", "a", "begin b", "b", "begin c", "c", "d"]);
    node.stop().await.unwrap();
}

/// Proves: R260, C20
#[actix::test]
async fn deactivation_waits_for_async_handlers_in_flight() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    let slow = alice.send(SayDetached { what: "slow".to_owned(), ms: 60 });
    eventually("the handler starts", || log.count("begin slow") == 1).await;
    alice.deactivate().unwrap();
    let next = alice.send(say("next"));
    assert_eq!(slow.await, Ok(()));
    assert_eq!(next.await, Ok(1), "handled by the next activation");
    let expected = ["begin slow", "slow", "deactivate Requested", "gone", "activate", "active", "next"];
    assert_eq!(log.lines()[2..], expected);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_panic_takes_down_its_activation_only_and_loses_no_message() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let (alice, bob) = (node.actor::<Probe>("alice"), node.actor::<Probe>("bob"));
    bob.send(say("bob")).await.unwrap();
    alice.send(say("before")).await.unwrap();
    let (panics, after) = (alice.send(Panic), alice.send(say("after")));
    assert_eq!(panics.await, Err(CallError::Panicked));
    assert_eq!(after.await, Ok(1), "the waiting message reached a new activation");
    assert_eq!(bob.send(say("still there")).await, Ok(2), "the neighbour kept its state");
    assert_eq!(log.count("deactivate Panicked"), 0, "a broken state is not saved");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_panic_in_a_detached_handler_is_an_answer_and_nothing_more() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    alice.send(say("one")).await.unwrap();
    assert_eq!(alice.send(PanicDetached).await, Err(CallError::NoReply));
    assert_eq!(alice.send(say("two")).await, Ok(2), "the actor itself was not touched");
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_that_stops_its_context_is_deactivated_properly() {
    let log = Log::default();
    let node = node_with_probe(&log).await;
    let alice = node.actor::<Probe>("alice");
    let (stops, next) = (alice.send(StopYourself), alice.send(say("next")));
    assert_eq!(stops.await, Ok(()));
    assert_eq!(next.await, Ok(1));
    let expected = ["activate", "active", "deactivate StoppedItself", "gone", "activate", "active", "next"];
    assert_eq!(log.lines(), expected);
    node.stop().await.unwrap();
}

/// Proves: R257, R497
#[actix::test]
async fn an_activation_knows_who_and_where_it_is() {
    let log = Log::default();
    let (seen, node) = {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let probe_log = log.clone();
        let node = builder()
            .actor_with(move |id, node| {
                sink.lock().unwrap().push((id.to_string(), node.id()));
                Probe::new(&probe_log)
            })
            .start()
            .await
            .unwrap();
        (seen, node)
    };
    node.actor::<Probe>("alice").send(say("x")).await.unwrap();
    assert_eq!(*seen.lock().unwrap(), [("default::Probe/alice".to_owned(), node.id())]);
    node.stop().await.unwrap();
}
