//! Who is let in, and what the others are told.

use std::sync::Arc;

use archipelago_protocol::contract::TransportError;
use archipelago_quic::QuicSettings;
use archipelago_quic::tuning::Tuned;
use archipelago_tls::{Credentials, DevelopmentAuthority, Validity};
use quinn::crypto::rustls::QuicClientConfig;

use crate::support::{NAME, bounded, connect, credentials, open};

/// What the dialler and the one who is dialled are told.
async fn refusals(dialler: &Credentials, dialled: &Credentials) -> (String, String) {
    let (a, b) = (open(QuicSettings::default(), dialler).await, open(QuicSettings::default(), dialled).await);
    let (dial, accept) = tokio::join!(a.dial(b.address()), b.accept());
    (refusal(dial.map(drop)), refusal(accept.map(drop)))
}

fn refusal(result: Result<(), TransportError>) -> String {
    match result {
        Err(TransportError::Refused { reason }) => reason,
        other => panic!("not refused: {other:?}"),
    }
}

/// Proves: R128, R492
#[tokio::test]
async fn nodes_of_different_authorities_refuse_each_other_and_both_know_why() {
    bounded(async {
        let (dialler, dialled) = refusals(&credentials(), &credentials()).await;
        assert!(dialler.contains("the peer's certificate was issued by another authority"), "{dialler}");
        assert!(dialled.contains("refused this node's certificate: it was issued by another"), "{dialled}");
    })
    .await;
}

#[tokio::test]
async fn a_dialler_whose_certificate_has_expired_is_refused_and_told_so() {
    bounded(async {
        let ca = DevelopmentAuthority::in_memory().unwrap();
        let expired = ca.credentials_with(NAME, Validity::Expired).unwrap();
        let (dialler, dialled) = refusals(&expired, &ca.credentials(NAME).unwrap()).await;
        assert!(dialler.contains("refused this node's certificate: it has expired"), "{dialler}");
        assert!(dialled.contains("the peer's certificate has expired"), "{dialled}");
    })
    .await;
}

#[tokio::test]
async fn a_dialled_node_whose_certificate_is_not_valid_yet_is_refused_and_told_so() {
    bounded(async {
        let ca = DevelopmentAuthority::in_memory().unwrap();
        let early = ca.credentials_with(NAME, Validity::NotYet).unwrap();
        let (dialler, dialled) = refusals(&ca.credentials(NAME).unwrap(), &early).await;
        assert!(dialler.contains("not valid yet"), "{dialler}");
        assert!(dialled.contains("refused this node's certificate"), "{dialled}");
    })
    .await;
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    bounded(async {
        let ca = DevelopmentAuthority::in_memory().unwrap();
        let (here, there) = (ca.credentials(NAME).unwrap(), ca.credentials("other.test").unwrap());
        let (dialler, _) = refusals(&here, &there).await;
        assert!(dialler.contains("other.test"), "{dialler}");
    })
    .await;
}

/// A quinn client with good credentials, which speaks `alpn`.
fn stranger(credentials: &Credentials, alpn: &[u8]) -> quinn::Endpoint {
    let tuned = Tuned::new(&QuicSettings::default(), credentials).expect("the defaults are valid");
    let mut endpoint = tuned.endpoint(([127, 0, 0, 1], 0).into()).expect("loopback");
    let tls = QuicClientConfig::try_from(credentials.client_config(&[alpn])).expect("TLS 1.3");
    endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(tls)));
    endpoint
}

#[tokio::test]
async fn somebody_who_speaks_another_protocol_is_refused() {
    bounded(async {
        let credentials = credentials();
        let b = open(QuicSettings::default(), &credentials).await;
        let at = b.address().to_string().parse().unwrap();
        let endpoint = stranger(&credentials, b"h3");
        let (connected, accepted) = tokio::join!(endpoint.connect(at, NAME).unwrap(), b.accept());
        assert!(connected.is_err());
        let told = refusal(accepted.map(drop));
        assert!(told.contains("another protocol"), "{told}");
    })
    .await;
}

#[tokio::test]
async fn a_wrong_preamble_is_refused_with_words_and_the_endpoint_goes_on() {
    bounded(async {
        let credentials = credentials();
        let (a, b) = (
            open(QuicSettings::default(), &credentials).await,
            open(QuicSettings::default(), &credentials).await,
        );
        for (preamble, expected) in [(&b"GET / HT"[..], "another protocol"), (b"archip\x00\x09", "version 9")]
        {
            let endpoint = stranger(&credentials, archipelago_quic::tuning::ALPN);
            let talk = async {
                let at = b.address().to_string().parse().unwrap();
                let connection = endpoint.connect(at, NAME).unwrap().await.unwrap();
                let (mut send, _recv) = connection.open_bi().await.unwrap();
                send.write_all(preamble).await.unwrap();
                connection.closed().await.to_string()
            };
            let (told, accepted) = tokio::join!(talk, b.accept());
            assert!(told.contains(expected), "{told}");
            let accepted = refusal(accepted.map(drop));
            assert!(accepted.contains(expected), "{accepted}");
        }
        connect(&a, &b, b.address()).await;
    })
    .await;
}
