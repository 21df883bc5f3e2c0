//! Streams beside the lane.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_protocol::contract::{Connection, TransportError};
use archipelago_quic::QuicSettings;
use bytes::Bytes;

use crate::support::{
    NAME, bounded, credentials, fill, finish, open, pair, pair_with, pattern, recv, recv_all, recv_exact,
    send, soon,
};

/// Sends a little on the lane and waits until it has come; the time that took.
async fn ping(from: &mut Connection, to: &mut Connection) -> Duration {
    let start = Instant::now();
    send(&mut *from.outgoing, Bytes::from_static(b"ping")).await.expect("the lane is open");
    assert_eq!(recv_exact(&mut *to.incoming, 4).await, &b"ping"[..]);
    start.elapsed()
}

#[tokio::test]
async fn the_lane_goes_on_while_a_stream_carries_64_mib() {
    bounded(async {
        let mut pair = pair().await;
        let data = pattern(0, 64 << 20);
        let mut out = pair.ab.streams.open().await.unwrap();
        let mut into = pair.ba.streams.next().await.unwrap();
        let transfer = async {
            let sending = async {
                send(&mut *out, data.clone()).await.unwrap();
                finish(&mut *out).await.unwrap();
            };
            let (_, (got, end)) = tokio::join!(sending, recv_all(&mut *into));
            end.unwrap();
            got
        };
        let mut transfer = std::pin::pin!(transfer);
        let mut pings = Vec::new();
        let got = loop {
            tokio::select! {
                got = &mut transfer => break got,
                took = ping(&mut pair.ab, &mut pair.ba) => pings.push(took),
            }
        };
        assert!(got == data, "the stream is not what was sent");
        pings.sort();
        assert!(pings.len() > 50, "only {} pings during the transfer", pings.len());
        assert!(
            pings[pings.len() / 2] < Duration::from_millis(100),
            "half of the pings took {:?}",
            pings[pings.len() / 2]
        );
    })
    .await;
}

#[tokio::test]
async fn streams_that_nobody_reads_cannot_stop_the_lane() {
    bounded(async {
        let settings = QuicSettings { stream_window: 64 << 10, max_streams: 16, ..QuicSettings::default() };
        let mut pair = pair_with(settings).await;
        let mut full = Vec::new();
        for _ in 0..16 {
            let mut stream = pair.ab.streams.open().await.unwrap();
            assert!(fill(&mut *stream).await > 0);
            full.push(stream);
        }
        assert!(soon(pair.ab.streams.open()).await.is_pending(), "more streams than allowed");
        ping(&mut pair.ab, &mut pair.ba).await;
        assert!(fill(&mut *pair.ab.outgoing).await > 32 << 10, "the lane has no window of its own");
    })
    .await;
}

#[tokio::test]
async fn an_opened_stream_is_seen_before_anything_is_sent_on_it() {
    bounded(async {
        let pair = pair().await;
        let mut out = pair.ab.streams.open().await.unwrap();
        let mut into = pair.ba.streams.next().await.unwrap();
        finish(&mut *out).await.unwrap();
        finish(&mut *out).await.unwrap();
        let (got, end) = recv_all(&mut *into).await;
        assert!(got.is_empty() && end.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_before_its_end_does_not_look_whole() {
    bounded(async {
        let pair = pair().await;
        let mut out = pair.ab.streams.open().await.unwrap();
        send(&mut *out, pattern(0, 1_000)).await.unwrap();
        let mut into = pair.ba.streams.next().await.unwrap();
        let mut got = bytes::BytesMut::new();
        recv(&mut *into, &mut got).await.unwrap();
        drop(out);
        let (_, end) = recv_all(&mut *into).await;
        assert!(matches!(end, Err(TransportError::Lost { .. })), "{end:?}");
        let again = recv(&mut *into, &mut got).await;
        assert!(matches!(again, Err(TransportError::Lost { .. })), "the second answer is {again:?}");
    })
    .await;
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_the_stream_but_not_the_connection() {
    bounded(async {
        let mut pair = pair().await;
        let mut out = pair.ab.streams.open().await.unwrap();
        drop(pair.ba.streams.next().await.unwrap());
        let error = loop {
            if let Err(error) = send(&mut *out, pattern(0, 1 << 16)).await {
                break error;
            }
        };
        assert!(matches!(error, TransportError::Lost { .. }), "{error:?}");
        ping(&mut pair.ab, &mut pair.ba).await;
    })
    .await;
}

#[tokio::test]
async fn dropped_futures_of_open_and_next_lose_no_stream() {
    bounded(async {
        let settings = QuicSettings { max_streams: 2, ..QuicSettings::default() };
        let pair = pair_with(settings).await;
        assert!(soon(pair.ba.streams.next()).await.is_pending());
        let mut one = pair.ab.streams.open().await.unwrap();
        let two = pair.ab.streams.open().await.unwrap();
        assert!(soon(pair.ab.streams.open()).await.is_pending());
        send(&mut *one, pattern(0, 10)).await.unwrap();
        finish(&mut *one).await.unwrap();
        let mut into = pair.ba.streams.next().await.unwrap();
        assert!(recv_all(&mut *into).await.0 == pattern(0, 10));
        let _third = pair.ab.streams.open().await.unwrap();
        drop(two);
    })
    .await;
}

#[tokio::test]
async fn a_stream_of_another_kind_is_not_read_and_the_connection_goes_on() {
    bounded(async {
        let credentials = credentials();
        let endpoint = open(QuicSettings::default(), &credentials).await;
        let tls = credentials.client_config(&[b"archipelago/1"]);
        let tls = quinn::crypto::rustls::QuicClientConfig::try_from(tls).unwrap();
        let mut socket = quinn::Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
        let address = endpoint.address().to_string().parse().unwrap();
        let dial = async {
            let connection = socket.connect(address, NAME).unwrap().await.unwrap();
            let mut lane = connection.open_bi().await.unwrap();
            lane.0.write_all(b"archip\0\x01").await.unwrap();
            (connection, lane)
        };
        let ((connection, _lane), accepted) = tokio::join!(dial, endpoint.accept());
        let accepted = accepted.unwrap();
        for kind in [9, 1] {
            let mut out = connection.open_uni().await.unwrap();
            out.write_all(&[kind, 5, 6]).await.unwrap();
            out.finish().unwrap();
            let mut into = accepted.streams.next().await.unwrap();
            match recv_all(&mut *into).await {
                (got, Err(TransportError::Lost { reason })) if kind == 9 => {
                    assert!(got.is_empty() && reason.contains("unknown kind 9"), "{got:?} {reason}");
                }
                (got, end) => {
                    assert!(kind == 1 && end.is_ok() && got == [5, 6][..], "{kind}: {got:?} {end:?}")
                }
            }
        }
    })
    .await;
}
