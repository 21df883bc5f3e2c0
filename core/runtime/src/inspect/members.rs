//! How silent the other nodes are to this one.

use std::collections::BTreeMap;

use archipelago_protocol::identity::NodeId;

use super::PATIENCE;
use crate::env::within;
use crate::node::Node;

/// What this node thinks of a member that it watches.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Suspicion {
    /// How unlikely its silence is: a member above `membership.suspicion` is probed by others.
    pub phi: f64,
    /// Whether it gives signs of life, to this node or to one that was asked to probe it.
    pub reachable: bool,
}

impl Node {
    /// What this node thinks of the members that it watches itself, which are some of all; nothing without a transport.
    pub async fn suspicions(&self) -> BTreeMap<NodeId, Suspicion> {
        let node = self.shared();
        let asked = within(node.env(), PATIENCE, node.members().suspicions());
        asked.await.flatten().unwrap_or_default()
    }
}
