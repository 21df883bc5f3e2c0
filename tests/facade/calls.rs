//! One call: its deadline, its ways to end, what it passes on, and what it says when it fails.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use crate::support::{Log, Probe, SayDetached, SayLater, builder, builder_with, eventually, say};
use archipelago::prelude::*;
use archipelago::{Outcome, Queue, remaining};
use futures_util::future::join_all;

async fn probe_node(log: &Log, keys: &[(&str, &str)]) -> Node {
    let log = log.clone();
    builder_with(keys).actor_with(move |_, _| Probe::new(&log)).start().await.unwrap()
}

fn within(ms: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_millis(ms))
}

/// Proves: R95, R72, R33, R81, R82
#[actix::test]
async fn each_of_many_concurrent_calls_gets_its_own_reply() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let actors: Vec<_> = (0..20).map(|n| node.actor::<Probe>(format!("a{n}"))).collect();
    let calls = (0..400).map(|n| actors[n % 20].send(say("x")));
    let replies: Vec<u32> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    for (n, reply) in replies.iter().enumerate() {
        assert_eq!(*reply as usize, n / 20 + 1, "reply {n}");
    }
    node.stop().await.unwrap();
}

/// Proves: R436, R450, R97, R86
#[actix::test]
async fn a_call_ends_at_its_deadline_and_says_that_its_handler_had_started() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let alice = node.actor::<Probe>("alice");
    alice.send(say("awake")).await.unwrap();
    let start = Instant::now();
    let error =
        alice.send_with(SayDetached { what: "slow".to_owned(), ms: 300 }, within(60)).await.unwrap_err();
    let took = start.elapsed();
    assert_eq!(error, CallError::Timeout { started: true });
    assert_eq!(error.outcome(), Outcome::Unknown);
    // Deadlines are counted in whole milliseconds.
    assert!(took > Duration::from_millis(59), "too early: {took:?}");
    assert!(took < Duration::from_millis(200), "too late: {took:?}");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_call_made_beside_its_actor_can_be_awaited_on_another_thread() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let call = node.actor::<Probe>("alice").send(say("hello"));
    let elsewhere = std::thread::spawn(move || System::new().block_on(call));
    eventually("the answer comes", || elsewhere.is_finished()).await;
    assert_eq!(elsewhere.join().unwrap(), Ok(1));
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_call_dropped_on_another_thread_is_never_started() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let alice = node.actor::<Probe>("alice");
    let slow = alice.send(SayDetached { what: "slow".to_owned(), ms: 120 });
    let unwanted = alice.send(say("unwanted"));
    std::thread::spawn(move || drop(unwanted)).join().unwrap();
    slow.await.unwrap();
    alice.send(say("last")).await.unwrap();
    assert_eq!(log.count("unwanted"), 0);
    node.stop().await.unwrap();
}

/// Proves: R63, R64, R450
#[actix::test]
async fn a_call_that_expires_in_the_queue_is_never_started() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let alice = node.actor::<Probe>("alice");
    let slow = alice.send(SayDetached { what: "slow".to_owned(), ms: 120 });
    let error = alice.send_with(say("never"), within(30)).await.unwrap_err();
    assert_eq!(error, CallError::Timeout { started: false });
    assert_eq!(error.outcome(), Outcome::NotStarted);
    slow.await.unwrap();
    alice.send(say("after")).await.unwrap();
    assert_eq!(log.count("never"), 0, "reported as not started, and yet it was");
    node.stop().await.unwrap();
}

/// Proves: R93, R451
#[actix::test]
async fn a_dropped_call_is_cancelled_and_its_late_reply_disturbs_nobody() {
    let log = Log::default();
    let node = probe_node(&log, &[]).await;
    let alice = node.actor::<Probe>("alice");
    let slow = alice.send(SayLater { what: "slow".to_owned(), ms: 40 });
    let waiting = alice.send(say("cancelled"));
    eventually("the slow handler starts", || log.count("begin slow") == 1).await;
    drop(waiting);
    drop(slow);
    assert_eq!(
        alice.send(say("next")).await,
        Ok(2),
        "the slow handler ran to its end, the cancelled one never"
    );
    assert_eq!(log.count("cancelled"), 0);
    node.stop().await.unwrap();
}

/// Asks another actor, which asks back: a cycle.
#[remote(Result<u32, CallError>)]
struct AskBack {
    path: Vec<String>,
}

/// How long the present call may still take, in milliseconds.
#[remote(u64)]
struct TimeLeft {
    ask: Option<String>,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(AskBack, TimeLeft))]
struct Chain {
    node: Node,
}

impl Actor for Chain {
    type Context = Context<Self>;
}

impl Handler<AskBack> for Chain {
    type Result = ResponseFuture<Result<u32, CallError>>;

    fn handle(&mut self, mut back: AskBack, _: &mut Context<Self>) -> Self::Result {
        if back.path.is_empty() {
            return Box::pin(async { Ok(7) });
        }
        let next = self.node.actor::<Chain>(back.path.remove(0));
        // Awaits something else first, and keeps its place in the chain by `in_call`.
        Box::pin(in_call(async move {
            actix::clock::sleep(Duration::from_millis(2)).await;
            next.send(back).await.and_then(|answer| answer)
        }))
    }
}

impl Handler<TimeLeft> for Chain {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, message: TimeLeft, _: &mut Context<Self>) -> Self::Result {
        let left = remaining().map_or(0, |left| left.as_millis() as u64);
        let Some(next) = message.ask else { return Box::pin(async move { left }) };
        let next = self.node.actor::<Chain>(next);
        Box::pin(in_call(async move { next.send(TimeLeft { ask: None }).await.unwrap_or(u64::MAX) }))
    }
}

async fn chain_node() -> Node {
    builder().actor_with(|_, node| Chain { node: node.clone() }).start().await.unwrap()
}

/// Proves: R473
#[actix::test]
async fn a_call_cycle_is_answered_at_once_instead_of_hanging() {
    let node = chain_node().await;
    for path in [vec!["a"], vec!["b", "a"], vec!["b", "c", "d", "a"]] {
        let path: Vec<String> = path.into_iter().map(str::to_owned).collect();
        let start = Instant::now();
        let answer = node.actor::<Chain>("a").send(AskBack { path }).await.unwrap();
        assert_eq!(answer, Err(CallError::CallCycle));
        assert!(start.elapsed() < Duration::from_secs(1), "it hung");
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn meeting_an_actor_twice_without_waiting_for_it_is_no_cycle() {
    let node = chain_node().await;
    let path = vec!["b".to_owned(), "c".to_owned()];
    assert_eq!(node.actor::<Chain>("a").send(AskBack { path }).await, Ok(Ok(7)));
    node.stop().await.unwrap();
}

#[actix::test]
async fn calls_inherit_what_is_left_of_the_deadline() {
    let node = chain_node().await;
    let (a, asks_b) = (node.actor::<Chain>("a"), TimeLeft { ask: Some("b".to_owned()) });
    let left = a.send_with(asks_b, within(200)).await.unwrap();
    assert!((1..=200).contains(&left), "the inner call had {left} ms, the outer one 200");
    let own = a.send_with(TimeLeft { ask: None }, within(200)).await.unwrap();
    assert!((1..=200).contains(&own));
    node.stop().await.unwrap();
}

/// First in, first out, and bounded as C14 has it: what finds no room is told so.
///
/// Proves: R258, R263
#[actix::test]
async fn a_full_inbox_refuses_tells_and_lets_asks_wait_their_turn() {
    let log = Log::default();
    let node = probe_node(&log, &[("calls.inbox", "4")]).await;
    let alice = node.actor::<Probe>("alice");
    let slow = alice.send(SayDetached { what: "slow".to_owned(), ms: 80 });
    eventually("the slow handler starts", || log.count("begin slow") == 1).await;
    let told: Vec<_> = (0..6).map(|n| alice.tell(say(&format!("t{n}")))).collect();
    let full = Err(CallError::Overloaded { queue: Queue::Inbox, bound: 4 });
    assert_eq!(told, [Ok(()), Ok(()), Ok(()), Ok(()), full.clone(), full]);
    let ask = alice.send(say("ask"));
    slow.await.unwrap();
    assert_eq!(ask.await, Ok(5), "behind the four tells");
    assert_eq!(log.lines()[4..], ["t0", "t1", "t2", "t3", "ask"]);
    node.stop().await.unwrap();
}

#[actix::test]
async fn pending_calls_are_bounded() {
    let log = Log::default();
    let node = probe_node(&log, &[("calls.pending", "3")]).await;
    let alice = node.actor::<Probe>("alice");
    let calls: Vec<_> = (0..5).map(|n| alice.send(say(&n.to_string()))).collect();
    let answers = join_all(calls).await;
    let full = Err(CallError::Overloaded { queue: Queue::PendingCalls, bound: 3 });
    assert_eq!(answers, [Ok(1), Ok(2), Ok(3), full.clone(), full]);
    assert_eq!(alice.send(say("later")).await, Ok(4), "the table has room again");
    node.stop().await.unwrap();
}

/// Proves: R66, R73
#[actix::test]
async fn tells_are_handled_in_order_and_expect_no_answer() {
    let log = Log::default();
    // A tell that waited for an answer would take the only place.
    let node = probe_node(&log, &[("calls.pending", "1")]).await;
    let alice = node.actor::<Probe>("alice");
    for n in 0..10 {
        alice.tell(say(&n.to_string())).unwrap();
    }
    assert_eq!(alice.send(say("last")).await, Ok(11));
    let expected: Vec<String> = (0..10).map(|n| n.to_string()).chain(["last".to_owned()]).collect();
    assert_eq!(log.lines()[2..], expected);
    node.stop().await.unwrap();
}

#[actix::test]
async fn callers_on_other_threads_are_served_in_order() {
    let log = Log::default();
    let probe_log = log.clone();
    let settings = archipelago::config::Settings::default();
    let node = Node::builder()
        .settings(settings)
        .actor_with(move |_, _| Probe::new(&probe_log))
        .start()
        .await
        .unwrap();
    let alice = node.actor::<Probe>("alice");
    let calls: Vec<_> = (0..100).map(|n| alice.send(say(&n.to_string()))).collect();
    let answers = join_all(calls).await;
    assert_eq!(answers, (1..=100).map(Ok).collect::<Vec<_>>());
    assert_eq!(
        alice.send_with(SayDetached { what: "s".to_owned(), ms: 200 }, within(30)).await,
        Err(CallError::Timeout { started: true })
    );
    node.stop().await.unwrap();
}

/// Cannot be encoded, and says so loudly.
#[derive(Clone)]
struct Unspeakable(u32);

impl serde::Serialize for Unspeakable {
    fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        panic!("a local message was encoded")
    }
}

impl<'de> serde::Deserialize<'de> for Unspeakable {
    fn deserialize<D: serde::Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        panic!("a local message was decoded")
    }
}

#[remote(Option<Unspeakable>)]
struct Whisper(Unspeakable);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Whisper))]
struct Listener;

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<Whisper> for Listener {
    type Result = Option<Unspeakable>;

    fn handle(&mut self, Whisper(secret): Whisper, _: &mut Context<Self>) -> Self::Result {
        Some(secret)
    }
}

#[actix::test]
async fn a_local_call_never_serialises() {
    let settings = archipelago::config::Settings::default();
    let same_thread = builder().actor::<Listener>().start().await.unwrap();
    let other_thread = Node::builder().settings(settings).actor::<Listener>().start().await.unwrap();
    for node in [same_thread, other_thread] {
        let heard = node.actor::<Listener>("l").send(Whisper(Unspeakable(7))).await.unwrap();
        assert_eq!(heard.map(|secret| secret.0), Some(7));
        let heard = node.actor::<Listener>("l").message_ref().send(Whisper(Unspeakable(8))).await.unwrap();
        assert_eq!(heard.map(|secret| secret.0), Some(8));
        node.stop().await.unwrap();
    }
}

/// Overlap with each other.
#[remote(u32, always_interleave)]
struct Peek;

/// Does not overlap.
#[remote(u32)]
struct Poke;

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Peek, Poke), interleave = "read_only")]
struct Overlapping {
    now: std::rc::Rc<std::cell::Cell<u32>>,
}

impl Actor for Overlapping {
    type Context = Context<Self>;
}

impl Overlapping {
    /// Answers how many handlers ran at once when this one began.
    fn overlap(&self) -> ResponseFuture<u32> {
        let now = self.now.clone();
        now.set(now.get() + 1);
        let seen = now.get();
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(30)).await;
            now.set(now.get() - 1);
            seen
        })
    }
}

impl Handler<Peek> for Overlapping {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, _: Peek, _: &mut Context<Self>) -> Self::Result {
        self.overlap()
    }
}

impl Handler<Poke> for Overlapping {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, _: Poke, _: &mut Context<Self>) -> Self::Result {
        self.overlap()
    }
}

/// Proves: R75, R76, R79, R500, C16
#[actix::test]
async fn only_messages_that_say_so_overlap_and_only_with_each_other() {
    let node = builder().actor::<Overlapping>().start().await.unwrap();
    let actor = node.actor::<Overlapping>("x");
    let (a, b, c, d) = (actor.send(Peek), actor.send(Peek), actor.send(Poke), actor.send(Peek));
    assert_eq!((a.await, b.await, c.await, d.await), (Ok(1), Ok(2), Ok(1), Ok(1)));
    node.stop().await.unwrap();
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Poke), interleave)]
struct Reentrant {
    inner: Overlapping,
}

impl Actor for Reentrant {
    type Context = Context<Self>;
}

impl Handler<Poke> for Reentrant {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, _: Poke, _: &mut Context<Self>) -> Self::Result {
        self.inner.overlap()
    }
}

#[actix::test]
async fn no_more_messages_overlap_than_may_and_the_others_wait_their_turn() {
    let node = builder_with(&[("calls.interleaved", "4"), ("calls.inbox", "20")])
        .actor::<Reentrant>()
        .start()
        .await
        .unwrap();
    let actor = node.actor::<Reentrant>("x");
    for _ in 0..10 {
        actor.tell(Poke).unwrap();
    }
    let answers = join_all((0..10).map(|_| actor.send(Poke))).await;
    assert!(answers.iter().all(|answer| matches!(answer, Ok(1..=4))), "{answers:?}");
    assert!(answers.contains(&Ok(4)), "they overlap: {answers:?}");
    // The inbox behind them is bounded, too.
    actix::clock::sleep(Duration::from_millis(100)).await;
    let told: Vec<_> = (0..40).map(|_| actor.tell(Poke)).collect();
    assert_eq!(told[19], Ok(()));
    assert_eq!(told[39], Err(CallError::Overloaded { queue: Queue::Inbox, bound: 20 }));
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_interleaving_kind_behaves_as_plain_actix() {
    let node = builder().actor::<Reentrant>().start().await.unwrap();
    let actor = node.actor::<Reentrant>("x");
    let answers = join_all((0..40).map(|_| actor.send(Poke))).await;
    assert_eq!(answers, (1..=40).map(Ok).collect::<Vec<_>>());
    node.stop().await.unwrap();
}
