//! How messages are encoded between nodes, seen at the bytes that they send.
#![cfg(feature = "tcp")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;
#[path = "support/tap.rs"]
mod tap;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archipelago::embedded::EmbeddedStore;
use archipelago::identity::ActorPath;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use serde::{Deserialize, Serialize};
use support::eventually;
use tap::{Sent, Tap};

/// Orders something; every piece costs ten.
#[remote(Receipt, codec = "json")]
struct Order {
    item: String,
    count: u64,
}

/// The same in the codec of messages that say nothing.
#[remote(Receipt)]
struct Compact {
    item: String,
    count: u64,
}

/// JSON has no form for it: the keys of its objects are strings.
#[remote(usize, codec = "json")]
struct Unwritable(BTreeMap<(u8, u8), u8>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    item: String,
    total: u64,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Order, Compact, Unwritable))]
struct Shop;

impl Actor for Shop {
    type Context = Context<Self>;
}

impl Handler<Order> for Shop {
    type Result = MessageResult<Order>;
    fn handle(&mut self, Order { item, count }: Order, _: &mut Context<Self>) -> MessageResult<Order> {
        MessageResult(Receipt { item, total: count * 10 })
    }
}

impl Handler<Compact> for Shop {
    type Result = MessageResult<Compact>;
    fn handle(&mut self, Compact { item, count }: Compact, _: &mut Context<Self>) -> MessageResult<Compact> {
        MessageResult(Receipt { item, total: count * 10 })
    }
}

impl Handler<Unwritable> for Shop {
    type Result = usize;
    fn handle(&mut self, Unwritable(map): Unwritable, _: &mut Context<Self>) -> usize {
        map.len()
    }
}

fn order(item: &str) -> Order {
    Order { item: item.to_owned(), count: 7 }
}

fn receipt(item: &str) -> Receipt {
    Receipt { item: item.to_owned(), total: 70 }
}

/// A node and what it sends.
struct Watched {
    node: Node,
    sent: Sent,
}

/// Starts a node on `store` whose bytes are seen.
async fn watched(store: &Arc<EmbeddedStore>, kinds: impl FnOnce(Builder) -> Builder) -> Watched {
    let sent = Sent::default();
    let transport = TcpTransport::new(TcpSettings::default(), Security::Insecure);
    let builder = Node::builder()
        .transport(Arc::new(Tap { transport, sent: sent.clone() }))
        .set("transport.bind", "127.0.0.1:0")
        .set("node.data_arbiters", "1")
        .embedded_store(Arc::clone(store));
    Watched { node: kinds(builder).start().await.unwrap(), sent }
}

/// Two nodes that have found each other.
async fn two(
    ours: impl FnOnce(Builder) -> Builder,
    theirs: impl FnOnce(Builder) -> Builder,
) -> (Watched, Watched) {
    let store = Arc::new(EmbeddedStore::default());
    let (here, there) = (watched(&store, ours).await, watched(&store, theirs).await);
    let up = |node: &Node| node.members().iter().filter(|member| member.status == MemberStatus::Up).count();
    eventually("the nodes have found each other", || [&here, &there].iter().all(|at| up(&at.node) == 2))
        .await;
    (here, there)
}

/// The shops are on the second node; the first one sends.
async fn shop() -> (Watched, Watched) {
    two(|ours| ours.remote_actor::<Shop>(), |theirs| theirs.actor::<Shop>()).await
}

async fn stop((here, there): (Watched, Watched)) {
    here.node.stop().await.unwrap();
    there.node.stop().await.unwrap();
}

fn patient() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(20))
}

/// Proves: C15, R104, R109
#[actix::test]
async fn a_message_that_names_json_travels_as_json_and_so_does_its_reply() {
    let (here, there) = shop().await;
    let shop = here.node.actor::<Shop>("s");
    assert_eq!(shop.send_with(order("asked for"), patient()).await, Ok(receipt("asked for")));
    assert!(here.sent.contains(br#"{"item":"asked for","count":7}"#));
    assert!(there.sent.contains(br#"{"item":"asked for","total":70}"#));
    shop.tell(order("told")).unwrap();
    eventually("the tell is sent", || here.sent.contains(br#"{"item":"told","count":7}"#)).await;
    stop((here, there)).await;
}

/// Proves: C15
#[actix::test]
async fn a_message_that_names_no_codec_travels_as_postcard() {
    let (here, there) = shop().await;
    let compact = Compact { item: "pear".to_owned(), count: 7 };
    let reply = here.node.actor::<Shop>("s").send_with(compact, patient()).await;
    assert_eq!(reply, Ok(receipt("pear")));
    assert!(here.sent.contains(b"\x04pear\x07"), "a length, the text and the number");
    assert!(there.sent.contains(b"\x04pear\x46"));
    stop((here, there)).await;
}

/// Proves: C15
#[actix::test]
async fn a_named_actor_is_sent_json_as_well() {
    let (here, there) = shop().await;
    there.node.register("/shop", Shop.start()).unwrap();
    let path = ActorPath::remote("default", there.node.address(), "/shop").unwrap();
    let shop = here.node.resolve::<Shop>(&path).unwrap();
    assert_eq!(shop.send_with(order("by name"), patient()).await, Ok(receipt("by name")));
    assert!(here.sent.contains(br#"{"item":"by name","count":7}"#));
    assert!(there.sent.contains(br#"{"item":"by name","total":70}"#));
    stop((here, there)).await;
}

/// Proves: C15
#[actix::test]
async fn a_message_that_its_codec_cannot_write_fails_only_on_its_way_to_another_node() {
    let (here, there) = shop().await;
    let unwritable = || Unwritable(BTreeMap::from([((1, 2), 3)]));
    let refused = here.node.actor::<Shop>("s").send_with(unwritable(), patient()).await.unwrap_err();
    assert!(matches!(refused, CallError::Codec { started: false, .. }), "{refused}");
    assert!(refused.to_string().contains("json"), "{refused}");
    let local = there.node.actor::<Shop>("s").send_with(unwritable(), patient()).await;
    assert_eq!(local, Ok(1), "nothing is encoded within a node");
    stop((here, there)).await;
}
