//! The rules of the transport contract, over QUIC.
#![expect(clippy::disallowed_methods, reason = "a stranger has a socket of its own")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, PeerIdentity, Transport};
use archipelago_protocol::identity::NodeAddress;
use archipelago_quic::tuning::Tuned;
use archipelago_quic::{QuicSettings, QuicTransport};
use archipelago_tls::{Credentials, DevelopmentAuthority, Validity, identity_of};
use archipelago_transport_conformance::{Cable, Mute, Testbed, UdpCable, transport_conformance};
use async_trait::async_trait;
use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::UdpSocket;

const NAME: &str = "cluster.test";

/// Endpoints on loopback, each with a certificate of its own.
struct QuicTestbed {
    authority: DevelopmentAuthority,
    identities: RefCell<HashMap<NodeAddress, PeerIdentity>>,
}

impl QuicTestbed {
    fn new() -> Self {
        Self { authority: authority(), identities: RefCell::default() }
    }
}

fn authority() -> DevelopmentAuthority {
    DevelopmentAuthority::in_memory().expect("an authority")
}

fn settings() -> QuicSettings {
    QuicSettings {
        handshake_limit: Duration::from_secs(1),
        dial_limit: Duration::from_secs(1),
        silence_limit: Duration::from_millis(800),
        ..QuicSettings::default()
    }
}

/// A certificate of this authority, and who that is.
fn issue(authority: &DevelopmentAuthority) -> (Credentials, PeerIdentity) {
    let pem = authority.issue(NAME, Validity::Current).expect("a certificate");
    let der = CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("a certificate");
    let ca = authority.certificate().as_bytes();
    let credentials = Credentials::from_pem(ca, pem.certificate.as_bytes(), pem.key.as_bytes(), NAME);
    (credentials.expect("credentials"), identity_of(&[der]))
}

async fn open(credentials: Credentials) -> Box<dyn Endpoint> {
    let at = NodeAddress::new("127.0.0.1", 0).expect("an address");
    QuicTransport::new(settings(), credentials).open(&at).await.expect("a free port")
}

#[async_trait(?Send)]
impl Testbed for QuicTestbed {
    async fn endpoint(&self) -> Box<dyn Endpoint> {
        let (credentials, identity) = issue(&self.authority);
        let endpoint = open(credentials).await;
        self.identities.borrow_mut().insert(endpoint.address().clone(), identity);
        endpoint
    }

    async fn stranger(&self) -> Option<Box<dyn Endpoint>> {
        Some(open(issue(&authority()).0).await)
    }

    fn secured(&self) -> bool {
        true
    }

    fn identity(&self, of: &dyn Endpoint) -> PeerIdentity {
        self.identities.borrow().get(of.address()).cloned().unwrap_or_default()
    }

    async fn cable(&self, to: &NodeAddress) -> Box<dyn Cable> {
        Box::new(UdpCable::new(to).await)
    }

    async fn send_garbage(&self, to: &NodeAddress, bytes: Bytes) -> bool {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("loopback");
        for datagram in bytes.chunks(1_200) {
            socket.send_to(datagram, (to.host(), to.port())).await.expect("loopback takes it");
        }
        false
    }

    async fn connect_and_say_nothing(&self, to: &NodeAddress) -> Box<dyn Mute> {
        Box::new(QuicMute::connect(to, &issue(&self.authority).0).await)
    }

    fn silence_limit(&self) -> Duration {
        settings().silence_limit
    }

    fn dial_limit(&self) -> Duration {
        settings().dial_limit
    }

    fn window(&self) -> usize {
        settings().stream_window as usize
    }
}

/// Proves itself as TLS wants it, and never opens the lane.
struct QuicMute {
    connection: quinn::Connection,
    _endpoint: quinn::Endpoint,
}

impl QuicMute {
    async fn connect(to: &NodeAddress, credentials: &Credentials) -> Self {
        let tuned = Tuned::new(&settings(), credentials).expect("valid settings");
        let endpoint = tuned.endpoint(([127, 0, 0, 1], 0).into()).expect("loopback");
        let to = to.to_string().parse().expect("an IP address");
        let connecting = endpoint.connect_with(tuned.client, to, NAME).expect("a valid address");
        Self { connection: connecting.await.expect("it is let in so far"), _endpoint: endpoint }
    }
}

#[async_trait(?Send)]
impl Mute for QuicMute {
    async fn dropped(&mut self) {
        self.connection.closed().await;
    }
}

transport_conformance!(QuicTestbed::new());
