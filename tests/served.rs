//! One node serves its store, another joins it: together they are a cluster without anything installed.

use std::net::TcpListener;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{Builder, CallOptions, Event, Notice};

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

/// A free port, as far as that can be known.
fn free_port() -> u16 {
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    bound.expect("loopback has free ports").port()
}

fn node(bind: &str) -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", bind)
        .set("node.data_arbiters", "1")
        .set("session.ttl", "3s")
        .set("session.heartbeat", "1s")
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
