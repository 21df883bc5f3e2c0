//! What one seed of the workload of several datacenters does: which families of faults take part, and the numbers.

use std::sync::Arc;

use archipelago_backend_conformance::Rng;
use archipelago_memory::NetworkSettings;
use archipelago_protocol::datacenter::{
    DataCenterId, DataCenterInfo, DataCenterMap, DataCenterState, HomeByKey, MapEntry, OnSilence, in_order,
};
use archipelago_protocol::identity::ActorId;
use archipelago_protocol::placement::Local;
use archipelago_protocol::time::Millis;
use archipelago_runtime::{NodeSettings, Reach};

use super::dweller::{HOMED, KINDS, PLACED, SOUGHT, name_of};
use crate::common::{ActorNumber, TTL};
use crate::world::fixed_bind_of;

/// One seed's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// How many nodes each datacenter has.
    pub(crate) islands: Vec<usize>,
    /// Actors per kind.
    pub(crate) keys: u64,
    pub(crate) idle_after: u64,
    /// After which silence a connection is given up.
    pub(crate) silence: u64,
    /// Nobody dies, and sought actors take part.
    pub(crate) steady: bool,
    /// Ways between two datacenters are cut, altogether or one by one.
    pub(crate) cuts: bool,
    pub(crate) slow_links: bool,
    pub(crate) resets: bool,
    /// Ways within a datacenter are cut for a moment.
    pub(crate) inner_cuts: bool,
    pub(crate) moves: bool,
    pub(crate) crashes: bool,
    pub(crate) pauses: bool,
    pub(crate) store_faults: bool,
}

impl Plan {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let steady = rng.chance(500);
        let mut islands: Vec<usize> = (0..2 + rng.index(2)).map(|_| 1 + rng.index(2)).collect();
        islands[0] = 2;
        let moves = rng.chance(600);
        Self {
            islands,
            keys: 2 + rng.below(5),
            idle_after: if steady { 3_600_000 } else { [300, 3_000][rng.index(2)] },
            silence: [800, 2_500][rng.index(2)],
            steady,
            cuts: rng.chance(700),
            slow_links: rng.chance(400),
            resets: rng.chance(400),
            // An actor whose name is lost on the way from node to node counts as one that has ended.
            inner_cuts: !(steady && moves) && rng.chance(400),
            moves,
            crashes: !steady && rng.chance(600),
            pauses: !steady && rng.chance(400),
            store_faults: !steady && rng.chance(500),
        }
    }

    // ---- the islands ----

    pub(crate) fn nodes(&self) -> usize {
        self.islands.iter().sum()
    }

    /// The datacenter of a node.
    pub(crate) fn island_of(&self, index: usize) -> usize {
        let mut left = index;
        self.islands
            .iter()
            .position(|count| {
                let here = left < *count;
                left = left.saturating_sub(*count);
                here
            })
            .unwrap_or(0)
    }

    /// The nodes of a datacenter.
    pub(crate) fn members(&self, island: usize) -> std::ops::Range<usize> {
        let first = self.islands[..island].iter().sum();
        first..first + self.islands[island]
    }

    /// The map as a datacenter has it: all are active, always.
    pub(crate) fn map(&self, own: usize) -> DataCenterMap {
        let entry = |island: usize| {
            let endpoints = self.members(island).map(fixed_bind_of).collect();
            let info = DataCenterInfo::new(id_of(island).as_str(), "", "").expect("a plain name will do");
            let info = info.with_endpoints(endpoints).expect("they are few");
            MapEntry { info, standing: DataCenterState::Active }
        };
        DataCenterMap::new(Some(id_of(own)), (0..self.islands.len()).map(entry).collect())
    }

    /// The datacenter that an actor belongs to, if that is settled beforehand.
    pub(crate) fn home_of(&self, actor: ActorNumber, id: &ActorId) -> Option<usize> {
        match actor.kind {
            HOMED => {
                let map = self.map(0);
                let all: Vec<&MapEntry> = map.entries.iter().collect();
                let order = in_order(&HomeByKey, (id.stable_hash(), 0), &map, &all, |_| None);
                order.first().and_then(|first| (0..self.islands.len()).find(|one| id_of(*one) == *first.id()))
            }
            PLACED => Some(self.place_of(actor.key)),
            _ => None,
        }
    }

    /// Where the placed actor with this key, or the founder of the sought one, is.
    pub(crate) fn place_of(&self, key: u64) -> usize {
        usize::try_from(key).unwrap_or(0) % self.islands.len()
    }

    /// How many kinds take part, from the first on.
    pub(crate) const fn kinds(&self) -> usize {
        if self.steady { KINDS } else { KINDS - 1 }
    }

    // ---- the numbers ----

    pub(crate) fn settings(&self, index: usize) -> NodeSettings {
        let mut settings = NodeSettings::default();
        settings.data_arbiters = Some(1);
        settings.idle_after = Millis(self.idle_after);
        settings.stop_budget = Millis(2_000);
        settings.session_ttl = TTL;
        settings.placement = Arc::new(Local);
        settings.sharding.rebalance = false;
        settings.remote.bind = fixed_bind_of(index);
        settings.remote.datacenter = id_of(self.island_of(index)).to_string();
        settings.remote.handshake_limit = Millis(1_500);
        settings.discovery.on_silence = OnSilence::Fail;
        settings.reach_by_kind.insert(name_of(HOMED).to_owned(), Reach::Home(Arc::new(HomeByKey)));
        settings
    }

    pub(crate) fn network(&self) -> NetworkSettings {
        NetworkSettings {
            silence_limit: Millis(self.silence),
            dial_limit: Millis(700),
            ..NetworkSettings::default()
        }
    }
}

/// The id of a datacenter.
pub(crate) fn id_of(island: usize) -> DataCenterId {
    DataCenterId::new(&format!("dc{island}")).expect("a plain name is an id")
}

const _: () = assert!(SOUGHT == KINDS - 1, "the kind that needs steady runs is the last one");
/// How often calls are looked at: by the lanes, and by the arbiter.
pub(crate) const SWEEP: Millis = Millis(25);
