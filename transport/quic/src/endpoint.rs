//! Where an arbiter listens and dials from.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipelago_protocol::contract::{CloseReason, Connection, Endpoint, TransportError};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use quinn::{ClientConfig, ConnectError};

use crate::QuicSettings;
use crate::door::Door;
use crate::errors::{Failure, close_code};
use crate::links::Links;
use crate::preamble::greet;
use crate::resolve::resolve;
use crate::transport::unavailable;

/// An endpoint over QUIC.
pub(crate) struct QuicEndpoint {
    address: NodeAddress,
    /// None once it is closed: then the port is free as soon as the parts of all connections are dropped.
    socket: Mutex<Option<quinn::Endpoint>>,
    dialler: Dialler,
    door: Door,
    links: Arc<Links>,
    dial_limit: Duration,
    close_limit: Duration,
}

impl QuicEndpoint {
    /// Starts to let diallers in. To be called in the runtime that drives `endpoint`.
    pub(crate) fn new(
        address: NodeAddress,
        endpoint: quinn::Endpoint,
        dialler: Dialler,
        settings: &QuicSettings,
    ) -> Self {
        let links = Arc::new(Links::new(settings.close_limit));
        Self {
            address,
            door: Door::open(endpoint.clone(), links.clone(), settings),
            socket: Mutex::new(Some(endpoint)),
            dialler,
            links,
            dial_limit: settings.dial_limit,
            close_limit: settings.close_limit,
        }
    }

    fn socket(&self) -> MutexGuard<'_, Option<quinn::Endpoint>> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries the addresses of `to` one after the other; they share the time.
    async fn dial_all(
        &self,
        socket: &quinn::Endpoint,
        to: &NodeAddress,
    ) -> Result<Connection, TransportError> {
        let candidates = resolve(to).await?;
        let share = self.dial_limit / u32::try_from(candidates.len()).unwrap_or(u32::MAX);
        let mut last = unavailable(to, "no address that this endpoint can dial");
        for candidate in candidates {
            let one = self.dial_one(socket, candidate, to);
            match self.within(share, to, one).await {
                Err(error @ TransportError::Unavailable { .. }) => last = error,
                done => return done,
            }
        }
        Err(last)
    }

    async fn dial_one(
        &self,
        socket: &quinn::Endpoint,
        candidate: SocketAddr,
        to: &NodeAddress,
    ) -> Result<Connection, TransportError> {
        let connection = self.dialler.connect(socket, candidate).await.map_err(|why| why.of_dial(to))?;
        let lane = greet(&connection).await.map_err(|why| why.of_dial(to))?;
        self.links.admit(connection, lane).map_err(|why| why.of_dial(to))
    }

    async fn within(
        &self,
        limit: Duration,
        to: &NodeAddress,
        dial: impl Future<Output = Result<Connection, TransportError>>,
    ) -> Result<Connection, TransportError> {
        match tokio::time::timeout(limit, dial).await {
            Ok(done) => done,
            Err(_) => Err(unavailable(to, format!("no answer within {limit:?}"))),
        }
    }
}

#[async_trait]
impl Endpoint for QuicEndpoint {
    fn address(&self) -> &NodeAddress {
        &self.address
    }

    async fn accept(&self) -> Result<Connection, TransportError> {
        if self.socket().is_none() {
            return Err(TransportError::Ended);
        }
        self.door.next().await
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        let Some(socket) = self.socket().clone() else { return Err(TransportError::Ended) };
        self.within(self.dial_limit, to, self.dial_all(&socket, to)).await
    }

    async fn close(&self, reason: CloseReason) {
        let Some(socket) = self.socket().take() else { return };
        self.door.close();
        socket.set_server_config(None);
        self.links.close(&reason).await;
        socket.close(close_code(&reason), reason.text.as_bytes());
        // So that the last packets are sent, and sent again if they are lost, before a process ends.
        if tokio::time::timeout(self.close_limit, socket.wait_idle()).await.is_err() {
            tracing::debug!(address = %self.address, "endpoint closed before all peers had heard of it");
        }
    }
}

/// What an endpoint dials with.
pub(crate) struct Dialler {
    config: ClientConfig,
    server_name: String,
}

impl Dialler {
    /// Dials with `config` and expects `server_name` of whoever answers.
    pub(crate) fn new(config: ClientConfig, server_name: String) -> Self {
        Self { config, server_name }
    }

    async fn connect(&self, socket: &quinn::Endpoint, to: SocketAddr) -> Result<quinn::Connection, Failure> {
        let connecting = socket.connect_with(self.config.clone(), to, &self.server_name);
        let connecting = connecting.map_err(|error| match error {
            ConnectError::InvalidServerName(_) | ConnectError::UnsupportedVersion => {
                Failure::Refused(error.to_string())
            }
            other => Failure::Absent(other.to_string()),
        })?;
        Ok(connecting.await?)
    }
}
