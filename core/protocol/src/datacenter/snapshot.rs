//! What the leader of a datacenter tells its nodes about all datacenters, and what each of them makes of it.
//!
//! [`SharedMap`] keeps the newest [`Snapshot`] that a node has heard, whoever it came from, and knows how old it is: a
//! snapshot carries the time since the control plane last answered the leader, so that the map goes stale everywhere at the
//! same time, also on a node that nobody tells anything any more. What is stale stays in force. It does no I/O and reads no
//! clock.
//!
//! Invariant: a map is replaced only by one of the same leader that is not older, or of a later leader.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{DataCenterId, DataCenterMap, DataCenterState, MapEntry};
use crate::contract::Epoch;
use crate::time::Millis;

/// How the datacenters stand, as the leader of one of them sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// Counts what this leader has shown.
    pub number: u64,
    /// How long ago the control plane answered it last.
    pub age: Millis,
    /// The leader's own datacenter is being drained, or disabled.
    pub draining: bool,
    /// All datacenters it knows.
    pub entries: Vec<MapEntry>,
}

/// The map of one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SharedMap {
    max_staleness: Millis,
    heard: Option<Heard>,
    map: DataCenterMap,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Heard {
    epoch: Epoch,
    number: u64,
    draining: bool,
    answered_at: Millis,
}

/// What has changed in a map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MapChange {
    /// A datacenter takes part in routing and placement.
    Up(DataCenterId),
    /// A datacenter finishes what it has and takes nothing new.
    Draining(DataCenterId),
    /// A datacenter takes part no longer.
    Down(DataCenterId),
    /// The control plane has not answered for too long: the map shows what was true before.
    Stale,
    /// It answers again.
    Fresh,
}

impl SharedMap {
    /// The map of a node of datacenter `own` that has heard nothing. Without an answer of the control plane for longer than
    /// `max_staleness` a map is stale.
    pub fn new(own: DataCenterId, max_staleness: Millis) -> Self {
        Self { max_staleness, heard: None, map: DataCenterMap::new(Some(own), Vec::new()) }
    }

    /// The same for a node that has known a map in an earlier life.
    #[must_use]
    pub fn starting_from(mut self, map: DataCenterMap) -> Self {
        if map.own == self.map.own {
            self.map = map;
        }
        self
    }

    /// Takes a snapshot in that was just heard; what it changes, if it is not older than what is known.
    pub fn offer(&mut self, now: Millis, snapshot: Snapshot) -> Vec<MapChange> {
        let Snapshot { epoch, number, age, draining, entries } = snapshot;
        let mut answered_at = now - age;
        if let Some(heard) = &self.heard {
            if (epoch, number) < (heard.epoch, heard.number) {
                return Vec::new();
            }
            // Of two words about the same answer, the one that was faster on its way is right about its age.
            answered_at = answered_at.max(heard.answered_at);
        }
        self.heard = Some(Heard { epoch, number, draining, answered_at });
        self.replace(now, DataCenterMap::new(self.map.own.clone(), entries))
    }

    /// Looks whether the map has gone stale.
    pub fn look(&mut self, now: Millis) -> Vec<MapChange> {
        let same = self.map.clone();
        self.replace(now, same)
    }

    /// The map as it is.
    pub const fn map(&self) -> &DataCenterMap {
        &self.map
    }

    /// Whether nobody has told this node anything yet.
    pub const fn is_empty(&self) -> bool {
        self.heard.is_none()
    }

    /// Whether the leader has said that this datacenter is being drained.
    pub fn is_draining(&self) -> bool {
        self.heard.as_ref().is_some_and(|heard| heard.draining)
    }

    /// How long ago the control plane last answered whoever told this node.
    pub fn age(&self, now: Millis) -> Option<Millis> {
        self.heard.as_ref().map(|heard| now.since(heard.answered_at))
    }

    /// The same for another node; `None` if there is nothing to tell.
    pub fn snapshot(&self, now: Millis) -> Option<Snapshot> {
        let Heard { epoch, number, draining, answered_at } = *self.heard.as_ref()?;
        Some(Snapshot {
            epoch,
            number,
            age: now.since(answered_at),
            draining,
            entries: self.map.entries.clone(),
        })
    }

    fn replace(&mut self, now: Millis, mut map: DataCenterMap) -> Vec<MapChange> {
        let heard = self.heard.as_ref();
        // Of a map that is left over from an earlier life nobody knows how old it is.
        let unheard = !map.entries.is_empty();
        map.stale = heard.map_or(unheard, |heard| now.since(heard.answered_at) > self.max_staleness);
        map.version = self.map.version;
        if map == self.map {
            return Vec::new();
        }
        map.version += 1;
        let changes = changes(&self.map, &map);
        self.map = map;
        changes
    }
}

fn changes(before: &DataCenterMap, after: &DataCenterMap) -> Vec<MapChange> {
    let mut changes = Vec::new();
    for entry in &after.entries {
        let was = before.get(entry.id()).map_or(DataCenterState::Inactive, |was| was.standing);
        if was != entry.standing {
            changes.extend(change(entry, was));
        }
    }
    let gone = before.entries.iter().filter(|was| was.may_be_asked() && after.get(was.id()).is_none());
    changes.extend(gone.map(|was| MapChange::Down(was.id().clone())));
    if before.stale != after.stale {
        changes.push(if after.stale { MapChange::Stale } else { MapChange::Fresh });
    }
    changes
}

fn change(entry: &MapEntry, was: DataCenterState) -> Option<MapChange> {
    let id = entry.id().clone();
    match entry.standing {
        DataCenterState::Active => Some(MapChange::Up(id)),
        DataCenterState::Draining => Some(MapChange::Draining(id)),
        // One that was never up is not down.
        DataCenterState::Inactive | DataCenterState::Registered => {
            matches!(was, DataCenterState::Active | DataCenterState::Draining).then_some(MapChange::Down(id))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datacenter::DataCenterInfo;

    const STALE_AFTER: Millis = Millis(30_000);

    fn id(name: &str) -> DataCenterId {
        DataCenterId::new(name).unwrap()
    }

    fn snapshot(epoch: u64, number: u64, entries: &[(&str, DataCenterState)]) -> Snapshot {
        let entry = |&(name, standing): &(&str, _)| MapEntry {
            info: DataCenterInfo::new(name, "", "").unwrap(),
            standing,
        };
        let entries = entries.iter().map(entry).collect();
        Snapshot { epoch: Epoch(epoch), number, age: Millis(0), draining: false, entries }
    }

    fn shared() -> SharedMap {
        SharedMap::new(id("home"), STALE_AFTER)
    }

    /// Proves: R386, R388, C28
    #[test]
    fn the_newest_word_of_the_latest_leader_holds() {
        use DataCenterState::{Active, Draining};
        let mut map = shared();
        assert!(map.is_empty() && map.snapshot(Millis(0)).is_none());
        let up = map.offer(Millis(0), snapshot(2, 5, &[("a", Active)]));
        assert_eq!(up, [MapChange::Up(id("a"))]);
        for old in [snapshot(2, 4, &[]), snapshot(1, 9, &[("a", Draining)])] {
            assert_eq!(map.offer(Millis(1), old), []);
        }
        let later = map.offer(Millis(2), snapshot(3, 1, &[("a", Draining)]));
        assert_eq!(later, [MapChange::Draining(id("a"))]);
        assert_eq!(map.snapshot(Millis(2)), Some(snapshot(3, 1, &[("a", Draining)])));
        assert_eq!(map.offer(Millis(3), snapshot(3, 2, &[])), [MapChange::Down(id("a"))]);
        assert_eq!(map.map().version, 3);
    }

    /// Proves: R440, R488
    #[test]
    fn without_word_the_map_stays_and_is_called_stale() {
        use DataCenterState::Active;
        let mut map = shared();
        let mut old = snapshot(1, 1, &[("a", Active)]);
        old.age = Millis(10_000);
        map.offer(Millis(50_000), old);
        assert_eq!(map.look(Millis(70_000)), [], "the control plane answered 30 s ago");
        assert_eq!(map.look(Millis(70_001)), [MapChange::Stale]);
        assert_eq!(map.age(Millis(70_001)), Some(Millis(30_001)));
        assert!(map.map().stale);
        assert_eq!(map.map().placeable().count(), 1, "the last known map stays in force");
        let fresh = map.offer(Millis(80_000), snapshot(1, 1, &[("a", Active)]));
        assert_eq!(fresh, [MapChange::Fresh]);
    }

    #[test]
    fn a_word_that_took_long_does_not_make_the_map_older() {
        let mut map = shared();
        map.offer(Millis(1_000), snapshot(1, 1, &[]));
        let mut slow = snapshot(1, 1, &[]);
        slow.age = Millis(900);
        map.offer(Millis(1_100), slow);
        assert_eq!(map.age(Millis(1_100)), Some(Millis(100)));
    }

    #[test]
    fn a_map_of_an_earlier_life_is_stale_until_the_node_hears_of_one() {
        use DataCenterState::Active;
        let mut before = shared();
        before.offer(Millis(0), snapshot(1, 1, &[("a", Active)]));
        assert_eq!(before.look(Millis(40_000)), [MapChange::Stale]);
        for left_over in [before.map().clone(), DataCenterMap { stale: false, ..before.map().clone() }] {
            let mut map = shared().starting_from(left_over);
            map.look(Millis(40_001));
            assert!(map.map().stale, "nobody has said that it still holds");
            assert_eq!(map.map().placeable().count(), 1, "it stays in force");
            let fresh = map.offer(Millis(40_002), snapshot(1, 2, &[("a", Active)]));
            assert_eq!(fresh, [MapChange::Fresh]);
        }
        let mut new = shared();
        assert_eq!(new.look(Millis(40_000)), []);
        assert!(!new.map().stale, "who knows nothing has no old map");
    }

    #[test]
    fn who_was_never_up_does_not_go_down() {
        use DataCenterState::{Inactive, Registered};
        let mut map = shared();
        assert_eq!(map.offer(Millis(0), snapshot(1, 1, &[("a", Registered)])), []);
        assert_eq!(map.offer(Millis(0), snapshot(1, 2, &[("a", Inactive)])), []);
        assert_eq!(map.offer(Millis(0), snapshot(1, 3, &[])), []);
    }

    #[test]
    fn a_snapshot_survives_the_wire() {
        let sent = snapshot(7, 3, &[("a", DataCenterState::Active)]);
        let bytes = postcard::to_allocvec(&sent).unwrap();
        assert_eq!(postcard::from_bytes::<Snapshot>(&bytes).unwrap(), sent);
    }
}
