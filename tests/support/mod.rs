//! Actors and helpers that several test files use.
#![allow(dead_code, unreachable_pub, missing_docs, clippy::disallowed_methods, clippy::unwrap_used)]

pub mod counter;

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{Builder, config::Settings};

/// A node on the test's own arbiter that reads no files.
pub fn builder() -> Builder {
    Node::builder().settings(Settings::default()).on_current_arbiter()
}

/// The same with some keys set.
pub fn builder_with(keys: &[(&str, &str)]) -> Builder {
    let mut loader = archipelago::config::Loader::new()
        .directory(env!("CARGO_TARGET_TMPDIR"))
        .environment(std::iter::empty::<(String, String)>());
    for (key, value) in keys {
        loader = loader.set(*key, value);
    }
    Node::builder().settings(loader.load().expect("the test's settings are valid")).on_current_arbiter()
}

/// A free port, as far as that can be known.
pub fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.expect("loopback has free ports").port()
}

/// A node that others reach at this address.
pub fn on_loopback(bind: &str) -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", bind)
        .set("node.data_arbiters", "1")
}

/// Waits until `condition` holds; panics after thirty seconds.
pub async fn eventually(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..6_000 {
        if condition() {
            return;
        }
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened: {what}");
}

/// What a probe has done, in order.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, what: &str) -> usize {
        self.lines().iter().filter(|line| *line == what).count()
    }
}

/// Notes a word and answers with how many it has handled.
#[remote(u32)]
pub struct Say(pub String);

pub fn say(what: &str) -> Say {
    Say(what.to_owned())
}

/// Takes `ms` milliseconds, asynchronously, then notes the word.
#[remote(u32)]
pub struct SayLater {
    pub what: String,
    pub ms: u64,
}

/// The same without touching the actor meanwhile, in a detached task.
#[remote]
pub struct SayDetached {
    pub what: String,
    pub ms: u64,
}

/// The same while the whole actor waits.
#[remote(u32)]
pub struct SayAtomically {
    pub what: String,
    pub ms: u64,
}

/// Panics.
#[remote]
pub struct Panic;

/// Panics in a detached task.
#[remote]
pub struct PanicDetached;

/// Stops its own context.
#[remote]
pub struct StopYourself;

/// Asks for its own deactivation.
#[remote]
pub struct Deactivate;

/// An actor that tells on itself.
#[derive(VirtualActor)]
#[virtual_actor(
    handles(Say, SayLater, SayDetached, SayAtomically, Panic, PanicDetached, StopYourself, Deactivate),
    lifecycle
)]
pub struct Probe {
    pub log: Log,
    pub handled: u32,
    pub here: Option<Activation>,
    pub fail: Arc<AtomicU32>,
}

impl Probe {
    pub fn new(log: &Log) -> Self {
        Self { log: log.clone(), handled: 0, here: None, fail: Arc::default() }
    }

    pub fn failing(log: &Log, times: &Arc<AtomicU32>) -> Self {
        Self { fail: Arc::clone(times), ..Self::new(log) }
    }

    fn say(&mut self, what: String) -> u32 {
        self.log.note(what);
        self.handled += 1;
        self.handled
    }
}

impl Actor for Probe {
    type Context = Context<Self>;
}

impl Lifecycle for Probe {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.log.note("activate");
        // Gives way, so that messages arrive while the actor is activating.
        actix::clock::sleep(Duration::from_millis(2)).await;
        self.here = Some(here);
        if self.fail.load(Ordering::SeqCst) > 0 {
            self.fail.fetch_sub(1, Ordering::SeqCst);
            return Err("the storage is away".into());
        }
        self.log.note("active");
        Ok(())
    }

    fn on_deactivate(&mut self, reason: DeactivateReason) -> ResponseFuture<()> {
        let log = self.log.clone();
        log.note(format!("deactivate {reason:?}"));
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(2)).await;
            log.note("gone");
        })
    }
}

impl Handler<Say> for Probe {
    type Result = u32;

    fn handle(&mut self, Say(what): Say, _: &mut Context<Self>) -> u32 {
        self.say(what)
    }
}

impl Handler<SayLater> for Probe {
    type Result = ResponseActFuture<Self, u32>;

    fn handle(&mut self, later: SayLater, _: &mut Context<Self>) -> Self::Result {
        self.log.note(format!("begin {}", later.what));
        let wait = actix::clock::sleep(Duration::from_millis(later.ms)).into_actor(self);
        Box::pin(wait.map(move |(), actor, _| actor.say(later.what)))
    }
}

impl Handler<SayDetached> for Probe {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, later: SayDetached, _: &mut Context<Self>) -> Self::Result {
        let log = self.log.clone();
        log.note(format!("begin {}", later.what));
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(later.ms)).await;
            log.note(later.what);
        })
    }
}

impl Handler<SayAtomically> for Probe {
    type Result = AtomicResponse<Self, u32>;

    fn handle(&mut self, later: SayAtomically, _: &mut Context<Self>) -> Self::Result {
        self.log.note(format!("begin {}", later.what));
        let wait = actix::clock::sleep(Duration::from_millis(later.ms)).into_actor(self);
        AtomicResponse::new(Box::pin(wait.map(move |(), actor, _| actor.say(later.what))))
    }
}

impl Handler<Panic> for Probe {
    type Result = ();

    fn handle(&mut self, _: Panic, _: &mut Context<Self>) {
        panic!("as asked");
    }
}

impl Handler<PanicDetached> for Probe {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, _: PanicDetached, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async { panic!("as asked") })
    }
}

impl Handler<StopYourself> for Probe {
    type Result = ();

    fn handle(&mut self, _: StopYourself, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

impl Handler<Deactivate> for Probe {
    type Result = ();

    fn handle(&mut self, _: Deactivate, _: &mut Context<Self>) {
        self.here.as_ref().expect("on_activate has run").deactivate();
    }
}
