//! Light clients over TCP: programs that belong to no cluster, host nothing, and send to its actors.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use crate::support::counter::{Add, Counter};
use crate::support::eventually;
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::{ActorPath, NodeId};
use archipelago::membership::{LeaderProvider, Member, MemberStatus};
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions, Error, Event, Notice, Outcome, StartError};

#[remote(String)]
struct Hello(String);

#[derive(NamedActor)]
#[named_actor(handles(Hello))]
struct Doorman;

impl Actor for Doorman {
    type Context = Context<Self>;
}

impl Handler<Hello> for Doorman {
    type Result = String;
    fn handle(&mut self, Hello(name): Hello, _: &mut Context<Self>) -> String {
        format!("hello {name}")
    }
}

fn over_tcp() -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("node.data_arbiters", "1")
        .set("session.ttl", "3s")
        .set("session.heartbeat", "1s")
}

/// A member of a cluster in this process.
fn member(store: &Arc<EmbeddedStore>) -> Builder {
    over_tcp()
        .embedded_store(Arc::clone(store))
        .set("transport.bind", "127.0.0.1:0")
        .actor_with(Counter::made)
}

fn client(contacts: &[&Node]) -> Builder {
    over_tcp().client(contacts.iter().map(|node| node.address().to_string())).remote_actor::<Counter>()
}

async fn members(count: usize) -> Vec<Node> {
    let store = Arc::new(EmbeddedStore::default());
    let mut nodes = Vec::new();
    for _ in 0..count {
        nodes.push(member(&store).start().await.unwrap());
    }
    // Only members that are up are asked to take a shard.
    let up = |node: &Node| node.members().iter().filter(|member| member.status == MemberStatus::Up).count();
    eventually("the cluster has come together", || nodes.iter().all(|node| up(node) == count)).await;
    nodes
}

fn patient() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(20))
}

/// Proves: R332
#[actix::test]
async fn a_client_knows_nothing_but_an_address_and_reaches_every_actor() {
    let nodes = members(3).await;
    let client = client(&[&nodes[0]]).start().await.unwrap();
    let mut homes = std::collections::BTreeSet::new();
    for key in 0..30 {
        let actor = client.actor::<Counter>(format!("k{key}"));
        let (sum, home) = actor.send_with(Add(2), patient()).await.unwrap();
        assert_eq!(sum, 2);
        let (sum, same) =
            nodes[1].actor::<Counter>(format!("k{key}")).send_with(Add(3), patient()).await.unwrap();
        assert_eq!((sum, same), (5, home), "client and members mean the same actor");
        homes.insert(home);
    }
    assert_eq!(homes, nodes.iter().map(|node| node.id().as_u64()).collect(), "they live on all members");
    assert_eq!(client.members(), [], "a client follows no cluster");
    for node in &nodes {
        assert_eq!(node.members().len(), 3, "a client is no member");
    }
    client.stop().await.unwrap();
    for node in nodes {
        node.stop().await.unwrap();
    }
}

#[actix::test]
async fn a_client_reaches_named_actors_by_their_uri() {
    let nodes = members(1).await;
    nodes[0].register("/doorman", Doorman.start()).unwrap();
    let client = client(&[&nodes[0]]).start().await.unwrap();
    let path = ActorPath::remote("default", nodes[0].address(), "/doorman").unwrap();
    let doorman = client.resolve::<Doorman>(&path).unwrap();
    assert_eq!(doorman.send(Hello("you".to_owned())).await, Ok("hello you".to_owned()));
    assert_eq!(client.lookup_named(&path).await.unwrap(), Some(path));
    client.stop().await.unwrap();
    nodes[0].stop().await.unwrap();
}

#[actix::test]
async fn a_client_divides_kinds_as_its_cluster_does() {
    let store = Arc::new(EmbeddedStore::default());
    let node = member(&store).set("actors.kinds.Counter.shards", "7").start().await.unwrap();
    let client = client(&[&node]).start().await.unwrap();
    for key in 0..20 {
        let sent = client.actor::<Counter>(format!("k{key}")).send_with(Add(1), patient()).await;
        assert_eq!(sent.map(|(sum, _)| sum), Ok(1), "nobody told the client that there are 7 shards");
    }
    client.stop().await.unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_client_reaches_actors_that_have_records_of_their_own() {
    let store = Arc::new(EmbeddedStore::default());
    let node = member(&store).set("actors.kinds.Counter.divided", "actors").start().await.unwrap();
    let client = client(&[&node]).start().await.unwrap();
    for key in 0..20 {
        let key = format!("k{key}");
        let sent = client.actor::<Counter>(&key).send_with(Add(1), patient()).await;
        assert_eq!(sent.map(|(sum, _)| sum), Ok(1), "nobody told the client how the kind is divided");
        let sent = node.actor::<Counter>(&key).send_with(Add(1), patient()).await;
        assert_eq!(sent.map(|(sum, _)| sum), Ok(2), "client and member mean the same actor");
    }
    client.stop().await.unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_client_of_another_namespace_is_refused_and_told_why() {
    let nodes = members(1).await;
    let error = client(&[&nodes[0]]).namespace("elsewhere").start().await.unwrap_err();
    let Error::Start(StartError::NoContact { reason }) = &error else { panic!("{error}") };
    assert!(reason.contains("\"default\"") && reason.contains("\"elsewhere\""), "{reason}");
    nodes[0].stop().await.unwrap();
}

#[actix::test]
async fn a_client_that_is_to_host_something_does_not_start() {
    let hosting = over_tcp().client(["127.0.0.1:1"]).actor_with(Counter::made);
    let error = hosting.start().await.unwrap_err();
    assert!(matches!(&error, Error::Start(StartError::ClientHosts { kind }) if kind == "Counter"), "{error}");
}

/// What is said about members would be ignored, and its author would not know.
#[actix::test]
async fn what_only_a_member_can_have_is_refused_to_a_client() {
    let store = Arc::new(EmbeddedStore::default());
    let states = archipelago::embedded::state_store(Arc::clone(&store));
    let plane = archipelago::embedded::control_plane(Arc::clone(&store), Duration::from_secs(30));
    let calls: [(&str, Builder); 7] = [
        ("embedded_store", over_tcp().embedded_store(Arc::clone(&store))),
        ("embedded_control_plane", over_tcp().embedded_control_plane(store)),
        ("control_plane", over_tcp().control_plane(plane)),
        ("state_store", over_tcp().state_store(Arc::new(states))),
        ("placement", over_tcp().placement(archipelago::placement::Local)),
        ("datacenter_placement", over_tcp().datacenter_placement(archipelago::datacenter::NearestFirst)),
        ("leader", over_tcp().leader(Oldest)),
    ];
    for (call, builder) in calls {
        let error = builder.client(["127.0.0.1:1"]).start().await.unwrap_err().to_string();
        let wanted = format!(
            "builder call {call}(..): a light client is no member: leave out this or cluster.contacts"
        );
        assert!(error.starts_with(&wanted), "{error}");
    }
}

#[derive(Debug)]
struct Oldest;

impl LeaderProvider for Oldest {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        candidates.map(Member::id).min()
    }
}

#[actix::test]
async fn a_node_takes_only_so_many_clients_and_one_that_leaves_makes_room() {
    let store = Arc::new(EmbeddedStore::default());
    let node = member(&store).set("cluster.clients", "1").start().await.unwrap();
    let mut events = node.events().subscribe();
    let first = client(&[&node]).start().await.unwrap();
    let error = client(&[&node]).start().await.unwrap_err();
    let Error::Start(StartError::NoContact { reason }) = &error else { panic!("{error}") };
    assert!(reason.contains("as many clients as it takes"), "{reason}");
    assert_eq!(
        first.actor::<Counter>("a").send(Add(1)).await.map(|(sum, _)| sum),
        Ok(1),
        "who is in stays in"
    );
    let gone = first.id();
    first.stop().await.unwrap();
    // Nothing is kept of a client that has gone.
    let is_gone =
        async { while events.next().await.unwrap() != Notice::Event(Event::PeerGone { node: gone }) {} };
    actix::clock::timeout(Duration::from_secs(20), is_gone).await.expect("the client is forgotten");
    let second = client(&[&node]).start().await.unwrap();
    assert_eq!(second.actor::<Counter>("a").send(Add(1)).await.map(|(sum, _)| sum), Ok(2));
    second.stop().await.unwrap();
    node.stop().await.unwrap();
}

#[actix::test]
async fn a_call_without_a_contact_ends_by_its_deadline_and_has_not_started() {
    let nodes = members(1).await;
    let client = client(&[&nodes[0]]).start().await.unwrap();
    nodes[0].stop().await.unwrap();
    let begun = std::time::Instant::now();
    let soon = CallOptions::new().timeout(Duration::from_millis(300));
    let error = client.actor::<Counter>("new").send_with(Add(1), soon).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotStarted, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    client.stop().await.unwrap();
}
