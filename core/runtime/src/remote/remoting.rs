//! What all arbiters of a node share about other nodes.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use actix::Addr;
use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{NodeAddress, NodeId, NodeInfo};
use archipelago_protocol::message::TypeHint;
use archipelago_protocol::peer::{AttemptId, Hello, KindEntry, LaneEnds, PeerKind, Seat, Versions};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use metrics::gauge;
use tokio::sync::oneshot;

use super::locator::Locator;
use super::peer::{Peer, PeerBook};
use super::transport_actor::{Ask, MeetAt, PartFrom, TransportActor};
use super::unanswered::Unanswered;
use crate::node::NodeShared;

/// The other nodes, as one node knows them.
pub(crate) struct Remoting {
    book: PeerBook,
    locator: Arc<dyn Locator>,
    /// The ports of our arbiters, in the order of [`Seat::place`]; zero until they are open.
    seats: Mutex<Vec<u16>>,
    /// The ports of the life before.
    earlier_ports: Vec<u16>,
    control: OnceLock<Addr<TransportActor>>,
    connected: AtomicI64,
    /// Somebody takes envelopes that no registered actor takes.
    inbound_wanted: AtomicBool,
}

impl Remoting {
    /// Of a node with so many data arbiters, which had these `ports` in its last life.
    pub(crate) fn new(locator: Arc<dyn Locator>, data_arbiters: usize, ports: Vec<u16>) -> Self {
        Self {
            earlier_ports: ports,
            book: PeerBook::default(),
            locator,
            seats: Mutex::new(vec![0; data_arbiters + 1]),
            control: OnceLock::new(),
            connected: AtomicI64::new(0),
            inbound_wanted: AtomicBool::new(false),
        }
    }

    pub(crate) const fn book(&self) -> &PeerBook {
        &self.book
    }

    pub(crate) fn locator(&self) -> &Arc<dyn Locator> {
        &self.locator
    }

    /// An arbiter listens at `port`.
    pub(super) fn took_seat(&self, seat: Seat, port: u16) {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = seats.get_mut(seat.place()) {
            *place = port;
        }
    }

    /// The ports of this life, or those it would have liked to have.
    pub(crate) fn ports(&self) -> Vec<u16> {
        let seats = self.seats();
        if seats.contains(&0) && !self.earlier_ports.is_empty() { self.earlier_ports.clone() } else { seats }
    }

    /// The port of an arbiter in the life before, if there was one.
    pub(super) fn earlier_port(&self, seat: Seat) -> Option<u16> {
        self.earlier_ports.get(seat.place()).copied().filter(|port| *port != 0)
    }

    fn seats(&self) -> Vec<u16> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_control(&self, actor: Addr<TransportActor>) {
        // There is one control arbiter.
        let _ = self.control.set(actor);
    }

    /// The transport actor of the control arbiter.
    pub(crate) fn transport(&self) -> Option<&Addr<TransportActor>> {
        self.control.get()
    }

    pub(super) fn inbound_wanted(&self, wanted: bool) {
        self.inbound_wanted.store(wanted, Ordering::Release);
    }

    /// The transport actor, if somebody has subscribed to what nobody else takes.
    pub(super) fn transport_if_wanted(&self) -> Option<&Addr<TransportActor>> {
        self.transport().filter(|_| self.inbound_wanted.load(Ordering::Acquire))
    }

    /// Meets whoever is at `address`.
    ///
    /// # Errors
    ///
    /// Why that did not work, in words.
    pub(crate) async fn meet(&self, address: NodeAddress) -> Result<Arc<Peer>, String> {
        if let Some(known) = self.book.at(&address) {
            return Ok(known);
        }
        self.meet_anew(address).await
    }

    pub(crate) async fn meet_anew(&self, address: NodeAddress) -> Result<Arc<Peer>, String> {
        let Some(control) = self.control.get() else {
            return Err("the node has no transport".to_owned());
        };
        control.send(MeetAt(address)).await.unwrap_or_else(|_| Err("the node stops".to_owned()))
    }

    /// Meets whoever is at `address`, with its data arbiters known.
    ///
    /// # Errors
    ///
    /// As [`meet`](Self::meet); also if the node has not opened its data arbiters yet.
    pub(crate) async fn meet_serving(&self, address: NodeAddress) -> Result<Arc<Peer>, String> {
        let known = self.meet(address.clone()).await?;
        if known.serves() {
            return Ok(known);
        }
        let again = self.meet_anew(address).await?;
        if again.serves() { Ok(again) } else { Err("the node is still starting".to_owned()) }
    }

    /// Asks a service of another node, `timeout` at most. Dropping the future cancels the request on the wire.
    ///
    /// # Errors
    ///
    /// What the service answers, or why it could not be asked.
    pub(crate) async fn ask_service(
        &self,
        peer: Arc<Peer>,
        service: u16,
        payload: Bytes,
        timeout: Millis,
    ) -> Result<Bytes, CallError> {
        Ok(self.request(peer, service, payload, timeout).await?)
    }

    /// As [`ask_service`](Self::ask_service), and says whether a request without an answer may have arrived.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    pub(crate) async fn request(
        &self,
        peer: Arc<Peer>,
        service: u16,
        payload: Bytes,
        timeout: Millis,
    ) -> Result<Bytes, Unanswered> {
        let Some(control) = self.control.get() else {
            let error = CallError::NoRoute { reason: "the node has no transport".into() };
            return Err(Unanswered::NotSent(error));
        };
        let (answer, answered) = oneshot::channel();
        if control.send(Ask { peer, service, payload, timeout, answer }).await.is_err() {
            return Err(Unanswered::Silent(CallError::Stopped));
        }
        answered.await.unwrap_or(Err(Unanswered::Silent(CallError::Stopped)))
    }

    /// The session of a node has ended: the control arbiter gives its link up, and nobody makes others for good.
    pub(super) fn depart(&self, gone: NodeId, at_once: bool) {
        self.book.departs(gone);
        if let Some(control) = self.control.get() {
            control.do_send(PartFrom { gone, at_once });
        }
    }

    /// A link to a peer is connected, or is so no longer.
    pub(super) fn link_changed(&self, peer: &Arc<Peer>, up: bool) {
        let change = if up {
            self.book.link_up(peer);
            1
        } else {
            self.book.link_down(peer.id());
            -1
        };
        let connected = self.connected.fetch_add(change, Ordering::Relaxed) + change;
        gauge!("archipelago_connections").set(connected as f64);
    }
}

impl NodeShared {
    /// How we introduce ourselves on a connection between `lane`'s ends.
    pub(crate) fn hello(
        &self,
        lane: LaneEnds,
        attempt: AttemptId,
        (expects, kind): (Option<NodeId>, PeerKind),
    ) -> Hello {
        let remote = &self.settings().remote;
        Hello {
            versions: VERSIONS,
            cluster: remote.cluster.clone(),
            namespace: self.namespace().clone(),
            datacenter: remote.datacenter.clone(),
            node: self.info(),
            kind: if self.is_client() { PeerKind::Client } else { kind },
            lane,
            attempt,
            expects,
            seats: self.remoting().seats(),
            kinds: self.kind_entries(),
            store: self.store_name(),
            extensions: Vec::new(),
        }
    }

    /// As what we take part in a connection to a node of `datacenter`.
    pub(super) fn kind_towards(&self, datacenter: &str) -> PeerKind {
        if self.is_client() {
            PeerKind::Client
        } else if datacenter == self.settings().remote.datacenter {
            PeerKind::Member
        } else {
            PeerKind::Datacenter
        }
    }

    /// As what we answer a node that has dialled us: one that takes itself for a member is held to that.
    pub(super) fn kind_in_answer(&self, theirs: &Hello) -> PeerKind {
        if theirs.kind == PeerKind::Datacenter {
            self.kind_towards(&theirs.datacenter)
        } else {
            PeerKind::Member
        }
    }

    /// As what we ask who is at an address. Where there are other datacenters, it may be a node of one of them.
    pub(super) fn kind_in_probe(&self) -> PeerKind {
        if self.has_datacenters() { PeerKind::Datacenter } else { PeerKind::Member }
    }

    /// What members must have in common about their store; nothing if that is not looked at. The port of a store that this
    /// node serves may be known only since it listens.
    fn store_name(&self) -> Option<String> {
        let remote = &self.settings().remote;
        if remote.serves_store {
            return Some(format!("{}{}", remote.store, self.address()));
        }
        Some(remote.store.clone()).filter(|store| !store.is_empty())
    }

    /// What the others are told about this node.
    pub(crate) fn info(&self) -> NodeInfo {
        NodeInfo {
            id: self.id(),
            name: self.settings().name.clone(),
            address: self.address(),
            roles: self.settings().roles.iter().cloned().collect(),
            version: self.settings().version.clone(),
            kinds: self
                .kinds()
                .iter()
                .filter(|kind| kind.is_hosted())
                .map(|kind| kind.name().to_owned())
                .collect(),
        }
    }

    /// Where the control arbiter is reached.
    pub(crate) fn address(&self) -> NodeAddress {
        let remote = &self.settings().remote;
        let host = remote.advertise.as_deref().unwrap_or(remote.bind.host());
        match self.remoting().seats().first() {
            Some(port) if *port != 0 => NodeAddress::new(host, *port).unwrap_or_else(|_| remote.bind.clone()),
            _ => self.settings().address.clone(),
        }
    }

    fn kind_entries(&self) -> Vec<KindEntry> {
        let messages = |kind: &crate::node::KindShared| {
            let listed = kind.spec().messages();
            let named =
                listed.iter().filter_map(|message| Some((message.id, TypeHint::new(message.name).ok()?)));
            named.collect()
        };
        self.kinds()
            .iter()
            .map(|kind| KindEntry { name: kind.kind().clone(), messages: messages(kind) })
            .collect()
    }
}

/// The versions of the lane protocol that this code speaks.
const VERSIONS: Versions = Versions { oldest: 1, newest: 1 };
