//! Connecting the two processes.

use std::net::SocketAddr;

use archipelago_protocol::contract::{Endpoint, Transport};
use archipelago_quic::QuicTransport;
use archipelago_quic::tuning::Tuned;
use archipelago_tls::Credentials;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::wire::{Lane, Plain, Quinn, Wire, quic};
use crate::{Contestant, RawError, quic_settings};

/// Where to connect, as whom.
pub(crate) struct Setup {
    pub(crate) contestant: Contestant,
    pub(crate) address: SocketAddr,
    pub(crate) credentials: Credentials,
}

impl Setup {
    /// Connects to the child.
    pub(crate) async fn dial(&self) -> Result<Box<dyn Wire>, RawError> {
        Ok(match self.contestant {
            Contestant::Tcp => Box::new(Plain(self.dial_tcp().await?)),
            Contestant::Tls => {
                let connector = TlsConnector::from(self.credentials.client_config(&[]));
                let name = self.credentials.server_name();
                Box::new(Plain(connector.connect(name, self.dial_tcp().await?).await?))
            }
            Contestant::Quic => self.dial_quinn().await?,
            Contestant::QuicLane => {
                let endpoint = self.lane_endpoint(loopback()).await?;
                let connection = endpoint.dial(&self.address.into()).await?;
                Box::new(Lane { connection, _endpoint: endpoint })
            }
        })
    }

    /// Listens for the parent.
    pub(crate) async fn listen(self) -> Result<Listener, RawError> {
        Ok(match self.contestant {
            Contestant::Tcp => Listener::Tcp(TcpListener::bind(self.address).await?),
            Contestant::Tls => {
                let acceptor = TlsAcceptor::from(self.credentials.server_config(&[]));
                Listener::Tls(TcpListener::bind(self.address).await?, acceptor)
            }
            Contestant::Quic => Listener::Quic(self.tuned()?.endpoint(self.address)?),
            Contestant::QuicLane => Listener::Lane(self.lane_endpoint(self.address).await?),
        })
    }

    async fn dial_tcp(&self) -> Result<TcpStream, RawError> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    async fn dial_quinn(&self) -> Result<Box<dyn Wire>, RawError> {
        let tuned = self.tuned()?;
        let endpoint = tuned.endpoint(loopback())?;
        let name = self.credentials.server_name();
        let connecting = endpoint.connect_with(tuned.client, self.address, &name.to_str()).map_err(quic)?;
        let (send, recv) = connecting.await.map_err(quic)?.open_bi().await.map_err(quic)?;
        Ok(Box::new(Quinn { send, recv, _endpoint: endpoint }))
    }

    async fn lane_endpoint(&self, at: SocketAddr) -> Result<Box<dyn Endpoint>, RawError> {
        let transport = QuicTransport::new(quic_settings(), self.credentials.clone());
        Ok(transport.open(&at.into()).await?)
    }

    fn tuned(&self) -> Result<Tuned, RawError> {
        Ok(Tuned::new(&quic_settings(), &self.credentials)?)
    }
}

/// Waits for the one connection.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Tls(TcpListener, TlsAcceptor),
    Quic(quinn::Endpoint),
    Lane(Box<dyn Endpoint>),
}

impl Listener {
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Tcp(listener) | Self::Tls(listener, _) => text(listener.local_addr()),
            Self::Quic(endpoint) => text(endpoint.local_addr()),
            Self::Lane(endpoint) => endpoint.address().to_string(),
        }
    }

    pub(crate) async fn accept(self) -> Result<Box<dyn Wire>, RawError> {
        Ok(match self {
            Self::Tcp(listener) => Box::new(Plain(accept_tcp(&listener).await?)),
            Self::Tls(listener, acceptor) => {
                Box::new(Plain(acceptor.accept(accept_tcp(&listener).await?).await?))
            }
            Self::Quic(endpoint) => {
                let incoming = endpoint.accept().await.ok_or(RawError::EndedEarly)?;
                let (send, recv) = incoming.await.map_err(quic)?.accept_bi().await.map_err(quic)?;
                Box::new(Quinn { send, recv, _endpoint: endpoint })
            }
            Self::Lane(endpoint) => {
                let connection = endpoint.accept().await?;
                Box::new(Lane { connection, _endpoint: endpoint })
            }
        })
    }
}

async fn accept_tcp(listener: &TcpListener) -> Result<TcpStream, RawError> {
    let (stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// The parent does not understand an error, and reports the silence of its child.
fn text(address: std::io::Result<SocketAddr>) -> String {
    address.map_or_else(|error| error.to_string(), |address| address.to_string())
}
