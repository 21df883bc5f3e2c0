//! Opens endpoints.

use archipelago_protocol::contract::{Endpoint, Transport, TransportError};
use archipelago_protocol::identity::NodeAddress;
use archipelago_tls::Credentials;
use async_trait::async_trait;

use crate::QuicSettings;
use crate::endpoint::{Dialler, QuicEndpoint};
use crate::resolve::resolve;
use crate::tuning::Tuned;

/// The network over QUIC.
#[derive(Clone, Debug)]
pub struct QuicTransport {
    settings: QuicSettings,
    credentials: Credentials,
}

impl QuicTransport {
    /// A transport whose endpoints prove themselves with `credentials`.
    pub fn new(settings: QuicSettings, credentials: Credentials) -> Self {
        Self { settings, credentials }
    }

    fn start(
        &self,
        at: &NodeAddress,
        endpoint: quinn::Endpoint,
        tuned: Tuned,
    ) -> Result<Box<dyn Endpoint>, TransportError> {
        let port = endpoint.local_addr().map_err(|error| unavailable(at, error))?.port();
        let address = NodeAddress::new(at.host(), port).map_err(|error| unavailable(at, error))?;
        let name = self.credentials.server_name().to_str().into_owned();
        Ok(Box::new(QuicEndpoint::new(address, endpoint, Dialler::new(tuned.client, name), &self.settings)))
    }
}

#[async_trait]
impl Transport for QuicTransport {
    fn name(&self) -> &'static str {
        "quic"
    }

    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError> {
        let tuned = Tuned::new(&self.settings, &self.credentials)?;
        let mut last = unavailable(at, "the name has no address");
        for candidate in resolve(at).await? {
            match tuned.endpoint(candidate) {
                Ok(endpoint) => return self.start(at, endpoint, tuned),
                Err(error) => last = unavailable(at, error),
            }
        }
        Err(last)
    }
}

/// The error of an address that cannot be used now.
pub(crate) fn unavailable(address: &NodeAddress, reason: impl ToString) -> TransportError {
    TransportError::Unavailable { address: address.clone(), reason: reason.to_string() }
}
