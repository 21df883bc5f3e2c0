//! Several nodes of one process that share a store, talk over TCP and host the same kind.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use actix::MessageResult;
use archipelago::prelude::*;
use archipelago_embedded::EmbeddedStore;
use archipelago_process_tests::{node, settings};
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::placement::Local;
use archipelago_runtime::{Event, Node, NodeBuilder, NodeSettings, Notice};
use futures_util::future::join_all;

/// Tells where it lives, and how often it was asked.
#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Resident {
    node: u64,
    asked: u64,
}

#[remote((u64, u64))]
struct Where;

impl Actor for Resident {
    type Context = Context<Self>;
}

impl Handler<Where> for Resident {
    type Result = MessageResult<Where>;

    fn handle(&mut self, _: Where, _: &mut Context<Self>) -> Self::Result {
        self.asked += 1;
        MessageResult((self.node, self.asked))
    }
}

fn host(store: &Arc<EmbeddedStore>) -> NodeBuilder {
    node(store).actor_with(|_, node| Resident { node: node.id().as_u64(), asked: 0 })
}

async fn start(store: &Arc<EmbeddedStore>, change: impl FnOnce(&mut NodeSettings)) -> Node {
    let mut settings = settings();
    change(&mut settings);
    host(store).settings(settings).start().await.unwrap()
}

async fn three(store: &Arc<EmbeddedStore>) -> [Node; 3] {
    let nodes = [start(store, |_| {}).await, start(store, |_| {}).await, start(store, |_| {}).await];
    for node in &nodes {
        knows(node, 3).await;
    }
    nodes
}

/// Waits until `node` knows so many members that take part.
async fn knows(node: &Node, members: usize) {
    for _ in 0..2_000 {
        let known = node.members();
        if known.len() == members && known.iter().all(|member| member.status == MemberStatus::Up) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{members} members are not up: {:?}", node.members());
}

async fn ask(node: &Node, key: usize) -> (u64, u64) {
    node.actor::<Resident>(key.to_string()).send(Where).await.unwrap()
}

/// Proves: R39, R40, R231, R232, R237, R240
#[actix::test]
async fn actors_of_one_kind_are_spread_and_everybody_finds_the_same_one() {
    let store = Arc::new(EmbeddedStore::default());
    let nodes = three(&store).await;
    let mut share = BTreeMap::<u64, usize>::new();
    for key in 0..300 {
        let mut homes = BTreeSet::new();
        for (turn, node) in nodes.iter().enumerate() {
            let (home, asked) = ask(node, key).await;
            assert_eq!(asked, turn as u64 + 1, "one activation answers everybody");
            homes.insert(home);
        }
        assert_eq!(homes.len(), 1);
        *share.entry(homes.pop_first().unwrap()).or_default() += 1;
    }
    assert!(share.len() == 3 && share.values().all(|actors| *actors > 40), "{share:?}");
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Proves: R235, R238, R241
#[actix::test]
async fn first_messages_from_everywhere_at_once_meet_in_one_activation() {
    let store = Arc::new(EmbeddedStore::default());
    let nodes = three(&store).await;
    for key in 0..64 {
        let answers = join_all(nodes.iter().flat_map(|node| [ask(node, key), ask(node, key)])).await;
        let homes: BTreeSet<u64> = answers.iter().map(|(home, _)| *home).collect();
        let turns: BTreeSet<u64> = answers.iter().map(|(_, turn)| *turn).collect();
        assert_eq!((homes.len(), turns), (1, (1..=6).collect()), "key {key}");
    }
    for node in nodes {
        node.stop().await.unwrap();
    }
}

#[actix::test]
async fn a_kind_may_prefer_the_node_that_asks_first() {
    let store = Arc::new(EmbeddedStore::default());
    let local = |settings: &mut NodeSettings| {
        settings.placement_by_kind.insert("Resident".to_owned(), Arc::new(Local));
    };
    let nodes = [start(&store, local).await, start(&store, local).await];
    for node in &nodes {
        knows(node, 2).await;
    }
    let mut owners = BTreeMap::new();
    for key in 0..100 {
        let asker = &nodes[key % 2];
        let id: ActorId = format!("default::Resident/{key}").parse().unwrap();
        // Whoever asked first for the shard of an actor has all of it.
        let owner = *owners.entry(id.stable_hash() % 256).or_insert(asker.id().as_u64());
        assert_eq!(ask(asker, key).await.0, owner);
        assert_eq!(ask(&nodes[(key + 1) % 2], key).await.0, owner);
    }
    assert!(owners.len() > 50 && owners.values().collect::<BTreeSet<_>>().len() == 2);
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Proves: R469
#[actix::test]
async fn a_node_that_leaves_under_load_fails_no_call() {
    let store = Arc::new(EmbeddedStore::default());
    let [stays, also, leaves] = three(&store).await;
    let (over, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let callers: Vec<_> = (0..16)
        .map(|caller: usize| {
            let node = if caller.is_multiple_of(2) { stays.clone() } else { also.clone() };
            let (over, done) = (Arc::clone(&over), Arc::clone(&done));
            actix::spawn(async move {
                let mut key = caller;
                while !over.load(Ordering::Relaxed) {
                    key = (key * 31 + 7) % 500;
                    node.actor::<Resident>(key.to_string()).send(Where).await.unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let gone = leaves.id().as_u64();
    leaves.stop().await.unwrap();
    let at_leave = done.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(500)).await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("no call failed");
    }
    assert!(
        at_leave > 100 && done.load(Ordering::Relaxed) > at_leave + 100,
        "there was load before and after"
    );
    for key in 0..500 {
        assert_ne!(ask(&stays, key).await.0, gone);
    }
    for node in [stays, also] {
        node.stop().await.unwrap();
    }
}

#[actix::test]
async fn members_come_and_go_as_events() {
    let store = Arc::new(EmbeddedStore::default());
    let stays = start(&store, |_| {}).await;
    let mut events = stays.events().subscribe();
    let guest = start(&store, |settings| settings.name = "guest".to_owned()).await;
    let id = guest.id();
    next(&mut events, |event| matches!(event, Event::MemberJoined { member } if member.name == "guest"))
        .await;
    guest.stop().await.unwrap();
    next(&mut events, |event| matches!(event, Event::MemberGone { member } if member.id == id)).await;
    stays.stop().await.unwrap();
}

async fn next(events: &mut archipelago_runtime::Subscription, wanted: impl Fn(&Event) -> bool) {
    let found = async {
        loop {
            match events.next().await {
                Some(Notice::Event(event)) if wanted(&event) => return,
                Some(_) => {}
                None => panic!("the node ended"),
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(10), found).await.expect("the event comes");
}
