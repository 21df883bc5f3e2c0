//! The network as tests and simulators hold it.

use std::fmt;
use std::sync::Arc;

use archipelago_protocol::contract::{CloseCode, CloseReason, PeerIdentity, Transport};
use archipelago_protocol::identity::NodeAddress;
use bytes::Bytes;

use crate::endpoint::MemoryTransport;
use crate::mutants::Mutant;
use crate::settings::NetworkSettings;
use crate::state::{CableState, Host, State, Stats};
use crate::stranger::MuteClient;
use crate::timer::Timer;
use crate::wait::Shared;

/// A network in memory. Clones are handles to the same network.
///
/// Faults are switched in `faults.rs`: partitions, slow and lossy links, crashes, freezes, resets.
#[derive(Clone)]
pub struct MemoryNetwork {
    pub(crate) shared: Arc<Shared>,
}

impl MemoryNetwork {
    /// A network without hosts. The same seed, settings and calls give the same network.
    pub fn new(settings: NetworkSettings, seed: u64, timer: Arc<dyn Timer>) -> Self {
        Self { shared: Shared::new(State::new(settings, seed), timer) }
    }

    /// The transport of the host with this name, which is a part of its addresses.
    ///
    /// After a [`crash`](Self::crash) this begins the host's next life; transports of the life before stay useless.
    pub fn host(&self, name: &str) -> Arc<dyn Transport> {
        self.host_in_realm(name, 0)
    }

    /// As [`host`](Self::host), with credentials that only hosts of the same realm accept, if the network is secured.
    pub fn host_in_realm(&self, name: &str, realm: u64) -> Arc<dyn Transport> {
        let host: Host = name.to_ascii_lowercase().into();
        let life = self.shared.with(|state, _| {
            let known = state.hosts.entry(Arc::clone(&host)).or_default();
            (known.down, known.realm) = (false, realm);
            known.life
        });
        Arc::new(MemoryTransport { shared: Arc::clone(&self.shared), host, life })
    }

    /// The names of all hosts, in order.
    pub fn hosts(&self) -> Vec<String> {
        self.shared.with(|state, _| state.hosts.keys().map(ToString::to_string).collect())
    }

    /// What a host proves about itself; nothing if the network is not secured.
    pub fn identity(&self, host: &str) -> PeerIdentity {
        self.shared.with(|state, _| state.identity(&host.into()))
    }

    /// What has happened so far.
    pub fn stats(&self) -> Stats {
        self.shared.with(|state, _| state.stats)
    }

    /// How many bytes are under way or unread, in the whole network.
    pub fn buffered(&self) -> usize {
        let flows = |state: &mut State, _| {
            state.conns.values().flat_map(|conn| &conn.flows).map(|flow| flow.buffered()).sum()
        };
        self.shared.with(flows)
    }

    /// How many connections there are of which a side is still held.
    pub fn connections(&self) -> usize {
        self.shared.with(|state, _| state.conns.len())
    }

    /// Lays a second way to the endpoint at `to` that can be cut apart from others.
    pub fn cable(&self, to: &NodeAddress) -> MemoryCable {
        let address = self.shared.with(|state, _| {
            let host = format!("cable-{}", state.fresh_id());
            let address = NodeAddress::new(&host, to.port()).unwrap_or_else(|_| to.clone());
            state.cables.insert(address.clone(), CableState { to: to.clone(), cut: [false; 2] });
            address
        });
        MemoryCable { shared: Arc::clone(&self.shared), address }
    }

    /// Bytes that are none of this transport arrive at the endpoint at `to`.
    pub fn send_garbage(&self, to: &NodeAddress) {
        self.shared.with(|state, now| state.garbage_arrives(to, now));
    }

    /// A client connects to the endpoint at `to` and says nothing. None if nobody listens there.
    pub fn connect_and_say_nothing(&self, to: &NodeAddress) -> Option<MuteClient> {
        let arrived = self.shared.with(|state, now| state.mute_arrives(to, now))?;
        Some(MuteClient::new(&self.shared, arrived))
    }

    /// Breaks one rule from now on.
    #[cfg(feature = "mutants")]
    pub fn set_mutant(&self, mutant: Option<Mutant>) {
        self.shared.with(|state, _| state.mutant = mutant);
    }
}

impl fmt::Debug for MemoryNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryNetwork").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// A second way to an endpoint: its own address to dial, and its own fate.
pub struct MemoryCable {
    shared: Arc<Shared>,
    address: NodeAddress,
}

impl MemoryCable {
    /// The address to dial instead of the endpoint's own.
    pub const fn address(&self) -> &NodeAddress {
        &self.address
    }

    /// From now on nothing passes towards the endpoint, or back, or both.
    pub fn cut(&self, towards: bool, back: bool) {
        self.shared.with(|state, now| {
            if let Some(cable) = state.cables.get_mut(&self.address) {
                cable.cut = [towards, back];
            }
            state.ways_changed(now);
        });
    }

    /// Everything passes again.
    pub fn heal(&self) {
        self.cut(false, false);
    }

    /// Bytes that are none of this transport turn up in the connections over this cable.
    pub fn inject(&self, bytes: &Bytes) {
        self.shared.with(|state, now| {
            let over = |conn: &crate::state::Conn| conn.via.as_ref() == Some(&self.address);
            let ids: Vec<u64> =
                state.conns.iter().filter(|(_, conn)| over(conn)).map(|(id, _)| *id).collect();
            for id in ids {
                if state.broken(Mutant::DeliversGarbage) {
                    state.deliver(id, bytes.clone(), now);
                } else {
                    let reason = CloseReason::new(CloseCode::Protocol, "the bytes are not of this transport");
                    state.close(id, 1, reason, now);
                }
            }
        });
    }
}

impl fmt::Debug for MemoryCable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryCable").field("address", &self.address).finish_non_exhaustive()
    }
}
