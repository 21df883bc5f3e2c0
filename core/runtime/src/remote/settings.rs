//! The numbers and names a node uses towards other nodes.

use std::collections::BTreeMap;

use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::link::{OutboxSettings, Overflow};
use archipelago_protocol::route::RoomLimits;
use archipelago_protocol::time::Millis;

/// How a node meets others. Of no effect without a transport.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RemoteSettings {
    /// The cluster's name; nodes of another cluster are refused. Default `archipelago`.
    pub cluster: String,
    /// The datacenter of this node. Default `local`.
    pub datacenter: String,
    /// Where the control arbiter listens; data arbiters listen at the ports that follow. Port 0 lets the system choose all
    /// of them. Default `127.0.0.1:0`.
    pub bind: NodeAddress,
    /// The host that other nodes are told to dial, if it is not that of `bind`.
    pub advertise: Option<String>,
    /// Nodes to connect to at the start and to stay connected to.
    pub peers: Vec<NodeAddress>,
    /// Members of the cluster that this node, which belongs to none, asks as a light client. Empty for a member. Default empty.
    pub contacts: Vec<NodeAddress>,
    /// How many light clients may be connected to this node. Default 1,024.
    pub clients: usize,
    /// Kinds that live on another node, and where: for clusters without a directory in common.
    pub placed: BTreeMap<String, NodeAddress>,
    /// Which store the node's directory stands on. Members with another one are refused.
    pub store: String,
    /// The store is this node's own, which others join at its address: that is part of the store's name. Default false.
    pub serves_store: bool,
    /// Bytes of messages that one lane may hold until the transport has taken them. Default 8 MiB.
    pub lane_bytes: usize,
    /// Calls of one lane that may await their answer. Default 65,536.
    pub lane_calls: usize,
    /// How many of these may be asks that wait for room in the lane, if `overflow` says that they wait; half of them at most.
    /// Default 1,024.
    pub lane_waiting: usize,
    /// Bytes of accepted messages of one lane that may wait for their actors; beyond it the lane is not read. Default 8 MiB.
    pub window_bytes: usize,
    /// Bytes of answers that may wait for one peer arbiter that does not read them; beyond it the connection is closed. Large replies
    /// may be as many bytes again; beyond it their calls end without a reply. Default 256 MiB.
    pub answer_bytes: usize,
    /// The longest frame on a lane; what is longer takes a stream of its own. Default 1 MiB.
    pub frame: usize,
    /// The largest message at all. Default 64 MiB.
    pub largest: usize,
    /// How long a tell may wait for a connection. Default 5 s.
    pub tell_ttl: Millis,
    /// What happens when a lane is full. Default: the message is refused.
    pub overflow: Overflow,
    /// How long a handshake may take. Default 5 s.
    pub handshake_limit: Millis,
    /// Messages per shard that may wait until it is known where the shard is. Default 1,000.
    pub parked: usize,
    /// Bytes of messages per shard that may wait so; a message that was not encoded counts as its type is large, without what it
    /// points to. Default 4 MiB.
    pub parked_bytes: usize,
    /// Messages that may wait so in all. Default 10,000.
    pub parked_total: usize,
    /// Bytes of messages that may wait so in all. Default 64 MiB.
    pub parked_total_bytes: usize,
}

impl RemoteSettings {
    pub(crate) fn outbox(&self) -> OutboxSettings {
        OutboxSettings {
            bytes: self.lane_bytes,
            calls: self.lane_calls,
            waiting: self.lane_waiting,
            frame: self.frame,
            tell_ttl: self.tell_ttl,
            overflow: self.overflow,
        }
    }
}

impl RemoteSettings {
    /// How much may wait until it is known where it goes.
    pub(super) const fn room(&self) -> RoomLimits {
        RoomLimits {
            bytes_each: self.parked_bytes,
            messages: self.parked_total,
            bytes: self.parked_total_bytes,
        }
    }
}

impl Default for RemoteSettings {
    fn default() -> Self {
        Self {
            cluster: "archipelago".to_owned(),
            datacenter: "local".to_owned(),
            bind: NodeAddress::new("127.0.0.1", 0).expect("a plain address is valid"),
            advertise: None,
            peers: Vec::new(),
            contacts: Vec::new(),
            clients: 1_024,
            placed: BTreeMap::new(),
            store: String::new(),
            serves_store: false,
            lane_bytes: 8 << 20,
            lane_calls: 65_536,
            lane_waiting: 1_024,
            window_bytes: 8 << 20,
            answer_bytes: 256 << 20,
            frame: 1 << 20,
            largest: 64 << 20,
            tell_ttl: Millis(5_000),
            overflow: Overflow::Fail,
            handshake_limit: Millis(5_000),
            parked: 1_000,
            parked_bytes: 4 << 20,
            parked_total: 10_000,
            parked_total_bytes: 64 << 20,
        }
    }
}
