//! Streams beside the lane, and the end of a connection.
#![expect(clippy::disallowed_methods, reason = "tests of a real transport need real tasks and timers")]
#![expect(clippy::unwrap_used, reason = "what helps tests may fail like tests")]

mod support;

use std::future::poll_fn;
use std::time::{Duration, Instant};

use archipelago_protocol::contract::{CloseCode, CloseReason, TransportError};
use archipelago_tcp::{Security, TcpSettings};
use archipelago_tls::DevelopmentAuthority;
use bytes::{Bytes, BytesMut};
use support::{NAME, Pair, endpoint, pair, quick, recv, run, send, within};

const LARGE: usize = 64 << 20;

async fn secured() -> Pair {
    let authority = DevelopmentAuthority::in_memory().unwrap();
    let security = Security::Tls(authority.credentials(NAME).unwrap());
    let near = endpoint(TcpSettings::default(), security.clone()).await;
    let far = endpoint(TcpSettings::default(), security).await;
    let (dialled, accepted) = tokio::join!(near.dial(far.address()), far.accept());
    Pair { dialled: dialled.unwrap(), accepted: accepted.unwrap(), near, far }
}

/// Sends a large stream, and counts how often a question and its answer fit on the lane meanwhile.
async fn large_stream_beside_lane(pair: Pair) {
    let Pair { mut dialled, mut accepted, near: _near, far: _far } = pair;
    let mut writer = dialled.streams.open().await.unwrap();
    let transfer = tokio::spawn(async move {
        let data: Vec<u8> = (0..LARGE).map(|n| (n / 251) as u8).collect();
        send(&mut *writer, data.into()).await.unwrap();
        poll_fn(|cx| writer.poll_finish(cx)).await.unwrap();
    });
    let mut reader = accepted.streams.next().await.unwrap();
    let reading = tokio::spawn(async move {
        let (mut buffer, mut at) = (BytesMut::new(), 0);
        while recv(&mut *reader, &mut buffer).await.unwrap() > 0 {
            assert!(buffer.iter().enumerate().all(|(n, byte)| *byte == ((at + n) / 251) as u8));
            at += buffer.split().len();
        }
        assert_eq!(at, LARGE);
    });
    let (mut asked, mut slowest, mut buffer) = (0, Duration::ZERO, BytesMut::new());
    while !reading.is_finished() {
        let begin = Instant::now();
        send(&mut *dialled.outgoing, Bytes::from_static(b"ask?")).await.unwrap();
        while recv(&mut *accepted.incoming, &mut buffer).await.unwrap() < 4 {}
        send(&mut *accepted.outgoing, buffer.split().freeze()).await.unwrap();
        while recv(&mut *dialled.incoming, &mut buffer).await.unwrap() < 4 {}
        buffer.clear();
        slowest = slowest.max(begin.elapsed());
        asked += 1;
    }
    transfer.await.unwrap();
    reading.await.unwrap();
    assert!(asked >= 20, "only {asked} round trips on the lane during a large transfer");
    assert!(slowest < Duration::from_secs(2), "a round trip took {slowest:?}");
}

#[test]
fn a_large_stream_lets_the_lane_go_on() {
    run(async { large_stream_beside_lane(pair(TcpSettings::default()).await).await });
}

#[test]
fn a_large_stream_lets_the_lane_go_on_over_tls() {
    run(async { large_stream_beside_lane(secured().await).await });
}

#[test]
fn a_stream_that_nobody_reads_takes_its_window_and_no_more() {
    run(async {
        let pair = pair(TcpSettings { stream_window: 200_000.try_into().unwrap(), ..quick() }).await;
        let mut writer = pair.dialled.streams.open().await.unwrap();
        let mut data = Bytes::from(vec![1; 1_000_000]);
        let sending = poll_fn(|cx| writer.poll_send(cx, &mut data));
        assert!(tokio::time::timeout(Duration::from_millis(200), sending).await.is_err());
        assert_eq!(data.len(), 800_000);
        let mut reader = pair.accepted.streams.next().await.unwrap();
        let reading = async {
            let mut buffer = BytesMut::new();
            while buffer.len() < 1_000_000 {
                recv(&mut *reader, &mut buffer).await.unwrap();
            }
        };
        tokio::join!(reading, async { send(&mut *writer, data).await.unwrap() });
    });
}

#[test]
fn open_waits_while_too_many_are_open() {
    run(async {
        let pair = pair(TcpSettings { max_streams: 3.try_into().unwrap(), ..quick() }).await;
        let mut writers = Vec::new();
        for _ in 0..3 {
            writers.push(pair.dialled.streams.open().await.unwrap());
        }
        let waiting = tokio::time::timeout(Duration::from_millis(100), pair.dialled.streams.open()).await;
        assert!(waiting.is_err());
        let mut done = writers.pop().unwrap();
        poll_fn(|cx| done.poll_finish(cx)).await.unwrap();
        // It is the reader who makes room, not the writer.
        let waiting = tokio::time::timeout(Duration::from_millis(100), pair.dialled.streams.open()).await;
        assert!(waiting.is_err());
        for _ in 0..3 {
            drop(pair.accepted.streams.next().await.unwrap());
        }
        within(Duration::from_secs(2), "a place", pair.dialled.streams.open()).await.unwrap();
    });
}

#[test]
fn a_thousand_streams_one_after_the_other_find_room() {
    run(async {
        let pair = pair(TcpSettings { max_streams: 2.try_into().unwrap(), ..quick() }).await;
        let sending = async {
            for n in 0..1_000_u32 {
                let mut writer = pair.dialled.streams.open().await.unwrap();
                send(&mut *writer, n.to_le_bytes().to_vec().into()).await.unwrap();
                poll_fn(|cx| writer.poll_finish(cx)).await.unwrap();
            }
        };
        let reading = async {
            for n in 0..1_000_u32 {
                let mut reader = pair.accepted.streams.next().await.unwrap();
                let mut buffer = BytesMut::new();
                while recv(&mut *reader, &mut buffer).await.unwrap() > 0 {}
                assert_eq!(buffer[..], n.to_le_bytes());
                assert_eq!(recv(&mut *reader, &mut buffer).await.unwrap(), 0, "the end stays the end");
            }
        };
        tokio::join!(sending, reading);
    });
}

#[test]
fn a_writer_is_told_that_nobody_reads_any_more() {
    run(async {
        let pair = pair(quick()).await;
        let mut writer = pair.dialled.streams.open().await.unwrap();
        drop(pair.accepted.streams.next().await.unwrap());
        let told = async {
            loop {
                match send(&mut *writer, Bytes::from_static(&[1; 100_000])).await {
                    Ok(()) => tokio::task::yield_now().await,
                    Err(error) => return error,
                }
            }
        };
        let error = within(Duration::from_secs(2), "the writer is told", told).await;
        assert!(matches!(error, TransportError::Closed(_)), "{error}");
    });
}

#[test]
fn a_close_brings_its_reason_after_everything_sent_before() {
    run(async {
        let mut pair = pair(quick()).await;
        send(&mut *pair.dialled.outgoing, Bytes::from_static(&[9; 1_000_000])).await.unwrap();
        let reason = CloseReason::new(CloseCode::Replaced, "by a better one");
        pair.dialled.streams.close(reason.clone());
        let late = send(&mut *pair.dialled.outgoing, Bytes::from_static(b"late")).await.unwrap_err();
        assert!(matches!(late, TransportError::Closed(told) if told == reason));
        // The reader comes late: everything has arrived before it looks, the close as well.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut buffer = BytesMut::new();
        let error = loop {
            match recv(&mut *pair.accepted.incoming, &mut buffer).await {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(buffer.len(), 1_000_000);
        assert!(matches!(error, TransportError::Closed(told) if told == reason));
    });
}

#[test]
fn a_close_waits_for_what_the_socket_has_not_taken_yet() {
    run(async {
        let window = (64 << 20).try_into().unwrap();
        let mut pair = pair(TcpSettings { lane_window: window, ..quick() }).await;
        let (mut data, total) = (Bytes::from(vec![4; 40 << 20]), 40 << 20);
        // Polled once: nobody reads meanwhile, so the socket fills up and the last chunk stays in the connection.
        let sent = poll_fn(|cx| std::task::Poll::Ready(pair.dialled.outgoing.poll_send(cx, &mut data))).await;
        assert!(sent.is_pending());
        let reason = CloseReason::new(CloseCode::Stopping, "in the middle");
        pair.dialled.streams.close(reason.clone());
        let mut buffer = BytesMut::new();
        let error = loop {
            if let Err(error) = recv(&mut *pair.accepted.incoming, &mut buffer).await {
                break error;
            }
        };
        assert_eq!(buffer.len(), total - data.len(), "everything that was taken arrives");
        assert!(matches!(&error, TransportError::Closed(told) if *told == reason), "{error}");
    });
}

#[test]
fn a_stream_whose_writer_gives_up_is_never_taken_for_whole() {
    run(async {
        let pair = pair(quick()).await;
        let mut writer = pair.dialled.streams.open().await.unwrap();
        send(&mut *writer, Bytes::from_static(b"half of it")).await.unwrap();
        drop(writer);
        let mut reader = pair.accepted.streams.next().await.unwrap();
        let mut buffer = BytesMut::new();
        let error = loop {
            match recv(&mut *reader, &mut buffer).await {
                Ok(count) => assert_ne!(count, 0, "it seems to be whole"),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, TransportError::Lost { .. }), "{error}");
    });
}
