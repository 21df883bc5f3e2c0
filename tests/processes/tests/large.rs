//! Messages too large for a frame: what becomes of them when something goes wrong on their way.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_embedded::EmbeddedStore;
use archipelago_process_tests::{Echo, LongNote, Note, Notes, Scribe, Stranger, event, node, settings};
use archipelago_protocol::identity::{ActorId, CorrelationId, Generation};
use archipelago_protocol::link::{Asked, Frame, Head, KeyText, Overflow, ShardRef, Told};
use archipelago_protocol::message::{CallChain, Codec, MessageFlags};
use archipelago_runtime::{CallOptions, Event, Node};
use futures_util::future::join_all;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

// ---- actors ----

/// Is written down as soon as the test lets it be decoded.
#[remote(u64)]
struct Gated(Gate);

struct Gate(u64);

impl Serialize for Gate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Gate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        BEGUN.set();
        OPEN.wait();
        Ok(Self(number))
    }
}

/// Something that happens once.
struct Once(Mutex<bool>, Condvar);

impl Once {
    const fn new() -> Self {
        Self(Mutex::new(false), Condvar::new())
    }

    fn set(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let limit = Duration::from_secs(20);
        let waited = self.1.wait_timeout_while(self.0.lock().unwrap(), limit, |done| !*done).unwrap().1;
        assert!(!waited.timed_out(), "it did not happen");
    }
}

static BEGUN: Once = Once::new();
static OPEN: Once = Once::new();

/// As many bytes as it says are the reply.
#[remote(Vec<u8>)]
struct Padding(u64);

/// Large, and slow to encode; the reply is how many milliseconds the call may still take, as its handler sees it.
#[remote(u64)]
struct SlowLeft(Vec<u8>, Slow);

struct Slow;

impl Serialize for Slow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        std::thread::sleep(Duration::from_millis(1_500));
        0_u8.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Slow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u8::deserialize(deserializer).map(|_| Self)
    }
}

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Gated, Note, Notes, Padding, SlowLeft))]
struct Keeper {
    notes: Vec<u64>,
}

impl Actor for Keeper {
    type Context = Context<Self>;
}

impl Handler<Gated> for Keeper {
    type Result = u64;
    fn handle(&mut self, Gated(Gate(note)): Gated, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        note
    }
}

impl Handler<Note> for Keeper {
    type Result = u64;
    fn handle(&mut self, Note(note): Note, _: &mut Context<Self>) -> u64 {
        self.notes.push(note);
        note
    }
}

impl Handler<Notes> for Keeper {
    type Result = Vec<u64>;
    fn handle(&mut self, _: Notes, _: &mut Context<Self>) -> Vec<u64> {
        self.notes.clone()
    }
}

impl Handler<SlowLeft> for Keeper {
    type Result = u64;
    fn handle(&mut self, _: SlowLeft, _: &mut Context<Self>) -> u64 {
        archipelago::remaining().map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Handler<Padding> for Keeper {
    type Result = Vec<u8>;
    fn handle(&mut self, Padding(len): Padding, _: &mut Context<Self>) -> Vec<u8> {
        vec![1; usize::try_from(len).unwrap()]
    }
}

// ---- what the tests need ----

fn within(millis: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_millis(millis))
}

/// Does it on another thread, so that the node's own go on.
async fn away<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = futures_channel::oneshot::channel();
    std::thread::spawn(move || done.send(work()).ok());
    result.await.unwrap()
}

async fn stop(nodes: impl IntoIterator<Item = Node>) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// The shard of the keeper with key `x`.
fn shard_of_x(kind: u16) -> ShardRef {
    let id: ActorId = "default::Keeper/x".parse().unwrap();
    ShardRef { kind, number: id.stable_hash() % 256 }
}

fn head((kind, message): (u16, u16)) -> Head<'static> {
    Head {
        ttl: None,
        flags: MessageFlags::empty(),
        codec: Codec::Postcard.id(),
        shard: shard_of_x(kind),
        message,
        generation: Generation::new(0),
        key: KeyText::new("x").unwrap(),
        trace: None,
        chain: CallChain::empty(),
    }
}

fn told(numbers: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    Told { head: head(numbers), payload }.encode(&mut out);
    out.to_vec()
}

const CALL: CorrelationId = CorrelationId::new(0, 3, 1);

fn asked(numbers: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut out = bytes::BytesMut::new();
    Asked { call: CALL, head: head(numbers), payload }.encode(&mut out);
    out.to_vec()
}

// ---- a lost connection ----

/// What was sent after it has come by the next connection, so that it would come out of order.
#[actix::test]
async fn a_large_message_whose_connection_is_lost_before_it_is_decoded_never_starts() {
    let node = node(&Arc::new(EmbeddedStore::default())).actor::<Keeper>().start().await.unwrap();
    assert_eq!(node.actor::<Keeper>("x").send(Notes).await, Ok(vec![]), "its shard is served");
    let mut events = node.events().subscribe();
    let port = node.address().port();
    away(move || {
        let mut stranger = Stranger::meet(port, 1);
        let frame = told(stranger.numbers("Keeper", "Gated"), &[1]);
        stranger.say(&Frame::LargeHere { transfer: 1, call: None });
        stranger.stream(1, frame.len(), &frame);
        BEGUN.wait();
    })
    .await;
    let answered = away(move || {
        let mut stranger = Stranger::meet(port, 2);
        let (note, notes) = (stranger.numbers("Keeper", "Note"), stranger.numbers("Keeper", "Notes"));
        stranger.say(&Frame::decode(&told(note, &[2])).unwrap());
        stranger.say(&Frame::decode(&asked(notes, &[])).unwrap());
        stranger.hear(|frame| matches!(frame, Frame::Reply { call: CALL, .. }).then_some(()))
    })
    .await;
    assert_eq!(answered, Some(()), "the next connection is in use");
    OPEN.set();
    let lost = event(&mut events, |event| match event {
        Event::DeadLetter(letter) => Some(letter),
        _ => None,
    });
    assert!(lost.await.message.ends_with("Gated"));
    assert_eq!(node.actor::<Keeper>("x").send(Notes).await, Ok(vec![2]));
    stop([node]).await;
}

// ---- what the receiver cannot use ----

/// What a node says to a stranger that ends with `breaks`.
async fn complaint(breaks: impl FnOnce(&mut Stranger) + Send + 'static) -> String {
    let node = node(&Arc::new(EmbeddedStore::default())).actor::<Scribe>().start().await.unwrap();
    let port = node.address().port();
    let words = away(move || {
        let mut stranger = Stranger::meet(port, 1);
        stranger.say(&Frame::LargeHere { transfer: 1, call: None });
        breaks(&mut stranger);
        stranger.last_words()
    });
    let words = words.await;
    assert_eq!(node.actor::<Scribe>("y").send(Note(1)).await, Ok(1), "still there for others");
    stop([node]).await;
    words.expect("the connection is closed")
}

#[actix::test]
async fn a_large_message_that_is_no_frame_ends_the_connection() {
    let words = complaint(|stranger| stranger.stream(1, 3, &[99, 0, 0])).await;
    assert!(words.contains("unknown frame tag 99"), "{words}");
    let words = complaint(|stranger| stranger.stream(1, 1, &[10])).await;
    assert!(words.contains("not for a stream"), "{words}");
}

#[actix::test]
async fn a_large_message_for_an_unknown_kind_or_of_an_unknown_number_ends_the_connection() {
    let words = complaint(|stranger| {
        let frame = told((9, 0), &[]);
        stranger.stream(1, frame.len(), &frame);
    });
    assert!(words.await.contains("no kind has number 9"));
    let words = complaint(|stranger| {
        let frame = told((0, 99), &[]);
        stranger.stream(1, frame.len(), &frame);
    });
    assert!(words.await.contains("no message has number 99"));
}

#[actix::test]
async fn a_stream_that_is_not_as_long_as_it_says_ends_the_connection() {
    let words = complaint(|stranger| stranger.stream(1, 100, &[10; 50])).await;
    assert!(words.contains("shorter than it says"), "{words}");
    let words = complaint(|stranger| stranger.stream(1, 50, &[10; 100])).await;
    assert!(words.contains("longer than it says"), "{words}");
}

#[actix::test]
async fn too_many_large_messages_without_a_place_end_the_connection() {
    let words = complaint(|stranger| (2..20).for_each(|transfer| stranger.stream(transfer, 1, &[2])));
    assert!(words.await.contains("came before their place"));
}

#[actix::test]
async fn a_large_message_of_another_call_than_its_place_ends_the_connection() {
    let words = complaint(|stranger| {
        let frame = asked((0, 0), &[]);
        stranger.stream(1, frame.len(), &frame);
    });
    assert!(words.await.contains("another call than its place"));
}

/// Two nodes: the first hosts scribes and keepers and takes `hosts` bytes at most, the second `callers`.
async fn unequal(hosts: usize, callers: usize) -> [Node; 2] {
    let store = Arc::new(EmbeddedStore::default());
    let sized = |largest| {
        let mut settings = settings();
        (settings.remote.frame, settings.remote.largest) = (4 << 10, largest);
        node(&store).settings(settings)
    };
    let here = sized(hosts).actor::<Scribe>().actor::<Keeper>().start().await.unwrap();
    let there = sized(callers).remote_actor::<Scribe>().remote_actor::<Keeper>().start().await.unwrap();
    [here, there]
}

#[actix::test]
async fn a_message_larger_than_its_receiver_takes_is_refused_and_does_not_hold_up_others() {
    let [here, there] = unequal(64 << 10, 1 << 20).await;
    let scribe = there.actor::<Scribe>("a");
    let calls: Vec<_> = (0..6)
        .map(|n| there.actor::<Scribe>(&format!("b{n}")).send_with(Echo(vec![1; 300_000]), within(20_000)))
        .collect();
    let refused = CallError::TooLarge { max: 64 << 10, started: false };
    join_all(calls).await.into_iter().for_each(|answer| assert_eq!(answer, Err(refused.clone())));
    (0..6).for_each(|n| there.actor::<Scribe>(&format!("b{n}")).tell(Echo(vec![1; 300_000])).unwrap());
    assert_eq!(scribe.send_with(LongNote(2, vec![1; 30_000]), within(20_000)).await, Ok(1));
    stop([there, here]).await;
}

#[actix::test]
async fn a_reply_larger_than_its_caller_takes_ends_the_call_with_the_reason() {
    let [here, there] = unequal(1 << 20, 64 << 10).await;
    let keeper = there.actor::<Keeper>("a");
    let refused = keeper.send_with(Padding(300_000), within(20_000)).await;
    assert_eq!(refused, Err(CallError::TooLarge { max: 64 << 10, started: true }));
    assert_eq!(keeper.send_with(Padding(30_000), within(20_000)).await.map(|reply| reply.len()), Ok(30_000));
    stop([there, here]).await;
}

/// Two nodes agree on how much time is left when a message leaves, not when it was written.
#[actix::test]
async fn a_large_message_has_no_more_time_left_than_its_call() {
    let [here, there] = unequal(1 << 20, 1 << 20).await;
    let keeper = there.actor::<Keeper>("a");
    let left = keeper.send_with(SlowLeft(vec![1; 30_000], Slow), within(20_000)).await.unwrap();
    assert!((1..=18_600).contains(&left), "{left} ms");
    stop([there, here]).await;
}

// ---- large replies to a peer that does not read them ----

/// What the keeper `x` is asked for so often, by a peer that reads its lane but no stream: how often it hears that there is no
/// reply.
fn ask_for_padding(port: u16, times: u32, len: u16) -> (u32, Stranger) {
    let mut stranger = Stranger::meet(port, 1);
    let numbers = stranger.numbers("Keeper", "Padding");
    for slot in 0..times {
        let payload = [len as u8 | 0x80, (len >> 7) as u8 | 0x80, (len >> 14) as u8];
        let call = CorrelationId::new(0, slot, 1);
        stranger.say(&Frame::Ask(Asked { call, head: head(numbers), payload: &payload }));
    }
    let mut refused = 0;
    while refused < times {
        let fail = |frame: Frame<'_>| match frame {
            Frame::Fail { error, .. } => Some(error),
            _ => None,
        };
        match stranger.hear_within(Duration::from_secs(3), fail) {
            Some(error) => assert_eq!(error, CallError::NoReply),
            None => break,
        }
        refused += 1;
    }
    (refused, stranger)
}

#[actix::test]
async fn large_replies_that_nobody_reads_are_bounded() {
    let mut narrow = settings();
    (narrow.remote.frame, narrow.remote.answer_bytes) = (4 << 10, 500_000);
    let store = Arc::new(EmbeddedStore::default());
    let node = node(&store).settings(narrow).actor::<Keeper>().start().await.unwrap();
    assert_eq!(node.actor::<Keeper>("x").send(Notes).await, Ok(vec![]), "its shard is served");
    let port = node.address().port();
    let (refused, stranger) = away(move || ask_for_padding(port, 200, 60_000)).await;
    let waiting: usize = node.lanes().await.items.iter().map(|lane| lane.answer_bytes).sum();
    assert!((1..=500_000).contains(&waiting), "{waiting} bytes wait");
    // What the windows of the streams take has left: these are four, of a megabyte each.
    assert!((120..200).contains(&refused), "{refused} of 200");
    drop(stranger);
    stop([node]).await;
}

// ---- what its sender gives up ----

#[actix::test]
async fn a_lane_settles_without_a_large_message_that_its_sender_has_given_up() {
    let node = node(&Arc::new(EmbeddedStore::default())).actor::<Scribe>().start().await.unwrap();
    let port = node.address().port();
    let settled = away(move || {
        let mut stranger = Stranger::meet(port, 1);
        let (shard, generation) = (ShardRef { kind: 0, number: 1 }, Generation::new(0));
        stranger.say(&Frame::LargeHere { transfer: 1, call: None });
        stranger.say(&Frame::LargeGone { transfer: 1 });
        stranger.say(&Frame::Settle { shard, generation });
        stranger.hear(|frame| matches!(frame, Frame::Settled { .. }).then_some(()))
    });
    assert_eq!(settled.await, Some(()));
    stop([node]).await;
}

#[actix::test]
async fn a_large_tell_whose_place_was_thrown_out_is_not_sent() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let mut narrow = settings();
    (narrow.remote.lane_bytes, narrow.remote.frame) = (64 << 10, 8 << 10);
    narrow.remote.overflow = Overflow::DropOldest;
    let there = node(&store).settings(narrow).remote_actor::<Scribe>().start().await.unwrap();
    let (beside, sender) = (there.actor::<Scribe>("beside"), there.clone());
    beside.send(Note(1)).await.unwrap();
    for n in 0..5 {
        // The routes are open, so that everything goes into the lane at once.
        assert_eq!(there.actor::<Scribe>(&format!("c{n}")).send(Notes).await, Ok(vec![]));
    }
    let mut events = there.events().subscribe();
    // On the arbiter itself nothing is written while this runs.
    there
        .spawn_beside(&beside, move || async move {
            for n in 0..5 {
                sender.actor::<Scribe>(&format!("c{n}")).tell(LongNote(n, vec![0; 20_000])).unwrap();
            }
            for _ in 0..40 {
                sender.actor::<Scribe>("beside").tell(Echo(vec![0; 4_000])).unwrap();
            }
        })
        .unwrap();
    for n in 0..5 {
        let lost = event(&mut events, |event| match event {
            Event::RemoteDeadLetter(dead) if dead.letter.message.ends_with("LongNote") => {
                Some(dead.letter.target)
            }
            _ => None,
        });
        assert_eq!(lost.await, format!("default::Scribe/c{n}"));
    }
    let later = there.actor::<Scribe>("c0").send_with(LongNote(7, vec![0; 20_000]), within(20_000));
    assert_eq!(later.await, Ok(1), "the first that arrived");
    stop([there, here]).await;
}
