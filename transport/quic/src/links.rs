//! The connections of one endpoint, so that they can be closed with it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use archipelago_protocol::contract::{CloseReason, Connection, PeerIdentity};
use rustls::pki_types::CertificateDer;

use crate::closing::Farewells;
use crate::errors::Failure;
use crate::lane::{Incoming, Outgoing};
use crate::link::Link;
use crate::preamble::Lane;
use crate::streams::QuicStreams;

/// All connections that an endpoint has made and that still exist.
pub(crate) struct Links {
    close_limit: Duration,
    list: Mutex<LinkList>,
    farewells: Arc<Farewells>,
}

#[derive(Default)]
struct LinkList {
    open: Vec<Weak<Link>>,
    closed: Option<CloseReason>,
}

impl Links {
    pub(crate) fn new(close_limit: Duration) -> Self {
        Self { close_limit, list: Mutex::default(), farewells: Arc::default() }
    }

    /// Makes a connection of the contract out of one whose two sides have proven themselves.
    pub(crate) fn admit(&self, connection: quinn::Connection, lane: Lane) -> Result<Connection, Failure> {
        let peer = identity(&connection)?;
        let (send, recv) = lane;
        let link = Link::new(connection, send, self.farewells.clone(), self.close_limit);
        self.note(&link);
        Ok(Connection {
            peer,
            outgoing: Box::new(Outgoing::new(link.clone())),
            incoming: Box::new(Incoming::new(link.clone(), recv)),
            streams: Box::new(QuicStreams::new(link)),
        })
    }

    fn note(&self, link: &Arc<Link>) {
        let mut list = self.list();
        list.open.retain(|link| link.strong_count() > 0);
        list.open.push(Arc::downgrade(link));
        // The endpoint was closed while the two were shaking hands.
        if let Some(reason) = list.closed.clone() {
            link.close(reason);
        }
    }

    /// Closes every connection and waits until each has said farewell, also those that ended shortly before.
    pub(crate) async fn close(&self, reason: &CloseReason) {
        let links: Vec<_> = {
            let mut list = self.list();
            list.closed = Some(reason.clone());
            list.open.drain(..).filter_map(|link| link.upgrade()).collect()
        };
        for link in &links {
            link.close(reason.clone());
        }
        self.farewells.done().await;
    }

    fn list(&self) -> MutexGuard<'_, LinkList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn identity(connection: &quinn::Connection) -> Result<PeerIdentity, Failure> {
    let chain =
        connection.peer_identity().and_then(|any| any.downcast::<Vec<CertificateDer<'static>>>().ok());
    match chain {
        Some(chain) if !chain.is_empty() => Ok(archipelago_tls::identity_of(&chain)),
        _ => Err(Failure::Refused("the peer has shown no certificate".into())),
    }
}
