//! What an actor keeps outlives its activations.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Log, builder_with, eventually};
use archipelago::embedded::{EmbeddedStateStore, EmbeddedStore, state_store};
use archipelago::prelude::*;
use archipelago::state::{ActorId, Generation, Schema, StateStore, StateStoreError, StoredState};
use archipelago::{Builder, Event, Notice, StartError};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};

// ---- the actor ----

/// Adds, and answers with the sum.
#[remote(i64)]
struct Add(i64);

/// Adds, saves, and answers with the sum once it is kept.
#[remote(Result<i64, String>)]
struct AddAndSave(i64);

/// What it is asked to keep is this long.
#[remote]
struct Note(String);

#[remote]
struct Forget;

#[remote]
struct Fail;

#[derive(VirtualActor)]
#[virtual_actor(handles(Add, AddAndSave, Note, Forget, Fail), persistent, lifecycle)]
struct Account {
    kept: Kept,
    closed: bool,
    log: Log,
    here: Option<Activation>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct Kept {
    sum: i64,
    #[serde(default)]
    note: String,
}

impl Account {
    fn new(log: &Log) -> Self {
        Self { kept: Kept::default(), closed: false, log: log.clone(), here: None }
    }
}

impl Actor for Account {
    type Context = Context<Self>;
}

impl Persistent for Account {
    type State = Kept;
    const VERSION: u32 = 2;

    fn state(&self) -> Option<Kept> {
        (!self.closed).then(|| self.kept.clone())
    }

    fn restore(&mut self, state: Kept) {
        self.log.note(format!("restored {}", state.sum));
        self.kept = state;
    }

    fn upgrade(stored: &StoredState) -> Result<Kept, StateError> {
        // The first layout was the sum alone.
        match (stored.schema.name.as_str(), stored.schema.version, std::str::from_utf8(&stored.bytes)) {
            ("Account", 1, Ok(sum)) => Ok(Kept { sum: sum.parse().unwrap_or(-1), note: String::new() }),
            _ => Err(StateError::UnknownSchema {
                stored: stored.schema.clone(),
                expected: Schema::new("Account", 2),
            }),
        }
    }
}

impl Lifecycle for Account {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.log.note(format!("activated with {}", self.kept.sum));
        self.here = Some(here);
        Ok(())
    }
}

impl Handler<Add> for Account {
    type Result = i64;

    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> i64 {
        self.kept.sum += amount;
        self.kept.sum
    }
}

impl Handler<AddAndSave> for Account {
    type Result = ResponseFuture<Result<i64, String>>;

    fn handle(&mut self, AddAndSave(amount): AddAndSave, _: &mut Context<Self>) -> Self::Result {
        self.kept.sum += amount;
        let (saved, sum) = (self.here.as_ref().unwrap().save(self), self.kept.sum);
        Box::pin(async move { saved.await.map(|()| sum).map_err(|error| error.to_string()) })
    }
}

impl Handler<Note> for Account {
    type Result = ();

    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) {
        self.kept.note = note;
    }
}

impl Handler<Forget> for Account {
    type Result = ();

    fn handle(&mut self, _: Forget, _: &mut Context<Self>) {
        self.closed = true;
    }
}

impl Handler<Fail> for Account {
    type Result = ();

    fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("as asked");
    }
}

// ---- a store that fails when it is told to ----

struct Flaky {
    inner: EmbeddedStateStore,
    /// How many of the next loads and saves fail.
    loads: AtomicU32,
    saves: AtomicU32,
    saved: AtomicU32,
}

impl Flaky {
    fn new() -> Arc<Self> {
        let inner = state_store(Arc::new(EmbeddedStore::default()));
        let (loads, saves, saved) = Default::default();
        Arc::new(Self { inner, loads, saves, saved })
    }

    fn fails(count: &AtomicU32) -> Result<(), StateStoreError> {
        let take = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let away = || StateStoreError::Unavailable { backend: "flaky", source: "as asked".into() };
        if take.is_ok() { Err(away()) } else { Ok(()) }
    }
}

#[async_trait]
impl StateStore for Flaky {
    async fn load(&self, actor: &ActorId, by: Generation) -> Result<Option<StoredState>, StateStoreError> {
        Self::fails(&self.loads)?;
        self.inner.load(actor, by).await
    }

    async fn save(
        &self,
        actor: &ActorId,
        by: Generation,
        state: &StoredState,
    ) -> Result<(), StateStoreError> {
        Self::fails(&self.saves)?;
        self.inner.save(actor, by, state).await?;
        self.saved.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    async fn delete(&self, actor: &ActorId, by: Generation) -> Result<(), StateStoreError> {
        self.inner.delete(actor, by).await
    }
}

fn accounts(builder: Builder, log: &Log) -> Builder {
    let log = log.clone();
    builder.actor_with(move |_, _| Account::new(&log))
}

async fn on_flaky(states: &Arc<Flaky>, log: &Log, keys: &[(&str, &str)]) -> Node {
    let states = Arc::clone(states) as Arc<dyn StateStore>;
    accounts(builder_with(keys).state_store(states), log).start().await.unwrap()
}

/// Lets the actor go and waits until it has.
async fn passivate(actor: &ActorRef<Account>) {
    let gone = actor.watch().await.unwrap();
    actor.deactivate().unwrap();
    gone.await;
}

// ---- what is kept ----

/// Proves: R493, R494, R320
#[actix::test]
async fn state_is_saved_when_an_actor_goes_and_loaded_before_it_does_anything() {
    let log = Log::default();
    let node = accounts(builder_with(&[]), &log).start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    assert_eq!(alice.send(Add(5)).await, Ok(5));
    passivate(&alice).await;
    assert_eq!(alice.send(Add(1)).await, Ok(6));
    assert_eq!(log.lines(), ["activated with 0", "restored 5", "activated with 5"]);
    assert_eq!(node.actor::<Account>("bob").send(Add(1)).await, Ok(1), "everybody has a state of his own");
    node.stop().await.unwrap();
}

/// Proves: R311, R313, R493
#[actix::test]
async fn idleness_saves_too_and_the_next_message_finds_the_state() {
    let log = Log::default();
    let keys = [("actors.idle_after", "50ms")];
    let node = accounts(builder_with(&keys), &log).start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    alice.send(Add(7)).await.unwrap();
    alice.watch().await.unwrap().await;
    assert_eq!(alice.send(Add(0)).await, Ok(7));
    node.stop().await.unwrap();
}

/// Proves: R493
#[actix::test]
async fn a_node_that_stops_leaves_its_states_to_the_next() {
    let (log, store) = (Log::default(), Arc::new(EmbeddedStore::default()));
    let first = accounts(builder_with(&[]).embedded_store(Arc::clone(&store)), &log).start().await.unwrap();
    for key in 0..50 {
        first.actor::<Account>(key.to_string()).send(Add(key)).await.unwrap();
    }
    first.stop().await.unwrap();
    let second = accounts(builder_with(&[]).embedded_store(store), &log).start().await.unwrap();
    for key in 0..50 {
        assert_eq!(second.actor::<Account>(key.to_string()).send(Add(0)).await, Ok(key));
    }
    second.stop().await.unwrap();
}

#[actix::test]
async fn after_a_panic_there_is_what_was_saved_and_nothing_else() {
    let log = Log::default();
    let node = accounts(builder_with(&[]), &log).start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    assert_eq!(alice.send(AddAndSave(10)).await, Ok(Ok(10)));
    alice.send(Add(5)).await.unwrap();
    alice.send(Fail).await.unwrap_err();
    assert_eq!(alice.send(Add(0)).await, Ok(10), "a state that a panic may have spoilt is not saved");
    node.stop().await.unwrap();
}

#[actix::test]
async fn an_actor_with_nothing_to_keep_is_deleted() {
    let log = Log::default();
    let node = accounts(builder_with(&[]), &log).start().await.unwrap();
    let alice = node.actor::<Account>("alice");
    assert_eq!(alice.send(AddAndSave(10)).await, Ok(Ok(10)));
    alice.send(Forget).await.unwrap();
    passivate(&alice).await;
    assert_eq!(alice.send(Add(1)).await, Ok(1));
    assert_eq!(log.count("activated with 0"), 2);
    node.stop().await.unwrap();
}

// ---- what fails ----

/// Proves: R493, R449
#[actix::test]
async fn a_state_that_cannot_be_loaded_fails_the_call_and_leaves_nothing_behind() {
    let (log, states) = (Log::default(), Flaky::new());
    let node = on_flaky(&states, &log, &[]).await;
    let alice = node.actor::<Account>("alice");
    states.loads.store(1, Ordering::SeqCst);
    let error = alice.send(Add(1)).await.unwrap_err();
    let reason = "its state was not loaded: flaky is unavailable";
    assert_eq!(error, CallError::ActivationFailed { reason: reason.into() });
    assert!(error.is_not_started());
    assert!(log.lines().is_empty(), "on_activate did not run");
    assert_eq!(alice.send(Add(1)).await, Ok(1), "the next message tries anew");
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_last_save_is_tried_again_until_it_is_taken() {
    let (log, states) = (Log::default(), Flaky::new());
    let node = on_flaky(&states, &log, &[]).await;
    let alice = node.actor::<Account>("alice");
    alice.send(Add(5)).await.unwrap();
    states.saves.store(3, Ordering::SeqCst);
    passivate(&alice).await;
    assert_eq!(alice.send(Add(0)).await, Ok(5));
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_last_save_that_fails_for_good_is_told_and_does_not_hold_the_actor() {
    let (log, states) = (Log::default(), Flaky::new());
    let node = on_flaky(&states, &log, &[("actors.deactivate_timeout", "300ms")]).await;
    let (alice, mut events) = (node.actor::<Account>("alice"), node.events().subscribe());
    assert_eq!(alice.send(AddAndSave(5)).await, Ok(Ok(5)));
    alice.send(Add(1)).await.unwrap();
    states.saves.store(u32::MAX, Ordering::SeqCst);
    passivate(&alice).await;
    states.saves.store(0, Ordering::SeqCst);
    assert_eq!(alice.send(Add(0)).await, Ok(5), "what was acknowledged is there, the rest is lost");
    let told = std::iter::from_fn(|| events.try_next()).any(|notice| {
        let lost = Event::StateNotSaved {
            actor: "default::Account/alice".to_owned(),
            reason: "flaky is unavailable".to_owned(),
        };
        notice == Notice::Event(lost)
    });
    assert!(told);
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_save_on_demand_answers_what_became_of_it() {
    let (log, states) = (Log::default(), Flaky::new());
    let node = on_flaky(&states, &log, &[]).await;
    let alice = node.actor::<Account>("alice");
    states.saves.store(1, Ordering::SeqCst);
    assert_eq!(alice.send(AddAndSave(1)).await, Ok(Err("flaky is unavailable".to_owned())));
    assert_eq!(alice.send(AddAndSave(1)).await, Ok(Ok(2)), "the next save includes what this one missed");
    alice.send(Note("x".repeat(1 << 20))).await.unwrap();
    let refused = alice.send(AddAndSave(1)).await.unwrap().unwrap_err();
    assert!(refused.starts_with("the state has 10") && refused.contains("the store takes"), "{refused}");
    alice.send(Note(String::new())).await.unwrap();
    assert_eq!(states.saved.load(Ordering::SeqCst), 1);
    node.stop().await.unwrap();
}

#[actix::test]
async fn states_of_other_versions_are_upgraded_or_refused_and_stay() {
    let (log, states) = (Log::default(), Flaky::new());
    let put = async |key: &str, name: &str, version: u32, bytes: &str| {
        let id = format!("default::Account/{key}").parse().unwrap();
        let state = StoredState { schema: Schema::new(name, version), bytes: bytes.to_owned().into() };
        states.inner.save(&id, Generation::new(0), &state).await.unwrap();
    };
    put("old", "Account", 1, "41").await;
    put("newer", "Account", 3, "{}").await;
    put("other", "Cart", 2, "{\"sum\":1}").await;
    put("broken", "Account", 2, "{\"sum\":").await;
    let node = on_flaky(&states, &log, &[]).await;
    let add = async |key: &str| node.actor::<Account>(key).send(Add(1)).await;
    assert_eq!(add("old").await, Ok(42));
    for (key, expected) in [
        ("newer", "the stored state is Account v3, and this actor reads Account v2"),
        ("other", "the stored state is Cart v2, and this actor reads Account v2"),
        ("broken", "the stored state cannot be read as Account v2"),
    ] {
        for _ in 0..2 {
            let Err(CallError::ActivationFailed { reason }) = add(key).await else { panic!("{key}") };
            assert!(reason.starts_with(expected), "{reason}");
        }
    }
    node.stop().await.unwrap();
}

#[actix::test]
async fn what_comes_while_the_last_save_runs_waits_for_the_next_activation() {
    let (log, states) = (Log::default(), Flaky::new());
    let node = on_flaky(&states, &log, &[]).await;
    let alice = node.actor::<Account>("alice");
    alice.send(Add(5)).await.unwrap();
    states.saves.store(2, Ordering::SeqCst);
    alice.deactivate().unwrap();
    eventually("the last save has failed once", || states.saves.load(Ordering::SeqCst) < 2).await;
    assert_eq!(alice.send(Add(1)).await, Ok(6));
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_persistent_kind_needs_a_store() {
    use archipelago::env::{Environment, HostEnvironment, Threads};
    let env: Arc<dyn Environment> = Arc::new(HostEnvironment::new(Threads::Current));
    let timer = Arc::new(archipelago::env::EnvironmentTimer(Arc::clone(&env)));
    let directory = archipelago_embedded::directory(Arc::default(), timer);
    let builder = archipelago_runtime::NodeBuilder::new(env, Arc::new(directory));
    let refused = builder.actor_with(|_, _| Account::new(&Log::default())).start().await;
    assert!(matches!(refused, Err(StartError::NoStateStore { kind }) if kind == "Account"));
}
