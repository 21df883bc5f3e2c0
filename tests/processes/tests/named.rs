//! Named actors of other nodes: found by their URI, asked and told, over memory and over TCP.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, and waits"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::{Actor, Addr, Arbiter, SyncArbiter};
use archipelago_embedded::EmbeddedStore;
use archipelago_memory::{MemoryNetwork, NetworkSettings, TokioTimer};
use archipelago_process_tests::{
    Block, Circler, Clerk, Desk, Echo, GoRound, Left, LongNote, Note, Notes, Panic, PassOn, Secret, Sleep,
    node, node_over, settings,
};
use archipelago_protocol::call::{CallError, Outcome, Queue};
use archipelago_protocol::identity::{ActorPath, NodeAddress};
use archipelago_protocol::time::Millis;
use archipelago_runtime::{
    CallOptions, DeadLetter, Event, NameError, NamedActor, NamedRef, Node, Notice, Subscription,
};
use futures_util::future::join_all;

fn within(millis: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_millis(millis))
}

async fn over_tcp() -> (Node, Node) {
    let store = || Arc::new(EmbeddedStore::default());
    (node(&store()).start().await.unwrap(), node(&store()).start().await.unwrap())
}

async fn over_memory() -> (Node, Node) {
    let network = network();
    (node_at(&network, "here").await, node_at(&network, "there").await)
}

fn network() -> MemoryNetwork {
    MemoryNetwork::new(NetworkSettings::default(), 7, Arc::new(TokioTimer::start()))
}

async fn node_at(network: &MemoryNetwork, host: &str) -> Node {
    let mut settings = settings();
    settings.remote.bind = NodeAddress::new(host, 4_000).unwrap();
    node_over(network.host(host)).settings(settings).start().await.unwrap()
}

async fn stop(nodes: impl IntoIterator<Item = Node>) {
    for node in nodes {
        node.stop().await.unwrap();
    }
}

/// A desk on a thread of its own, so that it can be blocked.
fn desk_of_its_own() -> Addr<Desk> {
    Desk::start_in_arbiter(&Arbiter::new().handle(), |_| Desk::default())
}

/// The actor that `there` has registered at `path`, as `here` sees it.
fn seen<A: NamedActor>(here: &Node, there: &Node, path: &str) -> NamedRef<A> {
    here.resolve(&ActorPath::remote("default", there.address(), path).unwrap()).unwrap()
}

async fn next_dead(events: &mut Subscription) -> DeadLetter {
    loop {
        match events.next().await {
            Some(Notice::Event(Event::DeadLetter(letter))) => return letter,
            Some(Notice::Event(Event::RemoteDeadLetter(letter))) => return letter.letter,
            Some(_) => {}
            None => panic!("the node is gone"),
        }
    }
}

async fn reaches_it((here, there): (Node, Node)) {
    there.register("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    assert_eq!(desk.send(Note(1)).await, Ok(1));
    desk.tell(Note(2)).unwrap();
    assert_eq!(desk.send(Sleep(20)).await, Ok(20), "also if the reply comes later");
    assert_eq!(desk.send(Notes).await, Ok(vec![1, 2]));
    let own = there.resolve::<Desk>(desk.path()).unwrap();
    assert_eq!(own.send(Notes).await, Ok(vec![1, 2]), "its own node needs no network");
    stop([here, there]).await;
}

/// Proves: R43, R48, R52, R53, R125, R131
#[actix::test]
async fn a_uri_reaches_the_actor_on_its_node_over_tcp() {
    reaches_it(over_tcp().await).await;
}

/// Proves: R43, R48, R52, R53, R131
#[actix::test]
async fn a_uri_reaches_the_actor_on_its_node_over_memory() {
    reaches_it(over_memory().await).await;
}

#[actix::test]
async fn an_actor_with_another_context_is_reached_too() {
    let (here, there) = over_tcp().await;
    there.register("/clerks", SyncArbiter::start(2, || Clerk)).unwrap();
    let clerks = seen::<Clerk>(&here, &there, "/clerks");
    let asks = (0..100_u8).map(|n| clerks.send(Echo(vec![1, n])));
    let replies: Vec<_> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(replies, (0..100_u8).map(|n| vec![n, 1]).collect::<Vec<_>>());
    stop([here, there]).await;
}

/// Proves: R50, R446
#[actix::test]
async fn nobody_there_is_an_error_to_who_asks_and_a_dead_letter_on_that_node() {
    let (here, there) = over_tcp().await;
    let nobody = seen::<Desk>(&here, &there, "/nobody");
    let mut events = there.events().subscribe();
    let reason = CallError::NoSuchActor { path: nobody.path().to_uri().into() };
    assert_eq!(nobody.send(Note(1)).await, Err(reason.clone()));
    nobody.tell(Note(2)).unwrap();
    for _ in 0..2 {
        let letter = next_dead(&mut events).await;
        assert_eq!((letter.target, &letter.reason), (nobody.path().to_uri(), &reason));
        assert!(letter.message.ends_with(".Note"), "{}", letter.message);
    }
    stop([here, there]).await;
}

/// Proves: R446
#[actix::test]
async fn an_actor_that_has_stopped_is_nobody() {
    let (here, there) = over_tcp().await;
    there.register("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    desk.send(Note(1)).await.unwrap();
    let panicked = desk.send(Panic).await.unwrap_err();
    assert_eq!(panicked.outcome(), Outcome::Unknown, "{panicked}");
    let gone = desk.send(Note(2)).await.unwrap_err();
    assert!(matches!(gone, CallError::NoSuchActor { .. }), "{gone}");
    assert!(there.unregister("/desk"));
    there.register("/desk", Desk::default().start()).unwrap();
    assert_eq!(desk.send(Note(3)).await, Ok(1), "the ref means whoever is registered");
    stop([here, there]).await;
}

/// Proves: R106
#[actix::test]
async fn a_message_that_the_actor_does_not_take_is_a_typed_error() {
    let (here, there) = over_tcp().await;
    there.register("/clerk", SyncArbiter::start(1, || Clerk)).unwrap();
    let not_a_desk = seen::<Desk>(&here, &there, "/clerk");
    let unknown = not_a_desk.send(Note(1)).await.unwrap_err();
    assert!(
        matches!(&unknown, CallError::UnknownMessage(what) if what.message.ends_with(".Note")),
        "{unknown}"
    );
    assert_eq!(not_a_desk.send(Echo(vec![1, 2])).await, Ok(vec![2, 1]), "but what it takes, it takes");
    stop([here, there]).await;
}

#[actix::test]
async fn what_is_registered_for_its_node_alone_is_not_reached_from_others() {
    let (here, there) = over_tcp().await;
    let own = there.register_local("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    assert_eq!(desk.send(Note(1)).await, Err(CallError::NotLocal));
    assert_eq!(here.lookup_named(desk.path()).await, Ok(None));
    assert_eq!(own.send(Note(1)).await, Ok(1));
    stop([here, there]).await;
}

/// Proves: R80
#[actix::test]
async fn a_local_only_message_to_a_named_actor_does_not_leave_its_node() {
    let (here, there) = over_tcp().await;
    let own = there.register("/desk", Desk::default().start()).unwrap();
    assert_eq!(seen::<Desk>(&here, &there, "/desk").send(Secret).await, Err(CallError::NotLocal));
    assert_eq!(own.send(Secret).await, Ok(7));
    stop([here, there]).await;
}

#[actix::test]
async fn everything_told_and_asked_arrives_once_and_in_order() {
    let (here, there) = over_tcp().await;
    there.register("/desk", desk_of_its_own()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    // Until the node is met only `parked` messages may wait.
    desk.send(Echo(Vec::new())).await.unwrap();
    let mut asks = Vec::new();
    for n in 0..5_000 {
        if n % 7 == 0 {
            asks.push(desk.send_with(Note(n), within(20_000)));
        } else {
            desk.tell(Note(n)).unwrap();
        }
        // An ask that finds a full line is refused, so no more are under way than the line takes.
        if n % 700 == 0 {
            let noted = join_all(std::mem::take(&mut asks)).await;
            noted.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
        }
    }
    join_all(asks).await.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
    assert_eq!(desk.send_with(Notes, within(20_000)).await, Ok((0..5_000).collect()));
    stop([here, there]).await;
}

#[actix::test]
async fn the_named_handler_sees_how_much_time_its_caller_has_left() {
    let (here, there) = over_tcp().await;
    there.register("/desk", desk_of_its_own()).unwrap();
    let left = seen::<Desk>(&here, &there, "/desk").send_with(Left, within(2_000)).await.unwrap();
    assert!((500..=2_100).contains(&left), "{left}");
    let left = there.named::<Desk>("/desk").unwrap().send_with(Left, within(2_000)).await.unwrap();
    assert!((500..=2_100).contains(&left), "{left}");
    stop([here, there]).await;
}

#[actix::test]
async fn a_deadline_holds_and_says_whether_the_handler_had_started() {
    let (here, there) = over_tcp().await;
    there.register("/desk", desk_of_its_own()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    desk.send(Note(0)).await.unwrap();
    for desk in [desk, there.named::<Desk>("/desk").unwrap()] {
        let started = desk.send_with(Sleep(1_500), within(200));
        let asked = Instant::now();
        assert_eq!(started.await, Err(CallError::Timeout { started: true }));
        assert!(asked.elapsed() < Duration::from_millis(1_000), "{:?}", asked.elapsed());
        let blocked = desk.send_with(Block(700), within(5_000));
        let late = desk.send_with(Note(1), within(200)).await.unwrap_err();
        assert!(matches!(late, CallError::Timeout { .. }), "{late}");
        blocked.await.unwrap();
        assert_eq!(desk.send(Notes).await, Ok(vec![0]), "what was too late never starts");
    }
    stop([here, there]).await;
}

#[actix::test]
async fn a_local_call_that_never_started_says_so() {
    let (here, there) = over_tcp().await;
    let desk = here.register("/desk", desk_of_its_own()).unwrap();
    let blocked = desk.send_with(Block(600), within(5_000));
    actix::clock::sleep(Duration::from_millis(50)).await;
    assert_eq!(desk.send_with(Note(1), within(100)).await, Err(CallError::Timeout { started: false }));
    blocked.await.unwrap();
    stop([here, there]).await;
}

#[actix::test]
async fn a_cancelled_call_to_a_named_actor_never_starts() {
    let (here, there) = over_tcp().await;
    there.register("/desk", desk_of_its_own()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    desk.send(Note(1)).await.unwrap();
    let blocked = desk.send_with(Block(800), within(5_000));
    drop(desk.send(Note(2)));
    blocked.await.unwrap();
    assert_eq!(desk.send(Notes).await, Ok(vec![1]));
    stop([here, there]).await;
}

/// Proves: R51, R52, R102, R107
#[actix::test]
async fn a_named_ref_in_a_message_works_on_the_other_node() {
    let (here, there) = over_tcp().await;
    let reply_to = here.register("/here", Desk::default().start()).unwrap();
    there.register("/there", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/there");
    assert_eq!(desk.send(PassOn { to: reply_to.clone(), note: 5 }).await, Ok(Ok(1)));
    assert_eq!(reply_to.send(Notes).await, Ok(vec![5]));
    assert_eq!(
        desk.send(PassOn { to: desk.clone(), note: 6 }).await,
        Ok(Ok(1)),
        "back to itself, without a network"
    );
    let text = serde_json::to_string(&reply_to).unwrap();
    assert_eq!(text, format!("\"archipelago://default@{}/here\"", here.address()));
    let unbound: NamedRef<Desk> = serde_json::from_str(&text).unwrap();
    assert_eq!(unbound.send(Note(7)).await, Err(CallError::Unbound));
    assert_eq!(unbound.bind(&there).send(Note(7)).await, Ok(2));
    stop([here, there]).await;
}

#[actix::test]
async fn a_call_cycle_through_a_named_actor_of_another_node_is_found() {
    let store = Arc::new(EmbeddedStore::default());
    let here = node(&store).actor::<Circler>().start().await.unwrap();
    let there = node(&store).remote_actor::<Circler>().start().await.unwrap();
    there.register("/desk", Desk::default().start()).unwrap();
    let (by, me) = (seen::<Desk>(&here, &there, "/desk"), here.actor::<Circler>("c"));
    assert_eq!(me.send(GoRound { by, me: me.clone() }).await, Ok(Err(CallError::CallCycle)));
    stop([there, here]).await;
}

#[actix::test]
async fn a_recipient_of_a_named_actor_works_across_nodes() {
    let (here, there) = over_tcp().await;
    there.register("/desk", Desk::default().start()).unwrap();
    let recipient = seen::<Desk>(&here, &there, "/desk").recipient::<Note>().unwrap();
    assert_eq!(recipient.send(Note(3)).await.unwrap(), 1);
    recipient.do_send(Note(4));
    assert_eq!(recipient.send(Note(5)).await.unwrap(), 3);
    stop([here, there]).await;
}

#[actix::test]
async fn later_messages_wait_for_a_large_one_to_the_same_named_actor() {
    let mut small = settings();
    (small.remote.frame, small.remote.largest) = (16 << 10, 1 << 20);
    let start = async || {
        let node = node(&Arc::new(EmbeddedStore::default())).settings(small.clone());
        node.start().await.unwrap()
    };
    let (here, there) = (start().await, start().await);
    there.register("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    desk.send(Note(0)).await.unwrap();
    let large = desk.send_with(LongNote(1, vec![3; 600 << 10]), within(30_000));
    desk.tell(LongNote(2, vec![3; 200 << 10])).unwrap();
    let notes: Vec<_> = (3..=20).map(|n| desk.send_with(Note(n), within(30_000))).collect();
    assert_eq!(large.await, Ok(2));
    join_all(notes).await.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
    assert_eq!(desk.send_with(Notes, within(30_000)).await, Ok((0..=20).collect()));
    let echoed = desk.send_with(Echo(vec![9; 300 << 10]), within(30_000)).await.unwrap();
    assert_eq!(echoed.len(), 300 << 10, "also as a reply");
    let too_large = desk.send_with(Echo(vec![0; 2 << 20]), within(30_000)).await;
    assert_eq!(too_large, Err(CallError::TooLarge { max: 1 << 20, started: false }));
    stop([here, there]).await;
}

/// Proves: R123, R433
#[actix::test]
async fn a_full_line_before_the_mailbox_refuses_asks_and_slows_tells_down() {
    let store = Arc::new(EmbeddedStore::default());
    let mut narrow = settings();
    (narrow.inbox, narrow.remote.lane_calls) = (20, 2_000);
    let there = node(&store).settings(narrow).start().await.unwrap();
    let here = node(&Arc::new(EmbeddedStore::default())).start().await.unwrap();
    there.register("/desk", desk_of_its_own()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    let blocked = desk.send_with(Block(1_000), within(10_000));
    let asks: Vec<_> = (0..100).map(|n| desk.send_with(Note(n), within(10_000))).collect();
    let ends = join_all(asks).await;
    let full = CallError::Overloaded { queue: Queue::Mailbox, bound: 20 };
    let refused = ends.iter().filter(|end| **end == Err(full.clone())).count();
    assert!((60..=70).contains(&refused), "{refused} refused");
    assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 100 - refused);
    blocked.await.unwrap();
    let blocked = desk.send_with(Block(500), within(10_000));
    (0..100).for_each(|n| desk.tell(Note(n)).unwrap());
    blocked.await.unwrap();
    // Whoever asks while the tells still stand in line is refused as above.
    let asked_at = Instant::now();
    let notes = loop {
        match desk.send_with(Notes, within(10_000)).await {
            Err(refused) if refused == full => {
                assert!(asked_at.elapsed() < Duration::from_secs(10), "{refused}")
            }
            notes => break notes.unwrap(),
        }
    };
    assert_eq!(notes[notes.len() - 100..], (0..100).collect::<Vec<_>>(), "no tell is lost");
    stop([here, there]).await;
}

/// Proves: R121, R122
#[actix::test]
async fn a_tell_to_a_named_actor_of_a_dead_node_becomes_a_remote_dead_letter() {
    let (_, there) = over_tcp().await;
    let mut hasty = settings();
    hasty.remote.tell_ttl = Millis(300);
    let here = node(&Arc::new(EmbeddedStore::default())).settings(hasty).start().await.unwrap();
    there.register("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    desk.send(Note(1)).await.unwrap();
    let mut events = here.events().subscribe();
    there.stop().await.unwrap();
    let waited = Instant::now();
    let letter = loop {
        desk.tell(Note(2)).unwrap();
        actix::clock::sleep(Duration::from_millis(50)).await;
        let dead = |notice| match notice {
            Notice::Event(Event::RemoteDeadLetter(dead)) => Some(dead.letter),
            _ => None,
        };
        match std::iter::from_fn(|| events.try_next()).find_map(dead) {
            Some(letter) => break letter,
            None => assert!(waited.elapsed() < Duration::from_secs(20), "no dead letter"),
        }
    };
    assert_eq!(letter.target, desk.path().to_uri());
    assert!(letter.message.ends_with(".Note"), "{}", letter.message);
    let refused = desk.send_with(Note(3), within(300)).await.unwrap_err();
    assert_eq!(refused.outcome(), Outcome::NotStarted, "{refused}");
    stop([here]).await;
}

#[actix::test]
async fn another_process_at_the_same_address_is_found_after_a_restart() {
    let network = network();
    let (here, there) = (node_at(&network, "here").await, node_at(&network, "there").await);
    there.register("/desk", Desk::default().start()).unwrap();
    let desk = seen::<Desk>(&here, &there, "/desk");
    assert_eq!(desk.send(Note(1)).await, Ok(1));
    there.stop().await.unwrap();
    let waiting = desk.send_with(Note(2), within(20_000));
    let again = node_at(&network, "there").await;
    assert_eq!(again.address(), there.address());
    again.register("/desk", Desk::default().start()).unwrap();
    // It may have been given to the old connection, whose end was not noticed yet.
    if let Err(error) = waiting.await {
        assert!(matches!(error, CallError::ConnectionLost { .. } | CallError::NotServing { .. }), "{error}");
    }
    desk.send_with(Note(3), within(20_000)).await.unwrap();
    assert_eq!(again.named::<Desk>("/desk").unwrap().send(Notes).await.unwrap().last(), Some(&3));
    stop([here, again]).await;
}

#[actix::test]
async fn a_node_that_is_not_there_ends_by_the_deadline_as_not_started() {
    let (here, there) = over_tcp().await;
    let nowhere = ActorPath::remote("default", NodeAddress::new("127.0.0.1", 1).unwrap(), "/desk").unwrap();
    let asked = Instant::now();
    let lost = here.resolve::<Desk>(&nowhere).unwrap().send_with(Note(1), within(300)).await.unwrap_err();
    assert_eq!(lost.outcome(), Outcome::NotStarted, "{lost}");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    let foreign = ActorPath::remote("elsewhere", there.address(), "/desk").unwrap();
    assert!(matches!(here.resolve::<Desk>(&foreign), Err(NameError::OtherSystem { .. })));
    stop([here, there]).await;
}

/// Proves: R129
#[actix::test]
async fn a_lookup_says_whether_an_actor_is_there_and_where() {
    let (here, there) = over_tcp().await;
    let registered = there.register("/desk", Desk::default().start()).unwrap();
    let path = |path: &str| ActorPath::remote("default", there.address(), path).unwrap();
    assert_eq!(here.lookup_named(&path("/desk")).await, Ok(Some(registered.address())));
    assert_eq!(here.lookup_named(&path("/nobody")).await, Ok(None));
    assert_eq!(there.lookup_named(registered.path()).await, Ok(Some(registered.address())));
    let nowhere = ActorPath::remote("default", NodeAddress::new("127.0.0.1", 1).unwrap(), "/desk").unwrap();
    let error = here.lookup_named(&nowhere).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotStarted, "{error}");
    stop([here, there]).await;
}

/// Proves: R130
#[actix::test]
async fn an_actor_is_brought_to_life_on_another_node() {
    let there = node(&Arc::new(EmbeddedStore::default())).actor::<Circler>().start().await.unwrap();
    let here = node(&Arc::new(EmbeddedStore::default())).start().await.unwrap();
    let spawned = here.spawn_at(&there.address(), "Circler", "x").await.unwrap();
    assert_eq!((spawned.actor.to_string().as_str(), spawned.node), ("default::Circler/x", there.id()));
    assert_eq!(there.spawn_at(&there.address(), "Circler", "x").await, Ok(spawned), "it lives already");
    let unknown = here.spawn_at(&there.address(), "Nobody", "x").await;
    assert_eq!(unknown, Err(CallError::UnknownKind { kind: "Nobody".into() }));
    let invalid = here.spawn_at(&there.address(), "Circler", "").await.unwrap_err();
    assert!(matches!(invalid, CallError::InvalidId { .. }), "{invalid}");
    stop([here, there]).await;
}
