//! Kinds that are divided by ranges of keys, on several nodes of one process.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::sync::Arc;

use crate::support::counter::{Add, Counter};
use crate::support::eventually;
use archipelago::config::Loader;
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::{ActorKey, NodeId};
use archipelago::prelude::*;
use archipelago::{Builder, Error, Event, KindLayout, Notice, Sharding, StartError};

/// One of several nodes of this process that host counters, divided at "m" at first.
fn node(store: &Arc<EmbeddedStore>) -> Builder {
    let sharding = Sharding::new(Counter::made).ranges([ActorKey::new("m").unwrap()]);
    bare(store).shard(sharding)
}

fn bare(store: &Arc<EmbeddedStore>) -> Builder {
    Node::builder()
        .embedded_store(Arc::clone(store))
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
}

/// How many ranges there are, and on how many nodes.
fn spread(node: &Node) -> (usize, usize) {
    let Some(known) = node.ranges("Counter") else { return (0, 0) };
    let owners: std::collections::BTreeSet<NodeId> =
        known.table.entries().iter().map(|entry| entry.owner.node).collect();
    (known.table.entries().len(), owners.len())
}

async fn add(node: &Node, key: &str) -> (u64, u64) {
    node.actor::<Counter>(key).send(Add(1)).await.unwrap()
}

/// Proves: R330, R331
#[actix::test]
async fn ranges_are_spread_split_moved_and_merged_while_they_are_used() {
    let store = Arc::new(EmbeddedStore::default());
    let [one, two] = [node(&store).start().await.unwrap(), node(&store).start().await.unwrap()];
    eventually("two ranges on two nodes", || spread(&one) == (2, 2) && spread(&two) == (2, 2)).await;
    let owner = |key: &str| one.ranges("Counter").unwrap().table.find(key).owner.node.as_u64();
    for node in [&one, &two] {
        for key in ["alice", "zoe"] {
            assert_eq!(add(node, key).await.1, owner(key), "{key}");
        }
    }
    assert_eq!(add(&one, "alice").await.0, 3, "both nodes have met the same actor");
    let mut events = two.events().subscribe();
    two.split_range("Counter", "g").await.unwrap();
    assert_eq!(add(&two, "alice").await.1, owner("alice"));
    eventually("three ranges", || spread(&one).0 == 3 && spread(&two).0 == 3).await;
    let target = one.ranges("Counter").unwrap().table.find("zoe").owner.node;
    two.move_range("Counter", "kim", target).await.unwrap();
    eventually("the table names the other node", || owner("kim") == target.as_u64()).await;
    assert_eq!(add(&one, "kim").await.1, target.as_u64());
    one.merge_range("Counter", "alice").await.unwrap();
    eventually("two ranges again", || spread(&one).0 == 2 && spread(&two).0 == 2).await;
    for key in ["alice", "kim", "zoe"] {
        assert_eq!(add(&one, key).await.1, add(&two, key).await.1, "{key}");
    }
    let mut changed = false;
    while let Some(Notice::Event(event)) = events.try_next() {
        changed |= matches!(event, Event::RangesChanged { ranges: 3, .. });
    }
    assert!(changed, "whoever listens hears of the split");
    one.stop().await.unwrap();
    two.stop().await.unwrap();
}

/// Proves: R336
#[actix::test]
async fn a_node_that_stops_leaves_its_ranges_to_the_other() {
    let store = Arc::new(EmbeddedStore::default());
    let [one, two] = [node(&store).start().await.unwrap(), node(&store).start().await.unwrap()];
    eventually("two ranges on two nodes", || spread(&two) == (2, 2)).await;
    add(&two, "alice").await;
    add(&two, "zoe").await;
    one.stop().await.unwrap();
    for key in ["alice", "zoe"] {
        assert_eq!(add(&two, key).await.1, two.id().as_u64(), "{key}");
    }
    two.stop().await.unwrap();
}

#[actix::test]
async fn a_kind_is_divided_by_ranges_in_the_configuration_too() {
    let keys =
        [("actors.kinds.Counter.divided", "ranges"), ("actors.kinds.Counter.split_at", r#"["g", "n"]"#)];
    let loader = Loader::new().environment(std::iter::empty::<(String, String)>());
    let loader = keys.into_iter().fold(loader, |loader, (key, value)| loader.set(key, value));
    let settings = loader.load().unwrap();
    let alone = Node::builder().settings(settings).actor_with(Counter::made).start().await.unwrap();
    eventually("three ranges", || spread(&alone) == (3, 1)).await;
    assert_eq!(add(&alone, "kim").await.0, 1);
    alone.stop().await.unwrap();
}

#[actix::test]
async fn a_node_that_divides_the_kind_otherwise_does_not_start() {
    let store = Arc::new(EmbeddedStore::default());
    let one = node(&store).start().await.unwrap();
    let other = bare(&store).actor_with(Counter::made).start().await;
    match other {
        Err(Error::Start(StartError::Layout { theirs, .. })) => assert_eq!(theirs, KindLayout::Range),
        other => panic!("{other:?}"),
    }
    one.stop().await.unwrap();
}
