//! Noise, silence and absence.

use std::time::{Duration, Instant};

use archipelago_protocol::contract::TransportError;
use archipelago_quic::QuicSettings;
use bytes::{Bytes, BytesMut};
use tokio::net::UdpSocket;

use crate::support::{Proxy, bounded, connect, credentials, open, pair, recv, recv_exact, send, soon};

#[tokio::test]
async fn garbage_on_the_port_harms_nobody() {
    bounded(async {
        let mut pair = pair().await;
        let noise = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        for n in 0..2_000_usize {
            let mut datagram = vec![(n * 31) as u8; 1 + n % 1_400];
            // Some look like the long header of QUIC version 1.
            if n % 2 == 0 && datagram.len() > 5 {
                datagram[..5].copy_from_slice(&[0xc0, 0, 0, 0, 1]);
            }
            noise.send_to(&datagram, pair.b.address().to_string()).await.unwrap();
        }
        send(&mut *pair.ab.outgoing, Bytes::from_static(b"still here")).await.unwrap();
        assert_eq!(recv_exact(&mut *pair.ba.incoming, 10).await, &b"still here"[..]);
        let accepted = async {
            loop {
                match pair.b.accept().await {
                    Ok(connection) => break connection,
                    Err(error) => assert!(matches!(error, TransportError::Refused { .. }), "{error:?}"),
                }
            }
        };
        let (dialled, _accepted) = tokio::join!(pair.a.dial(pair.b.address()), accepted);
        dialled.unwrap();
    })
    .await;
}

#[tokio::test]
async fn nobody_there_is_unavailable_within_the_dial_limit() {
    bounded(async {
        let settings = QuicSettings { dial_limit: Duration::from_millis(400), ..QuicSettings::default() };
        let a = open(settings, &credentials()).await;
        let nobody = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().into();
        let start = Instant::now();
        let dialled = a.dial(&nobody).await;
        assert!(matches!(dialled, Err(TransportError::Unavailable { .. })), "{dialled:?}");
        assert!(start.elapsed() < Duration::from_secs(2));
        let unknown = a.dial(&"no-such-host.invalid:1".parse().unwrap()).await;
        assert!(matches!(unknown, Err(TransportError::Unavailable { .. })), "{unknown:?}");
    })
    .await;
}

#[tokio::test]
async fn a_name_is_resolved_and_a_taken_port_is_unavailable() {
    bounded(async {
        let credentials = credentials();
        let (a, b) =
            (open(Default::default(), &credentials).await, open(Default::default(), &credentials).await);
        let by_name = format!("localhost:{}", b.address().port()).parse().unwrap();
        connect(&a, &b, &by_name).await;

        use archipelago_protocol::contract::Transport;
        let transport = archipelago_quic::QuicTransport::new(QuicSettings::default(), credentials);
        let taken = transport.open(b.address()).await.map(drop);
        assert!(matches!(taken, Err(TransportError::Unavailable { .. })), "{taken:?}");
    })
    .await;
}

/// Many who begin a handshake and never say another word.
#[tokio::test]
async fn silent_diallers_delay_nobody_and_are_dropped_in_time() {
    bounded(async {
        let credentials = credentials();
        let limit = Duration::from_millis(1_500);
        let settings = QuicSettings { handshake_limit: limit, dial_limit: limit, ..QuicSettings::default() };
        let (a, b) = (open(settings.clone(), &credentials).await, open(settings.clone(), &credentials).await);
        let mut silent = Vec::new();
        for _ in 0..20 {
            let proxy = Proxy::start(b.address()).await;
            proxy.allow(1, usize::MAX);
            let endpoint = open(settings.clone(), &credentials).await;
            silent.push(tokio::spawn(async move { endpoint.dial(&proxy.address).await.map(drop) }));
        }
        assert!(soon(b.accept()).await.is_pending(), "nobody has come in yet");
        let start = Instant::now();
        connect(&a, &b, b.address()).await;
        assert!(start.elapsed() < Duration::from_millis(700), "it took {:?}", start.elapsed());
        for _ in 0..20 {
            let dropped = b.accept().await;
            assert!(matches!(&dropped, Err(TransportError::Lost { .. })), "{dropped:?}");
        }
        for dial in silent {
            assert!(matches!(dial.await.unwrap(), Err(TransportError::Unavailable { .. })));
        }
    })
    .await;
}

#[tokio::test]
async fn too_many_handshakes_are_turned_away_until_there_is_room() {
    bounded(async {
        let credentials = credentials();
        let settings = QuicSettings {
            handshake_limit: Duration::from_millis(800),
            max_handshakes: 1,
            ..QuicSettings::default()
        };
        let (a, b) = (open(settings.clone(), &credentials).await, open(settings.clone(), &credentials).await);
        let proxy = Proxy::start(b.address()).await;
        // The address check (retry) and one more packet, then silence.
        proxy.allow(2, usize::MAX);
        let silent = open(settings, &credentials).await;
        let dial = tokio::spawn(async move { silent.dial(&proxy.address).await.map(drop) });
        assert!(soon(b.accept()).await.is_pending());
        let turned_away = a.dial(b.address()).await.map(drop);
        assert!(matches!(turned_away, Err(TransportError::Unavailable { .. })), "{turned_away:?}");
        assert!(matches!(b.accept().await, Err(TransportError::Lost { .. })));
        connect(&a, &b, b.address()).await;
        dial.abort();
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_vanishes_is_noticed_within_the_silence_limit_though_nothing_is_sent() {
    bounded(async {
        let credentials = credentials();
        let limit = Duration::from_secs(1);
        let settings = QuicSettings { silence_limit: limit, ..QuicSettings::default() };
        let (a, b) = (open(settings.clone(), &credentials).await, open(settings, &credentials).await);
        let proxy = Proxy::start(b.address()).await;
        let (mut ab, mut ba) = connect(&a, &b, &proxy.address).await;

        // Idle, but not silent: signs of life keep it.
        let mut buffer = BytesMut::new();
        let idle = tokio::time::timeout(3 * limit, recv(&mut *ba.incoming, &mut buffer)).await;
        assert!(idle.is_err(), "an idle connection ended: {idle:?}");

        proxy.allow(0, 0);
        let start = Instant::now();
        let mut other = BytesMut::new();
        let (here, there) =
            tokio::join!(recv(&mut *ab.incoming, &mut buffer), recv(&mut *ba.incoming, &mut other));
        assert!(matches!(here, Err(TransportError::Lost { .. })), "{here:?}");
        assert!(matches!(there, Err(TransportError::Lost { .. })), "{there:?}");
        assert!(start.elapsed() <= limit + Duration::from_millis(200), "noticed after {:?}", start.elapsed());
        assert!(matches!(ab.streams.open().await.map(drop), Err(TransportError::Lost { .. })));

        proxy.allow(usize::MAX, usize::MAX);
        connect(&a, &b, &proxy.address).await;
    })
    .await;
}

#[tokio::test]
async fn a_dropped_accept_or_dial_loses_nobody() {
    bounded(async {
        let credentials = credentials();
        let (a, b) =
            (open(Default::default(), &credentials).await, open(Default::default(), &credentials).await);
        assert!(soon(b.accept()).await.is_pending());
        // Dropped at once: whatever came of it, the endpoints go on.
        drop(tokio::time::timeout(Duration::ZERO, a.dial(b.address())).await);
        let dial = async {
            let mut ab = a.dial(b.address()).await.unwrap();
            send(&mut *ab.outgoing, Bytes::from_static(b"x")).await.unwrap();
            ab
        };
        let accept = async {
            let mut got = BytesMut::new();
            while got.is_empty() {
                if let Ok(mut ba) = b.accept().await {
                    let _ = recv(&mut *ba.incoming, &mut got).await;
                }
            }
            got
        };
        let (_ab, got) = tokio::join!(dial, accept);
        assert_eq!(got, &b"x"[..]);
    })
    .await;
}
