//! The map of datacenters, readable from every thread. It outlives the lives of a node.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use archipelago_protocol::datacenter::{DataCenterId, DataCenterMap};
use archipelago_protocol::time::Millis;

use super::controller::AskMap;
use super::describe::note_left_out;
use crate::env::{Follower, Shown, within};
use crate::node::{Node, NodeShared};
use crate::remote::Peer;

/// The newest map. Whoever reads the control plane, or is told by the one that does, replaces it.
pub(crate) struct Maps {
    newest: Shown<Arc<DataCenterMap>>,
    /// The other datacenters by the numbers that this node has given them, from 1.
    islands: RwLock<Vec<DataCenterId>>,
    /// Whether messages may go to an island, by its number.
    open: Box<[AtomicBool]>,
    /// Whether any other datacenter may be asked.
    others: AtomicBool,
    /// Whether any other datacenter is known, wherever it stands.
    known: AtomicBool,
}

impl Maps {
    pub(crate) fn new(first: DataCenterMap) -> Self {
        let maps = Self {
            newest: Shown::new(Arc::default()),
            islands: RwLock::default(),
            open: (0..=MOST_ISLANDS).map(|_| AtomicBool::new(false)).collect(),
            others: AtomicBool::new(false),
            known: AtomicBool::new(false),
        };
        maps.replace(first);
        maps
    }

    /// The map as it is now.
    pub(crate) fn newest(&self) -> Arc<DataCenterMap> {
        self.newest.read(Arc::clone)
    }

    /// Takes a newer map; which of two is newer is for the caller to say.
    pub(crate) fn replace(&self, map: DataCenterMap) {
        self.newest.modify(|newest| {
            let changed = **newest != map;
            if changed {
                self.open_to(&map);
                *newest = Arc::new(map);
            }
            changed
        });
    }

    fn open_to(&self, map: &DataCenterMap) {
        let asked: Vec<u16> = map.asked().map(|entry| self.island(entry.id())).collect();
        note_left_out("islands", asked.iter().filter(|island| usize::from(**island) > MOST_ISLANDS).count());
        for (island, open) in (0_u16..).zip(&self.open) {
            open.store(asked.contains(&island), Ordering::Release);
        }
        self.others.store(!asked.is_empty(), Ordering::Release);
        self.known.store(map.knows_others(), Ordering::Release);
    }

    /// Whoever wants to know of changes.
    pub(crate) fn watch(&self) -> Follower<Arc<DataCenterMap>> {
        self.newest.follow()
    }

    /// Whether any other datacenter may be asked.
    pub(crate) fn has_others(&self) -> bool {
        self.others.load(Ordering::Acquire)
    }

    /// Whether any other datacenter is known, also one that may not be asked.
    pub(crate) fn knows_others(&self) -> bool {
        self.known.load(Ordering::Acquire)
    }

    /// Whether messages may go to an island.
    pub(crate) fn is_open(&self, island: u16) -> bool {
        self.open.get(usize::from(island)).is_some_and(|open| open.load(Ordering::Acquire))
    }

    /// The number of another datacenter; it is given one if it has none. When there are too many, the last one stands for
    /// all others, to which no message goes.
    pub(crate) fn island(&self, id: &DataCenterId) -> u16 {
        let known = |islands: &[DataCenterId]| islands.iter().position(|known| known == id);
        let found = known(&self.islands.read().unwrap_or_else(PoisonError::into_inner));
        let place = found.unwrap_or_else(|| {
            let mut islands = self.islands.write().unwrap_or_else(PoisonError::into_inner);
            known(&islands).unwrap_or_else(|| {
                if islands.len() < MOST_ISLANDS {
                    islands.push(id.clone());
                    islands.len() - 1
                } else {
                    MOST_ISLANDS
                }
            })
        });
        u16::try_from(place + 1).unwrap_or(u16::MAX)
    }

    /// The datacenter with this number.
    pub(crate) fn datacenter(&self, island: u16) -> Option<DataCenterId> {
        let islands = self.islands.read().unwrap_or_else(PoisonError::into_inner);
        islands.get(usize::from(island).checked_sub(1)?).cloned()
    }
}

impl NodeShared {
    /// Whether the node takes part in a world of several datacenters, though the others may not be known yet.
    pub(crate) fn has_datacenters(&self) -> bool {
        self.env().transport().is_some() && self.datacenters().newest().own.is_some()
    }

    /// Whether actors may belong to other datacenters: there is a control plane, though it may not have said anything yet, or a
    /// map that knows of others, though none of them may be there now.
    pub(crate) fn may_have_actors_abroad(&self) -> bool {
        self.control_plane().is_some() || self.datacenters().knows_others()
    }

    /// Whether a node belongs to another datacenter.
    pub(crate) fn is_abroad(&self, peer: &Peer) -> bool {
        peer.datacenter() != self.settings().remote.datacenter
    }

    /// The number of a peer's datacenter; zero for our own.
    pub(crate) fn island_of(&self, peer: &Peer) -> u16 {
        if !self.is_abroad(peer) {
            return 0;
        }
        DataCenterId::new(peer.datacenter()).map_or(u16::MAX, |id| self.datacenters().island(&id))
    }
}

impl Node {
    /// The datacenters as this node sees them; empty without a control plane.
    pub fn datacenters(&self) -> Arc<DataCenterMap> {
        self.shared().datacenters().newest()
    }

    /// How long ago the control plane last answered whoever told this node about the datacenters; none if nobody has, or there is no
    /// control plane.
    pub async fn datacenters_age(&self) -> Option<Millis> {
        let node = self.shared();
        let asked = node.controller()?.send(AskMap);
        let snapshot = within(node.env(), AGE_WITHIN, asked).await?.ok().flatten()?;
        Some(snapshot.age)
    }

    /// The same, for whoever wants to be told of changes.
    pub fn watch_datacenters(&self) -> Follower<Arc<DataCenterMap>> {
        self.shared().datacenters().watch()
    }

    /// Replaces the map that this node routes by, for whoever knows the datacenters without a control plane.
    pub fn show_datacenters(&self, map: DataCenterMap) {
        self.shared().datacenters().replace(map);
    }
}

/// How long the actor that knows may take to say so.
const AGE_WITHIN: Millis = Millis(1_000);

/// How many other datacenters a node can tell apart in its lives.
const MOST_ISLANDS: usize = 4 * DataCenterMap::MAX_ENTRIES;

#[cfg(test)]
mod tests {
    use archipelago_protocol::datacenter::{DataCenterInfo, DataCenterState, MapEntry};

    use super::*;

    fn map(standing: DataCenterState) -> DataCenterMap {
        let entry =
            |name: &str, standing| MapEntry { info: DataCenterInfo::new(name, "", "").unwrap(), standing };
        let own = DataCenterId::new("home").unwrap();
        DataCenterMap::new(Some(own), vec![entry("home", DataCenterState::Active), entry("far", standing)])
    }

    /// Proves: R416
    #[test]
    fn messages_go_only_where_the_newest_map_lets_them() {
        let maps = Maps::new(map(DataCenterState::Active));
        let far = maps.island(&DataCenterId::new("far").unwrap());
        assert!(maps.is_open(far) && maps.has_others() && !maps.is_open(0));
        maps.replace(map(DataCenterState::Draining));
        assert!(maps.is_open(far), "what lives there is finished");
        maps.replace(map(DataCenterState::Inactive));
        assert!(!maps.is_open(far) && !maps.has_others());
        assert!(maps.knows_others(), "what belongs there still does");
    }

    #[actix::test]
    async fn whoever_follows_the_map_is_told_of_a_newer_one_and_of_nothing_else() {
        let maps = Maps::new(map(DataCenterState::Active));
        let mut follower = maps.watch();
        maps.replace(map(DataCenterState::Active));
        maps.replace(map(DataCenterState::Draining));
        assert!(follower.changed().await);
        assert_eq!(*follower.newest(), map(DataCenterState::Draining));
        drop(maps);
        assert!(!follower.changed().await, "the same map is no change");
    }

    #[test]
    fn an_island_keeps_its_number_and_too_many_share_one_that_is_closed() {
        let maps = Maps::new(DataCenterMap::default());
        let id = |n: usize| DataCenterId::new(&format!("dc{n}")).unwrap();
        assert_eq!((maps.island(&id(0)), maps.island(&id(1)), maps.island(&id(0))), (1, 2, 1));
        assert_eq!(maps.datacenter(2), Some(id(1)));
        let last = (2..MOST_ISLANDS + 5).map(|n| maps.island(&id(n))).max().unwrap();
        assert_eq!(usize::from(last), MOST_ISLANDS + 1);
        assert!(!maps.is_open(last) && maps.datacenter(last).is_none());
    }
}
