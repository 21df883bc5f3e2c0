//! Refs: cheap, sendable, serialisable, and clear about what is wrong with them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use crate::support::{Log, Probe, Say, SayLater, builder, builder_with, eventually, say};
use archipelago::prelude::*;
use archipelago::{CallOptions, Codec, DeadLetter, Event, Notice, StartError, Subscription, Termination};

async fn probe_node() -> (Node, Log) {
    let log = Log::default();
    let probe_log = log.clone();
    (builder().actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap(), log)
}

/// Takes a ref along and answers through it.
#[remote(u32)]
struct Greet {
    reply_to: ActorRef<Probe>,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet))]
struct Greeter;

impl Actor for Greeter {
    type Context = Context<Self>;
}

impl Handler<Greet> for Greeter {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, greet: Greet, _: &mut Context<Self>) -> Self::Result {
        let answer = greet.reply_to.send(say("greetings"));
        Box::pin(async move { answer.await.unwrap_or(0) })
    }
}

/// Proves: R47
#[test]
fn refs_can_be_sent_and_shared() {
    fn check<T: Send + Sync + Clone + serde::Serialize>() {}
    check::<ActorRef<Probe>>();
    check::<MessageRef<Say>>();
    check::<UntypedRef>();
    fn sendable<T: Send>() {}
    sendable::<Call<u32>>();
}

/// Proves: R51, R52, R102, R107, C45
#[actix::test]
async fn a_ref_inside_an_encoded_message_works_where_it_is_decoded() {
    let log = Log::default();
    let probe_log = log.clone();
    let node =
        builder().actor_with(move |_, _| Probe::new(&probe_log)).actor::<Greeter>().start().await.unwrap();
    let greet = Greet { reply_to: node.actor::<Probe>("alice") };
    let json = serde_json::to_string(&greet).unwrap();
    assert_eq!(json, r#"{"reply_to":"default::Probe/alice"}"#);
    let greeter = node.actor_ref("Greeter", "g");
    let reply = greeter.send_encoded("archipelago.Greet", Codec::Json, json).await.unwrap();
    assert_eq!(&reply[..], b"1");
    assert_eq!(log.count("greetings"), 1);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_ref_decoded_outside_a_node_is_unbound_until_it_is_bound() {
    let (node, _) = probe_node().await;
    let json = serde_json::to_string(&node.actor::<Probe>("alice")).unwrap();
    let decoded: ActorRef<Probe> = serde_json::from_str(&json).unwrap();
    assert_eq!(decoded.send(say("x")).await, Err(CallError::Unbound));
    assert_eq!(decoded.tell(say("x")), Err(CallError::Unbound));
    assert_eq!(decoded.bind(&node).send(say("x")).await, Ok(1));
    node.stop().await.unwrap();
}

#[test]
fn a_ref_of_another_kind_is_refused_when_it_is_decoded() {
    let error = serde_json::from_str::<ActorRef<Probe>>(r#""default::Greeter/g""#).unwrap_err();
    assert!(error.to_string().contains("default::Greeter/g is no actor of kind Probe"), "{error}");
}

/// Proves: R17, R18, R19, R20, R23
#[actix::test]
async fn messages_never_cross_namespaces() {
    let log = Log::default();
    let probe_log = log.clone();
    let keys = [("namespace", "prod")];
    let prod = builder_with(&keys).actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
    let alice = prod.actor::<Probe>("alice");
    assert_eq!(alice.id().unwrap().to_string(), "prod::Probe/alice");
    let staging: ActorRef<Probe> = serde_json::from_str(r#""staging::Probe/alice""#).unwrap();
    assert_ne!(alice, staging, "same type and key, another actor");
    let refused = staging.bind(&prod).send(say("x")).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, CallError::ForeignNamespace(_)), "{refused}");
    assert_eq!(refused.to_string(), "the ref belongs to namespace staging, this node to prod");
    assert!(log.lines().is_empty());
    prod.stop().await.unwrap();
}

#[actix::test]
async fn an_invalid_key_is_an_error_and_never_a_panic() {
    let (node, _) = probe_node().await;
    for key in ["", "a\nb", &"x".repeat(300)] {
        let bad = node.actor::<Probe>(key);
        assert!(matches!(bad.id(), Err(CallError::InvalidId { .. })), "{key:?}");
        assert!(matches!(bad.send(say("x")).await, Err(CallError::InvalidId { .. })));
        assert!(matches!(bad.tell(say("x")), Err(CallError::InvalidId { .. })));
        assert!(matches!(bad.deactivate(), Err(CallError::InvalidId { .. })));
        assert!(matches!(node.try_actor::<Probe>(key), Err(CallError::InvalidId { .. })));
        assert!(serde_json::to_string(&bad).is_err());
    }
    assert!(matches!(node.try_actor::<Greeter>("g"), Err(CallError::UnknownKind { .. })));
    assert_eq!(node.try_actor::<Probe>("fine").unwrap(), node.actor::<Probe>("fine"));
    node.stop().await.unwrap();
}

/// Proves: R106
#[actix::test]
async fn unknown_kinds_messages_and_bytes_are_worded_errors() {
    let (node, log) = probe_node().await;
    let nobody =
        node.actor_ref("Nobody", "x").send_encoded("support.Say", Codec::Json, "{}").await.unwrap_err();
    assert_eq!(nobody.to_string(), "kind Nobody is not registered on this node");
    let alice = node.actor_ref("Probe", "alice");
    let unknown = alice.send_encoded("no.such.message", Codec::Json, "{}").await.unwrap_err();
    assert_eq!(unknown.to_string(), "kind Probe does not handle message no.such.message");
    for (codec, bytes) in [(Codec::Json, &b"{not json"[..]), (Codec::Postcard, &[0xff, 0xff, 0xff][..])] {
        let garbage = alice.send_encoded("archipelago.Say", codec, bytes.to_vec()).await.unwrap_err();
        assert!(matches!(garbage, CallError::Codec { started: false, .. }), "{garbage}");
    }
    assert!(log.lines().is_empty(), "nothing was activated for a message that cannot be read");
    let greeter = node.actor::<Greeter>("g").send(Greet { reply_to: node.actor("alice") }).await;
    assert_eq!(greeter, Err(CallError::UnknownKind { kind: "Greeter".into() }));
    node.stop().await.unwrap();
}

/// Proves: R61, R105, C52
#[actix::test]
async fn both_codecs_reach_the_same_handler() {
    let (node, log) = probe_node().await;
    let alice = node.actor_ref("Probe", "alice");
    for (turn, codec) in [(1_u32, Codec::Postcard), (2, Codec::Json)] {
        let payload = codec.encode(&say("hi")).unwrap();
        let reply = alice.send_encoded("archipelago.Say", codec, payload).await.unwrap();
        assert_eq!(codec.decode::<u32>(&reply).unwrap(), turn);
    }
    alice.tell_encoded("archipelago.Say", Codec::Json, r#""told""#).unwrap();
    assert_eq!(alice.typed::<Probe>().unwrap().send(say("typed")).await, Ok(4));
    assert!(alice.typed::<Greeter>().is_none());
    assert_eq!(log.count("told"), 1);
    node.stop().await.unwrap();
}

/// Proves: C44, R47
#[actix::test]
async fn a_message_ref_forgets_the_actor_type_and_still_sends() {
    let (node, _) = probe_node().await;
    let speaker: MessageRef<Say> = node.actor::<Probe>("alice").message_ref();
    assert_eq!(speaker.send(say("one")).await, Ok(1));
    speaker.tell(say("two")).unwrap();
    assert_eq!(speaker.send(say("three")).await, Ok(3));
    let there: MessageRef<Say> = serde_json::from_str(&serde_json::to_string(&speaker).unwrap()).unwrap();
    assert_eq!(there.bind(&node).send(say("four")).await, Ok(4));
    let wrong: MessageRef<Greet> = serde_json::from_str(r#""default::Probe/alice""#).unwrap();
    let refused = wrong.bind(&node).send(Greet { reply_to: node.actor("alice") }).await.unwrap_err();
    assert!(matches!(refused, CallError::UnknownMessage(_)), "{refused}");
    node.stop().await.unwrap();
}

/// Proves: R465
#[actix::test]
async fn a_recipient_lets_plain_actix_code_talk_to_a_virtual_actor() {
    let (node, log) = probe_node().await;
    let recipient: Recipient<Say> = node.actor::<Probe>("alice").recipient().unwrap();
    assert_eq!(recipient.send(say("one")).await, Ok(1));
    recipient.do_send(say("two"));
    assert_eq!(recipient.send(say("three")).await, Ok(3));
    assert_eq!(log.lines()[2..], ["one", "two", "three"]);
    node.stop().await.unwrap();
}

async fn next_dead_letter(events: &mut Subscription) -> DeadLetter {
    loop {
        match events.next().await {
            Some(Notice::Event(Event::DeadLetter(letter))) => return letter,
            Some(_) => {}
            None => panic!("the node is gone"),
        }
    }
}

#[actix::test]
async fn what_a_recipient_cannot_deliver_becomes_a_dead_letter() {
    let (log, failures) = (Log::default(), Arc::new(AtomicU32::new(1)));
    let node = builder_with(&[("calls.inbox", "1"), ("calls.timeout", "300ms")]);
    let node = node.actor_with(move |_, _| Probe::failing(&log, &failures)).start().await.unwrap();
    let mut events = node.events().subscribe();
    let recipient: Recipient<Say> = node.actor::<Probe>("alice").recipient().unwrap();
    recipient.do_send(say("the storage is away"));
    let lost = next_dead_letter(&mut events).await;
    assert_eq!((&*lost.target, &*lost.message), ("default::Probe/alice", "archipelago.Say"));
    assert!(matches!(lost.reason, CallError::ActivationFailed { .. }), "{}", lost.reason);
    // The handler is busy, one message may wait for it, and the next has no room.
    let busy = node.actor::<Probe>("alice");
    let slow = busy.send_with(SayLater { what: "slow".to_owned(), ms: 300 }, patient());
    for what in ["waits", "has no room", "neither"] {
        recipient.do_send(say(what));
    }
    let lost = next_dead_letter(&mut events).await;
    assert!(matches!(lost.reason, CallError::Overloaded { .. }), "{}", lost.reason);
    slow.await.unwrap();
    node.stop().await.unwrap();
}

fn patient() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(30))
}

/// A tell has no deadline of its own, and `do_send` is one.
#[actix::test]
async fn what_is_told_through_a_recipient_waits_for_as_long_as_its_actor_is_busy() {
    let log = Log::default();
    let probe_log = log.clone();
    let node = builder_with(&[("calls.timeout", "20ms")]).actor_with(move |_, _| Probe::new(&probe_log));
    let node = node.start().await.unwrap();
    let recipient: Recipient<Say> = node.actor::<Probe>("alice").recipient().unwrap();
    let slow = SayLater { what: "slow".to_owned(), ms: 200 };
    let slow = node.actor::<Probe>("alice").send_with(slow, patient());
    eventually("the handler starts", || log.count("begin slow") == 1).await;
    recipient.do_send(say("told"));
    slow.await.unwrap();
    eventually("it is handled after all", || log.count("told") == 1).await;
    node.stop().await.unwrap();
}

#[actix::test]
async fn refs_without_a_type_can_be_compared_watched_and_sent_away() {
    let (node, log) = probe_node().await;
    let alice = node.actor::<Probe>("alice");
    let (speaker, untyped): (MessageRef<Say>, _) = (alice.message_ref(), alice.untyped());
    assert_eq!(speaker, node.actor::<Probe>("alice").message_ref());
    assert_ne!(speaker, node.actor::<Probe>("bob").message_ref());
    assert_eq!(untyped, node.actor_ref("Probe", "alice"));
    assert_eq!(HashSet::from([speaker.clone(), speaker.clone()]).len(), 1);
    assert_eq!(HashSet::from([untyped.clone(), node.actor_ref("Probe", "bob")]).len(), 2);
    speaker.tell_with(say("told"), patient()).unwrap();
    assert_eq!(speaker.send(say("asked")).await, Ok(2));
    let watch = speaker.watch().await.unwrap();
    speaker.deactivate().unwrap();
    assert!(matches!(watch.await, Termination::Ended { .. }));
    assert_eq!(speaker.send(say("again")).await, Ok(1));
    untyped.deactivate().unwrap();
    eventually("both have sent it away", || log.count("gone") == 2).await;
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_untyped_ref_takes_the_options_of_a_call() {
    let (node, log) = probe_node().await;
    let alice = node.actor_ref("Probe", "alice");
    let slow = r#"{"what":"slow","ms":1500}"#;
    let slow = alice.send_encoded_with("archipelago.SayLater", Codec::Json, slow, patient());
    eventually("the handler starts", || log.count("begin slow") == 1).await;
    let short = CallOptions::new().timeout(Duration::from_millis(50));
    let (name, json) = ("archipelago.Say", Codec::Json);
    alice.tell_encoded_with(name, json, r#""told too late""#, short).unwrap();
    let late = alice.send_encoded_with(name, json, r#""asked too late""#, short).await;
    assert_eq!(late, Err(CallError::Timeout { started: false }));
    alice.tell_encoded_with(name, json, r#""in time""#, patient()).unwrap();
    slow.await.unwrap();
    eventually("what may wait is handled", || log.count("in time") == 1).await;
    assert_eq!(log.lines().iter().filter(|line| line.ends_with("too late")).count(), 0);
    node.stop().await.unwrap();
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Clashing), kind = "Clasher")]
struct Clasher;

impl Actor for Clasher {
    type Context = Context<Self>;
}

/// Bears the name of another message.
#[remote(name = "archipelago.Greet")]
struct Clashing;

impl Handler<Clashing> for Clasher {
    type Result = ();
    fn handle(&mut self, _: Clashing, _: &mut Context<Self>) {}
}

/// Proves: C46
#[actix::test]
async fn a_message_name_taken_twice_in_the_registry_stops_the_start() {
    let refused = builder().actor::<Greeter>().actor::<Clasher>().start().await.unwrap_err();
    let archipelago::Error::Start(StartError::MessageClash { .. }) = &refused else { panic!("{refused}") };
    let text = refused.to_string();
    assert!(text.contains("archipelago.Greet"), "{text}");
}

#[actix::test]
async fn a_kind_registered_twice_stops_the_start() {
    let refused = builder().actor::<Greeter>().actor::<Greeter>().start().await.unwrap_err();
    assert_eq!(refused.to_string(), "kind Greeter is registered twice");
}

/// Proves: R16, R14
#[actix::test]
async fn equal_keys_name_the_same_actor_and_odd_keys_are_fine() {
    let (node, _) = probe_node().await;
    for key in ["alice@example.com", "a/b::c", "ключ 🔑", "50%"] {
        assert_eq!(node.actor::<Probe>(key).send(say("x")).await, Ok(1), "{key}");
        assert_eq!(node.actor::<Probe>(key).send(say("x")).await, Ok(2), "{key}");
    }
    node.stop().await.unwrap();
}
