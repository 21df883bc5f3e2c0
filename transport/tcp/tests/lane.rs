//! The lane: order, back-pressure, and silence.
#![expect(clippy::disallowed_methods, reason = "tests of a real transport need real tasks and timers")]
#![expect(clippy::unwrap_used, reason = "what helps tests may fail like tests")]

mod support;

use std::time::{Duration, Instant};

use archipelago_protocol::contract::{RecvStream, TransportError};
use archipelago_tcp::{Security, TcpSettings};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use support::{endpoint, pair, quick, recv, run, run_threaded, send, within};
use tokio::net::{TcpListener, TcpStream};

/// Batches of many lengths, whose content is one long count.
fn batches(count: u32) -> impl Iterator<Item = Bytes> {
    let mut next = 0_u32;
    (0..count).map(move |n| {
        let mut batch = BytesMut::new();
        for _ in 0..=(n * 7919) % 3_000 {
            batch.put_u32_le(next);
            next = next.wrapping_add(1);
        }
        batch.freeze()
    })
}

async fn read_count(mut incoming: Box<dyn RecvStream>, total: u32) {
    let (mut buffer, mut expected) = (BytesMut::new(), 0_u32);
    while expected < total {
        recv(&mut *incoming, &mut buffer).await.unwrap();
        while buffer.len() >= 4 {
            assert_eq!(buffer.get_u32_le(), expected);
            expected += 1;
        }
    }
}

async fn many_batches_both_ways() {
    let pair = pair(TcpSettings::default()).await;
    let total: u32 = batches(2_000).map(|batch| batch.len() as u32 / 4).sum();
    let mut tasks = Vec::new();
    let _streams = (pair.dialled.streams, pair.accepted.streams);
    for (mut outgoing, incoming) in
        [(pair.dialled.outgoing, pair.accepted.incoming), (pair.accepted.outgoing, pair.dialled.incoming)]
    {
        tasks.push(tokio::spawn(read_count(incoming, total)));
        tasks.push(tokio::spawn(async move {
            for batch in batches(2_000) {
                send(&mut *outgoing, batch).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
}

/// Proves: R467
#[test]
fn many_batches_keep_their_order_on_one_thread() {
    run(many_batches_both_ways());
}

#[test]
fn many_batches_keep_their_order_on_several_threads() {
    run_threaded(many_batches_both_ways());
}

/// Sends until it is pending for a while; returns how much was taken, and what was left of the last batch.
async fn fill(outgoing: &mut dyn archipelago_protocol::contract::SendStream) -> (usize, Bytes) {
    let mut taken = 0;
    loop {
        let mut data = Bytes::from_static(&[5; 50_000]);
        let sending = std::future::poll_fn(|cx| outgoing.poll_send(cx, &mut data));
        let sent = tokio::time::timeout(Duration::from_millis(200), sending).await;
        taken += 50_000 - data.len();
        match sent {
            Ok(sent) => sent.unwrap(),
            Err(_) => return (taken, data),
        }
    }
}

/// Proves: R123
#[test]
fn a_lane_reader_that_stops_makes_the_sender_wait_and_is_not_taken_for_dead() {
    run(async {
        let window = 100_000;
        let settings = TcpSettings { lane_window: window.try_into().unwrap(), ..quick() };
        let silence = settings.silence_limit;
        let mut pair = pair(settings).await;
        let (taken, left) = fill(&mut *pair.dialled.outgoing).await;
        assert_eq!(taken, window as usize, "exactly the window is taken");
        tokio::time::sleep(silence * 3).await;
        let reading = tokio::spawn(async move {
            let mut buffer = BytesMut::new();
            while buffer.len() < 150_000 {
                recv(&mut *pair.accepted.incoming, &mut buffer).await.unwrap();
            }
            assert_eq!(buffer.len(), 150_000);
            pair.accepted.streams
        });
        assert_eq!(left.len(), 50_000);
        send(&mut *pair.dialled.outgoing, left).await.unwrap();
        within(Duration::from_secs(5), "the rest", reading).await.unwrap();
    });
}

/// Proves: R123
#[test]
fn a_stopped_lane_stops_no_stream() {
    run(async {
        let mut pair = pair(TcpSettings { lane_window: 100_000.try_into().unwrap(), ..quick() }).await;
        fill(&mut *pair.dialled.outgoing).await;
        let mut writer = pair.dialled.streams.open().await.unwrap();
        let sending = async {
            send(&mut *writer, vec![3; 3_000_000].into()).await.unwrap();
            std::future::poll_fn(|cx| writer.poll_finish(cx)).await.unwrap();
        };
        let reading = async {
            let mut reader = pair.accepted.streams.next().await.unwrap();
            let mut all = BytesMut::new();
            while recv(&mut *reader, &mut all).await.unwrap() > 0 {}
            assert_eq!(all.len(), 3_000_000);
        };
        within(Duration::from_secs(5), "a stream beside a full lane", async {
            tokio::join!(sending, reading)
        })
        .await;
    });
}

/// Passes bytes on for one connection, until it is told to freeze.
async fn freezing_proxy(
    to: std::net::SocketAddr,
) -> (std::net::SocketAddr, tokio::sync::oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (freeze, frozen) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut near, _) = listener.accept().await.unwrap();
        let mut far = TcpStream::connect(to).await.unwrap();
        tokio::select! {
            _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
            _ = frozen => std::future::pending().await,
        }
    });
    (address, freeze)
}

#[test]
fn a_frozen_peer_is_lost_within_the_silence_limit() {
    run(async {
        let near = endpoint(quick(), Security::Insecure).await;
        let far = endpoint(quick(), Security::Insecure).await;
        let to = format!("127.0.0.1:{}", far.address().port()).parse().unwrap();
        let (address, freeze) = freezing_proxy(to).await;
        let address = address.into();
        let (dialled, accepted) = tokio::join!(near.dial(&address), far.accept());
        let (mut dialled, mut accepted) = (dialled.unwrap(), accepted.unwrap());
        // Both are idle for longer than the limit, and live.
        tokio::time::sleep(quick().silence_limit * 2).await;
        send(&mut *dialled.outgoing, Bytes::from_static(b"alive")).await.unwrap();
        let mut buffer = BytesMut::new();
        recv(&mut *accepted.incoming, &mut buffer).await.unwrap();
        freeze.send(()).unwrap();
        let begin = Instant::now();
        for incoming in [&mut dialled.incoming, &mut accepted.incoming] {
            let lost =
                within(quick().silence_limit * 2, "silence is noticed", recv(&mut **incoming, &mut buffer));
            let error = lost.await.unwrap_err();
            assert!(
                matches!(&error, TransportError::Lost { reason } if reason.contains("nothing was heard")),
                "{error}"
            );
        }
        assert!(begin.elapsed() < quick().silence_limit * 3 / 2, "{:?}", begin.elapsed());
    });
}
