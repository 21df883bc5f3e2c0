//! Where a node listens and dials from.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use archipelago_protocol::contract::{CloseReason, Connection, Endpoint, TransportError};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use futures_util::future::join_all;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::connection::Conn;
use crate::door::{self, ARRIVALS, Arrival};
use crate::driver::drive;
use crate::handshake::{Failure, Handshake, Proven};
use crate::lane::{LaneReceiver, LaneSender};
use crate::settings::{Security, TcpSettings};
use crate::shared::{Part, Shared};
use crate::stream::TcpStreams;

/// An endpoint of the TCP transport.
pub(crate) struct TcpEndpoint {
    house: Arc<House>,
    arrivals: tokio::sync::Mutex<mpsc::Receiver<Arrival>>,
    door: AbortHandle,
}

/// What the endpoint and its door share.
pub(crate) struct House {
    pub(crate) address: NodeAddress,
    pub(crate) settings: TcpSettings,
    pub(crate) handshake: Handshake,
    closed: watch::Sender<bool>,
    connections: Mutex<Vec<Weak<Shared>>>,
}

impl TcpEndpoint {
    pub(crate) fn new(
        listener: TcpListener,
        address: NodeAddress,
        settings: TcpSettings,
        security: &Security,
    ) -> Self {
        let house = Arc::new(House {
            address,
            handshake: Handshake::new(security, crate::preamble::Offer::of(&settings)),
            settings,
            closed: watch::Sender::new(false),
            connections: Mutex::default(),
        });
        let (sender, arrivals) = mpsc::channel(ARRIVALS);
        let door = tokio::spawn(door::keep(listener, house.clone(), sender)).abort_handle();
        Self { house, arrivals: tokio::sync::Mutex::new(arrivals), door }
    }
}

#[async_trait]
impl Endpoint for TcpEndpoint {
    fn address(&self) -> &NodeAddress {
        &self.house.address
    }

    async fn accept(&self) -> Result<Connection, TransportError> {
        let next = async { self.arrivals.lock().await.recv().await };
        tokio::select! {
            biased;
            () = self.house.closed() => Err(TransportError::Ended),
            arrival = next => arrival.unwrap_or(Err(TransportError::Ended)),
        }
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        let limit = self.house.settings.dial_limit;
        tokio::select! {
            biased;
            () = self.house.closed() => Err(TransportError::Ended),
            dialled = tokio::time::timeout(limit, self.house.dial(to)) => dialled.unwrap_or_else(|_| {
                Err(unavailable(to, format!("no answer within {limit:?}")))
            }),
        }
    }

    async fn close(&self, reason: CloseReason) {
        let connections = self.house.close();
        self.door.abort();
        for connection in &connections {
            connection.lock().close(reason.clone());
        }
        join_all(connections.iter().map(|connection| connection.over())).await;
    }
}

impl Drop for TcpEndpoint {
    fn drop(&mut self) {
        self.door.abort();
    }
}

impl House {
    /// Makes a connection of a socket that has proven itself, and starts its driver.
    ///
    /// # Errors
    ///
    /// `Ended`: the endpoint was closed meanwhile.
    pub(crate) fn connect(&self, proven: Proven) -> Result<Connection, TransportError> {
        let Proven { socket, peer, theirs } = proven;
        let shared = Shared::new(Conn::new(socket, self.handshake.ours(), theirs));
        self.remember(&shared)?;
        tokio::spawn(drive(shared.clone(), self.settings.silence_limit));
        let chunk = self.settings.chunk.get() as usize;
        Ok(Connection {
            peer,
            outgoing: Box::new(LaneSender::new(Part::new(shared.clone()))),
            incoming: Box::new(LaneReceiver::new(Part::new(shared.clone()))),
            streams: Box::new(TcpStreams::new(Part::new(shared), chunk)),
        })
    }

    /// Completes when the endpoint is closed.
    async fn closed(&self) {
        // An error would mean that this house is gone.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        let socket = self.reach(to).await?;
        let _ = socket.set_nodelay(true);
        match self.handshake.dial(socket).await {
            Ok(proven) => self.connect(proven),
            Err(Failure::Refused(reason)) => Err(TransportError::Refused { reason }),
            Err(Failure::HungUp) => Err(TransportError::Refused {
                reason: format!("{to} hung up during the handshake; it may not speak this transport"),
            }),
            Err(Failure::Broken(error)) => Err(unavailable(to, error.to_string())),
        }
    }

    /// Connects to the first address of the host that answers. Each one gets its share of the time that is left.
    async fn reach(&self, to: &NodeAddress) -> Result<TcpStream, TransportError> {
        let deadline = Instant::now() + self.settings.dial_limit;
        let found = tokio::net::lookup_host((to.host(), to.port())).await;
        let addresses: Vec<_> = found.map_err(|error| unavailable(to, error.to_string()))?.collect();
        let mut reason = "the host has no address".to_owned();
        for (n, address) in addresses.iter().enumerate() {
            let share = share(deadline, addresses.len() - n);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => return Ok(socket),
                Ok(Err(error)) => reason = error.to_string(),
                Err(_) => reason = format!("{address} did not answer within {share:?}"),
            }
        }
        Err(unavailable(to, reason))
    }

    fn remember(&self, shared: &Arc<Shared>) -> Result<(), TransportError> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if *self.closed.borrow() {
            return Err(TransportError::Ended);
        }
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(shared));
        Ok(())
    }

    /// From now on there are no new connections. Returns the ones there are.
    fn close(&self) -> Vec<Arc<Shared>> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        self.closed.send_replace(true);
        connections.drain(..).filter_map(|connection| connection.upgrade()).collect()
    }
}

/// The time for one of the addresses that are left to try. A single one leaves half of the time for the handshake.
fn share(deadline: Instant, addresses: usize) -> Duration {
    deadline.saturating_duration_since(Instant::now()) / (addresses as u32 + 1)
}

fn unavailable(address: &NodeAddress, reason: String) -> TransportError {
    TransportError::Unavailable { address: address.clone(), reason }
}
