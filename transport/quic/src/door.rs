//! Lets diallers in, each in a task of its own, so that nobody waits for somebody who is slow.
//!
//! Invariant: at most `max_handshakes` are shaking hands at one time. From half of it on, only those are let in who have
//! shown that they receive at the address they send from, so that forged senders cannot take all the places.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::contract::{CloseCode, CloseReason, Connection, TransportError};
use quinn::Incoming;
use tokio::sync::{Mutex, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};

use crate::QuicSettings;
use crate::errors::{Failure, close_code, lost};
use crate::links::Links;
use crate::preamble::answer;

/// The way in to an endpoint.
pub(crate) struct Door {
    arrivals: Mutex<mpsc::Receiver<Arrival>>,
    keeper: AbortHandle,
}

type Arrival = Result<Connection, TransportError>;

impl Door {
    /// Opens the door of `endpoint`. To be called in the runtime that drives it.
    pub(crate) fn open(endpoint: quinn::Endpoint, links: Arc<Links>, settings: &QuicSettings) -> Self {
        let (sender, arrivals) = mpsc::channel(settings.accept_queue);
        let (places, limit) = (settings.max_handshakes, settings.handshake_limit);
        let keeper = tokio::spawn(keep(endpoint, Guest { links, sender, limit }, places)).abort_handle();
        Self { arrivals: Mutex::new(arrivals), keeper }
    }

    /// The next one who came in, or could not.
    pub(crate) async fn next(&self) -> Arrival {
        self.arrivals.lock().await.recv().await.unwrap_or(Err(TransportError::Ended))
    }

    /// Lets nobody in any more, and forgets who was not yet asked for.
    pub(crate) fn close(&self) {
        self.keeper.abort();
        // If it is taken then somebody waits for the next one, so there is none.
        if let Ok(mut arrivals) = self.arrivals.try_lock() {
            arrivals.close();
            while arrivals.try_recv().is_ok() {}
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

async fn keep(endpoint: quinn::Endpoint, guest: Guest, places: usize) {
    let mut guests = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        while guests.try_join_next().is_some() {}
        let unknown = !incoming.remote_address_validated() && incoming.may_retry();
        if guests.len() >= places {
            tracing::warn!(from = %incoming.remote_address(), places, "dialler turned away, too many handshakes");
            incoming.refuse();
        } else if guests.len() >= places / 2 && unknown {
            // `may_retry` was asked.
            let _ = incoming.retry();
        } else {
            guests.spawn(guest.clone().come_in(incoming));
        }
    }
}

/// One handshake.
#[derive(Clone)]
struct Guest {
    links: Arc<Links>,
    sender: mpsc::Sender<Arrival>,
    limit: Duration,
}

impl Guest {
    async fn come_in(self, incoming: Incoming) {
        let from = incoming.remote_address();
        match self.shake_hands(incoming).await {
            // Whoever dialled waits as long as the queue is full, and keeps his place.
            Ok(connection) => drop(self.sender.send(Ok(connection)).await),
            Err(failure) => self.report(from, failure.of_accept()),
        }
    }

    async fn shake_hands(&self, incoming: Incoming) -> Result<Connection, Failure> {
        let deadline = Instant::now() + self.limit;
        let connection = timeout_at(deadline, incoming.accept()?).await.map_err(|_| self.too_slow())??;
        match timeout_at(deadline, answer(&connection)).await {
            Ok(lane) => self.links.admit(connection, lane?),
            Err(_) => {
                let reason = CloseReason::new(CloseCode::Protocol, "no preamble came in time");
                connection.close(close_code(&reason), reason.text.as_bytes());
                Err(self.too_slow())
            }
        }
    }

    fn too_slow(&self) -> Failure {
        Failure::Absent(format!("the handshake was not done within {:?}", self.limit))
    }

    /// Tells of a dialler who was not let in. If nobody asks, it is only logged: strangers must not fill the queue.
    fn report(&self, from: SocketAddr, error: TransportError) {
        tracing::debug!(%from, %error, "dialler not let in");
        let error = match error {
            TransportError::Refused { reason } => {
                TransportError::Refused { reason: format!("{from}: {reason}") }
            }
            other => lost(format!("{from}: {other}")),
        };
        let _ = self.sender.try_send(Err(error));
    }
}
