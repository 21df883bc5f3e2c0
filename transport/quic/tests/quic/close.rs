//! How connections and endpoints end.

use std::time::{Duration, Instant};

use archipelago_protocol::contract::{CloseCode, CloseReason, Connection, TransportError};
use bytes::{Bytes, BytesMut};

use crate::support::{
    bounded, connect, credentials, fill, finish, open, pair, pattern, recv, recv_all, send,
};

fn reason() -> CloseReason {
    CloseReason::new(CloseCode::Replaced, "another one took its place: ä")
}

fn is_closed<T>(result: Result<T, TransportError>, expected: &CloseReason) -> bool {
    matches!(result, Err(TransportError::Closed(told)) if told == *expected)
}

/// Every operation of `connection` answers with `expected`.
async fn all_closed(connection: &mut Connection, expected: &CloseReason) {
    let Connection { outgoing, incoming, streams, .. } = connection;
    assert!(is_closed(send(&mut **outgoing, Bytes::from_static(b"late")).await, expected));
    assert!(is_closed(finish(&mut **outgoing).await, expected));
    assert!(is_closed(recv(&mut **incoming, &mut BytesMut::new()).await, expected));
    assert!(is_closed(streams.open().await, expected));
    assert!(is_closed(streams.next().await, expected));
}

#[tokio::test]
async fn everything_sent_before_a_close_arrives_before_it_and_then_all_answer_with_the_reason() {
    bounded(async {
        let mut pair = pair().await;
        let lane = pattern(0, 700_000);
        let mut out = pair.ab.streams.open().await.unwrap();
        send(&mut *out, lane.slice(..600_000)).await.unwrap();
        finish(&mut *out).await.unwrap();
        send(&mut *pair.ab.outgoing, lane.clone()).await.unwrap();
        pair.ab.streams.close(reason());
        pair.ab.streams.close(CloseReason::new(CloseCode::Done, "the first reason counts"));
        all_closed(&mut pair.ab, &reason()).await;
        assert!(is_closed(send(&mut *out, Bytes::from_static(b"late")).await, &reason()));

        let (got, end) = recv_all(&mut *pair.ba.incoming).await;
        assert!(got == lane, "{} of 700000 bytes came before the close", got.len());
        assert!(is_closed(end, &reason()));
        let mut into = pair.ba.streams.next().await.unwrap();
        let (got, end) = recv_all(&mut *into).await;
        assert!(got == lane.slice(..600_000) && end.is_ok(), "the finished stream did not arrive");
        all_closed(&mut pair.ba, &reason()).await;
    })
    .await;
}

#[tokio::test]
async fn a_close_wakes_what_is_pending_on_both_sides() {
    bounded(async {
        let pair = pair().await;
        let Connection { mut outgoing, mut incoming, streams, .. } = pair.ab;
        fill(&mut *outgoing).await;
        let mut stuck = streams.open().await.unwrap();
        fill(&mut *stuck).await;
        let (mut buffer, mut other) = (BytesMut::new(), BytesMut::new());
        let mut far_incoming = pair.ba.incoming;
        let (outgoing, stuck, incoming, far, next, _) = tokio::join!(
            send(&mut *outgoing, Bytes::from_static(b"more")),
            send(&mut *stuck, Bytes::from_static(b"more")),
            recv(&mut *incoming, &mut buffer),
            async {
                while recv(&mut *far_incoming, &mut other).await? > 0 {}
                Ok::<(), TransportError>(())
            },
            streams.next(),
            async {
                tokio::task::yield_now().await;
                streams.close(reason());
            },
        );
        assert!(is_closed(outgoing, &reason()) && is_closed(stuck, &reason()));
        assert!(is_closed(incoming, &reason()) && is_closed(far, &reason()) && is_closed(next, &reason()));
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_a_close_cuts_is_not_whole() {
    bounded(async {
        let pair = pair().await;
        let mut out = pair.ab.streams.open().await.unwrap();
        send(&mut *out, pattern(0, 1_000)).await.unwrap();
        let mut into = pair.ba.streams.next().await.unwrap();
        pair.ab.streams.close(reason());
        assert!(is_closed(recv_all(&mut *into).await.1, &reason()));
    })
    .await;
}

#[tokio::test]
async fn dropping_all_parts_ends_the_connection_after_what_was_sent() {
    bounded(async {
        let mut pair = pair().await;
        send(&mut *pair.ab.outgoing, pattern(0, 300_000)).await.unwrap();
        drop(pair.ab);
        let (got, end) = recv_all(&mut *pair.ba.incoming).await;
        assert!(got == pattern(0, 300_000), "{} bytes came", got.len());
        let done = CloseReason::new(CloseCode::Done, "dropped");
        assert!(is_closed(end, &done));
        all_closed(&mut pair.ba, &done).await;
    })
    .await;
}

#[tokio::test]
async fn closing_an_endpoint_closes_its_connections_and_frees_its_port() {
    bounded(async {
        let mut pair = pair().await;
        send(&mut *pair.ba.outgoing, pattern(0, 300_000)).await.unwrap();
        let (_, ended) = tokio::join!(pair.b.close(reason()), pair.b.accept());
        assert!(matches!(ended, Err(TransportError::Ended)), "{ended:?}");
        assert!(matches!(pair.b.accept().await, Err(TransportError::Ended)));
        assert!(matches!(pair.b.dial(pair.a.address()).await, Err(TransportError::Ended)));
        let (got, end) = recv_all(&mut *pair.ab.incoming).await;
        assert!(got == pattern(0, 300_000) && is_closed(end, &reason()));
        all_closed(&mut pair.ab, &reason()).await;
        all_closed(&mut pair.ba, &reason()).await;

        // quinn's connections hold the socket as well.
        drop(pair.ba);
        let start = Instant::now();
        while tokio::net::UdpSocket::bind(pair.b.address().to_string()).await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(5), "the port is not free");
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_closes_does_not_cut_a_farewell_short() {
    bounded(async {
        let mut pair = pair().await;
        send(&mut *pair.ba.outgoing, pattern(0, 700_000)).await.unwrap();
        drop(pair.ba);
        let ((), (got, end)) = tokio::join!(pair.b.close(reason()), recv_all(&mut *pair.ab.incoming));
        assert!(got == pattern(0, 700_000), "{} bytes came", got.len());
        assert!(is_closed(end, &CloseReason::new(CloseCode::Done, "dropped")));
    })
    .await;
}

#[tokio::test]
async fn the_same_endpoints_connect_again_and_the_new_connection_begins_empty() {
    bounded(async {
        let credentials = credentials();
        let (a, b) =
            (open(Default::default(), &credentials).await, open(Default::default(), &credentials).await);
        for round in 0..3_usize {
            let (mut ab, mut ba) = connect(&a, &b, b.address()).await;
            send(&mut *ab.outgoing, pattern(round, 500)).await.unwrap();
            ab.streams.close(reason());
            let (got, _) = recv_all(&mut *ba.incoming).await;
            assert!(got == pattern(round, 500));
        }
    })
    .await;
}
