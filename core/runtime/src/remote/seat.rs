//! The remote side of one arbiter: its endpoint, its lanes, and who drives them.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use actix::{Actor, Addr};
use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::contract::{CloseCode, CloseReason, Endpoint, Transport};
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::link::{Drained, Dropped, Expired, Unsent, WindowSettings};
use archipelago_protocol::peer::{ConnectionId, Seat};
use archipelago_protocol::time::Millis;
use metrics::gauge;
use tokio::sync::Notify;

use super::drive::FrameSink;
use super::incoming::Incoming;
use super::lane::Lane;
use super::peer::Peer;
use super::peer_actor::{Departed, PeerActor, Reached, Wanted};
use super::transport_actor::TransportActor;
use super::waiter::Waiter;
use crate::env::within;
use crate::inspect::LaneView;
use crate::node::{NodeShared, StartError};

/// The lanes of one arbiter. Lives on its thread.
pub(crate) struct SeatLocal {
    node: Arc<NodeShared>,
    seat: Seat,
    endpoint: Arc<dyn Endpoint>,
    sink: Rc<dyn FrameSink>,
    lanes: RefCell<Vec<Rc<Lane>>>,
    links: RefCell<BTreeMap<(NodeId, Seat), Link>>,
    actor: OnceCell<Addr<TransportActor>>,
    /// Calls are pending: somebody must look at their deadlines.
    pending: Notify,
    /// Nobody looks at deadlines until something is pending.
    asleep: Cell<bool>,
    connections: Cell<u64>,
    /// How much waited when that was last shown.
    shown: Cell<Load>,
}

/// How much waits on an arbiter's lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    bytes: usize,
    calls: usize,
    in_line: usize,
    large: usize,
    parked: usize,
    parked_bytes: usize,
}

/// A lane and the actor that keeps it connected.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) lane: Rc<Lane>,
    pub(super) actor: Addr<PeerActor>,
}

impl SeatLocal {
    /// Opens the endpoint of an arbiter and starts the actors around it. Call it on the arbiter.
    ///
    /// # Errors
    ///
    /// The transport's, if the address cannot be listened at.
    pub(crate) async fn open(
        node: &Arc<NodeShared>,
        seat: Seat,
        sink: Rc<dyn FrameSink>,
    ) -> Result<Option<Rc<Self>>, StartError> {
        let Some(transport) = node.env().transport() else { return Ok(None) };
        let endpoint: Arc<dyn Endpoint> = open_endpoint(&*transport, node, seat).await?.into();
        node.remoting().took_seat(seat, endpoint.address().port());
        let local = Rc::new(Self {
            node: Arc::clone(node),
            seat,
            endpoint,
            sink,
            lanes: RefCell::default(),
            links: RefCell::default(),
            actor: OnceCell::new(),
            pending: Notify::new(),
            asleep: Cell::new(false),
            connections: Cell::new(0),
            shown: Cell::default(),
        });
        local.start();
        Ok(Some(local))
    }

    fn start(self: &Rc<Self>) {
        let actor = TransportActor::new(Rc::clone(self)).start();
        if self.seat == Seat::Control {
            self.node.remoting().set_control(actor.clone());
        }
        // Set once, here.
        let _ = self.actor.set(actor);
        let seat = Rc::downgrade(self);
        self.node.env().spawn(Box::pin(async move {
            while let Some(local) = seat.upgrade() {
                local.sweep_when_due().await;
            }
        }));
    }

    /// The lane to one arbiter of a peer; it is made if there is none, and kept connected from now on.
    pub(crate) fn lane_to(self: &Rc<Self>, peer: &Arc<Peer>, to: Seat) -> Rc<Lane> {
        let link = self.link_to(peer, to);
        // Clients come by themselves; nobody may be able to dial them.
        if !peer.is_client() {
            link.actor.do_send(Wanted);
        }
        link.lane
    }

    /// The link to one arbiter of a peer; nothing is dialled for it.
    pub(super) fn link_to(self: &Rc<Self>, peer: &Arc<Peer>, to: Seat) -> Link {
        if let Some(link) = self.links.borrow().get(&(peer.id(), to)) {
            return link.clone();
        }
        let index = self.free_place();
        let settings = self.node.settings().remote.outbox();
        let lane = Rc::new(Lane::new(index, Arc::clone(peer), to, settings));
        let mut lanes = self.lanes.borrow_mut();
        match lanes.get_mut(usize::from(index)) {
            Some(place) => *place = Rc::clone(&lane),
            None => lanes.push(Rc::clone(&lane)),
        }
        drop(lanes);
        let actor = PeerActor::new(Rc::clone(self), Rc::clone(&lane)).start();
        let link = Link { lane, actor };
        self.links.borrow_mut().insert((peer.id(), to), link.clone());
        self.show_lanes();
        link
    }

    /// The place of a lane whose peer is gone, or a new one at the end.
    fn free_place(&self) -> u16 {
        let (lanes, links) = (self.lanes.borrow(), self.links.borrow());
        let used = |lane: &Lane| {
            links.get(&(lane.peer().id(), lane.to())).is_some_and(|l| l.lane.index() == lane.index())
        };
        let free = lanes.iter().position(|lane| !used(lane)).unwrap_or(lanes.len());
        u16::try_from(free).unwrap_or(u16::MAX)
    }

    /// Lets go of a lane whose peer is gone for ever.
    pub(super) fn forget(&self, lane: &Rc<Lane>) {
        self.links.borrow_mut().remove(&(lane.peer().id(), lane.to()));
        self.show_lanes();
        let book = self.node.remoting().book();
        // A client is gone once none of its links is left.
        if !lane.peer().is_client() || !book.is_reached(lane.peer().id()) {
            book.forget(lane.peer().id());
        }
        self.sink.lost(lane, &self.no_connection(lane));
        self.end_waiting(lane);
    }

    /// What still waits in a lane that is over never leaves it.
    fn end_waiting(&self, lane: &Lane) {
        let Drained { given, unsent, dropped } = lane.outbox().borrow_mut().drain(self.node.env().now());
        let over = no_connection(lane);
        given.into_iter().for_each(|waiter| waiter.fail(over.clone()));
        for unsent in unsent {
            match unsent {
                Unsent::Ask { waiter, .. } => waiter.fail(over.clone()),
                Unsent::Tell { frame, .. } => self.node.remote_dead_letter(lane.peer(), &frame, &over),
            }
        }
        self.overflowed(lane, dropped);
    }

    /// The session of a peer has ended: its links are given up.
    pub(super) fn part_from(&self, gone: NodeId, at_once: bool) {
        for link in self.links_of(gone) {
            link.actor.do_send(Departed { at_once });
        }
    }

    fn show_lanes(&self) {
        gauge!("archipelago_lanes", "seat" => self.seat.to_string()).set(self.links.borrow().len() as f64);
    }

    /// Stands for the connection of a lane that has none.
    pub(super) fn no_connection(&self, lane: &Lane) -> Incoming {
        Incoming::new(lane.index(), self.new_connection(), WindowSettings { bytes: 0, jobs: 0 })
    }

    /// A number for a connection, never given again.
    pub(super) fn new_connection(&self) -> ConnectionId {
        self.connections.set(self.connections.get() + 1);
        ConnectionId(self.connections.get())
    }

    /// The links to all arbiters of a peer.
    pub(super) fn links_of(&self, peer: NodeId) -> Vec<Link> {
        let all = (peer, Seat::Control)..=(peer, Seat::Data(u16::MAX));
        self.links.borrow().range(all).map(|(_, link)| link.clone()).collect()
    }

    pub(super) fn all_lanes(&self) -> Vec<Rc<Lane>> {
        self.lanes.borrow().clone()
    }

    pub(crate) fn lane(&self, index: u16) -> Option<Rc<Lane>> {
        self.lanes.borrow().get(usize::from(index)).cloned()
    }

    /// A call was registered: its deadline must be looked at.
    #[inline]
    pub(crate) fn call_pending(&self) {
        if self.asleep.replace(false) {
            self.pending.notify_one();
        }
    }

    /// Something was written into a lane.
    #[inline]
    pub(super) fn written(&self, lane: &Lane) {
        self.call_pending();
        if lane.has_much_overflow() {
            self.tell_of_overflow(lane);
        }
    }

    /// Waits until something is pending, then for one grain, and ends what is due.
    async fn sweep_when_due(&self) {
        if !self.has_deadlines() {
            self.asleep.set(true);
            self.pending.notified().await;
        }
        self.node.env().sleep(SWEEP_EVERY).await;
        let (lanes, now) = (self.lanes.borrow().clone(), self.node.env().now());
        for lane in &lanes {
            self.sweep(lane, now);
        }
        self.sink.sweep();
        self.measure(&lanes);
    }

    /// Shows how much waits, if that has changed.
    fn measure(&self, lanes: &[Rc<Lane>]) {
        let (parked, parked_bytes) = (self.sink.waiting(), self.sink.waiting_bytes());
        let mut load = Load { parked, parked_bytes, ..Load::default() };
        for lane in lanes {
            let outbox = lane.outbox().borrow();
            load.bytes += outbox.waiting_bytes() + outbox.answer_bytes() + lane.large_room().reply_bytes();
            load.large += lane.large_room().waiting();
            load.calls += outbox.pending_calls();
            load.in_line += outbox.asks_in_line();
        }
        if self.shown.replace(load) == load {
            return;
        }
        let seat = self.seat.to_string();
        gauge!("archipelago_lane_bytes", "seat" => seat.clone()).set(load.bytes as f64);
        gauge!("archipelago_lane_calls", "seat" => seat.clone()).set(load.calls as f64);
        gauge!("archipelago_lane_waiting", "seat" => seat.clone()).set(load.in_line as f64);
        gauge!("archipelago_lane_large_waiting", "seat" => seat.clone()).set(load.large as f64);
        gauge!("archipelago_parked_messages", "seat" => seat.clone()).set(load.parked as f64);
        gauge!("archipelago_parked_bytes", "seat" => seat).set(load.parked_bytes as f64);
    }

    fn has_deadlines(&self) -> bool {
        self.sink.waiting() > 0
            || self.lanes.borrow().iter().any(|lane| lane.outbox().borrow().next_sweep().is_some())
    }

    fn sweep(&self, lane: &Rc<Lane>, now: Millis) {
        let (abandoned, expired) = {
            let mut outbox = lane.outbox().borrow_mut();
            (outbox.cancel_where(|waiter| waiter.is_abandoned()), outbox.sweep(now))
        };
        drop(abandoned);
        let Expired { calls, tells, dropped } = expired;
        for call in calls {
            call.waiter.fail(CallError::Timeout { started: call.given });
        }
        for frame in tells {
            self.node.remote_dead_letter(lane.peer(), &frame, &no_connection(lane));
        }
        self.tell_of_overflow(lane);
        self.overflowed(lane, dropped);
        // Cancels may have been written; a connection with nothing to send is left alone.
        if !lane.outbox().borrow().is_empty() {
            lane.wake();
        }
        self.tell_of_the_peer(lane, now);
        if lane.should_look_again(now) {
            self.sink.lost(lane, &self.no_connection(lane));
        }
    }

    /// Lets the link of a lane without a connection know that another link has one to the same peer.
    fn tell_of_the_peer(&self, lane: &Lane, now: Millis) {
        let peer = lane.peer().id();
        if !lane.is_connected()
            && self.node.remoting().book().is_reached(peer)
            && lane.is_news(now)
            && let Some(link) = self.links.borrow().get(&(peer, lane.to()))
        {
            link.actor.do_send(Reached(now));
        }
    }

    #[cold]
    fn tell_of_overflow(&self, lane: &Lane) {
        lane.take_overflow().into_iter().for_each(|dropped| self.overflowed(lane, dropped));
    }

    /// Tells whoever waits for what a full lane has thrown out.
    pub(super) fn overflowed(&self, lane: &Lane, dropped: Dropped<Waiter>) {
        let bound = u32::try_from(self.node.settings().remote.lane_bytes).unwrap_or(u32::MAX);
        let full = CallError::Overloaded { queue: Queue::Lane, bound };
        for call in dropped.calls {
            call.waiter.fail(full.clone());
        }
        for frame in dropped.tells {
            self.node.remote_dead_letter(lane.peer(), &frame, &full);
        }
    }

    /// What each lane has to send.
    pub(crate) fn look_at_lanes(&self) -> Vec<LaneView> {
        let view = |link: &Link| {
            let (lane, outbox) = (&link.lane, link.lane.outbox().borrow());
            LaneView {
                from: self.seat.to_string(),
                node: lane.peer().id(),
                to: lane.to().to_string(),
                connected: lane.is_connected(),
                waiting_bytes: outbox.waiting_bytes(),
                answer_bytes: outbox.answer_bytes() + lane.large_room().reply_bytes(),
                in_flight: outbox.pending_calls(),
                stalled: outbox.asks_in_line(),
            }
        };
        self.links.borrow().values().map(view).collect()
    }

    /// Closes every connection in good order, `limit` at most.
    pub(crate) async fn close(&self, limit: Millis) {
        let reason = CloseReason::new(CloseCode::Stopping, "the node stops");
        if within(self.node.env(), limit, self.endpoint.close(reason)).await.is_none() {
            tracing::debug!(seat = %self.seat, "the endpoint did not close in time");
        }
    }

    /// Bytes of messages that wait to be written, also where a connection is still being made; they do not wait for ever.
    pub(crate) fn unwritten(&self) -> usize {
        self.lanes.borrow().iter().map(|lane| lane.outbox().borrow().waiting_bytes()).sum()
    }

    pub(crate) const fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }

    pub(super) const fn seat(&self) -> Seat {
        self.seat
    }

    pub(super) const fn endpoint(&self) -> &Arc<dyn Endpoint> {
        &self.endpoint
    }

    pub(super) const fn sink(&self) -> &Rc<dyn FrameSink> {
        &self.sink
    }
}

fn no_connection(lane: &Lane) -> CallError {
    CallError::NoRoute { reason: format!("no connection to node {}", lane.peer().id()).into() }
}

/// The ports of the data arbiters follow that of the control arbiter.
/// Opens the endpoint of an arbiter. Where the machine may choose the port, it is that of the life before if possible, so
/// that others find the node again.
async fn open_endpoint(
    transport: &dyn Transport,
    node: &NodeShared,
    seat: Seat,
) -> Result<Box<dyn Endpoint>, StartError> {
    let at = listen_at(node, seat)?;
    let earlier = node.remoting().earlier_port(seat).filter(|_| at.port() == 0);
    if let Some(again) = earlier.and_then(|port| NodeAddress::new(at.host(), port).ok()) {
        match transport.open(&again).await {
            Ok(endpoint) => return Ok(endpoint),
            Err(error) => tracing::warn!(%again, %error, "an earlier port is not free"),
        }
    }
    let opened = transport.open(&at).await;
    opened.map_err(|error| StartError::Transport { reason: error.to_string() })
}

fn listen_at(node: &NodeShared, seat: Seat) -> Result<NodeAddress, StartError> {
    let bind = &node.settings().remote.bind;
    if bind.port() == 0 {
        return Ok(bind.clone());
    }
    let offset = u16::try_from(seat.place()).unwrap_or(u16::MAX);
    let port = bind.port().checked_add(offset).filter(|_| offset < u16::MAX);
    let port =
        port.ok_or_else(|| StartError::Transport { reason: format!("no port for {seat} after {bind}") })?;
    NodeAddress::new(bind.host(), port).map_err(|error| StartError::Transport { reason: error.to_string() })
}

/// How often deadlines are looked at.
const SWEEP_EVERY: Millis = Millis(10);
