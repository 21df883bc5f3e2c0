//! How messages are encoded between nodes, seen at the bytes that they send.
#![cfg(feature = "tcp")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support;
#[path = "support/tap.rs"]
mod tap;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use archipelago::codec::{CodecError, CodecId, PayloadCodec, Postcard};
use archipelago::embedded::EmbeddedStore;
use archipelago::identity::ActorPath;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, CallOptions, Codec, DeadLetter, Event, Notice, Subscription};
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use serde::de::DeserializeOwned;
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

/// The same in a codec of our own.
#[remote(Receipt, name = "codecs.Veiled", codec = Masked)]
struct Veiled {
    item: String,
    count: u64,
}

/// Postcard that nobody can read at a glance, behind a mark.
struct Masked;

impl PayloadCodec for Masked {
    const ID: CodecId = CodecId(200);

    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        let plain = Postcard::encode(value)?;
        Ok(MARK.iter().copied().chain(plain.iter().map(|byte| byte ^ MASK)).collect())
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        let unmarked = bytes.strip_prefix(MARK);
        let masked = unmarked.ok_or_else(|| CodecError::Decode {
            codec: Self::ID,
            reason: "the mark is missing".to_owned(),
        })?;
        Postcard::decode(&masked.iter().map(|byte| byte ^ MASK).collect::<Vec<_>>())
    }
}

const MARK: &[u8] = b"masked:";
const MASK: u8 = 0x5a;

/// JSON has no form for it: the keys of its objects are strings.
#[remote(usize, codec = "json")]
struct Unwritable(BTreeMap<(u8, u8), u8>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Receipt {
    item: String,
    total: u64,
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Order, Compact, Veiled, Unwritable))]
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

impl Handler<Veiled> for Shop {
    type Result = MessageResult<Veiled>;
    fn handle(&mut self, Veiled { item, count }: Veiled, _: &mut Context<Self>) -> MessageResult<Veiled> {
        MessageResult(Receipt { item, total: count * 10 })
    }
}

/// A shop of before the codec was written.
mod older {
    use super::*;

    #[remote(Receipt, name = "codecs.Veiled")]
    pub(super) struct Veiled {
        item: String,
        count: u64,
    }

    #[derive(Default, VirtualActor)]
    #[virtual_actor(handles(Veiled))]
    pub(super) struct Shop;

    impl Actor for Shop {
        type Context = Context<Self>;
    }

    impl Handler<Veiled> for Shop {
        type Result = MessageResult<Veiled>;
        fn handle(&mut self, Veiled { item, count }: Veiled, _: &mut Context<Self>) -> MessageResult<Veiled> {
            MessageResult(Receipt { item, total: count * 10 })
        }
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

fn veiled(item: &str) -> Veiled {
    Veiled { item: item.to_owned(), count: 7 }
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

/// Proves: R103, R480, C15
#[actix::test]
async fn a_codec_of_ones_own_writes_and_reads_messages_and_replies() {
    let (here, there) = shop().await;
    let shop = here.node.actor::<Shop>("s");
    assert_eq!(shop.send_with(veiled("asked for"), patient()).await, Ok(receipt("asked for")));
    assert!(here.sent.contains(&Masked::encode(&veiled("asked for")).unwrap()));
    assert!(there.sent.contains(&Masked::encode(&receipt("asked for")).unwrap()));
    shop.tell(veiled("told")).unwrap();
    let told = Masked::encode(&veiled("told")).unwrap();
    eventually("the tell is sent", || here.sent.contains(&told)).await;
    stop((here, there)).await;
}

/// Proves: R103
#[actix::test]
async fn a_codec_of_ones_own_serves_large_messages_and_named_actors() {
    let (here, there) = shop().await;
    let large = "x".repeat(3 << 20);
    let reply = here.node.actor::<Shop>("s").send_with(veiled(&large), patient()).await;
    assert_eq!(reply, Ok(receipt(&large)), "larger than a frame, both ways");
    there.node.register("/shop", Shop.start()).unwrap();
    let path = ActorPath::remote("default", there.node.address(), "/shop").unwrap();
    let named = here.node.resolve::<Shop>(&path).unwrap();
    for item in ["by name", &large] {
        assert_eq!(named.send_with(veiled(item), patient()).await, Ok(receipt(item)));
    }
    assert!(there.sent.contains(&Masked::encode(&receipt("by name")).unwrap()));
    stop((here, there)).await;
}

/// Proves: R103, C15
#[actix::test]
async fn a_message_with_its_own_codec_is_still_taken_as_json_from_who_does_not_know_its_type() {
    let (here, there) = shop().await;
    let shop = here.node.actor_ref("Shop", "s");
    let json = r#"{"item":"by hand","count":7}"#;
    let reply = shop.send_encoded_with("codecs.Veiled", Codec::Json, json, patient()).await.unwrap();
    assert_eq!(&reply[..], br#"{"item":"by hand","total":70}"#);
    let masked = Masked::encode(&veiled("by hand")).unwrap();
    for node in [&here.node, &there.node] {
        let shop = node.actor_ref("Shop", "s");
        let reply = shop.send_encoded_with("codecs.Veiled", Masked::ID, masked.clone(), patient()).await;
        assert_eq!(Masked::decode(&reply.unwrap()), Ok(receipt("by hand")));
    }
    stop((here, there)).await;
}

#[actix::test]
async fn bytes_that_a_codec_of_ones_own_cannot_read_are_a_typed_error() {
    let (here, there) = shop().await;
    let shop = here.node.actor_ref("Shop", "s");
    let mut longer = Masked::encode(&veiled("longer")).unwrap();
    longer.push(0);
    let malformed = [(b"no mark".to_vec(), "mark"), (b"masked:?".to_vec(), "read"), (longer, "more bytes")];
    for (bytes, why) in malformed {
        let refused =
            shop.send_encoded_with("codecs.Veiled", Masked::ID, bytes, patient()).await.unwrap_err();
        assert!(matches!(refused, CallError::Codec { started: false, .. }), "{refused}");
        assert!(refused.to_string().contains(why), "{refused}");
    }
    stop((here, there)).await;
}

async fn next_dead_letter(events: &mut Subscription) -> DeadLetter {
    loop {
        match events.next().await {
            Some(Notice::Event(Event::DeadLetter(letter))) => return letter,
            Some(_) => {}
            None => panic!("the node is gone"),
        }
    }
}

/// Proves: R103
#[actix::test]
async fn a_peer_that_does_not_know_a_codec_says_so_and_counts_it() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    let unknown = || {
        let all = snapshotter.snapshot().into_vec();
        let of = |(key, _, _, value): &(metrics_util::CompositeKey, _, _, DebugValue)| {
            let ours = key.key().name() == "archipelago_unknown_codecs_total";
            if let (true, DebugValue::Counter(count)) = (ours, value) { *count } else { 0 }
        };
        all.iter().map(of).sum::<u64>()
    };
    let (here, there) = two(|ours| ours.remote_actor::<Shop>(), |theirs| theirs.actor::<older::Shop>()).await;
    let mut events = there.node.events().subscribe();
    let shop = here.node.actor::<Shop>("s");
    let refused = shop.send_with(veiled("asked for"), patient()).await.unwrap_err();
    assert!(matches!(refused, CallError::Codec { started: false, .. }), "{refused}");
    assert!(refused.to_string().contains("unknown codec 200"), "{refused}");
    assert_eq!(unknown(), 1);
    shop.tell(veiled("told")).unwrap();
    let lost = next_dead_letter(&mut events).await;
    assert_eq!((&*lost.message, &lost.reason), ("codecs.Veiled", &refused));
    assert_eq!(unknown(), 1, "and no more since");
    stop((here, there)).await;
}
