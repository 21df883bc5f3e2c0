//! The lane: order, batches, and waiting for a reader.

use std::future::poll_fn;
use std::task::Poll;

use archipelago_quic::QuicSettings;
use bytes::{Bytes, BytesMut};

use crate::support::{bounded, fill, pair, pair_with, pattern, recv, recv_exact, send};

/// Proves: R128, R492
#[tokio::test]
async fn batches_of_all_sizes_come_out_in_order_in_both_directions() {
    bounded(async {
        let mut pair = pair().await;
        assert_eq!(pair.ab.peer.names.first().map(String::as_str), Some("cluster.test"));
        assert!(pair.ba.peer.fingerprint.is_some());
        let sizes: Vec<usize> = (0..2_000).map(|n| 1 + (n * 7_919) % 9_000).collect();
        let total: usize = sizes.iter().sum();
        let there = async {
            let mut at = 0;
            for size in &sizes {
                send(&mut *pair.ab.outgoing, pattern(at, *size)).await.unwrap();
                at += size;
            }
        };
        let back = async {
            let mut got = BytesMut::new();
            while got.len() < total {
                let before = got.len();
                recv(&mut *pair.ba.incoming, &mut got).await.unwrap();
                send(&mut *pair.ba.outgoing, Bytes::copy_from_slice(&got[before..])).await.unwrap();
            }
            got
        };
        let ((), got, echoed) = tokio::join!(there, back, recv_exact(&mut *pair.ab.incoming, total));
        assert!(got == pattern(0, total), "what arrived differs from what was sent");
        assert!(echoed == got, "what came back differs from what arrived");
    })
    .await;
}

#[tokio::test]
async fn the_reader_appends_and_gets_batches() {
    bounded(async {
        let mut pair = pair().await;
        for at in 0..1_000 {
            send(&mut *pair.ab.outgoing, pattern(at * 100, 100)).await.unwrap();
        }
        let mut got = BytesMut::from(&b"kept"[..]);
        let mut reads = 0;
        while got.len() < 4 + 100_000 {
            assert_ne!(recv(&mut *pair.ba.incoming, &mut got).await.unwrap(), 0);
            reads += 1;
        }
        assert_eq!(&got[..4], b"kept");
        assert!(got[4..] == pattern(0, 100_000));
        assert!(reads < 200, "{reads} reads for 1000 frames");
    })
    .await;
}

/// Proves: R123
#[tokio::test]
async fn a_peer_that_does_not_read_makes_the_sender_wait_and_go_on_later() {
    bounded(async {
        let settings = QuicSettings { stream_window: 256 << 10, ..QuicSettings::default() };
        let mut pair = pair_with(settings).await;
        let taken = fill(&mut *pair.ab.outgoing).await;
        assert!((200 << 10..=256 << 10).contains(&taken), "took {taken} bytes");

        let mut more = Bytes::from(vec![7; 100 << 10]);
        let sending = poll_fn(|cx| pair.ab.outgoing.poll_send(cx, &mut more));
        let reading = recv_exact(&mut *pair.ba.incoming, taken + (100 << 10));
        let (sent, got) = tokio::join!(sending, reading);
        sent.unwrap();
        assert!(got.iter().all(|byte| *byte == 7));
    })
    .await;
}

#[tokio::test]
async fn what_a_send_has_taken_is_not_in_the_data_any_more() {
    bounded(async {
        let settings = QuicSettings { stream_window: 64 << 10, ..QuicSettings::default() };
        let mut pair = pair_with(settings).await;
        let mut data = pattern(0, 100 << 10);
        let polled = poll_fn(|cx| Poll::Ready(pair.ab.outgoing.poll_send(cx, &mut data))).await;
        assert!(polled.is_pending());
        let taken = (100 << 10) - data.len();
        assert!(taken > 0 && !data.is_empty(), "took {taken}");
        assert!(data == pattern(taken, data.len()));
        assert!(recv_exact(&mut *pair.ba.incoming, taken).await == pattern(0, taken));
    })
    .await;
}
