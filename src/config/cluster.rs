//! `[cluster]`: who belongs together, and where the others are.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use archipelago_protocol::identity::NodeAddress;
use serde::{Deserialize, Serialize};

use super::settings::count;

/// `[cluster]`: who belongs together, and where the others are. One section can serve all nodes: a node passes over
/// entries with its own address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// The cluster's name. Nodes of another cluster are refused.
    pub name: String,
    /// Nodes to connect to at the start and to stay connected to.
    pub peers: Vec<NodeAddress>,
    /// Makes this node a light client of the cluster that the nodes at these addresses belong to: it hosts nothing, is no
    /// member, and uses no store.
    pub contacts: Vec<NodeAddress>,
    /// How many light clients may be connected to this node.
    pub clients: NonZeroU32,
    /// `[cluster.placed]`: kinds that live at a fixed node, and its address. For nodes without a store in common: a
    /// node with entries names no store, and meets only nodes that name none either. So all of them have entries.
    pub placed: BTreeMap<String, NodeAddress>,
}

impl ClusterSettings {
    /// Whether this node is a light client.
    pub(crate) fn is_client(&self) -> bool {
        !self.contacts.is_empty()
    }
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            name: "archipelago".to_owned(),
            peers: Vec::new(),
            contacts: Vec::new(),
            clients: count::<1_024>(),
            placed: BTreeMap::new(),
        }
    }
}
