//! The TCP transport, as the configuration names it.

use archipelago_protocol::contract::{Endpoint, Transport, TransportError};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use tokio::net::TcpListener;

use crate::endpoint::TcpEndpoint;
use crate::settings::{Security, TcpSettings};

/// Connects nodes over TCP, with TLS or plain.
#[derive(Clone, Debug)]
pub struct TcpTransport {
    settings: TcpSettings,
    security: Security,
}

impl TcpTransport {
    /// A transport with these limits. `Security::Insecure` is for those who have asked for it in so many words.
    pub const fn new(settings: TcpSettings, security: Security) -> Self {
        Self { settings, security }
    }
}

#[async_trait]
impl Transport for TcpTransport {
    fn name(&self) -> &'static str {
        "tcp"
    }

    async fn open(&self, at: &NodeAddress) -> Result<Box<dyn Endpoint>, TransportError> {
        if let Some(limit) = self.settings.impossible() {
            return Err(TransportError::Invalid { what: format!("{limit} must not be zero"), source: None });
        }
        let unavailable = |error: std::io::Error| TransportError::Unavailable {
            address: at.clone(),
            reason: error.to_string(),
        };
        let listener = TcpListener::bind((at.host(), at.port())).await.map_err(unavailable)?;
        let port = listener.local_addr().map_err(unavailable)?.port();
        let address = NodeAddress::new(at.host(), port)
            .map_err(|error| TransportError::Invalid { what: error.to_string(), source: None })?;
        if matches!(self.security, Security::Insecure) {
            tracing::warn!(%address, "tcp without tls: nothing is encrypted and anybody can be any node");
        }
        Ok(Box::new(TcpEndpoint::new(listener, address, self.settings.clone(), &self.security)))
    }
}
