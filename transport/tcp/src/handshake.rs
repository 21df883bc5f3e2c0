//! From a TCP connection to one that has proven itself: TLS where there is security, then the preamble.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::contract::PeerIdentity;
use archipelago_tls::{Credentials, explain, identity_of};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::preamble::{Offer, PreambleError, exchange};
use crate::settings::Security;
use crate::socket::Socket;

/// How this endpoint shakes hands.
#[derive(Clone)]
pub(crate) struct Handshake {
    tls: Option<Arc<Tls>>,
    ours: Offer,
}

struct Tls {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    server_name: ServerName<'static>,
}

/// A connection after its handshake.
pub(crate) struct Proven {
    pub(crate) socket: Socket,
    pub(crate) peer: PeerIdentity,
    pub(crate) theirs: Offer,
}

/// Why a handshake failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// One side does not trust the other, or does not speak this transport.
    Refused(String),
    /// The other side hung up without a reason.
    HungUp,
    /// The connection broke.
    Broken(io::Error),
}

impl Handshake {
    pub(crate) fn new(security: &Security, ours: Offer) -> Self {
        let tls = match security {
            Security::Tls(credentials) => Some(Arc::new(Tls::new(credentials))),
            Security::Insecure => None,
        };
        Self { tls, ours }
    }

    pub(crate) const fn ours(&self) -> Offer {
        self.ours
    }

    /// Shakes hands with somebody who has dialled.
    pub(crate) async fn accept(&self, socket: TcpStream) -> Result<Proven, Failure> {
        let Some(tls) = &self.tls else { return self.plain(socket).await };
        match tls.acceptor.accept(socket).into_fallible().await {
            Ok(socket) => self.secured(TlsStream::from(socket)).await,
            Err((error, socket)) => Err(give_up(socket, error.into())),
        }
    }

    /// Shakes hands with somebody who was dialled.
    pub(crate) async fn dial(&self, socket: TcpStream) -> Result<Proven, Failure> {
        let Some(tls) = &self.tls else { return self.plain(socket).await };
        match tls.connector.connect(tls.server_name.clone(), socket).into_fallible().await {
            Ok(socket) => self.secured(TlsStream::from(socket)).await,
            Err((error, socket)) => Err(give_up(socket, error.into())),
        }
    }

    async fn plain(&self, socket: TcpStream) -> Result<Proven, Failure> {
        self.preamble(Socket::Plain(socket), PeerIdentity::default()).await
    }

    async fn secured(&self, socket: TlsStream<TcpStream>) -> Result<Proven, Failure> {
        let peer = identity_of(socket.get_ref().1.peer_certificates().unwrap_or_default());
        self.preamble(Socket::Tls(Box::new(socket)), peer).await
    }

    async fn preamble(&self, mut socket: Socket, peer: PeerIdentity) -> Result<Proven, Failure> {
        match exchange(&mut socket, self.ours).await {
            Ok(theirs) => Ok(Proven { socket, peer, theirs }),
            Err(PreambleError::Foreign(reason)) => Err(give_up(socket, Failure::Refused(reason))),
            Err(PreambleError::Io(error)) => Err(give_up(socket, error.into())),
        }
    }
}

impl Tls {
    fn new(credentials: &Credentials) -> Self {
        Self {
            acceptor: TlsAcceptor::from(credentials.server_config(&[ALPN])),
            connector: TlsConnector::from(credentials.client_config(&[ALPN])),
            server_name: credentials.server_name(),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::Refused(explain(tls));
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::HungUp,
            _ => Self::Broken(error),
        }
    }
}

/// Hangs up behind the caller's back, in good order: closing a socket with unread bytes at once would destroy what
/// this side has said about the reason on its way.
fn give_up<S>(socket: S, failure: Failure) -> Failure
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if matches!(failure, Failure::Refused(_)) {
        tokio::spawn(tokio::time::timeout(HANG_UP_LIMIT, hang_up(socket)));
    }
    failure
}

async fn hang_up<S: AsyncRead + AsyncWrite + Unpin>(mut socket: S) {
    let _ = socket.shutdown().await;
    let mut buffer = [0; 1_024];
    for _ in 0..HANG_UP_READS {
        match socket.read(&mut buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

const ALPN: &[u8] = b"archipelago-tcp/1";
const HANG_UP_LIMIT: Duration = Duration::from_millis(500);
/// How much of a refused peer's talk is still listened to.
const HANG_UP_READS: usize = 64;
