//! Who is let in, and what the others are told.
#![expect(clippy::disallowed_methods, reason = "tests of a real transport need real tasks and timers")]
#![expect(clippy::unwrap_used, reason = "what helps tests may fail like tests")]

mod support;

use std::time::{Duration, Instant};

use archipelago_protocol::contract::{Connection, Endpoint, TransportError};
use archipelago_tcp::{Security, TcpSettings};
use archipelago_tls::{DevelopmentAuthority, Validity};
use support::{NAME, endpoint, quick, run, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn authority() -> DevelopmentAuthority {
    DevelopmentAuthority::in_memory().unwrap()
}

async fn secured(authority: &DevelopmentAuthority, validity: Validity) -> Box<dyn Endpoint> {
    endpoint(quick(), Security::Tls(authority.credentials_with(NAME, validity).unwrap())).await
}

/// What `dial` and `accept` say when both are refused.
async fn refused(from: &dyn Endpoint, to: &dyn Endpoint) -> (String, String) {
    let both = async { tokio::join!(from.dial(to.address()), to.accept()) };
    let (dialled, accepted) = within(Duration::from_secs(5), "both are told", both).await;
    (reason(dialled), reason(accepted))
}

fn reason(answer: Result<Connection, TransportError>) -> String {
    match answer {
        Err(TransportError::Refused { reason }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn both_sides_know_whom_they_are_connected_to() {
    run(async {
        let ca = authority();
        let (near, far) = (secured(&ca, Validity::Current).await, secured(&ca, Validity::Current).await);
        let (dialled, accepted) = tokio::join!(near.dial(far.address()), far.accept());
        let (dialled, accepted) = (dialled.unwrap().peer, accepted.unwrap().peer);
        assert_eq!(dialled.names, [NAME, "localhost"]);
        assert!(dialled.fingerprint.is_some() && accepted.fingerprint.is_some());
        assert_ne!(dialled.fingerprint, accepted.fingerprint);
    });
}

#[test]
fn another_authority_is_refused_on_both_sides() {
    run(async {
        let ours = secured(&authority(), Validity::Current).await;
        let theirs = secured(&authority(), Validity::Current).await;
        let (dialled, accepted) = refused(&*ours, &*theirs).await;
        assert!(dialled.contains("the peer's certificate was issued by another authority"), "{dialled}");
        assert!(accepted.contains("refused this node's certificate: it was issued by another"), "{accepted}");
    });
}

/// A dialler with TLS 1.3 believes that all is well until it reads for the first time.
#[test]
fn a_dialler_whose_certificate_has_expired_is_refused_on_both_sides() {
    run(async {
        let ca = authority();
        let (expired, good) = (secured(&ca, Validity::Expired).await, secured(&ca, Validity::Current).await);
        for _ in 0..20 {
            let (dialled, accepted) = refused(&*expired, &*good).await;
            assert!(dialled.contains("refused this node's certificate: it has expired"), "{dialled}");
            assert!(accepted.contains("the peer's certificate has expired"), "{accepted}");
        }
    });
}

#[test]
fn a_listener_whose_certificate_has_expired_or_is_not_valid_yet_is_refused_on_both_sides() {
    run(async {
        let ca = authority();
        let good = secured(&ca, Validity::Current).await;
        for (validity, words) in [(Validity::Expired, "has expired"), (Validity::NotYet, "is not valid yet")]
        {
            let bad = secured(&ca, validity).await;
            let (dialled, accepted) = refused(&*good, &*bad).await;
            assert!(dialled.contains(words), "{dialled}");
            assert!(accepted.contains("refused this node's certificate"), "{accepted}");
        }
    });
}

#[test]
fn plain_and_tls_do_not_mix_and_say_so() {
    run(async {
        let plain = endpoint(quick(), Security::Insecure).await;
        let tls = secured(&authority(), Validity::Current).await;
        let (dialled, accepted) = refused(&*plain, &*tls).await;
        assert!(dialled.contains("does not speak this transport"), "{dialled}");
        assert!(accepted.contains("does not speak TLS"), "{accepted}");
        let (dialled, accepted) = refused(&*tls, &*plain).await;
        assert!(dialled.contains("does not speak TLS"), "{dialled}");
        assert!(accepted.contains("does not speak this transport"), "{accepted}");
    });
}

#[test]
fn garbage_on_the_port_is_refused_with_a_reason_and_the_endpoint_goes_on() {
    run(async {
        let (near, far) =
            (endpoint(quick(), Security::Insecure).await, endpoint(quick(), Security::Insecure).await);
        for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 3_000], b"\xa7rchip\x09\x00", b"\xa7r?"] {
            let mut stranger = TcpStream::connect(("127.0.0.1", far.address().port())).await.unwrap();
            stranger.write_all(garbage).await.unwrap();
            let why = reason(far.accept().await);
            assert!(why.contains("does not speak") || why.contains("version 9"), "{why}");
            let (dialled, accepted) = tokio::join!(near.dial(far.address()), far.accept());
            dialled.unwrap();
            accepted.unwrap();
        }
    });
}

#[test]
fn a_dialled_port_that_speaks_something_else_is_refused_with_a_reason() {
    run(async {
        let near = endpoint(quick(), Security::Insecure).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().into();
        for greeting in ["SSH-2.0-OpenSSH_9.6\r\n", ""] {
            let serve = async {
                let (mut socket, _) = listener.accept().await.unwrap();
                socket.write_all(greeting.as_bytes()).await.unwrap();
                let _ = socket.shutdown().await;
                let _ = socket.read_to_end(&mut Vec::new()).await;
            };
            let (dialled, ()) = tokio::join!(near.dial(&address), serve);
            assert!(!reason(dialled).is_empty());
        }
    });
}

#[test]
fn a_silent_dialler_delays_nobody_and_is_dropped_in_time() {
    run(async {
        let (near, far) =
            (endpoint(quick(), Security::Insecure).await, endpoint(quick(), Security::Insecure).await);
        let begin = Instant::now();
        let mut silent = TcpStream::connect(("127.0.0.1", far.address().port())).await.unwrap();
        let (dialled, accepted) = tokio::join!(near.dial(far.address()), far.accept());
        let _kept = (dialled.unwrap(), accepted.unwrap());
        assert!(begin.elapsed() < quick().handshake_limit, "{:?}", begin.elapsed());
        let mut said = Vec::new();
        let dropped = silent.read_to_end(&mut said);
        let _ = within(quick().handshake_limit * 3, "the silent one is dropped", dropped).await;
        let error = far.accept().await.unwrap_err();
        assert!(
            matches!(&error, TransportError::Lost { reason } if reason.contains("said nothing")),
            "{error}"
        );
    });
}

#[test]
fn more_silent_diallers_than_there_is_room_for_keep_nobody_out() {
    run(async {
        let settings = TcpSettings {
            handshakes: 4.try_into().unwrap(),
            handshake_limit: Duration::from_secs(30),
            ..quick()
        };
        let (near, far) =
            (endpoint(quick(), Security::Insecure).await, endpoint(settings, Security::Insecure).await);
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(TcpStream::connect(("127.0.0.1", far.address().port())).await.unwrap());
        }
        let mut said = Vec::new();
        let oldest = silent[0].read_to_end(&mut said);
        let _ = within(Duration::from_secs(2), "the oldest makes room", oldest).await;
        let both = async { tokio::join!(near.dial(far.address()), far.accept()) };
        let (dialled, accepted) = within(Duration::from_secs(2), "one that speaks", both).await;
        dialled.unwrap();
        accepted.unwrap();
    });
}

#[test]
fn nobody_there_is_unavailable_and_a_bad_setting_is_invalid() {
    run(async {
        let near = endpoint(quick(), Security::Insecure).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().into();
        drop(listener);
        let error = near.dial(&address).await.unwrap_err();
        assert!(matches!(error, TransportError::Unavailable { .. }), "{error}");
        let zero = TcpSettings { silence_limit: Duration::ZERO, ..quick() };
        let at = archipelago_protocol::identity::NodeAddress::new("127.0.0.1", 0).unwrap();
        let transport = archipelago_tcp::TcpTransport::new(zero, Security::Insecure);
        let opened = archipelago_protocol::contract::Transport::open(&transport, &at).await;
        assert!(matches!(opened.err(), Some(TransportError::Invalid { .. })));
    });
}
