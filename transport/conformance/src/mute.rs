//! A client over TCP that connects and says nothing.
#![expect(clippy::disallowed_methods, reason = "stands outside of every transport")]

use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::testbed::Mute;

/// A [`Mute`] client over TCP.
#[derive(Debug)]
pub struct TcpMute(TcpStream);

impl TcpMute {
    /// Connects.
    ///
    /// # Panics
    ///
    /// If nobody listens there.
    pub async fn connect(to: &NodeAddress) -> Self {
        Self(TcpStream::connect((to.host(), to.port())).await.expect("somebody listens"))
    }
}

#[async_trait(?Send)]
impl Mute for TcpMute {
    async fn dropped(&mut self) {
        let mut buffer = [0; 1024];
        // The endpoint may say why before it closes.
        while !matches!(self.0.read(&mut buffer).await, Ok(0) | Err(_)) {}
    }
}
