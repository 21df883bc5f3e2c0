//! quinn as this transport sets it up, also for whoever wants to measure against the same.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use archipelago_protocol::contract::TransportError;
use archipelago_tls::Credentials;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    AckFrequencyConfig, ClientConfig, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    ServerConfig, TokioRuntime, TransportConfig, VarInt,
};
use socket2::{Domain, Protocol, Socket, Type};

use crate::QuicSettings;

/// The configurations that quinn takes, made from settings and credentials.
pub struct Tuned {
    /// What to dial with.
    pub client: ClientConfig,
    server: ServerConfig,
    endpoint: EndpointConfig,
    socket_buffer: usize,
}

impl Tuned {
    /// Turns settings into quinn's.
    ///
    /// # Errors
    ///
    /// `Invalid`: the settings cannot work.
    pub fn new(settings: &QuicSettings, credentials: &Credentials) -> Result<Self, TransportError> {
        settings.check()?;
        let transport = Arc::new(transport_config(settings)?);
        Ok(Self {
            client: client_config(credentials, transport.clone())?,
            server: server_config(settings, credentials, transport)?,
            endpoint: endpoint_config(settings)?,
            socket_buffer: settings.socket_buffer,
        })
    }

    /// A quinn endpoint that listens at `at`, driven by the current tokio runtime.
    ///
    /// # Errors
    ///
    /// What the system says about the address.
    pub fn endpoint(&self, at: SocketAddr) -> io::Result<Endpoint> {
        let socket = socket(at, self.socket_buffer)?;
        Endpoint::new(self.endpoint.clone(), Some(self.server.clone()), socket, Arc::new(TokioRuntime))
    }
}

/// The name of the protocol inside TLS.
pub const ALPN: &[u8] = b"archipelago/1";

fn transport_config(settings: &QuicSettings) -> Result<TransportConfig, TransportError> {
    let idle =
        IdleTimeout::try_from(settings.idle_limit()).map_err(|error| invalid("silence_limit", error))?;
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(settings.max_packet);
    let mut acks = AckFrequencyConfig::default();
    acks.ack_eliciting_threshold(VarInt::from_u32(settings.ack_every));
    let mut config = TransportConfig::default();
    config
        .max_idle_timeout(Some(idle))
        .keep_alive_interval(Some(settings.sign_of_life()))
        .stream_receive_window(VarInt::from_u32(settings.stream_window))
        .receive_window(VarInt::from_u32(settings.connection_window()))
        .send_window(u64::from(settings.connection_window()))
        // The lane, and nothing else.
        .max_concurrent_bidi_streams(VarInt::from_u32(1))
        .max_concurrent_uni_streams(VarInt::from_u32(u32::from(settings.max_streams)))
        .datagram_receive_buffer_size(None)
        .mtu_discovery_config(Some(mtu))
        .enable_segmentation_offload(settings.segmentation_offload);
    if settings.ack_every > 0 {
        config.ack_frequency_config(Some(acks));
    }
    Ok(config)
}

fn server_config(
    settings: &QuicSettings,
    credentials: &Credentials,
    transport: Arc<TransportConfig>,
) -> Result<ServerConfig, TransportError> {
    let tls = QuicServerConfig::try_from(credentials.server_config(&[ALPN]))
        .map_err(|error| invalid("credentials", error))?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport).max_incoming(settings.max_handshakes);
    Ok(config)
}

fn client_config(
    credentials: &Credentials,
    transport: Arc<TransportConfig>,
) -> Result<ClientConfig, TransportError> {
    let tls = QuicClientConfig::try_from(credentials.client_config(&[ALPN]))
        .map_err(|error| invalid("credentials", error))?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport);
    Ok(config)
}

fn endpoint_config(settings: &QuicSettings) -> Result<EndpointConfig, TransportError> {
    let mut config = EndpointConfig::default();
    // The default is what Ethernet carries: a peer would never be told that it may send more.
    config.max_udp_payload_size(settings.max_packet).map_err(|error| invalid("max_packet", error))?;
    Ok(config)
}

fn socket(at: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    for (name, result) in
        [("receive", socket.set_recv_buffer_size(buffer)), ("send", socket.set_send_buffer_size(buffer))]
    {
        if let Err(error) = result {
            tracing::warn!(buffer, name, %error, "socket buffer size refused");
        }
    }
    socket.set_nonblocking(true)?;
    socket.bind(&at.into())?;
    Ok(socket.into())
}

fn invalid(what: &str, source: impl std::error::Error + Send + Sync + 'static) -> TransportError {
    TransportError::Invalid {
        what: format!("the QUIC setting {what} cannot be used"),
        source: Some(Box::new(source)),
    }
}
