//! Stories of several nodes from their first message to their last: a call to another node, a race for an actor, an actor that
//! goes and comes back; membership without a single virtual actor; and delivery at least once, built on top.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::eventually;
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::{ActorId, NodeId, OwnedKey};
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, KindLayout, Millis, Outcome, Sharding, TraceContext};
use archipelago_directory::{Read, Store, owner_id};
use futures_util::future::join_all;

/// Adds something; answers with the sum, the node, and the generation of the activation.
#[remote((u64, u64, u64))]
struct Add(u64);

/// Answers with the trace that it belongs to.
#[remote(Option<String>)]
struct Traced;

fn trace_of_this() -> Option<String> {
    archipelago::current_trace().map(|trace| trace.to_string())
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add, Traced), lifecycle)]
struct Counter {
    here: Option<Activation>,
    sum: u64,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Lifecycle for Counter {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.here = Some(here);
        Ok(())
    }
}

impl Handler<Add> for Counter {
    type Result = MessageResult<Add>;
    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> MessageResult<Add> {
        self.sum += amount;
        let here = self.here.as_ref().unwrap();
        MessageResult((self.sum, here.node().id().as_u64(), here.generation().as_u64()))
    }
}

impl Handler<Traced> for Counter {
    type Result = Option<String>;
    fn handle(&mut self, _: Traced, _: &mut Context<Self>) -> Option<String> {
        trace_of_this()
    }
}

fn node(store: &Arc<EmbeddedStore>) -> Builder {
    Node::builder()
        .embedded_store(Arc::clone(store))
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
}

/// Two members whose counters have records of their own and live where they are first wanted.
async fn two(store: &Arc<EmbeddedStore>, idle: Millis) -> [Node; 2] {
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let counters = Sharding::new(|_, _| Counter::default()).divided(KindLayout::Actor);
        let node = node(store).set("actors.placement", "local").shard(counters.passivate_after(idle));
        nodes.push(node.start().await.unwrap());
    }
    let nodes: [Node; 2] = nodes.try_into().ok().unwrap();
    met(&nodes).await;
    nodes
}

async fn met(nodes: &[Node; 2]) {
    let sees_both =
        |node: &Node| node.members().iter().filter(|member| member.status == MemberStatus::Up).count() == 2;
    eventually("both are members", || nodes.iter().all(sees_both)).await;
}

async fn stop(nodes: [Node; 2]) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Where the actor lives is remembered after that, and asking for it costs next to nothing.
///
/// Proves: R213, R476
#[actix::test]
async fn a_message_activates_its_actor_and_one_from_elsewhere_finds_it() {
    let nodes = two(&Arc::default(), Millis(60_000)).await;
    let [here, there] = &nodes;
    let (sum, home, generation) = here.actor::<Counter>("alice").send(Add(2)).await.unwrap();
    assert_eq!((sum, home), (2, here.id().as_u64()));
    let found = there.actor::<Counter>("alice").send(Add(3)).await.unwrap();
    assert_eq!(found, (5, home, generation), "the same activation");
    const LOOKS: u32 = 2_000;
    let began = Instant::now();
    for _ in 0..LOOKS {
        let known = there.cached_placement("Counter", "alice").await.unwrap();
        assert_eq!(known.node, here.id());
    }
    assert!(began.elapsed() / LOOKS < Duration::from_millis(1), "{:?} for all", began.elapsed());
    stop(nodes).await;
}

/// Proves: R476
#[actix::test]
async fn of_two_nodes_that_activate_at_once_one_does_and_the_other_passes_its_messages_on() {
    let nodes = two(&Arc::default(), Millis(60_000)).await;
    let mut homes = BTreeSet::new();
    for n in 0..40 {
        let key = format!("contested-{n}");
        let calls = nodes.iter().flat_map(|node| {
            let counter = node.actor::<Counter>(&key);
            [counter.send(Add(1)), counter.send(Add(1))]
        });
        let answers: Vec<_> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
        let sums: BTreeSet<u64> = answers.iter().map(|(sum, ..)| *sum).collect();
        assert_eq!(sums, (1..=4).collect(), "{key}: one actor has counted all of them, each once");
        let places: BTreeSet<(u64, u64)> = answers.iter().map(|(_, home, by)| (*home, *by)).collect();
        assert_eq!(places.len(), 1, "{key}: {places:?}");
        assert!(answers[0].0 < answers[1].0 && answers[2].0 < answers[3].0, "{key}: in order");
        homes.extend(places.into_iter().map(|(home, _)| home));
    }
    assert!(homes.is_subset(&nodes.iter().map(|node| node.id().as_u64()).collect()));
    stop(nodes).await;
}

/// Proves: R476
#[actix::test]
async fn an_idle_actor_leaves_the_directory_and_comes_back_where_it_is_wanted_next() {
    let store: Arc<EmbeddedStore> = Arc::default();
    let nodes = two(&store, Millis(150)).await;
    let [here, there] = &nodes;
    let (_, home, before) = here.actor::<Counter>("bob").send(Add(7)).await.unwrap();
    assert_eq!(home, here.id().as_u64());
    let id: ActorId = "default::Counter/bob".parse().unwrap();
    let record = owner_id(&OwnedKey::from(id));
    let began = Instant::now();
    while store.get(&record, Read::Linearizable).await.unwrap().is_some() {
        assert!(began.elapsed() < Duration::from_secs(30), "its record stays");
        actix::clock::sleep(Duration::from_millis(10)).await;
    }
    let (sum, home, after) = there.actor::<Counter>("bob").send(Add(1)).await.unwrap();
    assert_eq!((sum, home), (1, there.id().as_u64()), "a new activation");
    assert!(after > before, "{after} after {before}");
    stop(nodes).await;
}

/// Says where it is.
#[remote(String)]
struct Where;

#[derive(NamedActor)]
#[named_actor(handles(Where, Traced))]
struct Porter(NodeId);

impl Actor for Porter {
    type Context = Context<Self>;
}

impl Handler<Where> for Porter {
    type Result = String;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> String {
        self.0.to_string()
    }
}

impl Handler<Traced> for Porter {
    type Result = Option<String>;
    fn handle(&mut self, _: Traced, _: &mut Context<Self>) -> Option<String> {
        trace_of_this()
    }
}

#[actix::test]
async fn a_trace_goes_along_to_virtual_and_to_named_actors_here_and_elsewhere() {
    let nodes = two(&Arc::default(), Millis(60_000)).await;
    let [here, there] = &nodes;
    let trace = TraceContext::new(7, 11, 1).unwrap();
    let traced = || CallOptions::new().trace(trace);
    let told = Some(trace.to_string());
    let porter = here.register("/porter", Porter(here.id()).start()).unwrap();
    for node in [here, there] {
        let counter = node.actor::<Counter>("carol");
        assert_eq!(counter.send_with(Traced, traced()).await.unwrap(), told);
        assert_eq!(counter.send(Traced).await.unwrap(), None);
        let porter = node.resolve::<Porter>(&porter.address()).unwrap();
        assert_eq!(porter.send_with(Traced, traced()).await.unwrap(), told);
        assert_eq!(porter.send(Traced).await.unwrap(), None);
    }
    assert_eq!(trace_of_this(), None, "outside of handlers");
    stop(nodes).await;
}

/// Proves: R481
#[actix::test]
async fn nodes_without_virtual_actors_are_members_and_reach_each_others_named_actors() {
    let store: Arc<EmbeddedStore> = Arc::default();
    let nodes = [node(&store).start().await.unwrap(), node(&store).start().await.unwrap()];
    met(&nodes).await;
    let [here, there] = &nodes;
    eventually("both follow one leader", || here.leader().is_some() && here.leader() == there.leader()).await;
    let porter = here.register("/porter", Porter(here.id()).start()).unwrap();
    let found = there.resolve::<Porter>(&porter.address()).unwrap();
    assert_eq!(found.send(Where).await.unwrap(), here.id().to_string());
    stop(nodes).await;
}

/// A deposit that may come more than once.
#[remote(u64)]
struct Deposit {
    number: u64,
    amount: u64,
}

/// What outlives an activation.
#[derive(Default)]
struct Books {
    sum: u64,
    booked: BTreeSet<u64>,
    attempts: u64,
}

/// Books a deposit once, however often it comes; every third attempt ends before it is answered.
#[derive(VirtualActor)]
#[virtual_actor(handles(Deposit))]
struct Vault(Arc<Mutex<Books>>);

impl Actor for Vault {
    type Context = Context<Self>;
}

impl Handler<Deposit> for Vault {
    type Result = u64;
    fn handle(&mut self, Deposit { number, amount }: Deposit, _: &mut Context<Self>) -> u64 {
        let (sum, attempts) = {
            let mut books = self.0.lock().unwrap();
            if books.booked.insert(number) {
                books.sum += amount;
            }
            books.attempts += 1;
            (books.sum, books.attempts)
        };
        assert!(attempts % 3 != 0, "after it was booked, before it is answered");
        sum
    }
}

/// Sends until it is acknowledged: all that a layer for delivery at least once needs is an outcome that is told truly, and a
/// message that can be sent again. Numbers make it exactly once.
async fn deliver(vault: &ActorRef<Vault>, number: u64, amount: u64) -> u32 {
    for attempt in 1..10 {
        match vault.send(Deposit { number, amount }).await {
            Ok(_) => return attempt,
            Err(error) => assert_eq!(error.outcome(), Outcome::Unknown, "{error}"),
        }
    }
    panic!("never acknowledged");
}

/// Proves: R495
#[actix::test]
async fn delivery_at_least_once_can_be_built_on_top() {
    let books: Arc<Mutex<Books>> = Arc::default();
    let kept = Arc::clone(&books);
    let node =
        crate::support::builder().actor_with(move |_, _| Vault(Arc::clone(&kept))).start().await.unwrap();
    let vault = node.actor::<Vault>("main");
    let mut attempts = 0;
    for number in 0..30 {
        attempts += deliver(&vault, number, number + 1).await;
    }
    assert!(attempts > 30, "some were sent again");
    assert_eq!(books.lock().unwrap().sum, (1..=30).sum::<u64>(), "each was booked once");
    node.stop().await.unwrap();
}
