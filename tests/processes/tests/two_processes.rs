//! One process calls actors of another over QUIC, TCP with TLS, and plain TCP.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test that cannot go on panics, and knocks at ports by hand"
)]

use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use actix::Actor;
use archipelago_process_tests::{
    Clerk, Desk, Echo, Host, LongNote, Note, Notes, Orders, Papers, PassOn, Road, Scribe, Sleep, caller,
    client, event,
};
use archipelago_protocol::call::{CallError, Outcome};
use archipelago_protocol::identity::{ActorPath, NodeId};
use archipelago_runtime::{CallOptions, Event, NamedRef, Node, Subscription};
use futures_util::future::{join, join_all};

fn orders(road: Road) -> Orders {
    Orders { road, papers: Papers::new(), namespace: "default".to_owned() }
}

fn host(orders: &Orders) -> Host {
    Host::start(env!("CARGO_BIN_EXE_archipelago-test-host"), orders)
}

async fn pair(road: Road) -> (Host, Node) {
    let orders = orders(road);
    let host = host(&orders);
    let node = caller(road, &orders.papers, host.address.clone(), |_| {}).await.unwrap();
    (host, node)
}

fn within(seconds: u64) -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(seconds))
}

/// Runs a test once for every transport.
macro_rules! on_every_road {
    ($($(#[$doc:meta])* $name:ident => $test:path;)*) => {$(
        mod $name {
            use super::*;
            $(#[$doc])*
            #[actix::test]
            async fn quic() { $test(Road::Quic).await }
            $(#[$doc])*
            #[actix::test]
            async fn tls() { $test(Road::Tls).await }
            $(#[$doc])*
            #[actix::test]
            async fn tcp() { $test(Road::Tcp).await }
        }
    )*};
}

on_every_road! {
    /// The two have neither a store nor members in common.
    ///
    /// Proves: R472, R480, R481
    everything_is_delivered_once_and_in_order => everything_arrives;
    large_messages_go_beside_small_ones => large_beside_small;
    /// A large message travels on a stream of its own, which no transport orders against its lane.
    large_keeps_order => large_in_order;
    a_killed_peer_leaves_no_call_hanging => killed;
    a_frozen_peer_delays_no_call_past_its_deadline => frozen;
    another_namespace_is_refused_with_a_reason => other_namespace;
    garbage_on_the_port_harms_nobody => garbage;
    /// Proves: R131
    a_named_actor_of_another_process_is_asked_and_told => named;
    a_killed_process_leaves_no_call_to_its_named_actors_hanging => named_killed;
    /// Proves: R332
    a_light_client_needs_nothing_but_an_address => light_client;
}

/// Proves: R492
#[actix::test]
async fn a_peer_with_papers_of_another_authority_is_refused_over_quic() {
    strangers(Road::Quic).await;
}

#[actix::test]
async fn a_peer_with_papers_of_another_authority_is_refused_over_tls() {
    strangers(Road::Tls).await;
}

async fn everything_arrives(road: Road) {
    let (_host, node) = pair(road).await;
    let scribe = node.actor::<Scribe>("one");
    scribe.send_with(Echo(vec![1]), within(10)).await.unwrap();
    for note in 0..20_000 {
        while scribe.tell(Note(note)).is_err() {
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    let notes = scribe.send_with(Notes, within(20)).await.unwrap();
    assert_eq!(notes.len(), 20_000);
    assert!(notes.is_sorted(), "in the order in which they were told");
    let asks = (0..2_000).map(|n| node.actor::<Scribe>(format!("{}", n % 20)).send_with(Note(n), within(20)));
    let replies: Vec<u64> = join_all(asks).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(replies.iter().sum::<u64>(), 20 * (1..=100).sum::<u64>());
    node.stop().await.unwrap();
}

async fn light_client(road: Road) {
    let orders = orders(road);
    let mut host = host(&orders);
    let client = client(road, &orders.papers, host.address.clone()).await.unwrap();
    let scribe = client.actor::<Scribe>("one");
    scribe.send_with(Echo(vec![1]), within(20)).await.unwrap();
    for note in 0..5_000 {
        while scribe.tell(Note(note)).is_err() {
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    let notes = scribe.send_with(Notes, within(20)).await.unwrap();
    assert!(notes.len() == 5_000 && notes.is_sorted(), "{} notes", notes.len());
    assert_eq!(desk(&host, &client).send_with(Note(0), within(20)).await, Ok(1));
    host.kill();
    let error = client.actor::<Scribe>("new").send_with(Echo(vec![1]), within(3)).await.unwrap_err();
    assert_eq!(error.outcome(), Outcome::NotStarted, "{error}");
    client.stop().await.unwrap();
}

async fn large_beside_small(road: Road) {
    let (_host, node) = pair(road).await;
    let (large, small) = (node.actor::<Scribe>("large"), node.actor::<Scribe>("small"));
    small.send_with(Echo(vec![1]), within(10)).await.unwrap();
    // The second is the largest that there may be, but for what stands before it in its frame.
    for size in [1 << 20, (64 << 20) - 1024] {
        let bytes = vec![7_u8; size];
        let sending = large.send_with(Echo(bytes), within(60));
        let beside = async {
            let mut slowest = Duration::ZERO;
            for _ in 0..50 {
                let sent = Instant::now();
                small.send_with(Echo(vec![2]), within(10)).await.unwrap();
                slowest = slowest.max(sent.elapsed());
            }
            slowest
        };
        let (echoed, slowest) = join(sending, beside).await;
        assert_eq!(echoed.unwrap().len(), size);
        assert!(slowest < Duration::from_secs(5), "a small call took {slowest:?} beside {size} bytes");
    }
    node.stop().await.unwrap();
}

async fn large_in_order(road: Road) {
    let (_host, node) = pair(road).await;
    let scribe = node.actor::<Scribe>("orderly");
    assert_eq!(scribe.send_with(Note(0), within(10)).await, Ok(1));
    scribe.tell(Note(1)).unwrap();
    let asked = scribe.send_with(LongNote(2, vec![3; 8 << 20]), within(60));
    let behind: Vec<_> = (3..20).map(|n| scribe.send_with(Note(n), within(60))).collect();
    scribe.tell(LongNote(20, vec![4; 2 << 20])).unwrap();
    (21..40).for_each(|n| scribe.tell(Note(n)).unwrap());
    let notes = scribe.send_with(Notes, within(60));
    assert_eq!(asked.await, Ok(3));
    join_all(behind).await.into_iter().for_each(|noted| assert!(noted.is_ok(), "{noted:?}"));
    assert_eq!(notes.await, Ok((0..40).collect()));
    node.stop().await.unwrap();
}

fn desk(host: &Host, node: &Node) -> NamedRef<Desk> {
    node.resolve(&ActorPath::remote("default", host.address.clone(), "/desk").unwrap()).unwrap()
}

async fn named(road: Road) {
    let (host, node) = pair(road).await;
    let desk = desk(&host, &node);
    assert_eq!(desk.send_with(Note(0), within(10)).await, Ok(1));
    for note in 1..5_000 {
        while desk.tell(Note(note)).is_err() {
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    // An ask that finds a full line is refused, and the notes may still be in it.
    let notes = loop {
        match desk.send_with(Notes, within(20)).await {
            Err(CallError::Overloaded { .. }) => actix::clock::sleep(Duration::from_millis(5)).await,
            answer => break answer,
        }
    };
    assert!(notes == Ok((0..5_000).collect()), "once, and in order");
    let large = vec![5; 1_200_000];
    assert_eq!(desk.send_with(Echo(large.clone()), within(30)).await, Ok(large), "on a stream of its own");
    let clerks = ActorPath::remote("default", host.address.clone(), "/clerk").unwrap();
    let clerks: NamedRef<Clerk> = node.resolve(&clerks).unwrap();
    assert_eq!(clerks.send_with(Echo(vec![1, 2, 3]), within(10)).await, Ok(vec![3, 2, 1]));
    let own = node.register("/desk", Desk::default().start()).unwrap();
    assert_eq!(desk.send_with(PassOn { to: own.clone(), note: 9 }, within(10)).await, Ok(Ok(1)));
    assert_eq!(own.send(Notes).await, Ok(vec![9]), "it came back to this process");
    assert_eq!(node.lookup_named(desk.path()).await, Ok(Some(desk.path().clone())));
    let spawned = node.spawn_at(&host.address, "Scribe", "summoned").await.unwrap();
    assert_eq!(spawned.actor.to_string(), "default::Scribe/summoned");
    node.stop().await.unwrap();
}

async fn named_killed(road: Road) {
    let (mut host, node) = pair(road).await;
    let desk = desk(&host, &node);
    desk.send_with(Note(1), within(10)).await.unwrap();
    let started = desk.send_with(Sleep(60_000), within(20));
    actix::clock::sleep(Duration::from_millis(300)).await;
    host.kill();
    let lost = started.await.unwrap_err();
    assert!(matches!(lost, CallError::ConnectionLost { .. }), "{lost}");
    let refused = desk.send_with(Note(2), within(1)).await.unwrap_err();
    assert_eq!(refused.outcome(), Outcome::NotStarted, "{refused}");
    node.stop().await.unwrap();
}

async fn killed(road: Road) {
    let (mut host, node) = pair(road).await;
    let scribe = node.actor::<Scribe>("mortal");
    let mut events = node.events().subscribe();
    scribe.send_with(Echo(vec![1]), within(10)).await.unwrap();
    let peer = connected(&mut events).await;
    let started = scribe.send_with(Sleep(60_000), within(20));
    actix::clock::sleep(Duration::from_millis(300)).await;
    host.kill();
    let lost = started.await.unwrap_err();
    assert!(matches!(lost, CallError::ConnectionLost { .. }), "{lost}");
    assert_eq!(lost.outcome(), Outcome::Unknown);
    disconnected(&mut events, peer).await;
    let refused = scribe.send_with(Note(1), within(1)).await.unwrap_err();
    assert_eq!(refused.outcome(), Outcome::NotStarted, "{refused}");
    // Nothing can be finished towards a dead peer, and nothing has to be.
    node.stop().await.unwrap();
}

async fn frozen(road: Road) {
    let (host, node) = pair(road).await;
    let scribe = node.actor::<Scribe>("cold");
    let mut events = node.events().subscribe();
    scribe.send_with(Note(1), within(10)).await.unwrap();
    let peer = connected(&mut events).await;
    host.freeze();
    let sent = Instant::now();
    let late = scribe.send_with(Note(2), within(1)).await.unwrap_err();
    // Ended by its deadline, and not because the silence was noticed, which comes later.
    assert!(matches!(late, CallError::Timeout { started: true }), "{late}");
    assert!(sent.elapsed() < Duration::from_secs(3), "{:?}", sent.elapsed());
    // The silence is noticed, and the connection given up.
    disconnected(&mut events, peer).await;
    host.thaw();
    let thawed = Instant::now();
    loop {
        match scribe.send_with(Echo(vec![3]), within(1)).await {
            Ok(_) => break,
            Err(error) => assert!(thawed.elapsed() < Duration::from_secs(20), "not back after 20 s: {error}"),
        }
    }
    assert_eq!(connected(&mut events).await, peer, "the same node, once more");
    node.stop().await.unwrap();
}

/// The peer to which a connection stands now.
async fn connected(events: &mut Subscription) -> NodeId {
    event(events, |event| match event {
        Event::PeerConnected { node } => Some(node),
        _ => None,
    })
    .await
}

/// Waits until the connection to `peer` is gone; the event says why.
async fn disconnected(events: &mut Subscription, peer: NodeId) {
    let reason = event(events, |event| match event {
        Event::PeerDisconnected { node, reason } if node == peer => Some(reason),
        _ => None,
    })
    .await;
    assert!(!reason.is_empty());
}

async fn other_namespace(road: Road) {
    let orders = Orders { namespace: "elsewhere".to_owned(), ..orders(road) };
    let host = host(&orders);
    for reason in refusal(road, &orders.papers, &host).await {
        assert!(reason.contains("namespace") && reason.contains("elsewhere"), "{reason}");
        assert!(reason.contains("default"), "{reason}");
    }
}

async fn strangers(road: Road) {
    let orders = orders(road);
    let host = host(&orders);
    for reason in refusal(road, &Papers::new(), &host).await {
        assert!(reason.contains("authority") || reason.contains("certificate"), "{reason}");
    }
}

/// Why a node that calls the host is not let in, as that node and as the host says it; its calls fail, and nothing is
/// started.
async fn refusal(road: Road, papers: &Papers, host: &Host) -> [String; 2] {
    let node = caller(road, papers, host.address.clone(), |_| {}).await.unwrap();
    let mut events = node.events().subscribe();
    let refused = node.actor::<Scribe>("nobody").send_with(Note(1), within(2)).await.unwrap_err();
    assert_eq!(refused.outcome(), Outcome::NotStarted, "{refused}");
    let reason = event(&mut events, |event| match event {
        Event::PeerRefused { reason, .. } => Some(reason),
        _ => None,
    });
    let reasons = [reason.await, host.refusal()];
    node.stop().await.unwrap();
    reasons
}

async fn garbage(road: Road) {
    let (host, node) = pair(road).await;
    let scribe = node.actor::<Scribe>("calm");
    scribe.send_with(Note(1), within(10)).await.unwrap();
    let address = (host.address.host().to_owned(), host.address.port());
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 4096], vec![0xff; 100_000], Vec::new()] {
        match road {
            Road::Quic => {
                let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
                socket.send_to(&bytes[..bytes.len().min(1_200)], &address).unwrap();
            }
            Road::Tls | Road::Tcp => {
                let mut stream = TcpStream::connect(&address).unwrap();
                // The host may hang up before it has all of it.
                let _ = stream.write_all(&bytes);
            }
        }
    }
    assert_eq!(scribe.send_with(Note(2), within(10)).await, Ok(2));
    node.stop().await.unwrap();
}
