//! The ugly ways in which an actor, an arbiter or a node can end; none may hang, spin or lose a caller.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::{Log, Probe, SayLater, builder, builder_with, eventually, say};
use archipelago::config::Settings;
use archipelago::prelude::*;
use archipelago::{StopError, TraceContext};

/// Does one ugly thing.
#[remote]
struct Misbehave(Trick);

#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, PartialEq)]
enum Trick {
    Nothing,
    CancelTimerAndStop,
    CancelTimerAndDeactivate,
    BlockThread { ms: u64 },
}

/// An actor whose hooks can be told to go wrong, by its key.
#[derive(VirtualActor)]
#[virtual_actor(handles(Misbehave), lifecycle)]
struct Rascal {
    key: String,
    here: Option<Activation>,
    timer: Option<SpawnHandle>,
    ends: Arc<AtomicU32>,
}

impl Actor for Rascal {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.timer = Some(ctx.run_interval(Duration::from_millis(5), |_, _| {}));
        match self.key.as_str() {
            "panics-when-started" => panic!("as asked"),
            "stops-when-started" => ctx.stop(),
            _ => {}
        }
    }
}

impl Lifecycle for Rascal {
    fn on_activate(&mut self, here: Activation) -> impl Future<Output = Result<(), BoxError>> {
        assert_ne!(self.key, "panics-before-activation", "as asked");
        self.here = Some(here);
        async { Ok(()) }
    }

    fn on_deactivate(&mut self, _: DeactivateReason) -> ResponseFuture<()> {
        let (panics, ends) = (self.key == "panics-at-the-end", Arc::clone(&self.ends));
        let other = (self.key == "saves-elsewhere")
            .then(|| self.here.as_ref().unwrap().node().actor::<Probe>("store"));
        Box::pin(async move {
            ends.fetch_add(1, Ordering::SeqCst);
            assert!(!panics, "as asked");
            if let Some(store) = other {
                store.send(say("saved")).await.unwrap();
                ends.fetch_add(100, Ordering::SeqCst);
            }
        })
    }
}

impl Handler<Misbehave> for Rascal {
    type Result = ();

    fn handle(&mut self, Misbehave(trick): Misbehave, ctx: &mut Context<Self>) {
        match trick {
            Trick::Nothing => {}
            Trick::CancelTimerAndStop => {
                ctx.cancel_future(self.timer.take().unwrap());
                ctx.stop();
            }
            Trick::CancelTimerAndDeactivate => {
                ctx.cancel_future(self.timer.take().unwrap());
                self.here.as_ref().unwrap().deactivate();
            }
            Trick::BlockThread { ms } => std::thread::sleep(Duration::from_millis(ms)),
        }
    }
}

async fn rascals(log: &Log, ends: &Arc<AtomicU32>) -> Node {
    let (log, ends) = (log.clone(), Arc::clone(ends));
    builder()
        .actor_with(move |id, _| Rascal {
            key: id.key().as_str().to_owned(),
            here: None,
            timer: None,
            ends: Arc::clone(&ends),
        })
        .actor_with(move |_, _| Probe::new(&log))
        .start()
        .await
        .unwrap()
}

#[actix::test]
async fn cancelling_a_timer_and_ending_in_one_message_does_not_spin() {
    let ends = Arc::default();
    let node = rascals(&Log::default(), &ends).await;
    for trick in [Trick::CancelTimerAndStop, Trick::CancelTimerAndDeactivate] {
        let rascal = node.actor::<Rascal>("r");
        rascal.send(Misbehave(trick)).await.unwrap();
        rascal.send(Misbehave(Trick::Nothing)).await.unwrap();
    }
    eventually("both ends", || ends.load(Ordering::SeqCst) == 2).await;
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_hook_that_panics_does_not_wedge_its_actor() {
    let ends = Arc::default();
    let node = rascals(&Log::default(), &ends).await;
    let early = node.actor::<Rascal>("panics-before-activation").send(Misbehave(Trick::Nothing)).await;
    assert_eq!(early, Err(CallError::ActivationFailed { reason: "its on_activate panicked".into() }));
    let late = node.actor::<Rascal>("panics-at-the-end");
    for turn in 1..=2 {
        late.send(Misbehave(Trick::Nothing)).await.unwrap();
        late.deactivate().unwrap();
        eventually("the end", || ends.load(Ordering::SeqCst) == turn).await;
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_that_never_gets_to_its_first_message_answers_and_is_not_retried_for_ever() {
    let node = rascals(&Log::default(), &Arc::default()).await;
    for key in ["panics-when-started", "stops-when-started"] {
        let rascal = node.actor::<Rascal>(key);
        rascal.tell(Misbehave(Trick::Nothing)).unwrap();
        let answer = rascal.send(Misbehave(Trick::Nothing)).await;
        let reason = "it ended before its first message".into();
        assert_eq!(answer, Err(CallError::ActivationFailed { reason }), "{key}");
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_farewell_may_save_through_another_actor_while_the_node_stops() {
    let (log, ends) = (Log::default(), Arc::default());
    let node = rascals(&log, &ends).await;
    node.actor::<Rascal>("saves-elsewhere").send(Misbehave(Trick::Nothing)).await.unwrap();
    node.stop().await.unwrap();
    assert_eq!(ends.load(Ordering::SeqCst), 101, "the hook ran to its end");
    assert_eq!(log.count("saved"), 1);
}

#[actix::test]
async fn a_ref_of_a_stopped_node_never_reaches_a_later_node() {
    let (old, new) = (Log::default(), Log::default());
    let start = |log: &Log| {
        let log = log.clone();
        builder().actor_with(move |_, _| Probe::new(&log)).start()
    };
    let first = start(&old).await.unwrap();
    let stale = first.actor::<Probe>("x");
    stale.send(say("x")).await.unwrap();
    first.stop().await.unwrap();
    let second = start(&new).await.unwrap();
    second.actor::<Probe>("x").send(say("x")).await.unwrap();
    assert!(matches!(stale.send(say("stale")).await, Err(CallError::NotServing { .. })));
    assert_eq!(new.count("stale"), 0);
    second.stop().await.unwrap();
}

/// Takes a while, then tells another actor, which may live on another arbiter.
#[remote]
struct PassOn(String);

#[derive(VirtualActor)]
#[virtual_actor(handles(PassOn))]
struct Relay {
    node: Node,
}

impl Actor for Relay {
    type Context = Context<Self>;
}

impl Handler<PassOn> for Relay {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, PassOn(to): PassOn, _: &mut Context<Self>) -> Self::Result {
        let next = self.node.actor::<Probe>(to);
        Box::pin(in_call(async move {
            actix::clock::sleep(Duration::from_millis(40)).await;
            next.send(say("passed on")).await.unwrap();
        }))
    }
}

#[actix::test]
async fn a_stop_finishes_work_that_crosses_arbiters() {
    let log = Log::default();
    let probe_log = log.clone();
    let mut settings = Settings::default();
    settings.node.data_arbiters = std::num::NonZeroU16::new(3);
    let node = Node::builder()
        .settings(settings)
        .actor_with(|_, node| Relay { node: node.clone() })
        .actor_with(move |_, _| Probe::new(&probe_log))
        .start()
        .await
        .unwrap();
    let calls: Vec<_> =
        (0..12).map(|n| node.actor::<Relay>(format!("r{n}")).send(PassOn(format!("p{n}")))).collect();
    actix::clock::sleep(Duration::from_millis(10)).await;
    node.stop().await.unwrap();
    for call in calls {
        assert_eq!(call.await, Ok(()));
    }
    assert_eq!(log.count("passed on"), 12);
    assert_eq!(log.count("gone"), 12, "those that came to life while the node stopped said farewell too");
}

#[actix::test]
async fn a_traced_call_from_outside_is_refused_while_the_node_stops() {
    let log = Log::default();
    let probe_log = log.clone();
    let node = builder().actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
    let slow = node.actor::<Probe>("slow").send(SayLater { what: "done".to_owned(), ms: 60 });
    eventually("the handler starts", || log.count("begin done") == 1).await;
    let (stopping, late) = (node.clone(), node.actor::<Probe>("late"));
    let stop = actix::spawn(async move { stopping.stop().await });
    actix::clock::sleep(Duration::from_millis(10)).await;
    let traced = CallOptions::new().trace(TraceContext::new(7, 7, 1).unwrap());
    assert!(matches!(late.send_with(say("x"), traced).await, Err(CallError::NotServing { .. })));
    assert_eq!(slow.await, Ok(1));
    stop.await.unwrap().unwrap();
}

#[actix::test]
async fn one_hanging_job_does_not_cost_the_others_their_farewell() {
    let log = Log::default();
    let probe_log = log.clone();
    let keys = [("node.stop_budget", "300ms")];
    let node = builder_with(&keys).actor_with(move |_, _| Probe::new(&probe_log)).start().await.unwrap();
    node.actor::<Probe>("good").send(say("x")).await.unwrap();
    let hangs = node.actor::<Probe>("bad").send(SayLater { what: "never".to_owned(), ms: 60_000 });
    eventually("the handler starts", || log.count("begin never") == 1).await;
    assert_eq!(node.stop().await, Err(StopError::Unfinished { jobs: 1, actors: 1 }));
    assert_eq!(log.count("gone"), 1);
    assert_eq!(hangs.await, Err(CallError::Stopped));
}

/// Notes when it is dropped.
struct NotesItsEnd(Arc<AtomicU32>);

impl Drop for NotesItsEnd {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Never ends, in a task of its own or inside its actor.
#[remote]
struct Hang {
    detached: bool,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Hang))]
struct Hanging {
    begun: Arc<AtomicU32>,
    dropped: Arc<AtomicU32>,
}

impl Actor for Hanging {
    type Context = Context<Self>;
}

impl Handler<Hang> for Hanging {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Hang { detached }: Hang, _: &mut Context<Self>) -> Self::Result {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let held = NotesItsEnd(Arc::clone(&self.dropped));
        let hang = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        if detached {
            actix::spawn(hang);
            return Box::pin(std::future::pending::<()>().into_actor(self));
        }
        Box::pin(hang.into_actor(self))
    }
}

#[actix::test]
async fn handlers_that_hang_for_ever_are_cancelled_within_the_stop_budget() {
    let (begun, dropped): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let known = (Arc::clone(&begun), Arc::clone(&dropped));
    let mut settings = Settings::default();
    settings.node.stop_budget = Duration::from_millis(400);
    let node = Node::builder()
        .settings(settings)
        .actor_with(move |_, _| Hanging { begun: Arc::clone(&known.0), dropped: Arc::clone(&known.1) })
        .start()
        .await
        .unwrap();
    let options = CallOptions::new().timeout(Duration::from_secs(60));
    let call = |key: &str, detached| node.actor::<Hanging>(key).send_with(Hang { detached }, options);
    let calls = [call("a", false), call("b", true), call("c", false)];
    eventually("all hang", || begun.load(Ordering::SeqCst) == 3).await;
    let since = Instant::now();
    assert_eq!(node.stop().await, Err(StopError::Unfinished { jobs: 3, actors: 3 }));
    assert!(since.elapsed() < Duration::from_secs(4), "the stop took {:?}", since.elapsed());
    for call in calls {
        assert_eq!(call.await, Err(CallError::Stopped));
    }
    eventually("all are dropped", || dropped.load(Ordering::SeqCst) == 3).await;
}

#[actix::test]
async fn a_blocked_arbiter_hangs_neither_its_callers_nor_the_stop() {
    let mut settings = Settings::default();
    settings.node.stop_budget = Duration::from_millis(100);
    let ends: Arc<AtomicU32> = Arc::default();
    let node = Node::builder()
        .settings(settings)
        .actor_with(move |_, _| Rascal {
            key: String::new(),
            here: None,
            timer: None,
            ends: Arc::clone(&ends),
        })
        .start()
        .await
        .unwrap();
    let rascal = node.actor::<Rascal>("r");
    rascal.send(Misbehave(Trick::Nothing)).await.unwrap();
    let start = Instant::now();
    let options = CallOptions::new().timeout(Duration::from_millis(50));
    let blocked = rascal.send_with(Misbehave(Trick::BlockThread { ms: 2_500 }), options).await;
    assert_eq!(blocked, Err(CallError::Timeout { started: true }));
    assert!(start.elapsed() < Duration::from_millis(600), "the caller waited {:?}", start.elapsed());
    assert_eq!(node.stop().await, Err(StopError::Unfinished { jobs: 1, actors: 1 }));
    assert!(start.elapsed() < Duration::from_millis(2_200), "the stop waited {:?}", start.elapsed());
    assert_eq!(
        node.session_lost().await,
        "a handler blocks its arbiter",
        "what it works on is not given away"
    );
}
