//! What the author of a transport brings, so that the rules can be tried on it.

use std::time::Duration;

use archipelago_protocol::contract::{Endpoint, PeerIdentity};
use archipelago_protocol::identity::NodeAddress;
use async_trait::async_trait;
use bytes::Bytes;

/// Makes endpoints of one transport, and the troubles that they must stand.
///
/// All of it is used on one thread, inside a tokio runtime.
#[async_trait(?Send)]
pub trait Testbed: 'static {
    /// Opens another endpoint, at an address of its own. All of them trust each other.
    async fn endpoint(&self) -> Box<dyn Endpoint>;

    /// Opens an endpoint whose credentials the others do not accept, and which does not accept theirs.
    ///
    /// None if the transport is not [`secured`](Self::secured).
    async fn stranger(&self) -> Option<Box<dyn Endpoint>>;

    /// True if both sides of a connection prove themselves. If not, *peer_is_proven* turns into its opposite: nobody may
    /// seem to be proven.
    fn secured(&self) -> bool;

    /// What an endpoint of [`endpoint`](Self::endpoint) proves about itself; empty without security.
    fn identity(&self, of: &dyn Endpoint) -> PeerIdentity;

    /// Lays a cable to the endpoint at `to`.
    async fn cable(&self, to: &NodeAddress) -> Box<dyn Cable>;

    /// Sends `bytes`, which are none of this transport, to the endpoint at `to` from somewhere.
    ///
    /// True if the endpoint takes them for an attempt to connect, which `accept` must answer with an error; false if they
    /// can only be thrown away, as stray datagrams are.
    async fn send_garbage(&self, to: &NodeAddress, bytes: Bytes) -> bool;

    /// Connects to the endpoint at `to` as far as a client gets that then says nothing.
    async fn connect_and_say_nothing(&self, to: &NodeAddress) -> Box<dyn Mute>;

    /// The silence limit of the endpoints. At least 500 ms on a real clock, and short: rules wait for it.
    fn silence_limit(&self) -> Duration;

    /// After which time `dial` gives up, and a client that says nothing is dropped. Short: rules wait for it.
    fn dial_limit(&self) -> Duration;

    /// The most bytes that a lane or a stream may take while the other side reads nothing, all buffers included.
    fn window(&self) -> usize {
        16 << 20
    }
}

/// A way to an endpoint that can be cut without a word.
pub trait Cable {
    /// The address to dial instead of the endpoint's own.
    fn address(&self) -> &NodeAddress;

    /// From now on nothing passes in these directions: no byte, no end, no refusal; also for new connections.
    fn cut(&self, cut: Cut);

    /// Everything passes again. What waits in a byte stream passes late, what a datagram held is lost.
    fn heal(&self);

    /// Slips bytes that are none of this transport into the connections over this cable, towards the endpoint.
    fn inject(&self, bytes: Bytes);
}

/// Which directions of a [`Cable`] carry nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Both.
    Both,
    /// From the dialler to the endpoint.
    Towards,
    /// From the endpoint to the dialler.
    Back,
}

impl Cut {
    /// True if nothing passes from the dialler to the endpoint.
    pub const fn towards(self) -> bool {
        matches!(self, Self::Both | Self::Towards)
    }

    /// True if nothing passes from the endpoint to the dialler.
    pub const fn back(self) -> bool {
        matches!(self, Self::Both | Self::Back)
    }
}

/// A client that has connected and says nothing. It stays until it is dropped.
#[async_trait(?Send)]
pub trait Mute {
    /// Completes when the endpoint has dropped this client.
    async fn dropped(&mut self);
}
