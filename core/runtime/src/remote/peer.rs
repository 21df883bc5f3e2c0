//! What is known about the other nodes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::PeerIdentity;
use archipelago_protocol::identity::{Namespace, NodeAddress, NodeId};
use archipelago_protocol::link::Frame;
use archipelago_protocol::message::Envelope;
use archipelago_protocol::peer::{Hello, PeerKind, PeerTables, Seat};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use metrics::gauge;

use crate::events::DeadLetter;
use crate::node::arbiter_of_shard;

/// One other node, as it has described itself in a handshake.
pub(crate) struct Peer {
    hello: Hello,
    tables: PeerTables,
    /// What it has proven itself with; none if the transport proves nothing.
    fingerprint: Option<[u8; 32]>,
    /// When something last came from it, over whichever lane; to a few tenths of a second.
    heard: Arc<AtomicU64>,
}

impl Peer {
    pub(super) fn new(hello: Hello, proven: &PeerIdentity) -> Self {
        let (tables, fingerprint) = (PeerTables::new(hello.kinds.clone()), proven.fingerprint);
        Self { tables, fingerprint, hello, heard: Arc::default() }
    }

    /// What was heard of the node before it said more about itself.
    fn known_before(mut self, earlier: Option<&Arc<Self>>) -> Self {
        if let Some(earlier) = earlier {
            self.heard = Arc::clone(&earlier.heard);
        }
        self
    }

    /// Something came from it.
    pub(super) fn hears(&self, now: Millis) {
        self.heard.store(now.0, Ordering::Relaxed);
    }

    /// When something last came from it, by the coarse clock.
    pub(crate) fn heard(&self) -> Millis {
        Millis(self.heard.load(Ordering::Relaxed))
    }

    /// The fingerprint of its certificate.
    pub(super) const fn fingerprint(&self) -> Option<[u8; 32]> {
        self.fingerprint
    }

    pub(crate) const fn id(&self) -> NodeId {
        self.hello.node.id
    }

    /// Whether it is a light client: nothing is sent to it but answers, and it is forgotten with its last connection.
    pub(crate) const fn is_client(&self) -> bool {
        is_client(&self.hello)
    }

    /// What it calls itself.
    pub(crate) fn name(&self) -> &str {
        &self.hello.node.name
    }

    /// The datacenter it belongs to.
    pub(crate) fn datacenter(&self) -> &str {
        &self.hello.datacenter
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
    pub(crate) fn seat_of(&self, shard: u64) -> Seat {
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

const fn is_client(hello: &Hello) -> bool {
    matches!(hello.kind, PeerKind::Client)
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
    /// Other addresses at which nodes were met, such as that of a gateway.
    aliases: RwLock<BTreeMap<NodeAddress, NodeId>>,
    /// The last nodes whose sessions have ended; links to them are not made again.
    departed: RwLock<Departed>,
}

impl PeerBook {
    /// Notes what a node says about itself, which was found to be who it says. A node may have opened more seats since it was met
    /// first.
    pub(super) fn learn(&self, hello: Hello, proven: &PeerIdentity) -> Arc<Peer> {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_id.get(&hello.node.id)
            && known.open_seats() >= open_seats(&hello)
        {
            return Arc::clone(known);
        }
        let peer_id = hello.node.id;
        // Two nodes cannot be at one address: the other one has gone. What a client says of its own address means nothing.
        if !is_client(&hello) {
            by_id.retain(|id, known| {
                *id == peer_id || known.is_client() || *known.address() != hello.node.address
            });
        }
        let peer = Peer::new(hello, proven);
        let peer = Arc::new(peer.known_before(by_id.get(&peer_id)));
        by_id.insert(peer.id(), Arc::clone(&peer));
        show_clients(&by_id);
        peer
    }

    /// Whether this node may be let in, given that there may be so many clients.
    pub(super) fn has_room_for(&self, hello: &Hello, clients: usize) -> bool {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        !is_client(hello) || by_id.contains_key(&hello.node.id) || count_clients(&by_id) < clients
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<Arc<Peer>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// All that are known, in the order of their ids.
    pub(crate) fn all(&self) -> Vec<Arc<Peer>> {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whoever was met last at this address.
    pub(crate) fn at(&self, address: &NodeAddress) -> Option<Arc<Peer>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let known = by_id.values().find(|peer| !peer.is_client() && peer.address() == address);
        let alias = || {
            let aliases = self.aliases.read().unwrap_or_else(PoisonError::into_inner);
            aliases.get(address).and_then(|id| by_id.get(id))
        };
        known.or_else(alias).cloned()
    }

    /// A node was met at an address that is not the one it names.
    pub(super) fn met_at(&self, address: NodeAddress, peer: &Peer) {
        let mut aliases = self.aliases.write().unwrap_or_else(PoisonError::into_inner);
        if *peer.address() == address {
            aliases.remove(&address);
            return;
        }
        if aliases.len() >= MOST_ALIASES {
            aliases.clear();
        }
        aliases.insert(address, peer.id());
    }

    /// A link to a node is connected.
    pub(super) fn link_up(&self, peer: &Arc<Peer>) {
        let id = peer.id();
        if peer.is_client() {
            // It may have been forgotten since it was met.
            let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
            by_id.entry(id).or_insert_with(|| Arc::clone(peer));
            show_clients(&by_id);
        }
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

    /// A node whose session has ended: it will not be back under this id.
    pub(super) fn departs(&self, id: NodeId) {
        self.departed.write().unwrap_or_else(PoisonError::into_inner).add(id);
    }

    /// Whether the session of a node is known to have ended.
    pub(super) fn has_departed(&self, id: NodeId) -> bool {
        self.departed.read().unwrap_or_else(PoisonError::into_inner).ids.contains(&id)
    }

    /// A node that will not come back.
    pub(super) fn forget(&self, id: NodeId) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.remove(&id);
        show_clients(&by_id);
        drop(by_id);
        self.links.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        self.leaving.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}

/// The last nodes that have departed, up to a bound; the oldest go first.
#[derive(Default)]
struct Departed {
    order: VecDeque<NodeId>,
    ids: BTreeSet<NodeId>,
}

impl Departed {
    fn add(&mut self, id: NodeId) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > MOST_DEPARTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

fn count_clients(by_id: &BTreeMap<NodeId, Arc<Peer>>) -> usize {
    by_id.values().filter(|peer| peer.is_client()).count()
}

fn show_clients(by_id: &BTreeMap<NodeId, Arc<Peer>>) {
    gauge!("archipelago_clients").set(count_clients(by_id) as f64);
}

/// Departed nodes that are remembered: whoever was slow to hear of one has long found its connection broken.
const MOST_DEPARTED: usize = 4_096;

/// Beyond it all aliases are forgotten, and nodes met again.
const MOST_ALIASES: usize = 1_024;
