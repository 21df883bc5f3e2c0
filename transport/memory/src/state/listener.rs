//! Endpoints as the network sees them: who listens where, and who knocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

use archipelago_protocol::contract::{CloseCode, CloseReason, PeerIdentity, TransportError};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::time::Millis;

use super::{Conn, Host, Side, State};
use crate::channel::HELD;
use crate::mutants::Mutant;
use crate::rng::Rng;
use crate::settings::DialAnswer;
use crate::wait::{Look, Waiters};

/// An endpoint that listens.
pub(crate) struct Listener {
    pub(crate) host: Host,
    pub(crate) address: NodeAddress,
    backlog: VecDeque<(Millis, Arrival)>,
    waiters: Waiters,
    /// Clients that say nothing, and until when they may stay.
    pub(crate) mutes: BTreeMap<u64, Millis>,
}

/// Who has arrived at an endpoint.
#[derive(Clone, Debug)]
pub(crate) enum Arrival {
    Connection(u64),
    /// Somebody who is not let in.
    Refused(String),
}

/// What becomes of an attempt to connect.
pub(crate) enum Knock {
    /// There is a connection of this number.
    Connected(u64),
    /// Nobody listens there.
    Nobody,
    /// Somebody does, and does not want it.
    Refused(String),
    /// No answer.
    Silence,
}

impl Listener {
    pub(crate) fn new(host: Host, address: NodeAddress) -> Self {
        let (backlog, waiters, mutes) = (VecDeque::new(), Waiters::default(), BTreeMap::new());
        Self { host, address, backlog, waiters, mutes }
    }

    fn push(&mut self, at: Millis, arrival: Arrival, to_wake: &mut Vec<Waker>) {
        let place = self.backlog.partition_point(|(earlier, _)| *earlier <= at);
        self.backlog.insert(place, (at, arrival));
        self.waiters.wake(to_wake);
    }
}

impl State {
    /// Lets `host` listen at `port`, or at any that is free.
    pub(crate) fn listen(&mut self, host: &Host, port: u16) -> Result<(u64, NodeAddress), TransportError> {
        let port = if port == 0 { self.free_port(host) } else { port };
        let address = NodeAddress::new(host, port).map_err(|error| TransportError::Invalid {
            what: error.to_string(),
            source: Some(Box::new(error)),
        })?;
        if self.listener_at(&address).is_some() {
            let reason = "somebody listens there already".to_owned();
            return Err(TransportError::Unavailable { address, reason });
        }
        let id = self.fresh_id();
        self.listeners.insert(id, Listener::new(Arc::clone(host), address.clone()));
        Ok((id, address))
    }

    fn free_port(&mut self, host: &Host) -> u16 {
        loop {
            let state = self.hosts.entry(Arc::clone(host)).or_default();
            state.last_port =
                if state.last_port < FIRST_PORT { FIRST_PORT } else { state.last_port.wrapping_add(1) };
            let port = state.last_port;
            let taken = self
                .listeners
                .values()
                .any(|listener| listener.host == *host && listener.address.port() == port);
            if port >= FIRST_PORT && !taken {
                return port;
            }
        }
    }

    fn listener_at(&self, address: &NodeAddress) -> Option<u64> {
        self.listeners.iter().find(|(_, listener)| listener.address == *address).map(|(id, _)| *id)
    }

    /// The address that a cable leads to, or the same.
    pub(crate) fn resolve<'a>(&'a self, to: &'a NodeAddress) -> &'a NodeAddress {
        self.cables.get(to).map_or(to, |cable| &cable.to)
    }

    /// Somebody knocks at `to`.
    pub(crate) fn knock(&mut self, endpoint: u64, to: &NodeAddress, now: Millis) -> Knock {
        let Some(from) = self.listeners.get(&endpoint).map(|own| Arc::clone(&own.host)) else {
            return Knock::Silence;
        };
        let address = self.resolve(to).clone();
        let there: Host = address.host().into();
        let answer = self.hosts.get(&there).map_or(DialAnswer::Normal, |host| host.dials);
        if !self.reachable(&from, &there, to) || answer == DialAnswer::Hang {
            return Knock::Silence;
        }
        let Some(listener) = self.listener_at(&address).filter(|_| answer != DialAnswer::Unavailable) else {
            return Knock::Nobody;
        };
        if answer == DialAnswer::Refused || !self.trusted(&from, &there) {
            return self.refuse(listener, &from, now);
        }
        if self.listeners.get(&listener).is_none_or(|known| known.backlog.len() >= self.settings.backlog) {
            return Knock::Silence;
        }
        let via = (address != *to).then(|| to.clone());
        Knock::Connected(self.connect([endpoint, listener], [from, there], via, now))
    }

    /// True if something gets there and back, and somebody is awake there.
    fn reachable(&self, from: &Host, there: &Host, to: &NodeAddress) -> bool {
        let cut = self.cables.get(to).is_some_and(|cable| cable.cut[0] || cable.cut[1]);
        let awake = self.hosts.get(there).is_some_and(|host| !host.down && !host.frozen);
        let grudge = (self.broken(Mutant::DialsOnce) || self.broken(Mutant::DialBlocks))
            && self.grudges.contains(&(Arc::clone(from), Arc::clone(there)));
        !cut && awake && !grudge && self.way_open(from, there) && self.way_open(there, from)
    }

    fn trusted(&self, from: &Host, there: &Host) -> bool {
        let realm = |host| self.hosts.get(host).map(|host| host.realm);
        !self.settings.secured || realm(from) == realm(there) || self.broken(Mutant::TrustsStrangers)
    }

    fn refuse(&mut self, listener: u64, from: &Host, now: Millis) -> Knock {
        let silently = self.broken(Mutant::RefusesSilently);
        if let Some(listener) = self.listeners.get_mut(&listener).filter(|_| !silently) {
            let reason = format!("{from} is not trusted");
            listener.push(now, Arrival::Refused(reason), &mut self.to_wake);
        }
        Knock::Refused("the two do not trust each other".to_owned())
    }

    fn connect(
        &mut self,
        endpoints: [u64; 2],
        hosts: [Host; 2],
        via: Option<NodeAddress>,
        now: Millis,
    ) -> u64 {
        let id = self.fresh_id();
        let mixed_up = usize::from(!self.broken(Mutant::MixesIdentitiesUp));
        let (dialler, acceptor) = (self.identity(&hosts[0]), self.identity(&hosts[mixed_up]));
        let [from, there] = hosts;
        let sides = [
            Side::new(Arc::clone(&from), endpoints[0], dialler),
            Side::new(Arc::clone(&there), endpoints[1], acceptor),
        ];
        let mut conn = Conn::new(sides, via);
        let way = (from, there);
        conn.flows[0].kill_after = self.kills.remove(&way);
        conn.flows[1].kill_after = self.kills.remove(&(Arc::clone(&way.1), Arc::clone(&way.0)));
        if self.broken(Mutant::CarriesOver) && self.grudges.contains(&way) {
            conn.flows[0].lane.push(now, bytes::Bytes::from_static(b"left over"));
        }
        self.conns.insert(id, conn);
        self.stats.connections += 1;
        self.refresh(id, now);
        self.arrive(endpoints[1], id, &way, now);
        id
    }

    /// Tells the listener of a connection, perhaps twice.
    fn arrive(&mut self, listener: u64, id: u64, way: &(Host, Host), now: Millis) {
        let twice = self.link(way).duplicate_per_mille;
        let again = self.rng.chance(twice).then(|| now + self.delay(&way.0, &way.1));
        if let Some(listener) = self.listeners.get_mut(&listener) {
            listener.push(now, Arrival::Connection(id), &mut self.to_wake);
            if let Some(again) = again {
                listener.push(again, Arrival::Connection(id), &mut self.to_wake);
            }
        }
    }

    /// What a host proves about itself.
    pub(crate) fn identity(&self, host: &Host) -> PeerIdentity {
        if !self.settings.secured {
            let fingerprint = self.broken(Mutant::InventsIdentities).then_some([0; 32]);
            return PeerIdentity { names: Vec::new(), fingerprint };
        }
        let realm = self.hosts.get(host).map_or(0, |state| state.realm);
        let mut rng =
            Rng::new(host.bytes().fold(realm, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(31)));
        let fingerprint = std::array::from_fn(|_| rng.bits().to_le_bytes()[0]);
        PeerIdentity { names: vec![host.to_string()], fingerprint: Some(fingerprint) }
    }

    /// The next who has arrived at an endpoint.
    pub(crate) fn look_accept(
        &mut self,
        endpoint: u64,
        now: Millis,
        waker: &Waker,
    ) -> Look<Result<u64, TransportError>> {
        let twins = self.broken(Mutant::AcceptsDuplicates);
        let blocks = self.broken(Mutant::MuteHoldsUp);
        let Some(listener) = self.listeners.get_mut(&endpoint) else {
            return Look::Ready(Err(TransportError::Ended));
        };
        if let Some(until) = listener.mutes.values().max().filter(|until| blocks && **until > now) {
            return Look::Until(*until);
        }
        while listener.backlog.front().is_some_and(|(at, _)| *at <= now) {
            match listener.backlog.pop_front() {
                Some((_, Arrival::Refused(reason))) => {
                    return Look::Ready(Err(TransportError::Refused { reason }));
                }
                Some((_, Arrival::Connection(id))) => match self.conns.get_mut(&id) {
                    Some(conn) if !conn.accepted || twins => {
                        conn.accepted = true;
                        return Look::Ready(Ok(id));
                    }
                    _ => self.stats.duplicates += 1,
                },
                None => break,
            }
        }
        listener.waiters.add(waker);
        Look::Until(listener.backlog.front().map_or(HELD, |(at, _)| *at))
    }

    /// Bytes arrive that are none of this transport.
    pub(crate) fn garbage_arrives(&mut self, to: &NodeAddress, now: Millis) {
        let Some(id) = self.listener_at(to) else { return };
        if self.broken(Mutant::GarbageEndsEndpoint) {
            self.close_endpoint(id, &CloseReason::new(CloseCode::Protocol, "garbage"), now);
        } else if !self.broken(Mutant::HidesGarbage)
            && let Some(listener) = self.listeners.get_mut(&id)
        {
            let reason = "the bytes are not of this transport".to_owned();
            listener.push(now, Arrival::Refused(reason), &mut self.to_wake);
        }
    }

    /// A client comes that says nothing. None if nobody listens there.
    pub(crate) fn mute_arrives(&mut self, to: &NodeAddress, now: Millis) -> Option<(u64, u64, Millis)> {
        let id = self.fresh_id();
        let stays = self.broken(Mutant::MuteStays);
        let until = if stays { HELD } else { now + self.settings.dial_limit };
        let listener = self.listener_at(to)?;
        self.listeners.get_mut(&listener)?.mutes.insert(id, until);
        Some((listener, id, until))
    }

    /// Stops listening. Connections that nobody has accepted are closed, those that were live on.
    pub(crate) fn stop_listening(&mut self, endpoint: u64, reason: &CloseReason, now: Millis) {
        let Some(mut listener) = self.listeners.remove(&endpoint) else { return };
        listener.waiters.wake(&mut self.to_wake);
        for (_, arrival) in listener.backlog {
            if let Arrival::Connection(id) = arrival
                && self.conns.get(&id).is_some_and(|conn| !conn.accepted)
            {
                self.close(id, 1, reason.clone(), now);
                self.release(id, 1, now);
            }
        }
    }

    /// Stops listening and closes every connection of the endpoint.
    pub(crate) fn close_endpoint(&mut self, endpoint: u64, reason: &CloseReason, now: Millis) {
        self.stop_listening(endpoint, reason, now);
        if self.broken(Mutant::EndpointLeavesConnections) {
            return;
        }
        for (id, side) in self.ends_where(|side| side.endpoint == endpoint) {
            self.close(id, side, reason.clone(), now);
        }
    }

    /// The ends of connections for which this is true.
    pub(crate) fn ends_where(&self, wanted: impl Fn(&Side) -> bool) -> Vec<(u64, usize)> {
        let ends =
            self.conns.iter().flat_map(|(id, conn)| [(*id, 0, &conn.sides[0]), (*id, 1, &conn.sides[1])]);
        ends.filter(|(_, _, side)| wanted(side)).map(|(id, side, _)| (id, side)).collect()
    }

    /// Nobody holds this end of a connection any more.
    pub(crate) fn release(&mut self, id: u64, side: usize, now: Millis) {
        if !self.broken(Mutant::DropIsSilent) {
            self.close(id, side, CloseReason::new(CloseCode::Done, "no part of it was kept"), now);
        }
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.sides[side].released = true;
            if conn.sides.iter().all(|side| side.released) {
                self.conns.remove(&id);
            }
        }
    }
}

/// The first port that the network chooses itself.
const FIRST_PORT: u16 = 40_000;
