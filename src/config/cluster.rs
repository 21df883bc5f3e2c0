//! `[cluster]`: who belongs together, and where the others are.

use std::collections::BTreeMap;

use archipelago_protocol::identity::NodeAddress;
use serde::{Deserialize, Serialize};

/// `[cluster]`: who belongs together, and where the others are. One section can serve all nodes: a node passes over
/// entries with its own address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ClusterSettings {
    /// The cluster's name. Nodes of another cluster are refused.
    pub name: String,
    /// The datacenter of this node.
    pub datacenter: String,
    /// Nodes to connect to at the start and to stay connected to.
    pub peers: Vec<NodeAddress>,
    /// `[cluster.placed]`: kinds that live at a fixed node, and its address. For nodes without a store in common: a
    /// node with entries names no store, and meets only nodes that name none either. So all of them have entries.
    pub placed: BTreeMap<String, NodeAddress>,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            name: "archipelago".to_owned(),
            datacenter: "local".to_owned(),
            peers: Vec::new(),
            placed: BTreeMap::new(),
        }
    }
}
