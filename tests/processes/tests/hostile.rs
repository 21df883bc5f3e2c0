//! A peer of another kind, over plain TCP: one that speaks the protocol and wants to use up the node's memory, and one that
//! speaks another version of it.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test that cannot go on panics, and speaks to ports by hand"
)]

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_embedded::EmbeddedStore;
use archipelago_memory::{MemoryNetwork, NetworkSettings, TokioTimer};
use archipelago_process_tests::{
    CONTROL, DATA, Note, Scribe, Stranger, chunk, data_port, event, greet, greet_in_words, hello, knock,
    node, node_over, settings,
};
use archipelago_protocol::handoff::HandOffOutcome;
use archipelago_protocol::identity::{ActorId, CorrelationId, Generation, NodeAddress};
use archipelago_protocol::link::{Asked, Frame, FrameError, Head, KeyText, ShardRef, Told, write_frame};
use archipelago_protocol::message::{CallChain, Codec, MessageFlags};
use archipelago_protocol::peer::{AttemptId, Handshake, Hello, PeerKind, Refusal, RefusalReason, Versions};
use archipelago_runtime::{Event, Node};
use bytes::BytesMut;
use serde::{Deserialize, Serialize, Serializer, ser::Error};

const MIB: usize = 1 << 20;

/// Sends frames of one kind for as long as the node takes them; how many bytes were taken, and what ended it.
fn flood(control: u16, most: usize, frame: fn(u32) -> Frame<'static>) -> (usize, String) {
    let (mut socket, words) = greet(data_port(control), hello(8, "archipelago", 1, DATA), 4_096);
    assert!(matches!(words, Handshake::Welcome(_)), "{words:?}");
    socket.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    let (mut taken, mut number) = (0, 0);
    while taken < most {
        let mut lane = BytesMut::new();
        while lane.len() < MIB / 4 {
            number += 1;
            let encode = |out: &mut BytesMut| {
                frame(number).encode(out);
                Ok::<_, FrameError>(())
            };
            write_frame(&mut lane, MIB, encode).unwrap();
        }
        if let Err(error) = socket.write_all(&chunk(&lane)) {
            return (taken, error.to_string());
        }
        taken += lane.len();
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        if let Some(reason) = farewell(&mut socket) {
            return (taken, reason);
        }
    }
    (taken, "it was let go on".to_owned())
}

/// What the node said at last, if it has closed the connection.
fn farewell(socket: &mut TcpStream) -> Option<String> {
    let (mut said, mut buffer) = (Vec::new(), [0; 65_536]);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return Some(String::from_utf8_lossy(&said).into_owned()),
            Ok(count) => said = buffer[..count].to_vec(),
            Err(_) => return None,
        }
    }
}

/// Does it on another thread, so that the node's own go on.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = futures_channel::oneshot::channel();
    std::thread::spawn(move || done.send(work()).ok());
    result.await.unwrap()
}

fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4_096
}

async fn host() -> Node {
    let mut narrow = settings();
    narrow.remote.answer_bytes = 2 * MIB;
    node(&Arc::new(EmbeddedStore::default())).settings(narrow).actor::<Scribe>().start().await.unwrap()
}

/// Still there for others.
async fn serves(node: Node) {
    assert_eq!(node.actor::<Scribe>("x").send(Note(1)).await, Ok(1));
    node.stop().await.unwrap();
}

#[actix::test]
async fn nothing_is_kept_of_a_peer_that_is_refused() {
    let node = host().await;
    let port = node.address().port();
    let greet_often = move |numbers: std::ops::Range<u64>| {
        for n in numbers {
            let (_, words) = greet(port, hello(n, "another", 4_000, CONTROL), 1 << 20);
            assert!(matches!(words, Handshake::Refusal(_)), "{words:?}");
        }
        memory()
    };
    let before = away(move || greet_often(0..30)).await;
    let after = away(move || greet_often(30..180)).await;
    // Each of them would leave more than half a megabyte.
    assert!(after < before + 30 * MIB, "{} MiB, then {} MiB", before / MIB, after / MIB);
    serves(node).await;
}

#[actix::test]
async fn a_peer_that_reads_no_answers_is_let_go() {
    let node = host().await;
    let port = node.address().port();
    let (taken, reason) = away(move || flood(port, 64 * MIB, |_| Frame::Bye)).await;
    assert!(reason.contains("answers are not read"), "after {taken} bytes: {reason}");
    serves(node).await;
}

#[actix::test]
async fn of_those_who_knock_and_say_nothing_only_so_many_are_listened_to() {
    let node = host().await;
    let port = node.address().port();
    let (words, silent) = away(move || {
        let mut silent: Vec<_> = (0..257).map(|_| knock(port, 4_096)).collect();
        let last = silent.last_mut().unwrap();
        (farewell(last), silent)
    })
    .await;
    assert!(words.is_some_and(|words| words.contains("too many peers introduce themselves")));
    drop(silent);
    let is_listened_to = move || {
        let mut socket = knock(port, 4_096);
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        farewell(&mut socket).is_none()
    };
    assert!(
        away(move || (0..100).any(|_| is_listened_to())).await,
        "once they have gone there is room again"
    );
    serves(node).await;
}

#[actix::test]
async fn settles_of_unknown_shards_end_the_connection() {
    let node = host().await;
    let port = node.address().port();
    let settle = |n: u32| {
        let shard = ShardRef { kind: 100 + (n >> 16) as u16, number: u64::from(n) };
        Frame::Settle { shard, generation: Generation::new(1) }
    };
    let (taken, reason) = away(move || flood(port, 8 * MIB, settle)).await;
    assert!(reason.contains("no kind has number"), "after {taken} bytes: {reason}");
    serves(node).await;
}

// ---- calls of strangers ----

/// The first call of any peer.
const FIRST: CorrelationId = CorrelationId::new(0, 0, 0);

/// Asks the scribe `key`; the payload is a number below 2^14 where the message has one.
fn ask(stranger: &mut Stranger, call: CorrelationId, key: &str, message: &str, number: Option<u16>) {
    let payload = number.map_or(vec![], |n| vec![n as u8 | 0x80, (n >> 7) as u8]);
    send(stranger, Some(call), ("Scribe", key), message, &payload);
}

/// Sends any message; without a call it is a tell.
fn send(
    stranger: &mut Stranger,
    call: Option<CorrelationId>,
    (kind, key): (&str, &str),
    message: &str,
    payload: &[u8],
) {
    let id: ActorId = format!("default::{kind}/{key}").parse().unwrap();
    let (kind, message) = stranger.numbers(kind, message);
    let head = Head {
        ttl: None,
        flags: MessageFlags::empty(),
        codec: Codec::Postcard.id(),
        shard: ShardRef { kind, number: id.stable_hash() % 256 },
        message,
        generation: Generation::new(0),
        key: KeyText::new(key).unwrap(),
        trace: None,
        chain: CallChain::empty(),
    };
    match call {
        Some(call) => stranger.say(&Frame::Ask(Asked { call, head, payload })),
        None => stranger.say(&Frame::Tell(Told { head, payload })),
    }
}

fn reply(stranger: &mut Stranger, to: CorrelationId) -> Option<()> {
    stranger.hear(|frame| matches!(frame, Frame::Reply { call, .. } if call == to).then_some(()))
}

/// Waits until no lane is left.
async fn until_forgotten(node: &Node) {
    for _ in 0..2_000 {
        if node.lanes().await.items.is_empty() {
            return;
        }
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
    panic!("the node holds on to its lanes");
}

#[actix::test]
async fn a_late_answer_to_a_client_that_has_gone_ends_no_call_of_the_next_one() {
    let node = host().await;
    for key in ["slow", "slower", "idle"] {
        node.actor::<Scribe>(key).send(Note(1)).await.unwrap();
    }
    let port = node.address().port();
    away(move || {
        let mut first = Stranger::client(port, 20);
        ask(&mut first, FIRST, "slow", "Sleep", Some(2_000));
        let second = CorrelationId::new(0, 1, 0);
        ask(&mut first, second, "idle", "Notes", None);
        reply(&mut first, second).expect("what came before has begun");
    })
    .await;
    until_forgotten(&node).await;
    let answered = away(move || {
        let mut next = Stranger::client(port, 21);
        ask(&mut next, FIRST, "slower", "Sleep", Some(4_000));
        reply(&mut next, FIRST)
    });
    assert_eq!(answered.await, Some(()), "its call had the number of the one before");
    serves(node).await;
}

#[actix::test]
async fn a_peer_that_stops_within_a_frame_is_silent_however_much_is_written_to_it() {
    let node = host().await;
    for n in 0..20 {
        node.actor::<Scribe>(&format!("k{n}")).send(Note(1)).await.unwrap();
    }
    let port = node.address().port();
    let _connected = away(move || {
        let mut stranger = Stranger::client(port, 20);
        for n in 0..20_u16 {
            let key = format!("k{n}");
            ask(&mut stranger, CorrelationId::new(0, n.into(), 0), &key, "Sleep", Some(100 * n));
        }
        stranger.say_half();
        for n in 0..20_u16 {
            reply(&mut stranger, CorrelationId::new(0, n.into(), 0)).expect("it is answered");
        }
        stranger
    })
    .await;
    let peer = node.peers().into_iter().find(|peer| peer.client).expect("it is connected");
    assert!(peer.silent_for.unwrap().0 > 1_000, "{peer:?}");
    serves(node).await;
}

// ---- who says that it is somebody else ----

/// Greets from `host` as the stranger whose id is known; the connection lives as long as what comes with the words.
async fn greet_from(network: &MemoryNetwork, host: &str, attempt: u64) -> (Handshake, impl Sized) {
    let own = NodeAddress::new(host, 4_000).unwrap();
    let endpoint = network.host(host).open(&own).await.unwrap();
    let mut connection = endpoint.dial(&NodeAddress::new("here", 4_000).unwrap()).await.unwrap();
    let words = Hello { attempt: AttemptId(attempt), ..hello(8, "archipelago", 1, CONTROL) };
    let mut bytes = Handshake::Hello(words).encode().unwrap();
    poll_fn(|cx| connection.outgoing.poll_send(cx, &mut bytes)).await.unwrap();
    let mut read = BytesMut::new();
    loop {
        if let Some(words) = Handshake::take(&mut read).unwrap() {
            return (words, (endpoint, connection));
        }
        assert_ne!(poll_fn(|cx| connection.incoming.poll_recv(cx, &mut read)).await.unwrap(), 0);
    }
}

#[actix::test]
async fn a_known_node_with_another_certificate_is_refused_with_a_reason_on_both_sides() {
    let secured = NetworkSettings { secured: true, ..NetworkSettings::default() };
    let network = MemoryNetwork::new(secured, 9, Arc::new(TokioTimer::start()));
    let mut bound = settings();
    bound.remote.bind = NodeAddress::new("here", 4_000).unwrap();
    let node = node_over(network.host("here")).settings(bound).actor::<Scribe>().start().await.unwrap();
    let (words, _one) = greet_from(&network, "one", 1).await;
    assert!(matches!(words, Handshake::Welcome(_)), "{words:?}");
    let other = async { greet_from(&network, "other", 2).await.0 };
    let (told, said) = refused(&node, other).await;
    assert_eq!(told.reason, RefusalReason::Identity, "{told}");
    assert!(told.text.contains("another certificate") && said == told.text, "{said}");
    serves(node).await;
}

#[actix::test]
async fn a_client_that_has_the_id_of_a_member_is_refused_with_a_reason_on_both_sides() {
    let node = host().await;
    let port = node.address().port();
    let _member = away(move || greet(port, hello(8, "archipelago", 1, CONTROL), 4_096)).await;
    let as_client = Hello { kind: PeerKind::Client, ..hello(8, "archipelago", 1, DATA) };
    let (told, said) = refused(&node, away(move || greet(data_port(port), as_client, 4_096).1)).await;
    assert_eq!(told.reason, RefusalReason::Identity, "{told}");
    assert!(told.text.contains("no client") && said == told.text, "{said}");
    serves(node).await;
}

// ---- what cannot go back ----

/// Can be read, and not written again.
#[remote(u64)]
struct Brittle(Glass);

#[derive(Deserialize)]
struct Glass(#[expect(dead_code, reason = "only its bytes matter")] u8);

impl Serialize for Glass {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(S::Error::custom("it has broken"))
    }
}

/// Is busy for so many milliseconds.
#[remote(u64)]
struct Busy(u64);

/// As large as its padding.
#[remote(u64)]
struct Bulky(Vec<u8>);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Brittle, Busy, Bulky))]
struct Shelf;

impl Actor for Shelf {
    type Context = Context<Self>;
}

impl Handler<Brittle> for Shelf {
    type Result = u64;
    fn handle(&mut self, _: Brittle, _: &mut Context<Self>) -> u64 {
        1
    }
}

impl Handler<Busy> for Shelf {
    type Result = actix::ResponseFuture<u64>;
    fn handle(&mut self, Busy(millis): Busy, _: &mut Context<Self>) -> Self::Result {
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            millis
        })
    }
}

impl Handler<Bulky> for Shelf {
    type Result = u64;
    fn handle(&mut self, Bulky(padding): Bulky, _: &mut Context<Self>) -> u64 {
        padding.len() as u64
    }
}

/// The shard of the shelf `x` moves to `there`.
async fn moves(here: &Node, there: &Node) {
    let id: ActorId = "default::Shelf/x".parse().unwrap();
    let shard = u32::try_from(id.stable_hash() % 256).unwrap();
    for _ in 0..500 {
        // The other node is known once it has been let in.
        if let Ok(HandOffOutcome::Moved(_)) = here.move_shard("Shelf", shard, there.id()).await {
            return;
        }
        actix::clock::sleep(Duration::from_millis(20)).await;
    }
    panic!("the shard stays");
}

/// Of the messages that wait when their shard moves some cannot be sent back: they are not lost without a word.
#[actix::test]
async fn queued_messages_that_cannot_go_back_end_with_a_typed_error_or_as_dead_letters() {
    let mut narrow = settings();
    (narrow.remote.frame, narrow.sharding.rebalance) = (4 << 10, false);
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).settings(narrow.clone()).actor::<Shelf>().start().await.unwrap();
    for key in ["x", "y"] {
        assert_eq!(here.actor::<Shelf>(key).send(Busy(0)).await, Ok(0), "its shard is served");
    }
    let there = node(&store).settings(narrow).actor::<Shelf>().start().await.unwrap();
    // From here on the two know each other.
    moves(&here, &there).await;
    moves(&here, &here).await;
    let port = here.address().port();
    let shelf = ("Shelf", "x");
    let call = |slot| CorrelationId::new(0, slot, 0);
    let bulk = [vec![0x80 | 0x40, 0x3e], vec![7; 8_000]].concat();
    let mut stranger = away(move || {
        let mut stranger = Stranger::meet(port, 1);
        send(&mut stranger, Some(call(0)), shelf, "Busy", &[0xE8, 0x07]);
        for (slot, message, payload) in [(1, "Brittle", &[1][..]), (2, "Bulky", &bulk[..])] {
            send(&mut stranger, Some(call(slot)), shelf, message, payload);
            send(&mut stranger, None, shelf, message, payload);
        }
        send(&mut stranger, Some(call(3)), ("Shelf", "y"), "Busy", &[0]);
        reply(&mut stranger, call(3)).expect("what came before is queued");
        stranger
    })
    .await;
    let heard = std::thread::spawn(move || {
        let fail = |frame: Frame<'_>| match frame {
            Frame::Fail { call, error } => Some((call, error)),
            _ => None,
        };
        let all: Vec<_> = std::iter::from_fn(|| stranger.hear(fail)).take(2).collect();
        (all, stranger)
    });
    moves(&here, &there).await;
    let (heard, _stranger) = heard.join().unwrap();
    let reasons: Vec<_> = heard
        .iter()
        .map(|(call, error)| match error {
            CallError::Codec { reason, started: false } => (call.slot(), reason.to_string()),
            other => panic!("{call}: {other:?}"),
        })
        .collect();
    assert_eq!(reasons.iter().map(|(slot, _)| *slot).collect::<Vec<_>>(), [1, 2], "{reasons:?}");
    assert!(reasons[0].1.contains("cannot be written"), "{reasons:?}");
    let dead = here.dead_letters();
    let messages: Vec<_> = dead.iter().rev().map(|kept| kept.letter.message.as_str()).collect();
    assert!(messages.len() == 2 && messages[0].ends_with("Brittle"), "{dead:?}");
    assert!(messages[1].ends_with("Bulky"), "{dead:?}");
    there.stop().await.unwrap();
    here.stop().await.unwrap();
}

// ---- other versions ----

/// What a node answers a peer of these versions.
async fn answer_to(node: &Node, oldest: u16, newest: u16) -> Handshake {
    let port = node.address().port();
    let versions = Versions { oldest, newest };
    away(move || {
        let hello = Hello { versions, ..hello(8, "archipelago", 1, DATA) };
        greet(data_port(port), hello, 4_096).1
    })
    .await
}

/// What the node itself says about the last one that it refused.
async fn refused(node: &Node, answer: impl Future<Output = Handshake>) -> (Refusal, String) {
    let mut events = node.events().subscribe();
    let refusal = match answer.await {
        Handshake::Refusal(refusal) => refusal,
        words => panic!("{words:?}"),
    };
    let said = event(&mut events, |event| match event {
        Event::PeerRefused { reason, .. } => Some(reason),
        _ => None,
    });
    (refusal, said.await)
}

#[actix::test]
async fn a_peer_that_speaks_our_version_among_others_is_let_in_with_it() {
    for (oldest, newest) in [(1, 9), (0, 1), (1, 1)] {
        // To one and the same node the second would come as a race with the first.
        let node = host().await;
        let answer = answer_to(&node, oldest, newest).await;
        let Handshake::Welcome(welcome) = answer else { panic!("{oldest} to {newest}: {answer:?}") };
        assert_eq!(welcome.version, 1, "{oldest} to {newest}");
        serves(node).await;
    }
}

#[actix::test]
async fn a_peer_of_newer_or_older_versions_only_is_refused_with_a_reason_on_both_sides() {
    let node = host().await;
    for (oldest, newest) in [(2, 9), (0, 0)] {
        let (told, said) = refused(&node, answer_to(&node, oldest, newest)).await;
        assert_eq!(told.reason, RefusalReason::Version, "{told}");
        for text in [told.text.as_str(), &said] {
            let both = text.contains("1 to 1") && text.contains(&format!("{oldest} to {newest}"));
            assert!(both, "{text}");
        }
    }
    serves(node).await;
}

/// Of what a later version says, only that it is one can be read.
#[actix::test]
async fn a_peer_with_another_handshake_is_refused_with_a_reason_on_both_sides() {
    let node = host().await;
    let port = node.address().port();
    let answer = away(move || {
        let mut words = Handshake::Hello(hello(8, "archipelago", 1, CONTROL)).encode().unwrap().to_vec();
        words[4..6].copy_from_slice(&2_u16.to_le_bytes());
        greet_in_words(port, &words, 4_096).1
    });
    let (told, said) = refused(&node, answer).await;
    assert_eq!(told.reason, RefusalReason::Version, "{told}");
    for text in [told.text.as_str(), &said] {
        assert!(text.contains("handshake format 2") && text.contains("reads format 1"), "{text}");
    }
    serves(node).await;
}
