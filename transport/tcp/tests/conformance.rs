//! The rules of the transport contract, over TLS and plain.
#![expect(clippy::disallowed_methods, reason = "a stranger has a socket of its own")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, PeerIdentity, Transport};
use archipelago_protocol::identity::NodeAddress;
use archipelago_tcp::{Security, TcpSettings, TcpTransport};
use archipelago_tls::{Credentials, DevelopmentAuthority, Validity, identity_of};
use archipelago_transport_conformance::{Cable, Mute, TcpCable, TcpMute, Testbed};
use async_trait::async_trait;
use bytes::Bytes;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::io::AsyncWriteExt;

const NAME: &str = "cluster.test";

/// Endpoints on loopback, each with a certificate of its own where there is security.
struct TcpTestbed {
    authority: Option<DevelopmentAuthority>,
    identities: RefCell<HashMap<NodeAddress, PeerIdentity>>,
}

impl TcpTestbed {
    fn secured() -> Self {
        let authority = DevelopmentAuthority::in_memory().expect("an authority");
        Self { authority: Some(authority), identities: RefCell::default() }
    }

    fn plain() -> Self {
        Self { authority: None, identities: RefCell::default() }
    }
}

fn settings() -> TcpSettings {
    TcpSettings {
        handshake_limit: Duration::from_secs(1),
        dial_limit: Duration::from_secs(1),
        silence_limit: Duration::from_millis(800),
        ..TcpSettings::default()
    }
}

async fn open(security: Security) -> Box<dyn Endpoint> {
    let at = NodeAddress::new("127.0.0.1", 0).expect("an address");
    TcpTransport::new(settings(), security).open(&at).await.expect("a free port")
}

/// A certificate of this authority, and who that is.
fn issue(authority: &DevelopmentAuthority) -> (Credentials, PeerIdentity) {
    let pem = authority.issue(NAME, Validity::Current).expect("a certificate");
    let der = CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("a certificate");
    let ca = authority.certificate().as_bytes();
    let credentials = Credentials::from_pem(ca, pem.certificate.as_bytes(), pem.key.as_bytes(), NAME);
    (credentials.expect("credentials"), identity_of(&[der]))
}

#[async_trait(?Send)]
impl Testbed for TcpTestbed {
    async fn endpoint(&self) -> Box<dyn Endpoint> {
        let Some(authority) = &self.authority else { return open(Security::Insecure).await };
        let (credentials, identity) = issue(authority);
        let endpoint = open(Security::Tls(credentials)).await;
        self.identities.borrow_mut().insert(endpoint.address().clone(), identity);
        endpoint
    }

    async fn stranger(&self) -> Option<Box<dyn Endpoint>> {
        self.authority.as_ref()?;
        let other = DevelopmentAuthority::in_memory().expect("an authority");
        Some(open(Security::Tls(issue(&other).0)).await)
    }

    fn secured(&self) -> bool {
        self.authority.is_some()
    }

    fn identity(&self, of: &dyn Endpoint) -> PeerIdentity {
        self.identities.borrow().get(of.address()).cloned().unwrap_or_default()
    }

    async fn cable(&self, to: &NodeAddress) -> Box<dyn Cable> {
        Box::new(TcpCable::new(to).await)
    }

    async fn send_garbage(&self, to: &NodeAddress, bytes: Bytes) -> bool {
        let mut socket = tokio::net::TcpStream::connect((to.host(), to.port())).await.expect("connects");
        // It may be refused before all of it is sent.
        let _ = socket.write_all(&bytes).await;
        let _ = socket.shutdown().await;
        true
    }

    async fn connect_and_say_nothing(&self, to: &NodeAddress) -> Box<dyn Mute> {
        Box::new(TcpMute::connect(to).await)
    }

    fn silence_limit(&self) -> Duration {
        settings().silence_limit
    }

    fn dial_limit(&self) -> Duration {
        settings().dial_limit
    }
}

mod tls {
    use super::*;
    archipelago_transport_conformance::transport_conformance!(TcpTestbed::secured());
}

mod plain {
    use super::*;
    archipelago_transport_conformance::transport_conformance!(TcpTestbed::plain());
}
