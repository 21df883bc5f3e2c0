//! The store, the nodes, and the managers of the model.

use std::collections::{BTreeMap, BTreeSet};

use archipelago_protocol::contract::{Epoch, RecordVersion, SavedTable, TableVersion};
use archipelago_protocol::identity::{ActorKey, NodeAddress, NodeId, PartitionName};
use archipelago_protocol::ranges::{
    ChangeOutcome, KeyRange, ManagerAction, ManagerEvent, ManagerLimits, OwnerStatus, RangeChange, RangeHost,
    RangeManager, RangeTable, RequestId, SaveFailure,
};
use archipelago_protocol::time::Millis;

use super::mutant::Mutant;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    pub(super) saved: Option<SavedTable>,
    pub(super) retired: BTreeSet<PartitionName>,
    /// Who owns what, and its range.
    pub(super) owners: BTreeMap<PartitionName, (usize, KeyRange)>,
    pub(super) managers: [Option<Office>; 2],
    /// A save that lands late.
    pub(super) late: Option<(RangeTable, SavedTable, Epoch)>,
    pub(super) nodes: [Node; 2],
    /// Epochs given out.
    pub(super) office: u64,
    pub(super) asks: u8,
    pub(super) losses: u8,
    pub(super) deaths: u8,
    /// The greatest epoch whose seal was answered.
    sealed: Epoch,
    pub(super) lied: bool,
    pub(super) unfenced: bool,
    pub(super) unsealed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Office {
    epoch: Epoch,
    manager: RangeManager,
    pub(super) flight: Flight,
    pub(super) hosts: BTreeSet<usize>,
    /// It wants to look again.
    pub(super) wakes: bool,
    /// The partition that a request makes vanish.
    asked: BTreeMap<RequestId, PartitionName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    None,
    Seal,
    Load,
    Save { table: RangeTable, expected: Box<SavedTable> },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) up: bool,
    pub(super) seen: Option<RangeTable>,
}

impl Default for World {
    fn default() -> Self {
        let node = Node { up: true, seen: None };
        Self {
            saved: None,
            retired: BTreeSet::new(),
            owners: BTreeMap::new(),
            managers: [None, None],
            late: None,
            nodes: [node.clone(), node],
            office: 0,
            asks: 0,
            losses: 0,
            deaths: 0,
            sealed: Epoch(0),
            lied: false,
            unfenced: false,
            unsealed: false,
        }
    }
}

impl World {
    pub(super) fn table(&self) -> Option<&RangeTable> {
        self.saved.as_ref()?.table.as_ref()
    }

    pub(super) fn up(&self) -> BTreeSet<usize> {
        (0..self.nodes.len()).filter(|node| self.nodes[*node].up).collect()
    }

    pub(super) fn owners_overlap(&self) -> bool {
        let ranges: Vec<&KeyRange> = self.owners.values().map(|(_, range)| range).collect();
        let pairs = (0..ranges.len()).flat_map(|a| (a + 1..ranges.len()).map(move |b| (a, b)));
        pairs.into_iter().any(|(a, b)| ranges[a].overlaps(ranges[b]))
    }

    // ---- managers ----

    pub(super) fn take_office(&mut self, place: usize) {
        self.office += 1;
        let limits = ManagerLimits { moves: 1, requests: 4, retry: Millis::ZERO };
        let epoch = Epoch(self.office);
        let (manager, first) = RangeManager::take_office(epoch, limits);
        let (hosts, asked) = (BTreeSet::new(), BTreeMap::new());
        self.managers[place] =
            Some(Office { epoch, manager, flight: Flight::None, hosts, wakes: false, asked });
        self.carry_out(place, first);
    }

    fn feed(&mut self, place: usize, event: ManagerEvent) {
        let Some(office) = &mut self.managers[place] else { return };
        office.wakes = false;
        let actions = office.manager.handle(NOW, event);
        self.carry_out(place, actions);
    }

    fn carry_out(&mut self, place: usize, actions: Vec<ManagerAction>) {
        for action in actions {
            let Some(office) = &mut self.managers[place] else { return };
            match action {
                ManagerAction::Seal => office.flight = Flight::Seal,
                ManagerAction::Load => office.flight = Flight::Load,
                ManagerAction::Save { table, expected } => {
                    self.unsealed |= expected.epoch != office.epoch || office.manager.is_over().is_some();
                    office.flight = Flight::Save { table, expected: Box::new(expected) };
                }
                ManagerAction::WakeAt(at) => office.wakes = at <= NOW,
                ManagerAction::Answer { id, outcome: ChangeOutcome::Done(_) } => {
                    let gone = office.asked.remove(&id);
                    let stands =
                        |name: &PartitionName| self.saved.as_ref().is_some_and(|saved| names(saved, name));
                    self.lied |= gone.is_some_and(|name| stands(&name));
                }
                // Nodes follow the table by themselves, whether they are asked to or not.
                _ => {}
            }
        }
    }

    pub(super) fn show_hosts(&mut self, place: usize) {
        let up = self.up();
        if let Some(office) = &mut self.managers[place] {
            office.hosts.clone_from(&up);
        }
        let host = RangeHost { address: address(), status: OwnerStatus::Up };
        let hosts = up.into_iter().map(|node| (id_of(node), host.clone())).collect();
        self.feed(place, ManagerEvent::Hosts(hosts));
    }

    pub(super) fn ask(&mut self, place: usize, change: RangeChange) {
        self.asks += 1;
        let id = RequestId(self.asks.into());
        if let (RangeChange::Split { partition, .. } | RangeChange::Merge { partition }, Some(office)) =
            (&change, &mut self.managers[place])
        {
            office.asked.insert(id, partition.clone());
        }
        self.feed(place, ManagerEvent::Asked { id, change, until: Millis::MAX });
    }

    pub(super) fn wake(&mut self, place: usize) {
        self.feed(place, ManagerEvent::WokeUp);
    }

    /// Somebody says that the first parent in the table is retired; it need not be true.
    pub(super) fn tell_retired(&mut self, place: usize) {
        let entries = self.table().map_or(&[][..], RangeTable::entries);
        let Some(parent) = entries.iter().flat_map(|entry| entry.parents.first()).next().cloned() else {
            return;
        };
        self.feed(place, ManagerEvent::Retired(parent));
    }

    // ---- the store ----

    pub(super) fn answer(&mut self, place: usize, broken: Option<Mutant>) {
        let Some((flight, epoch)) = self.take_flight(place) else { return };
        let event = match flight {
            Flight::None => return,
            Flight::Seal => ManagerEvent::Sealed(self.seal(epoch, broken)),
            Flight::Load => ManagerEvent::Loaded(Ok(self.saved.clone())),
            Flight::Save { table, expected } => {
                ManagerEvent::Saved(self.save(&table, &expected, epoch, broken))
            }
        };
        self.feed(place, event);
    }

    /// Nobody answers a save; it was carried out or not.
    pub(super) fn lose(&mut self, place: usize, applied: bool, broken: Option<Mutant>) {
        let Some((Flight::Save { table, expected }, epoch)) = self.take_flight(place) else { return };
        self.losses += 1;
        if applied {
            drop(self.save(&table, &expected, epoch, broken));
        }
        self.unanswered(place, (table, *expected), epoch, broken);
    }

    pub(super) fn delay(&mut self, place: usize, broken: Option<Mutant>) {
        let Some((Flight::Save { table, expected }, epoch)) = self.take_flight(place) else { return };
        self.losses += 1;
        self.late = Some((table.clone(), (*expected).clone(), epoch));
        self.unanswered(place, (table, *expected), epoch, broken);
    }

    pub(super) fn land(&mut self, broken: Option<Mutant>) {
        if let Some((table, expected, epoch)) = self.late.take() {
            drop(self.save(&table, &expected, epoch, broken));
        }
    }

    fn unanswered(
        &mut self,
        place: usize,
        (table, expected): (RangeTable, SavedTable),
        epoch: Epoch,
        broken: Option<Mutant>,
    ) {
        let answer = if broken == Some(Mutant::UnknownIsDone) {
            Ok(following(Some(&expected), epoch, Some(table)))
        } else {
            Err(SaveFailure::Unknown)
        };
        self.feed(place, ManagerEvent::Saved(answer));
    }

    fn take_flight(&mut self, place: usize) -> Option<(Flight, Epoch)> {
        let office = self.managers[place].as_mut()?;
        Some((std::mem::replace(&mut office.flight, Flight::None), office.epoch))
    }

    fn seal(&mut self, epoch: Epoch, broken: Option<Mutant>) -> Result<SavedTable, SaveFailure> {
        self.check_epoch(epoch)?;
        self.sealed = self.sealed.max(epoch);
        let table = self.saved.as_ref().and_then(|saved| saved.table.clone());
        let mut sealed = following(self.saved.as_ref(), epoch, table);
        if broken == Some(Mutant::NoSeal)
            && let Some(saved) = &self.saved
        {
            (sealed.version, sealed.record) = (saved.version, saved.record);
            return Ok(sealed);
        }
        self.saved = Some(sealed.clone());
        Ok(sealed)
    }

    fn save(
        &mut self,
        table: &RangeTable,
        expected: &SavedTable,
        epoch: Epoch,
        broken: Option<Mutant>,
    ) -> Result<SavedTable, SaveFailure> {
        let successor = table.succeed(expected.table.as_ref()).map_err(|_| SaveFailure::Invalid)?;
        let open = successor.must_be_retired.into_iter().find(|name| !self.retired.contains(name));
        if let Some(partition) = open.filter(|_| broken != Some(Mutant::NoRetireCheck)) {
            return Err(SaveFailure::NotRetired { partition });
        }
        let same = self.saved.as_ref().map(|saved| saved.record) == Some(expected.record);
        if !same && broken != Some(Mutant::NoVersion) {
            self.check_epoch(epoch)?;
            return Err(SaveFailure::Conflict { current: self.saved.clone().map(Box::new) });
        }
        self.unfenced |= epoch < self.sealed;
        let saved = following(self.saved.as_ref(), epoch, Some(table.clone()));
        self.saved = Some(saved.clone());
        Ok(saved)
    }

    fn check_epoch(&self, epoch: Epoch) -> Result<(), SaveFailure> {
        match &self.saved {
            Some(saved) if !epoch.may_replace(saved.epoch) => {
                Err(SaveFailure::Superseded { by: saved.epoch })
            }
            _ => Ok(()),
        }
    }

    // ---- nodes ----

    /// A node claims a partition that its table gives to it: parents that nobody owns are retired on the way.
    pub(super) fn claim(&mut self, node: usize, entry: usize, broken: Option<Mutant>) {
        let Some(entry) =
            self.nodes[node].seen.as_ref().and_then(|table| table.entries().get(entry)).cloned()
        else {
            return;
        };
        let free = !self.owners.contains_key(&entry.partition) && !self.retired.contains(&entry.partition);
        let owned = |parent: &PartitionName| self.owners.contains_key(parent);
        let ready = !entry.parents.iter().any(owned) || broken == Some(Mutant::NoParents);
        if entry.owner.node == id_of(node) && free && ready {
            if broken != Some(Mutant::NoParents) {
                self.retired.extend(entry.parents.iter().cloned());
            }
            self.owners.insert(entry.partition, (node, entry.range));
        }
    }

    /// A node retires what its table names no more, and gives up what it gives to another.
    pub(super) fn retire(&mut self, node: usize, owned: usize) {
        let Some((name, (owner, _))) = self.owners.iter().nth(owned) else { return };
        let (name, owner) = (name.clone(), *owner);
        let Some(table) = self.nodes[node].seen.as_ref().filter(|_| owner == node) else { return };
        match table.partition(&name) {
            Some(entry) if entry.owner.node == id_of(node) => {}
            Some(_) => drop(self.owners.remove(&name)),
            // An old table does not know it yet; only one that names it as a parent says that it is over.
            None if table.entries().iter().any(|entry| entry.parents.contains(&name)) => {
                self.owners.remove(&name);
                self.retired.insert(name);
            }
            None => {}
        }
    }

    pub(super) fn die(&mut self) {
        self.deaths += 1;
        self.nodes[1] = Node { up: false, seen: None };
        self.owners.retain(|_, (node, _)| *node != 1);
    }
}

fn following(seen: Option<&SavedTable>, epoch: Epoch, table: Option<RangeTable>) -> SavedTable {
    let version = seen.map_or(0, |seen| seen.version.0) + 1;
    SavedTable { version: TableVersion(version), record: RecordVersion(version), epoch, table }
}

fn names(saved: &SavedTable, name: &PartitionName) -> bool {
    saved.table.as_ref().is_some_and(|table| table.partition(name).is_some())
}

fn id_of(node: usize) -> NodeId {
    NodeId::new(node as u64 + 1)
}

fn address() -> NodeAddress {
    NodeAddress::new("a", 1).expect("an address")
}

pub(super) fn key(text: &str) -> ActorKey {
    ActorKey::new(text).expect("a key")
}

/// Time stands still: what is to be tried again may be at any moment.
const NOW: Millis = Millis(1);
