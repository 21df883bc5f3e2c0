//! The faults that tests and simulators switch.

use std::sync::Arc;

use archipelago_protocol::time::Millis;
use bytes::Bytes;

use crate::network::MemoryNetwork;
use crate::settings::{DialAnswer, Link};
use crate::state::{Ending, Host, HostState, Key, State};

impl MemoryNetwork {
    /// Nothing passes between these two any more, and nobody is told.
    pub fn partition(&self, a: &str, b: &str) {
        self.change_ways(|state| {
            state.blocked.insert((a.into(), b.into()));
            state.blocked.insert((b.into(), a.into()));
        });
    }

    /// Nothing passes from `from` to `to` any more, and nobody is told.
    pub fn partition_one_way(&self, from: &str, to: &str) {
        self.change_ways(|state| {
            state.blocked.insert((from.into(), to.into()));
        });
    }

    /// Everything passes between these two again; what was held up is sent again.
    pub fn heal(&self, a: &str, b: &str) {
        self.change_ways(|state| {
            state.blocked.remove(&(a.into(), b.into()));
            state.blocked.remove(&(b.into(), a.into()));
        });
    }

    /// Ends every partition.
    pub fn heal_all(&self) {
        self.change_ways(|state| state.blocked.clear());
    }

    /// Makes the way from `from` to `to` slow, lossy or forgetful. What is under way keeps its time.
    pub fn set_link(&self, from: &str, to: &str, link: Link) {
        self.change_ways(|state| {
            state.links.insert((from.into(), to.into()), link);
        });
    }

    /// Gives the ways between these two the settings of the network again.
    pub fn reset_links(&self, a: &str, b: &str) {
        self.change_ways(|state| {
            state.links.remove(&(a.into(), b.into()));
            state.links.remove(&(b.into(), a.into()));
        });
    }

    /// How a host answers dials from now on.
    pub fn set_dials(&self, host: &str, answer: DialAnswer) {
        self.shared.with(|state, _| state.host_mut(host).dials = answer);
    }

    /// Drops all connections of a host: both sides find them lost at once.
    pub fn reset(&self, host: &str) {
        self.shared.with(|state, now| {
            for (id, side) in state.ends_where(|side| &*side.host == host) {
                state.end_side(id, 1 - side, Ending::lost("the connection was reset"), now);
                state.end_side(id, side, Ending::lost("the connection was reset"), now);
            }
        });
    }

    /// The host vanishes with its endpoints and connections, without a word. Call it before the node's tasks are dropped,
    /// so that they cannot say farewell. [`host`](Self::host) begins its next life.
    pub fn crash(&self, host: &str) {
        self.shared.with(|state, now| {
            let known = state.host_mut(host);
            (known.down, known.frozen) = (true, false);
            known.life += 1;
            state.listeners.retain(|_, listener| &*listener.host != host);
            for (id, side) in state.ends_where(|side| &*side.host == host) {
                state.end_side(id, side, Ending::lost("the host has crashed"), now);
                if side == 1 && state.conns.get(&id).is_some_and(|conn| !conn.accepted) {
                    state.release(id, side, now);
                }
            }
        });
    }

    /// The host stands still: it says nothing and notices nothing until [`thaw`](Self::thaw). What others send to it waits.
    /// Its tasks are for the caller to hold back.
    pub fn freeze(&self, host: &str) {
        self.change_ways(|state| state.host_mut(host).frozen = true);
    }

    /// The host goes on.
    pub fn thaw(&self, host: &str) {
        self.change_ways(|state| state.host_mut(host).frozen = false);
    }

    /// Breaks each connection between these two after the next `bytes` bytes from `from` to `to`. If there is none, it
    /// breaks the next one that `from` dials or accepts.
    ///
    /// What is sent beyond them is taken and lost; what comes before them arrives.
    pub fn kill_after(&self, from: &str, to: &str, bytes: u64) {
        self.shared.with(|state, _| {
            let mut found = false;
            for conn in state.conns.values_mut() {
                for side in 0..2 {
                    let matches = &*conn.sides[side].host == from && &*conn.sides[1 - side].host == to;
                    if matches && conn.sides.iter().all(|side| side.ended.is_none()) {
                        conn.flows[side].kill_after = Some(bytes);
                        found = true;
                    }
                }
            }
            if !found {
                state.kills.insert((from.into(), to.into()), bytes);
            }
        });
    }

    fn change_ways(&self, change: impl FnOnce(&mut State)) {
        self.shared.with(|state, now| {
            change(state);
            state.ways_changed(now);
        });
    }
}

impl State {
    fn host_mut(&mut self, host: &str) -> &mut HostState {
        let host: Host = host.into();
        self.hosts.entry(Arc::clone(&host)).or_default()
    }

    /// Puts bytes on the lane to the acceptor that nobody has sent.
    pub(crate) fn deliver(&mut self, id: u64, bytes: Bytes, now: Millis) {
        if let Some(channel) = self.conns.get_mut(&id).and_then(|conn| conn.flows[0].channel(Key::Lane)) {
            channel.push(now, bytes);
        }
    }
}
