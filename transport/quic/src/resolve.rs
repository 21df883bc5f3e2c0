//! From a node's address to the addresses of the network.

use std::net::SocketAddr;

use archipelago_protocol::contract::TransportError;
use archipelago_protocol::identity::NodeAddress;

use crate::transport::unavailable;

/// All addresses that `address` stands for, at least one.
///
/// # Errors
///
/// `Unavailable`: the name cannot be resolved.
pub(crate) async fn resolve(address: &NodeAddress) -> Result<Vec<SocketAddr>, TransportError> {
    let found = tokio::net::lookup_host((address.host(), address.port())).await;
    let found: Vec<_> = found.map_err(|error| unavailable(address, error))?.collect();
    if found.is_empty() { Err(unavailable(address, "the name has no address")) } else { Ok(found) }
}
