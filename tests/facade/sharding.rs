//! Kinds with settings of their own, regions that take envelopes, and actors of which a cluster has one.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::counter::{Add, Counter};
use crate::support::eventually;
use archipelago::config::Loader;
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::{NodeId, OwnedKey};
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, Error, KindLayout, Millis, ShardCount, ShardEnvelope, Sharding, StartError};
use archipelago_directory::{Read, Store, owner_id};

/// Where clocks have come to life, and where they have gone.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<(NodeId, bool)>>>);

impl Diary {
    fn note(&self, node: NodeId, alive: bool) {
        self.0.lock().unwrap().push((node, alive));
    }

    fn lines(&self) -> Vec<(NodeId, bool)> {
        self.0.lock().unwrap().clone()
    }

    fn alive(&self) -> usize {
        let lines = self.lines();
        lines.iter().filter(|(_, alive)| *alive).count() - lines.iter().filter(|(_, alive)| !alive).count()
    }
}

/// Asks where it lives.
#[remote(u64)]
struct Where;

/// There is one of it.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Clock {
    node: NodeId,
    diary: Diary,
}

impl Actor for Clock {
    type Context = Context<Self>;
    fn started(&mut self, _: &mut Context<Self>) {
        self.diary.note(self.node, true);
    }
    fn stopped(&mut self, _: &mut Context<Self>) {
        self.diary.note(self.node, false);
    }
}

impl Handler<Where> for Clock {
    type Result = u64;
    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> u64 {
        self.node.as_u64()
    }
}

/// One of several nodes of this process.
fn node(store: &Arc<EmbeddedStore>) -> Builder {
    Node::builder()
        .embedded_store(Arc::clone(store))
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
}

fn store() -> Arc<EmbeddedStore> {
    Arc::new(EmbeddedStore::default())
}

fn shards(count: u16) -> ShardCount {
    ShardCount::new(count).unwrap()
}

/// The seed's example: a hundred shards, five minutes, one address for all entities.
///
/// Proves: R277, R278, R279, R280, R281, R289, C47
#[actix::test]
async fn envelopes_reach_the_entities_that_they_name() {
    let sharding = Sharding::new(Counter::made).shards(shards(100)).passivate_after(Millis(300_000));
    let node = node(&store()).shard(sharding).start().await.unwrap();
    let region = node.region::<Counter>();
    for round in 1..=3 {
        for entity in 0..150_u64 {
            let envelope = ShardEnvelope::new(format!("entity-{entity}"), Add(entity));
            let (sum, _) = region.send(envelope).await.unwrap().unwrap();
            assert_eq!(sum, round * entity, "entity {entity}");
        }
    }
    assert_eq!(node.actor::<Counter>("entity-7").send(Add(0)).await.unwrap().0, 21, "the same actor");
    let refused = region.send(ShardEnvelope::new("", Add(1))).await.unwrap();
    assert!(matches!(refused, Err(CallError::InvalidId { .. })), "{refused:?}");
    node.stop().await.unwrap();
}

/// Proves: R282, R288, R293, R294
#[actix::test]
async fn a_region_reaches_entities_wherever_they_live() {
    let store = store();
    let first = node(&store).shard(Sharding::new(Counter::made)).start().await.unwrap();
    let second = node(&store).shard(Sharding::new(Counter::made)).start().await.unwrap();
    eventually("both take part", || {
        first.members().iter().filter(|member| member.status == MemberStatus::Up).count() == 2
    })
    .await;
    let both = [first.id().as_u64(), second.id().as_u64()];
    for (round, node) in (1..).zip([&first, &second]) {
        let (region, mut homes) = (node.region::<Counter>(), BTreeSet::new());
        for entity in 0..64 {
            let envelope = ShardEnvelope::new(format!("entity-{entity}"), Add(1));
            let (sum, home) = region.send(envelope).await.unwrap().unwrap();
            assert_eq!(sum, round, "entity {entity} is the same through the region of either node");
            homes.insert(home);
        }
        assert_eq!(homes, both.into(), "here and there");
    }
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

/// Proves: R283
#[actix::test]
async fn the_leader_keeps_the_shards_in_balance_and_another_node_after_it_has_gone() {
    let store = store();
    let coordinator = async || {
        let id = owner_id(&OwnedKey::role("shard-coordinator").unwrap());
        store.get(&id, Read::Linearizable).await.unwrap().and_then(|record| record.tag)
    };
    let is = async |node: &Node| {
        let begun = Instant::now();
        while coordinator().await != Some(node.id().to_string()) {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody keeps the shards in balance");
            actix::clock::sleep(Duration::from_millis(20)).await;
        }
    };
    // Ports are chosen by the system: by address either of the two might lead.
    let hosting = || node(&store).set("membership.leader", "oldest").shard(Sharding::new(Counter::made));
    let first = hosting().start().await.unwrap();
    is(&first).await;
    let second = hosting().start().await.unwrap();
    let up = |node: &Node| node.members().iter().filter(|member| member.status == MemberStatus::Up).count();
    eventually("both take part", || up(&first) == 2 && up(&second) == 2).await;
    assert_eq!((first.leader(), second.leader()), (Some(first.id()), Some(first.id())));
    assert_eq!(coordinator().await, Some(first.id().to_string()), "who has the duty keeps it");
    first.stop().await.unwrap();
    is(&second).await;
    assert_eq!(second.leader(), Some(second.id()));
    second.stop().await.unwrap();
}

/// Envelopes of one sender to one entity are handled in the order in which they were sent.
#[actix::test]
async fn a_region_keeps_the_order_of_envelopes() {
    let node = node(&store()).shard(Sharding::new(Counter::made)).start().await.unwrap();
    let region = node.region::<Counter>();
    let asked: Vec<_> = (0..200).map(|n| region.send(ShardEnvelope::new("one", Add(n)))).collect();
    let answers = futures_util::future::join_all(asked).await;
    let sums: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap().unwrap().0).collect();
    let expected: Vec<u64> = (0..200).map(|n| n * (n + 1) / 2).collect();
    assert_eq!(sums, expected);
    node.stop().await.unwrap();
}

/// Two nodes that divide a kind differently would both run the same actor: the second one does not start.
#[actix::test]
async fn a_node_that_divides_a_kind_differently_does_not_start() {
    let store = store();
    let first = node(&store).shard(Sharding::new(Counter::made).shards(shards(100))).start().await.unwrap();
    let refused = node(&store).shard(Sharding::new(Counter::made)).start().await.unwrap_err();
    let Error::Start(StartError::Layout { kind, ours, theirs }) = refused else { panic!("{refused}") };
    assert_eq!((kind.as_str(), ours), ("Counter", KindLayout::default()));
    assert_eq!(theirs, KindLayout::sharded(shards(100)));
    let refused = node(&store).remote_actor::<Counter>().start().await.unwrap_err();
    assert!(matches!(refused, Error::Start(StartError::Layout { .. })), "senders count, too: {refused}");
    let told = node(&store).set("actors.kinds.Counter.shards", "100").remote_actor::<Counter>();
    let told = told.start().await.unwrap();
    assert_eq!(told.actor::<Counter>("a").send(Add(1)).await.unwrap(), (1, first.id().as_u64()));
    told.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[test]
fn numbers_of_shards_that_no_kind_can_have_are_refused_by_name() {
    for bad in ["0", "16385", "many"] {
        let variables: [(&str, &str); 0] = [];
        let loader = Loader::new().directory("/nowhere").environment(variables);
        let refused = loader.set("actors.kinds.Counter.shards", bad).load().unwrap_err().to_string();
        assert!(refused.contains("actors.kinds.Counter.shards"), "{refused}");
        assert!(refused.contains("a whole number from 1 to 16384"), "{refused}");
    }
}

/// A kind lives on nodes with one of its roles; others send to it.
#[actix::test]
async fn a_kind_lives_only_on_nodes_with_one_of_its_roles() {
    let store = store();
    let banking = || Sharding::new(Counter::made).roles(["bank", "vault"]);
    let teller = node(&store).set("node.roles", "teller").shard(banking()).start().await.unwrap();
    let bank = node(&store).set("node.roles", "vault").shard(banking()).start().await.unwrap();
    let within = CallOptions::new().timeout(Duration::from_secs(20));
    for key in 0..40 {
        let account = teller.actor::<Counter>(format!("account-{key}"));
        let (_, home) = account.send_with(Add(1), within).await.unwrap();
        assert_eq!(home, bank.id().as_u64(), "account {key}");
    }
    bank.stop().await.unwrap();
    let nobody = CallOptions::new().timeout(Duration::from_millis(300));
    let failed = teller.actor::<Counter>("account-0").send_with(Add(1), nobody).await.unwrap_err();
    assert_eq!(
        failed,
        CallError::Timeout { started: false },
        "rather nowhere than on a node without the role"
    );
    teller.stop().await.unwrap();
}

/// It lives without being asked, once, and again elsewhere when its node has gone.
#[actix::test]
async fn a_cluster_has_one_of_a_singleton() {
    let (store, diary) = (store(), Diary::default());
    let hosting = || {
        let diary = diary.clone();
        node(&store).singleton_with(move |_, node| Clock { node: node.id(), diary: diary.clone() })
    };
    let first = hosting().start().await.unwrap();
    eventually("it lives", || diary.alive() == 1).await;
    let second = hosting().start().await.unwrap();
    let outside = node(&store).remote_singleton::<Clock>().start().await.unwrap();
    for node in [&first, &second, &outside] {
        assert_eq!(node.singleton::<Clock>().send(Where).await.unwrap(), first.id().as_u64());
    }
    assert_eq!(diary.lines(), [(first.id(), true)]);
    let (gone, heir) = (first.id(), second.id());
    first.stop().await.unwrap();
    eventually("it lives elsewhere", || diary.alive() == 1).await;
    assert_eq!(diary.lines(), [(gone, true), (gone, false), (heir, true)]);
    assert_eq!(outside.singleton::<Clock>().send(Where).await.unwrap(), heir.as_u64());
    outside.stop().await.unwrap();
    second.stop().await.unwrap();
}
