//! Several nodes of one process that share a store and talk over TCP: what a message meets on its way.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use archipelago_embedded::EmbeddedStore;
use archipelago_process_tests::{
    Echo, Forward, Left, LongNote, Mirror, Note, Notes, Ping, Scribe, Secret, Sleep, node, settings,
};
use archipelago_protocol::call::{CallError, Outcome, Queue};
use archipelago_protocol::contract::DirectoryError;
use archipelago_protocol::identity::{Generation, Kind, NodeAddress, NodeId, OwnedKey};
use archipelago_protocol::link::Overflow;
use archipelago_protocol::message::Codec;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{CallOptions, Event, Location, Locator, Node, Notice, Place};
use futures_util::future::join_all;

fn within(millis: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_millis(millis))
}

/// The scribes are on the first node, the mirrors on the second; both know of the other.
async fn two() -> (Node, Node) {
    let store = Arc::new(EmbeddedStore::default());
    let scribes = node(&store).actor_with(|_, node| Scribe::on(node)).remote_actor::<Mirror>();
    let scribes = scribes.start().await.unwrap();
    let mirrors = node(&store).remote_actor::<Scribe>().actor_with(|_, node| Mirror::new(node));
    (scribes, mirrors.start().await.unwrap())
}

async fn stop(nodes: impl IntoIterator<Item = Node>) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// Proves: R55, R125, R131
#[actix::test]
async fn a_ref_reaches_its_actor_wherever_that_lives() {
    let (here, there) = two().await;
    assert_eq!(here.actor::<Scribe>("a").send(Note(1)).await, Ok(1));
    assert_eq!(there.actor::<Scribe>("a").send(Note(2)).await, Ok(2));
    there.actor::<Scribe>("a").tell(Note(3)).unwrap();
    assert_eq!(there.actor::<Scribe>("a").send(Notes).await, Ok(vec![1, 2, 3]));
    stop([there, here]).await;
}

/// Proves: R102, R107
#[actix::test]
async fn a_ref_inside_a_message_works_on_the_other_node() {
    let (here, there) = two().await;
    let to = here.actor::<Scribe>("b").message_ref::<Note>();
    assert_eq!(here.actor::<Mirror>("m").send(Forward { to, note: 5 }).await, Ok(1));
    assert_eq!(here.actor::<Scribe>("b").send(Notes).await, Ok(vec![5]));
    stop([there, here]).await;
}

#[actix::test]
async fn a_call_cycle_over_two_nodes_is_found() {
    let (here, there) = two().await;
    let went_round = here.actor::<Scribe>("c").send(Ping("c".to_owned())).await;
    assert_eq!(went_round, Ok(Err(CallError::CallCycle)));
    stop([there, here]).await;
}

#[actix::test]
async fn the_handler_sees_how_much_time_its_caller_has_left() {
    let (here, there) = two().await;
    let left = there.actor::<Scribe>("d").send_with(Left, within(2_000)).await.unwrap();
    assert!((1_000..=2_100).contains(&left), "{left}");
    stop([there, here]).await;
}

/// Proves: R80
#[actix::test]
async fn a_local_only_message_fails_instead_of_leaving_its_node() {
    let (here, there) = two().await;
    assert_eq!(there.actor::<Scribe>("e").send(Secret).await, Err(CallError::NotLocal));
    let (untyped, name) =
        (there.actor_ref("Scribe", "e"), <Secret as archipelago_runtime::RemoteMessage>::NAME);
    assert_eq!(untyped.send_encoded(name, Codec::Json, "null").await, Err(CallError::NotLocal));
    assert_eq!(here.actor::<Scribe>("e").send(Secret).await, Ok(7));
    stop([there, here]).await;
}

#[actix::test]
async fn an_encoded_message_reaches_another_node() {
    let (here, there) = two().await;
    let scribe = there.actor_ref("Scribe", "f");
    let name = <Note as archipelago_runtime::RemoteMessage>::NAME;
    let reply = scribe.send_encoded(name, Codec::Json, "9".as_bytes().to_vec()).await.unwrap();
    assert_eq!(&reply[..], b"1");
    let unknown = scribe.send_encoded("nobody.knows", Codec::Json, Vec::new()).await.unwrap_err();
    assert!(matches!(unknown, CallError::UnknownMessage(_)), "{unknown}");
    stop([there, here]).await;
}

#[actix::test]
async fn a_cancelled_call_that_has_not_started_never_does() {
    let (here, there) = two().await;
    let scribe = there.actor::<Scribe>("g");
    scribe.send(Note(1)).await.unwrap();
    let first = scribe.send(Sleep(300));
    drop(scribe.send(Note(2)));
    first.await.unwrap();
    assert_eq!(scribe.send(Notes).await, Ok(vec![1]));
    stop([there, here]).await;
}

#[actix::test]
async fn a_message_over_the_largest_size_is_refused_with_a_reason() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let mut small = settings();
    (small.remote.frame, small.remote.largest) = (4 << 10, 64 << 10);
    let there = node(&store).settings(small).remote_actor::<Scribe>().start().await.unwrap();
    let scribe = there.actor::<Scribe>("h");
    assert_eq!(scribe.send(Echo(vec![1; 50_000])).await.unwrap().len(), 50_000);
    let refused = scribe.send(Echo(vec![1; 100_000])).await.unwrap_err();
    assert_eq!(refused, CallError::TooLarge { max: 64 << 10, started: false });
    stop([there, here]).await;
}

#[actix::test]
async fn later_messages_wait_for_a_large_one_to_the_same_actor() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let there = node(&store).remote_actor::<Scribe>().start().await.unwrap();
    let scribe = there.actor::<Scribe>("i");
    scribe.send(Note(0)).await.unwrap();
    let large = scribe.send_with(LongNote(1, vec![3; 8 << 20]), within(20_000));
    let notes: Vec<_> = (2..=20).map(|n| scribe.send_with(Note(n), within(20_000))).collect();
    assert_eq!(large.await, Ok(2));
    join_all(notes).await.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
    assert_eq!(scribe.send(Notes).await, Ok((0..=20).collect()));
    stop([there, here]).await;
}

/// Proves: R121, R122
#[actix::test]
async fn a_tell_that_finds_no_connection_becomes_a_remote_dead_letter() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let mut hasty = settings();
    hasty.remote.tell_ttl = Millis(300);
    let there = node(&store).settings(hasty).remote_actor::<Scribe>().start().await.unwrap();
    let scribe = there.actor::<Scribe>("j");
    scribe.send(Note(1)).await.unwrap();
    let mut events = there.events().subscribe();
    let waited = std::time::Instant::now();
    here.stop().await.unwrap();
    // What is told before the loss is noticed may be on the wire, and is lost without a trace: at most once.
    let letter = loop {
        scribe.tell(Note(2)).unwrap();
        actix::clock::sleep(Duration::from_millis(50)).await;
        match std::iter::from_fn(|| events.try_next()).find_map(dead_letter) {
            Some(letter) => break letter,
            None => assert!(waited.elapsed() < Duration::from_secs(20), "no dead letter"),
        }
    };
    assert_eq!(letter.target, "default::Scribe/j");
    stop([there]).await;
}

fn dead_letter(notice: Notice) -> Option<archipelago_runtime::DeadLetter> {
    match notice {
        Notice::Event(Event::RemoteDeadLetter(dead)) => Some(dead.letter),
        Notice::Event(Event::DeadLetter(letter)) => Some(letter),
        _ => None,
    }
}

/// Proves: R124, R433
#[actix::test]
async fn a_full_lane_refuses_with_its_bound() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let mut narrow = settings();
    narrow.remote.lane_bytes = 64 << 10;
    let there = node(&store).settings(narrow).remote_actor::<Scribe>().start().await.unwrap();
    let scribe = there.actor::<Scribe>("k");
    scribe.send(Note(1)).await.unwrap();
    let full = Arc::new(OnceLock::new());
    let (sender, told) = (scribe.clone(), Arc::clone(&full));
    // On the arbiter itself nothing is written while this runs.
    there
        .spawn_beside(&scribe, move || async move {
            let refused = (0..100).find_map(|_| sender.tell(Echo(vec![0; 4_000])).err());
            drop(told.set(refused));
        })
        .unwrap();
    scribe.send_with(Note(2), within(5_000)).await.unwrap();
    let bound = 64 << 10;
    assert_eq!(full.get(), Some(&Some(CallError::Overloaded { queue: Queue::Lane, bound })));
    stop([there, here]).await;
}

/// Asks wait within once more the bound, behind everything before them; tells are refused meanwhile.
///
/// Proves: R124, R433
#[actix::test]
async fn a_full_lane_that_waits_takes_asks_for_as_much_again_and_no_tells() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Scribe>().start().await.unwrap();
    let bound = 64_u32 << 10;
    let mut waits = settings();
    (waits.remote.lane_bytes, waits.remote.overflow) = (bound as usize, Overflow::Wait);
    let there = node(&store).settings(waits).remote_actor::<Scribe>().start().await.unwrap();
    let scribe = there.actor::<Scribe>("k");
    scribe.send(Note(1)).await.unwrap();
    let (sender, (told, filled)) = (scribe.clone(), futures_channel::oneshot::channel());
    // On the arbiter itself nothing is written while this runs.
    there
        .spawn_beside(&scribe, move || async move {
            let ask = |_| sender.send_with(Echo(vec![0; 4_000]), within(20_000));
            let before: Vec<_> = (0..20).map(ask).collect();
            let tell = sender.tell(Note(2));
            let answers = join_all(before.into_iter().chain((0..80).map(ask))).await;
            drop(told.send((tell, answers)));
        })
        .unwrap();
    let (tell, answers) = filled.await.unwrap();
    let full = CallError::Overloaded { queue: Queue::Lane, bound };
    assert_eq!(tell, Err(full.clone()), "20 asks of 4,000 bytes are more than the bound");
    let taken = answers.iter().take_while(|answer| answer.is_ok()).count();
    assert!((20..=32).contains(&taken), "{taken} asks of 4,000 bytes in {} bytes", 2 * bound);
    assert!(answers[taken..].iter().all(|answer| *answer == Err(full.clone())), "the rest is refused");
    assert_eq!(scribe.send(Notes).await, Ok(vec![1]), "a refused tell never arrives");
    stop([there, here]).await;
}

/// Says at first that the scribes are on the wrong node.
struct Liar {
    truth: Arc<OnceLock<(NodeId, NodeAddress, Generation)>>,
    wrong: Arc<OnceLock<(NodeId, NodeAddress)>>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl Locator for Liar {
    fn fixed_place(&self, _: &Kind) -> Option<&NodeAddress> {
        None
    }

    async fn look_up(&self, _: &OwnedKey) -> Result<Option<Location>, DirectoryError> {
        let (owner, _, generation) = self.truth.get().unwrap();
        let (wrong, _) = self.wrong.get().unwrap();
        if self.asked.fetch_add(1, Ordering::Relaxed) > 0 {
            return Ok(Some(Location { at: Place::Node(*owner), generation: *generation }));
        }
        Ok(Some(Location { at: Place::Node(*wrong), generation: Generation::new(0) }))
    }

    async fn address_of(&self, node: NodeId) -> Result<Option<NodeAddress>, DirectoryError> {
        let (owner, address, _) = self.truth.get().unwrap();
        let (_, wrong) = self.wrong.get().unwrap();
        Ok(Some(if node == *owner { address.clone() } else { wrong.clone() }))
    }
}

/// A node that was told wrongly where the scribes live, the wrong node, and the right one.
async fn misled() -> ([Node; 3], Arc<Liar>) {
    let store = Arc::new(EmbeddedStore::default());
    let owner = node(&store).actor::<Scribe>().start().await.unwrap();
    let wrong = node(&store).actor::<Scribe>().start().await.unwrap();
    let generation = owner.actor::<Scribe>("x").send(Note(0)).await.map(|_| Generation::new(0)).unwrap();
    let liar = Liar { truth: Arc::default(), wrong: Arc::default(), asked: AtomicUsize::new(0) };
    drop(liar.truth.set((owner.id(), owner.address(), generation)));
    drop(liar.wrong.set((wrong.id(), wrong.address())));
    let liar = Arc::new(liar);
    let caller = node(&store).remote_actor::<Scribe>().locator(Arc::clone(&liar) as _);
    ([caller.start().await.unwrap(), wrong, owner], liar)
}

/// Proves: R215, R236, R241, R445, R452
#[actix::test]
async fn messages_to_the_wrong_node_come_back_and_reach_the_right_one_in_order() {
    let ([caller, wrong, owner], _) = misled().await;
    let scribe = caller.actor::<Scribe>("l");
    let asks: Vec<_> = (0..200)
        .filter_map(|n| {
            if n % 3 == 0 {
                scribe.tell(Note(n)).unwrap();
                return None;
            }
            Some(scribe.send_with(Note(n), within(10_000)))
        })
        .collect();
    join_all(asks).await.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
    assert_eq!(scribe.send(Notes).await, Ok((0..200).collect::<Vec<_>>()));
    assert_eq!(owner.actor::<Scribe>("l").send(Notes).await.map(|notes| notes.len()), Ok(200));
    stop([caller, wrong, owner]).await;
}

/// Where a shard is owned is looked up once, and once more after the answer turned out to be wrong; then every message finds
/// its way by what the node knows.
///
/// Proves: R207, R209, R210
#[actix::test]
async fn a_known_route_asks_nobody() {
    let ([caller, wrong, owner], liar) = misled().await;
    let scribe = caller.actor::<Scribe>("l");
    scribe.send_with(Note(0), within(10_000)).await.unwrap();
    let asked = liar.asked.load(Ordering::Relaxed);
    for n in 1..500 {
        assert_eq!(scribe.send(Note(n)).await, Ok(n + 1));
    }
    assert_eq!(liar.asked.load(Ordering::Relaxed), asked, "{asked} before");
    stop([caller, wrong, owner]).await;
}

/// Proves: R236, R452
#[actix::test]
async fn a_large_message_to_the_wrong_node_reaches_the_right_one_at_its_place() {
    let ([caller, wrong, owner], _) = misled().await;
    let scribe = caller.actor::<Scribe>("l");
    scribe.tell(Note(1)).unwrap();
    let first = scribe.send_with(LongNote(2, vec![7; 3 << 20]), within(20_000));
    scribe.tell(Note(3)).unwrap();
    let second = scribe.send_with(LongNote(4, vec![8; 5 << 20]), within(20_000));
    let notes = scribe.send_with(Notes, within(20_000));
    assert_eq!((first.await, second.await), (Ok(2), Ok(4)));
    assert_eq!(notes.await, Ok(vec![1, 2, 3, 4]));
    assert_eq!(owner.actor::<Scribe>("l").send(Notes).await, Ok(vec![1, 2, 3, 4]));
    stop([caller, wrong, owner]).await;
}

#[actix::test]
async fn a_kind_that_nobody_owns_ends_by_its_deadline_as_not_started() {
    let store = Arc::new(EmbeddedStore::default());
    let alone = node(&store).remote_actor::<Scribe>().start().await.unwrap();
    let nobody = alone.actor::<Scribe>("m").send_with(Note(1), within(300)).await.unwrap_err();
    assert_eq!(nobody.outcome(), Outcome::NotStarted, "{nobody}");
    stop([alone]).await;
}
