//! The datacenters as one node sees them.
//!
//! The leader of a datacenter reads the control plane and pushes what it finds to its followers as a [`DataCenterMap`], so
//! that every node routes. The map is advice: a wrong one costs a detour, or an error, never a message.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{DataCenterId, DataCenterInfo, DataCenterState};

/// All datacenters that are known, our own among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct DataCenterMap {
    /// Grows with every change, as whoever made the map counts.
    pub version: u64,
    /// The control plane did not answer lately: this is what was true before.
    pub stale: bool,
    /// Our own; none without a control plane.
    pub own: Option<DataCenterId>,
    /// One entry per datacenter, in the order of their ids.
    pub entries: Vec<MapEntry>,
}

/// One datacenter of the map.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MapEntry {
    /// What it says about itself.
    pub info: DataCenterInfo,
    /// Where it stands; `Inactive` also if its lease has ended.
    pub standing: DataCenterState,
}

impl DataCenterMap {
    /// How many datacenters a map may have.
    pub const MAX_ENTRIES: usize = 256;

    /// A map of these datacenters, seen from `own`. Only the first of several entries with one id is kept, and no more
    /// than [`MAX_ENTRIES`](Self::MAX_ENTRIES).
    pub fn new(own: Option<DataCenterId>, mut entries: Vec<MapEntry>) -> Self {
        entries.sort_by(|one, other| one.id().cmp(other.id()));
        entries.dedup_by(|later, first| later.id() == first.id());
        entries.truncate(Self::MAX_ENTRIES);
        Self { version: 0, stale: false, own, entries }
    }

    /// The entry of a datacenter.
    pub fn get(&self, id: &DataCenterId) -> Option<&MapEntry> {
        self.entries.iter().find(|entry| entry.id() == id)
    }

    /// Whether `id` is our own.
    pub fn is_own(&self, id: &DataCenterId) -> bool {
        self.own.as_ref() == Some(id)
    }

    /// The other datacenters that may be asked where an actor is: also a draining one finishes what it has.
    pub fn asked(&self) -> impl Iterator<Item = &MapEntry> {
        self.entries.iter().filter(|entry| !self.is_own(entry.id()) && entry.may_be_asked())
    }

    /// The datacenters among which a policy chooses the home of an actor, our own included: all that have ever been active.
    /// Also what one of them has that shuts down, or is silent, is nobody else's.
    pub fn homes(&self) -> Vec<&MapEntry> {
        self.entries.iter().filter(|entry| entry.standing != DataCenterState::Registered).collect()
    }

    /// Whether any other datacenter is known, wherever it stands.
    pub fn knows_others(&self) -> bool {
        self.entries.iter().any(|entry| !self.is_own(entry.id()))
    }

    /// The other datacenters that take new actors.
    pub fn placeable(&self) -> impl Iterator<Item = &MapEntry> {
        self.asked().filter(|entry| entry.standing == DataCenterState::Active)
    }
}

impl MapEntry {
    /// The identity of the datacenter.
    pub const fn id(&self) -> &DataCenterId {
        self.info.id()
    }

    /// Whether it answers questions, and takes messages to what lives there.
    pub const fn may_be_asked(&self) -> bool {
        matches!(self.standing, DataCenterState::Active | DataCenterState::Draining)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn entry(name: &str, standing: DataCenterState) -> MapEntry {
        MapEntry { info: DataCenterInfo::new(name, "", "").unwrap(), standing }
    }

    /// Proves: R415, R416
    #[test]
    fn only_active_datacenters_take_actors_and_draining_ones_still_answer() {
        use DataCenterState::{Active, Draining, Inactive, Registered};
        let own = DataCenterId::new("home").unwrap();
        let entries = vec![
            entry("d", Draining),
            entry("a", Active),
            entry("r", Registered),
            entry("i", Inactive),
            entry("home", Active),
        ];
        let map = DataCenterMap::new(Some(own), entries);
        let asked: Vec<_> = map.asked().map(|entry| entry.id().as_str()).collect();
        assert_eq!(asked, ["a", "d"]);
        let placeable: Vec<_> = map.placeable().map(|entry| entry.id().as_str()).collect();
        assert_eq!(placeable, ["a"]);
        let homes: Vec<_> = map.homes().iter().map(|entry| entry.id().as_str()).collect();
        assert_eq!(homes, ["a", "d", "home", "i"], "a home stays one, whatever becomes of its datacenter");
    }

    #[test]
    fn whoever_knows_itself_alone_knows_no_others() {
        let own = DataCenterId::new("home").unwrap();
        let with = |entries| DataCenterMap::new(Some(own.clone()), entries).knows_others();
        assert!(!with(vec![]) && !with(vec![entry("home", DataCenterState::Active)]));
        assert!(with(vec![entry("gone", DataCenterState::Inactive)]));
    }

    #[test]
    fn a_map_has_each_datacenter_once_and_in_order() {
        use DataCenterState::{Active, Inactive};
        let map =
            DataCenterMap::new(None, vec![entry("b", Active), entry("a", Active), entry("b", Inactive)]);
        let ids: Vec<_> = map.entries.iter().map(|entry| (entry.id().as_str(), entry.standing)).collect();
        assert_eq!(ids, [("a", Active), ("b", Active)]);
    }
}
