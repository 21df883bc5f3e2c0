//! Transports of single hosts, and their endpoints.

use std::sync::Arc;

use archipelago_protocol::contract::{
    CloseCode, CloseReason, Connection, Endpoint, Transport, TransportError,
};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;

use crate::connection::{Half, look, stand_back_if};
use crate::dial::dial;
use crate::mutants::Mutant;
use crate::state::Host;
use crate::wait::Shared;

/// The transport of one life of one host.
pub(crate) struct MemoryTransport {
    pub(crate) shared: Arc<Shared>,
    pub(crate) host: Host,
    pub(crate) life: u64,
}

#[async_trait]
impl Transport for MemoryTransport {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError> {
        if at.host() != &*self.host {
            let what = format!("{at} is not an address of {}", self.host);
            return Err(TransportError::Invalid { what, source: None });
        }
        let (id, address) = self.shared.with(|state, _| {
            let alive = state.hosts.get(&self.host).is_some_and(|host| host.life == self.life && !host.down);
            if alive { state.listen(&self.host, at.port()) } else { Err(TransportError::Ended) }
        })?;
        Ok(Box::new(MemoryEndpoint { shared: Arc::clone(&self.shared), id, address }))
    }
}

/// An endpoint. Dropping it ends the listening; its connections live on.
struct MemoryEndpoint {
    shared: Arc<Shared>,
    id: u64,
    address: NodeAddress,
}

#[async_trait]
impl Endpoint for MemoryEndpoint {
    fn address(&self) -> &NodeAddress {
        &self.address
    }

    async fn accept(&self) -> Result<Connection, TransportError> {
        let id = look(&self.shared, |state, now, waker| state.look_accept(self.id, now, waker)).await?;
        let half = Half::new(&self.shared, id, 1);
        stand_back_if(&self.shared, Mutant::AcceptLosesConnections).await;
        Ok(half.connection())
    }

    async fn dial(&self, to: &NodeAddress) -> Result<Connection, TransportError> {
        dial(&self.shared, self.id, to).await
    }

    async fn close(&self, reason: CloseReason) {
        let reason = CloseReason::new(reason.code, reason.text);
        self.shared.with(|state, now| state.close_endpoint(self.id, &reason, now));
    }
}

impl Drop for MemoryEndpoint {
    fn drop(&mut self) {
        let reason = CloseReason::new(CloseCode::Stopping, "the endpoint was dropped");
        self.shared.with(|state, now| state.stop_listening(self.id, &reason, now));
    }
}
