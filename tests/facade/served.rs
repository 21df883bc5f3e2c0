//! One node serves its store, another joins it: together they are a cluster without anything installed.
#![expect(clippy::disallowed_methods, reason = "a test waits in real time")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use archipelago::identity::NodeId;
use archipelago::membership::{LeaderProvider, Member, Sides, SplitBrain};
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions, Event, Notice};

use crate::support::{free_port, on_loopback};

#[remote(u64)]
struct Add(u64);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add))]
struct Counter(u64);

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Add> for Counter {
    type Result = u64;
    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> u64 {
        self.0 += amount;
        self.0
    }
}

fn node(bind: &str) -> Builder {
    on_loopback(bind).set("session.ttl", "3s").set("session.heartbeat", "1s")
}

#[actix::test]
async fn a_node_that_joins_a_served_store_finds_the_actors_of_the_other() {
    let address = format!("127.0.0.1:{}", free_port());
    let serving = node(&address).set("backend.embedded.serve", "true").actor::<Counter>();
    let serving = serving.start().await.unwrap();
    let joining = node("127.0.0.1:0").set("backend.embedded.join", &address).actor::<Counter>();
    let joining = joining.start().await.unwrap();
    let patient = CallOptions::new().timeout(Duration::from_secs(10));
    assert_eq!(joining.actor::<Counter>("a").send_with(Add(1), patient).await, Ok(1));
    assert_eq!(serving.actor::<Counter>("a").send_with(Add(2), patient).await, Ok(3));
    joining.stop().await.unwrap();
    serving.stop().await.unwrap();
}

/// The machine chooses where it listens; whoever joins is told so by the node itself.
#[actix::test]
async fn a_store_is_served_at_a_port_that_the_machine_has_chosen() {
    let serving = node("127.0.0.1:0").set("backend.embedded.serve", "true").actor::<Counter>();
    let serving = serving.start().await.unwrap();
    let address = serving.address().to_string();
    let joining = node("127.0.0.1:0").set("backend.embedded.join", &address).actor::<Counter>();
    let joining = joining.start().await.unwrap();
    joining.stop().await.unwrap();
    serving.stop().await.unwrap();
}

#[actix::test]
async fn a_node_waits_for_the_store_that_it_joins() {
    let address = format!("127.0.0.1:{}", free_port());
    let joining = node("127.0.0.1:0").set("backend.embedded.join", &address).actor::<Counter>();
    let serving = node(&address).set("backend.embedded.serve", "true").actor::<Counter>();
    let later = async {
        // Until then nobody listens, and the other node asks in vain.
        actix::clock::sleep(Duration::from_millis(500)).await;
        serving.start().await
    };
    let (joining, serving) = futures_util::future::join(joining.start(), later).await;
    joining.unwrap().stop().await.unwrap();
    serving.unwrap().stop().await.unwrap();
}

#[actix::test]
async fn a_node_that_finds_no_store_says_where_it_looked_for_one_and_why_that_was_in_vain() {
    let serving = node("127.0.0.1:0").set("backend.embedded.serve", "true").actor::<Counter>();
    let serving = serving.start().await.unwrap();
    let alias = format!("localhost:{}", serving.address().port());
    let nobody = format!("127.0.0.1:{}", free_port());
    let reasons = [(alias, "our store is"), (nobody.clone(), nobody.as_str())];
    for (address, reason) in &reasons {
        let joining = node("127.0.0.1:0").set("backend.embedded.join", address).actor::<Counter>();
        let error = joining.start().await.unwrap_err().to_string();
        assert!(error.contains("OpenFailed") && error.contains(reason), "{error}");
    }
    serving.stop().await.unwrap();
}

/// Leads, and notes that it was asked to say so.
#[derive(Clone, Debug, Default)]
struct Asked(Arc<AtomicBool>);

impl LeaderProvider for Asked {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        self.0.store(true, Ordering::SeqCst);
        candidates.map(Member::id).max()
    }
}

impl SplitBrain for Asked {
    fn ours_wins(&self, _: &Sides<'_>) -> bool {
        false
    }
}

#[actix::test]
async fn a_builder_takes_a_leader_and_a_strategy_of_ones_own() {
    let asked = Asked::default();
    let address = format!("127.0.0.1:{}", free_port());
    let own = |builder: Builder| builder.leader(asked.clone()).split_brain(asked.clone()).actor::<Counter>();
    let first = own(node(&address).set("backend.embedded.serve", "true")).start().await.unwrap();
    let second = own(node("127.0.0.1:0").set("backend.embedded.join", &address)).start().await.unwrap();
    let greatest = first.id().max(second.id());
    let agree = || [&first, &second].iter().all(|node| node.leader() == Some(greatest));
    for _ in 0..2_000 {
        if agree() {
            break;
        }
        actix::clock::sleep(Duration::from_millis(10)).await;
    }
    assert!(agree() && asked.0.load(Ordering::SeqCst), "{:?} {:?}", first.leader(), second.leader());
    assert!(format!("{:?}", first.settings().membership).contains("Asked"), "both are plugged in");
    second.stop().await.unwrap();
    first.stop().await.unwrap();
}

#[actix::test]
async fn processes_that_share_no_store_refuse_each_other() {
    let address = format!("127.0.0.1:{}", free_port());
    let alone = node(&address).actor::<Counter>().start().await.unwrap();
    let other = node("127.0.0.1:0").set("cluster.peers", &address).actor::<Counter>().start().await.unwrap();
    let mut events = other.events().subscribe();
    let reason = loop {
        if let Some(Notice::Event(Event::PeerRefused { reason, .. })) = events.next().await {
            break reason;
        }
    };
    assert!(reason.contains("the embedded backend cannot span processes"), "{reason}");
    other.stop().await.unwrap();
    alone.stop().await.unwrap();
}
