//! The other nodes that a node has met, and what is on its way to them.

use std::rc::Rc;

use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::time::Millis;

use super::{Gathered, PATIENCE, look_at_all};
use crate::env::within;
use crate::node::Node;

/// Another node that this one has met.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerView {
    /// Who it is.
    pub node: NodeId,
    /// What it calls itself.
    pub name: String,
    /// Where it listens.
    pub address: NodeAddress,
    /// The datacenter that it belongs to.
    pub datacenter: String,
    /// Whether it is a light client.
    pub client: bool,
    /// Whether any lane to it is connected.
    pub connected: bool,
    /// Whether it has said that it leaves.
    pub leaving: bool,
    /// How long ago something last came from it, to a few tenths of a second; none if nothing ever did.
    pub silent_for: Option<Millis>,
}

/// What one arbiter of this node has to send to one arbiter of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneView {
    /// The arbiter of this node.
    pub from: String,
    /// The peer.
    pub node: NodeId,
    /// Its arbiter.
    pub to: String,
    /// Whether it has a connection.
    pub connected: bool,
    /// Bytes of messages that wait to be written, with those that wait for room.
    pub waiting_bytes: usize,
    /// Bytes of answers that wait to be written.
    pub answer_bytes: usize,
    /// Calls that wait for their answer.
    pub in_flight: usize,
    /// Calls that wait for room: the lane is stalled while there are any.
    pub stalled: usize,
}

/// Asks the control arbiter for its lanes.
pub(crate) struct LookAtLanes;

impl actix::Message for LookAtLanes {
    type Result = Vec<LaneView>;
}

impl Node {
    /// The nodes that this one has met and that are not gone for ever, in the order of their ids.
    pub fn peers(&self) -> Vec<PeerView> {
        let node = self.shared();
        let (book, now) = (node.remoting().book(), node.env().now());
        let view = |peer: &crate::remote::Peer| PeerView {
            node: peer.id(),
            name: peer.name().to_owned(),
            address: peer.address().clone(),
            datacenter: peer.datacenter().to_owned(),
            client: peer.is_client(),
            connected: book.is_reached(peer.id()),
            leaving: book.is_leaving(peer.id()),
            silent_for: Some(peer.heard())
                .filter(|heard| *heard > Millis::ZERO)
                .map(|heard| now.since(heard)),
        };
        book.all().iter().map(|peer| view(peer)).collect()
    }

    /// What this node has to send to others, lane by lane.
    pub async fn lanes(&self) -> Gathered<LaneView> {
        let node = self.shared();
        let mut lanes = look_at_all(node, |local| {
            local.seat().map(Rc::clone).map(|seat| seat.look_at_lanes()).unwrap_or_default()
        })
        .await;
        if let Some(control) = node.remoting().transport() {
            match within(node.env(), PATIENCE, control.send(LookAtLanes)).await {
                Some(Ok(more)) => lanes.items.extend(more),
                Some(Err(_)) | None => lanes.silent.push("control".to_owned()),
            }
        }
        lanes
    }
}
