//! What the memory network does beyond the rules of every transport: faults, seeds, bounds.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use archipelago_memory::{DialAnswer, Link, MemoryNetwork, NetworkSettings, Stats, Timer, TokioTimer};
use archipelago_protocol::contract::{
    CloseCode, CloseReason, Connection, Endpoint, Transport, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;
use archipelago_transport_conformance::{
    Party, Pattern, connect, recv_some, recv_until_end, send_all, stays_pending, uneven, within,
};
use bytes::{Bytes, BytesMut};
use futures_util::future::join;

/// Runs on tokio's paused clock.
fn simulated<T>(scene: impl AsyncFnOnce(World) -> T) -> T {
    simulated_with(NetworkSettings::default(), 1, scene)
}

fn simulated_with<T>(settings: NetworkSettings, seed: u64, scene: impl AsyncFnOnce(World) -> T) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let timer = Arc::new(TokioTimer::start());
        let network = MemoryNetwork::new(settings, seed, Arc::clone(&timer) as Arc<dyn Timer>);
        scene(World { network, timer }).await
    })
}

struct World {
    network: MemoryNetwork,
    timer: Arc<TokioTimer>,
}

impl World {
    async fn endpoint(&self, host: &str) -> Box<dyn Endpoint> {
        open(&*self.network.host(host), host).await
    }

    async fn sleep(&self, length: u64) {
        self.timer.sleep(Millis(length)).await;
    }
}

async fn open(transport: &dyn Transport, host: &str) -> Box<dyn Endpoint> {
    transport.open(&NodeAddress::new(host, 0).unwrap()).await.unwrap()
}

async fn pair(world: &World) -> (Box<dyn Endpoint>, Box<dyn Endpoint>, Party, Party) {
    let (a, b) = (world.endpoint("a").await, world.endpoint("b").await);
    let (dialler, acceptor) = connect(&*a, b.address(), &*b).await;
    (a, b, dialler, acceptor)
}

fn is_lost(error: &TransportError) -> bool {
    matches!(error, TransportError::Lost { .. })
}

/// Sends unevenly over a lossy network and writes down what arrives when.
async fn lossy_run(world: World) -> (Vec<(Millis, usize)>, Stats) {
    let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
    let timer = Arc::clone(&world.timer);
    let mut trace = Vec::new();
    let send = async {
        let mut at = 0;
        for len in uneven(200_000, 5_000) {
            dialler.say(Pattern(1).bytes(at, len)).await.unwrap();
            at += len;
        }
        dialler.streams.close(CloseReason::new(CloseCode::Done, "done"));
    };
    let receive = async {
        let mut bytes = BytesMut::new();
        while let Ok(len) = recv_some(&mut *acceptor.incoming, &mut bytes).await {
            trace.push((timer.now(), len));
        }
        bytes
    };
    let ((), bytes) = join(send, receive).await;
    assert_eq!(bytes, Pattern(1).bytes(0, 200_000));
    (trace, world.network.stats())
}

fn lossy() -> NetworkSettings {
    let link = Link { latency: Millis(3), jitter: Millis(20), loss_per_mille: 100, duplicate_per_mille: 500 };
    NetworkSettings { link, lane_window: 20_000, ..NetworkSettings::default() }
}

/// Proves: R126
#[test]
fn same_seed_gives_the_same_trace() {
    let traces: Vec<_> = [1, 1, 2].map(|seed| simulated_with(lossy(), seed, lossy_run)).into();
    assert_eq!(traces[0], traces[1]);
    assert_ne!(traces[0].0, traces[2].0, "another seed, another trace");
    assert!(traces[0].1.resent > 0, "losses showed as delays: {:?}", traces[0].1);
}

#[test]
fn partition_is_noticed_by_both_sides_at_the_limit_and_healing_lets_them_meet_again() {
    simulated(async |world| {
        let (a, b, mut dialler, mut acceptor) = pair(&world).await;
        let begin = world.timer.now();
        world.network.partition("a", "b");
        let ((_, first), (_, second)) = join(dialler.end(), acceptor.end()).await;
        assert!(is_lost(&first) && is_lost(&second), "{first} {second}");
        assert_eq!(world.timer.now().since(begin), Millis(5_000));
        let begin = world.timer.now();
        let dialled = a.dial(b.address()).await;
        assert!(matches!(dialled, Err(TransportError::Unavailable { .. })), "{dialled:?}");
        assert_eq!(world.timer.now().since(begin), Millis(3_000));
        world.network.heal("a", "b");
        connect(&*a, b.address(), &*b).await;
    });
}

#[test]
fn partition_shorter_than_the_limit_only_delays() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        world.network.partition("a", "b");
        dialler.say(Bytes::from_static(b"late")).await.unwrap();
        world.sleep(4_900).await;
        assert!(stays_pending(Duration::from_millis(50), acceptor.hear(1)).await);
        world.network.heal_all();
        assert_eq!(acceptor.hear(4).await.unwrap(), "late");
        assert!(stays_pending(Duration::from_secs(60), acceptor.hear(1)).await, "the connection lives on");
    });
}

#[test]
fn one_way_partition_lets_the_other_way_pass_until_the_deaf_side_gives_up() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        let begin = world.timer.now();
        world.network.partition_one_way("a", "b");
        acceptor.say(Bytes::from_static(b"still heard")).await.unwrap();
        assert_eq!(dialler.hear(11).await.unwrap(), "still heard");
        assert!(is_lost(&acceptor.end().await.1));
        assert_eq!(world.timer.now().since(begin), Millis(5_000), "the deaf side");
        assert!(is_lost(&dialler.end().await.1));
        assert_eq!(
            world.timer.now().since(begin),
            Millis(10_000),
            "the other one, which hears no more of it"
        );
    });
}

#[test]
fn total_loss_is_a_partition() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        let gone = Link { loss_per_mille: 1_000, ..Link::default() };
        world.network.set_link("a", "b", gone);
        world.network.set_link("b", "a", gone);
        let ((_, first), (_, second)) = join(dialler.end(), acceptor.end()).await;
        assert!(is_lost(&first) && is_lost(&second), "{first} {second}");
        world.network.reset_links("a", "b");
    });
}

#[test]
fn crash_is_noticed_by_silence_and_the_next_life_starts_clean() {
    simulated(async |world| {
        let (a, b, mut dialler, acceptor) = pair(&world).await;
        let (begin, old) = (world.timer.now(), world.network.host("b"));
        world.network.crash("b");
        // The tasks of a crashed node are dropped afterwards, and say nothing.
        drop((acceptor, b));
        assert!(stays_pending(Duration::from_secs(4), dialler.hear(1)).await, "nobody was told");
        assert!(is_lost(&dialler.end().await.1));
        assert_eq!(world.timer.now().since(begin), Millis(5_000));
        let address = NodeAddress::new("b", 40_000).unwrap();
        assert!(matches!(a.dial(&address).await, Err(TransportError::Unavailable { .. })));
        assert!(matches!(old.open(&address).await, Err(TransportError::Ended)), "an old life stays over");
        let b = world.network.host("b").open(&address).await.unwrap();
        let (mut dialler, mut acceptor) = connect(&*a, &address, &*b).await;
        dialler.say(Bytes::from_static(b"hello again")).await.unwrap();
        assert_eq!(acceptor.hear(11).await.unwrap(), "hello again");
    });
}

#[test]
fn frozen_host_is_given_up_and_finds_out_when_it_goes_on() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        world.network.freeze("b");
        dialler.say(Bytes::from_static(b"waits in the window")).await.unwrap();
        assert!(is_lost(&dialler.end().await.1));
        world.sleep(60_000).await;
        world.network.thaw("b");
        let (heard, end) = acceptor.end().await;
        assert_eq!(heard, "waits in the window");
        assert!(is_lost(&end));
    });
}

#[test]
fn host_frozen_for_a_moment_misses_nothing() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        world.network.freeze("b");
        dialler.say(Bytes::from_static(b"waits")).await.unwrap();
        world.sleep(4_000).await;
        world.network.thaw("b");
        assert_eq!(acceptor.hear(5).await.unwrap(), "waits");
        world.sleep(60_000).await;
        acceptor.say(Bytes::from_static(b"back")).await.unwrap();
        assert_eq!(dialler.hear(4).await.unwrap(), "back");
    });
}

#[test]
fn reset_is_noticed_at_once() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        let begin = world.timer.now();
        world.network.reset("b");
        assert!(is_lost(&dialler.end().await.1) && is_lost(&acceptor.end().await.1));
        assert_eq!(world.timer.now(), begin);
    });
}

/// Proves: R101
#[test]
fn kill_after_some_bytes_loses_a_suffix_only() {
    for bytes in [0, 1, 999, 1_000, 1_001, 77_777] {
        simulated(async |world| {
            let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
            world.network.kill_after("a", "b", bytes);
            let send = async {
                let mut taken = 0;
                while dialler.say(Pattern(5).bytes(taken, 1_000)).await.is_ok() {
                    taken += 1_000;
                }
                taken
            };
            let (taken, (heard, end)) = join(send, acceptor.end()).await;
            assert!(is_lost(&end), "{end}");
            Pattern(5).check(0, &heard);
            assert_eq!(heard.len() as u64, bytes, "what comes before arrives");
            assert!(taken > heard.len(), "bytes were taken and lost");
        });
    }
}

#[test]
fn kill_while_the_way_is_cut_shows_when_the_way_is_free_again() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        world.network.partition("a", "b");
        world.network.kill_after("a", "b", 10);
        dialler.say(Pattern(1).bytes(0, 50)).await.unwrap();
        world.sleep(1_000).await;
        world.network.heal_all();
        let begin = world.timer.now();
        let ((_, first), (heard, second)) = join(dialler.end(), acceptor.end()).await;
        assert!(is_lost(&first) && is_lost(&second), "{first} {second}");
        assert_eq!(heard, Pattern(1).bytes(0, 10));
        assert!(
            world.timer.now().since(begin) < Millis(1_000),
            "long before the silence would have shown it"
        );
    });
}

#[test]
fn kill_before_there_is_a_connection_breaks_the_next_one_only() {
    simulated(async |world| {
        let (a, b) = (world.endpoint("a").await, world.endpoint("b").await);
        world.network.kill_after("a", "b", 10);
        let (mut first, mut first_too) = connect(&*a, b.address(), &*b).await;
        let (mut second, mut second_too) = connect(&*a, b.address(), &*b).await;
        first.say(Pattern(1).bytes(0, 50)).await.unwrap();
        assert_eq!(first_too.end().await.0, Pattern(1).bytes(0, 10));
        second.say(Pattern(1).bytes(0, 50)).await.unwrap();
        assert_eq!(second_too.hear(50).await.unwrap(), Pattern(1).bytes(0, 50));
    });
}

#[test]
fn slow_pair_is_slow_in_its_direction_only() {
    simulated(async |world| {
        let (_a, _b, mut dialler, mut acceptor) = pair(&world).await;
        world.network.set_link("a", "b", Link { latency: Millis(700), jitter: Millis(0), ..Link::default() });
        let begin = world.timer.now();
        dialler.say(Bytes::from_static(b"slow")).await.unwrap();
        acceptor.hear(4).await.unwrap();
        assert_eq!(world.timer.now().since(begin), Millis(700));
        let begin = world.timer.now();
        acceptor.say(Bytes::from_static(b"fast")).await.unwrap();
        dialler.hear(4).await.unwrap();
        assert!(world.timer.now().since(begin) <= Millis(3));
    });
}

/// Proves: R123
#[test]
fn memory_is_bounded_however_much_is_sent_to_one_who_does_not_read() {
    simulated(async |world| {
        let (_a, _b, mut dialler, acceptor) = pair(&world).await;
        let mut writers = Vec::new();
        let all = Bytes::from(vec![1; 10 << 20]);
        assert!(stays_pending(Duration::from_secs(1), dialler.say(all.clone())).await);
        for _ in 0..64 {
            let mut writer = dialler.streams.open().await.unwrap();
            assert!(stays_pending(Duration::from_secs(1), send_all(&mut *writer, all.clone())).await);
            writers.push(writer);
        }
        assert!(stays_pending(Duration::from_secs(1), dialler.streams.open()).await, "no more streams");
        assert_eq!(world.network.buffered(), 65 * (256 << 10), "a window for the lane and for each stream");
        drop((writers, acceptor, dialler));
        assert_eq!((world.network.connections(), world.network.buffered()), (0, 0), "nothing stays behind");
    });
}

#[test]
fn places_of_finished_streams_are_free_again() {
    simulated(async |world| {
        let (_a, _b, dialler, acceptor) = pair(&world).await;
        for n in 0..200 {
            let mut writer = dialler.streams.open().await.unwrap();
            send_all(&mut *writer, Pattern(n).bytes(0, 100)).await.unwrap();
            archipelago_transport_conformance::finish(&mut *writer).await.unwrap();
            let mut reader = acceptor.streams.next().await.unwrap();
            let (bytes, end) = recv_until_end(&mut *reader).await;
            assert!(end.is_ok() && bytes.len() == 100);
        }
    });
}

#[test]
fn dials_are_answered_as_the_host_was_told() {
    simulated(async |world| {
        let (a, b) = (world.endpoint("a").await, world.endpoint("b").await);
        world.network.set_dials("b", DialAnswer::Unavailable);
        assert!(matches!(a.dial(b.address()).await, Err(TransportError::Unavailable { .. })));
        world.network.set_dials("b", DialAnswer::Refused);
        assert!(matches!(a.dial(b.address()).await, Err(TransportError::Refused { .. })));
        assert!(matches!(b.accept().await, Err(TransportError::Refused { .. })));
        world.network.set_dials("b", DialAnswer::Hang);
        let begin = world.timer.now();
        assert!(matches!(a.dial(b.address()).await, Err(TransportError::Unavailable { .. })));
        assert_eq!(world.timer.now().since(begin), Millis(3_000));
        world.network.set_dials("b", DialAnswer::Normal);
        connect(&*a, b.address(), &*b).await;
    });
}

#[test]
fn dial_that_comes_twice_is_let_in_once() {
    let settings = NetworkSettings {
        link: Link { duplicate_per_mille: 1_000, ..Link::default() },
        ..NetworkSettings::default()
    };
    simulated_with(settings, 3, async |world| {
        let (_a, b, _dialler, _acceptor) = pair(&world).await;
        assert!(stays_pending(Duration::from_secs(10), b.accept()).await);
        let stats = world.network.stats();
        assert_eq!((stats.connections, stats.duplicates), (1, 1));
    });
}

#[test]
fn backlog_is_bounded_and_a_dial_beyond_it_waits_for_room() {
    let settings = NetworkSettings { backlog: 2, ..NetworkSettings::default() };
    simulated_with(settings, 1, async |world| {
        let (a, b) = (world.endpoint("a").await, world.endpoint("b").await);
        let _kept: [Connection; 2] = [a.dial(b.address()).await.unwrap(), a.dial(b.address()).await.unwrap()];
        assert!(matches!(a.dial(b.address()).await, Err(TransportError::Unavailable { .. })));
        let (dialled, _) = join(a.dial(b.address()), b.accept()).await;
        dialled.unwrap();
    });
}

#[test]
fn who_does_not_poll_holds_up_nobody() {
    simulated(async |world| {
        let (a, b, mut dialler, _never_polled) = pair(&world).await;
        let full = dialler.say(Bytes::from(vec![0; 1 << 20]));
        assert!(stays_pending(Duration::from_secs(1), full).await);
        let c = world.endpoint("c").await;
        let (mut near, mut far) = connect(&*c, a.address(), &*a).await;
        near.say(Bytes::from_static(b"goes on")).await.unwrap();
        let heard = within(Duration::from_secs(1), "others go on", far.hear(7)).await;
        assert_eq!(heard.unwrap(), "goes on");
        drop(b);
    });
}
