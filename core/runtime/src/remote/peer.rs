//! What is known about the other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError, RwLock};

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{Namespace, NodeAddress, NodeId};
use archipelago_protocol::link::Frame;
use archipelago_protocol::message::Envelope;
use archipelago_protocol::peer::{Hello, PeerTables, Seat};
use bytes::Bytes;

use crate::events::DeadLetter;
use crate::node::arbiter_of_shard;

/// One other node, as it has described itself in a handshake.
pub(crate) struct Peer {
    hello: Hello,
    tables: PeerTables,
}

impl Peer {
    pub(super) fn new(hello: Hello) -> Self {
        Self { tables: PeerTables::new(hello.kinds.clone()), hello }
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.hello.node.id
    }

    /// What its kinds and messages are called on the wire.
    pub(crate) const fn tables(&self) -> &PeerTables {
        &self.tables
    }

    /// Where it listens for everybody.
    pub(crate) const fn address(&self) -> &NodeAddress {
        &self.hello.node.address
    }

    /// Where one of its arbiters listens; `None` if it has no such arbiter.
    pub(super) fn address_of(&self, seat: Seat) -> Option<NodeAddress> {
        let port = *self.hello.seats.get(seat.place()).filter(|port| **port != 0)?;
        NodeAddress::new(self.hello.node.address.host(), port).ok()
    }

    /// The data arbiter that hosts a shard, as the peer itself finds it.
    pub(crate) fn seat_of(&self, shard: u16) -> Seat {
        Seat::Data(arbiter_of_shard(self.hello.seats.len().saturating_sub(1), shard))
    }

    /// Whether its data arbiters are known.
    pub(crate) fn serves(&self) -> bool {
        self.hello.seats.len() > 1 && self.open_seats() == self.hello.seats.len()
    }

    fn open_seats(&self) -> usize {
        open_seats(&self.hello)
    }

    /// What is known of an undelivered ask or tell.
    pub(crate) fn letter_of(&self, namespace: &Namespace, frame: &[u8], reason: CallError) -> DeadLetter {
        let head = match Frame::decode(frame) {
            Ok(Frame::Ask(ask)) => Some(ask.head),
            Ok(Frame::Tell(tell)) => Some(tell.head),
            Ok(Frame::Envelope(envelope)) => return letter_of_envelope(envelope, reason),
            _ => None,
        };
        let Some(head) = head else {
            return DeadLetter { target: String::new(), message: String::new(), reason };
        };
        let kind = self.tables.kind_name(head.shard.kind).unwrap_or("?");
        let message = self.tables.message_at(head.shard.kind, head.message).map_or("?", |(_, name)| name);
        let target = format!("{namespace}::{kind}/{}", head.key);
        DeadLetter { target, message: message.to_owned(), reason }
    }
}

fn letter_of_envelope(bytes: &[u8], reason: CallError) -> DeadLetter {
    let envelope = Envelope::decode(&Bytes::copy_from_slice(bytes)).ok();
    let target = envelope.as_ref().and_then(|envelope| envelope.target().map(ToString::to_string));
    let message = envelope.as_ref().map(crate::named::name_of);
    DeadLetter { target: target.unwrap_or_default(), message: message.unwrap_or_default(), reason }
}

fn open_seats(hello: &Hello) -> usize {
    hello.seats.iter().filter(|port| **port != 0).count()
}

/// The nodes that have been met.
#[derive(Default)]
pub(crate) struct PeerBook {
    by_id: RwLock<BTreeMap<NodeId, Arc<Peer>>>,
    /// How many links to a node are connected.
    links: RwLock<BTreeMap<NodeId, usize>>,
    /// Nodes that have said that they leave; forgotten when they are gone.
    leaving: RwLock<BTreeSet<NodeId>>,
}

impl PeerBook {
    /// Notes what a node says about itself. A node may have opened more seats since it was met first.
    pub(super) fn learn(&self, hello: Hello) -> Arc<Peer> {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_id.get(&hello.node.id)
            && known.open_seats() >= open_seats(&hello)
        {
            return Arc::clone(known);
        }
        // Two nodes cannot be at one address: the other one has gone.
        by_id.retain(|_, known| *known.address() != hello.node.address);
        let peer = Arc::new(Peer::new(hello));
        by_id.insert(peer.id(), Arc::clone(&peer));
        peer
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<Arc<Peer>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Whoever was met last at this address.
    pub(crate) fn at(&self, address: &NodeAddress) -> Option<Arc<Peer>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.values().find(|peer| peer.address() == address).cloned()
    }

    /// A link to a node is connected.
    pub(super) fn link_up(&self, id: NodeId) {
        *self.links.write().unwrap_or_else(PoisonError::into_inner).entry(id).or_default() += 1;
    }

    /// A link to a node is connected no longer.
    pub(super) fn link_down(&self, id: NodeId) {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(up) = links.get_mut(&id) {
            *up = up.saturating_sub(1);
        }
    }

    /// Whether any link to a node is connected.
    pub(crate) fn is_reached(&self, id: NodeId) -> bool {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&id).is_some_and(|up| *up > 0)
    }

    /// Whether there was a connection to a node and there is none now.
    pub(crate) fn is_lost(&self, id: NodeId) -> bool {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&id) == Some(&0)
    }

    /// A node that owns nothing any more, and will not again.
    pub(super) fn leaves(&self, id: NodeId) {
        self.leaving.write().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// Whether a node has said that it leaves.
    pub(crate) fn is_leaving(&self, id: NodeId) -> bool {
        self.leaving.read().unwrap_or_else(PoisonError::into_inner).contains(&id)
    }

    /// A node that will not come back.
    pub(super) fn forget(&self, id: NodeId) {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.links.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.leaving.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
