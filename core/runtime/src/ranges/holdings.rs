//! What a node knows of the tables, and which ranges it holds: where the actors of a range are granted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use actix::Addr;
use archipelago_protocol::contract::RoutingTable;
use archipelago_protocol::identity::{Generation, NodeId, PartitionName};
use archipelago_protocol::ranges::{KeyRange, KnownTable};

use super::keeper::RangeKeepers;
use super::manager::RangeManagers;
use crate::env::{Follower, Shown};
use crate::mutants::{Mutant, broken};

/// The ranges of a node, shared by its arbiters.
pub(crate) struct Ranges {
    /// Where the node that has the duty writes tables; none without a store.
    tables: Option<Arc<dyn RoutingTable>>,
    kinds: Mutex<BTreeMap<u32, OfKind>>,
    /// Counts the changes.
    changes: Shown<u64>,
    keepers: OnceLock<Addr<RangeKeepers>>,
    managers: OnceLock<Addr<RangeManagers>>,
}

#[derive(Default)]
struct OfKind {
    table: Option<Arc<KnownTable>>,
    held: BTreeMap<PartitionName, Held>,
}

/// A range that is this node's.
struct Held {
    range: KeyRange,
    generation: Generation,
    /// Whether its actors may begin to run here.
    open: bool,
    /// Counts how often it was closed.
    closings: u64,
}

/// Whether an actor of a range may run on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// It may, under this generation.
    Held(Generation),
    /// Its range is about to come here, or to change; wait.
    Coming,
    /// Another node should have its range.
    Elsewhere,
}

impl Ranges {
    pub(crate) fn new(tables: Option<Arc<dyn RoutingTable>>) -> Self {
        let (keepers, managers) = (OnceLock::new(), OnceLock::new());
        Self { tables, kinds: Mutex::default(), changes: Shown::new(0), keepers, managers }
    }

    /// Whether the actor of a kind with this key may run on node `me`, which this is.
    pub(crate) fn grant(&self, kind: u32, key: &str, me: NodeId) -> Grant {
        let kinds = self.lock();
        let Some(of_kind) = kinds.get(&kind) else { return Grant::Coming };
        let mut held = of_kind.held.values().filter(|held| held.range.contains(key)).peekable();
        let is_held = held.peek().is_some();
        if let Some(open) = held.find(|held| held.open || broken(Mutant::ClosedRangeGrants)) {
            return Grant::Held(open.generation);
        }
        match &of_kind.table {
            Some(known) if !is_held && known.table.find(key).owner.node != me => Grant::Elsewhere,
            _ => Grant::Coming,
        }
    }

    /// Who should own the range of this key, as far as this node knows.
    pub(crate) fn owner_of(&self, kind: u32, key: &str) -> Option<NodeId> {
        self.table(kind).map(|known| known.table.find(key).owner.node)
    }

    /// The newest table of a kind that this node knows.
    pub(crate) fn table(&self, kind: u32) -> Option<Arc<KnownTable>> {
        self.lock().get(&kind)?.table.clone()
    }

    /// Tells of every change from now on.
    pub(crate) fn changes(&self) -> Follower<u64> {
        self.changes.follow()
    }

    /// How many ranges of a kind are held.
    pub(super) fn count(&self, kind: u32) -> usize {
        self.lock().get(&kind).map_or(0, |of_kind| of_kind.held.len())
    }

    // ---- what the keeper says ----

    pub(super) fn note_table(&self, kind: u32, known: Arc<KnownTable>) {
        self.change(kind, |of_kind| of_kind.table = Some(known));
    }

    /// Grants actors of a range from now on.
    pub(super) fn hold(&self, kind: u32, partition: &PartitionName, range: KeyRange, generation: Generation) {
        self.change(kind, |of_kind| {
            let closings = of_kind.held.get(partition).map_or(0, |held| held.closings);
            let held = Held { range, generation, open: true, closings };
            of_kind.held.insert(partition.clone(), held);
        });
    }

    /// Grants no actor of a range any more; answers a token by which [`is_closed`](Self::is_closed) knows this closing.
    pub(super) fn close(&self, kind: u32, partition: &PartitionName) -> Option<u64> {
        self.change(kind, |of_kind| {
            let held = of_kind.held.get_mut(partition)?;
            held.open = false;
            held.closings += 1;
            Some(held.closings)
        })
    }

    /// Whether a range has been closed ever since.
    pub(super) fn is_closed(&self, kind: u32, partition: &PartitionName, closing: u64) -> bool {
        let kinds = self.lock();
        let held = kinds.get(&kind).and_then(|of_kind| of_kind.held.get(partition));
        held.is_some_and(|held| !held.open && held.closings == closing)
    }

    pub(super) fn forget(&self, kind: u32, partition: &PartitionName) {
        self.change(kind, |of_kind| of_kind.held.remove(partition).map(drop));
    }

    fn change<T>(&self, kind: u32, change: impl FnOnce(&mut OfKind) -> T) -> T {
        let changed = change(self.lock().entry(kind).or_default());
        self.changes.modify(|count| {
            *count += 1;
            true
        });
        changed
    }

    // ---- the actors ----

    pub(super) const fn routing_table(&self) -> Option<&Arc<dyn RoutingTable>> {
        self.tables.as_ref()
    }

    pub(super) fn keepers(&self) -> Option<&Addr<RangeKeepers>> {
        self.keepers.get()
    }

    pub(super) fn managers(&self) -> Option<&Addr<RangeManagers>> {
        self.managers.get()
    }

    pub(super) fn has_keepers(&self, keepers: Addr<RangeKeepers>) {
        // Set once, when the control arbiter starts.
        let _ = self.keepers.set(keepers);
    }

    pub(super) fn has_managers(&self, managers: Addr<RangeManagers>) {
        // Set once, when the control arbiter starts.
        let _ = self.managers.set(managers);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, OfKind>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use archipelago_protocol::contract::{Epoch, TableVersion};
    use archipelago_protocol::identity::{ActorKey, NodeAddress};
    use archipelago_protocol::ranges::{OwnerStatus, RangeTable, RouteOwner};

    use super::*;

    const ME: NodeId = NodeId::new(1);

    fn name(text: &str) -> PartitionName {
        PartitionName::new(text).expect("a plain name")
    }

    /// Keys below "m" are for this node, all others for another.
    fn known() -> Arc<KnownTable> {
        let owner = |node| RouteOwner {
            node: NodeId::new(node),
            address: NodeAddress::new("host", 1).expect("a plain address"),
            status: OwnerStatus::Up,
        };
        let at = ActorKey::new("m").expect("a plain key");
        let table = RangeTable::whole(name("all"), owner(1));
        let table = table.split(&name("all"), &at, (name("low"), owner(1)), (name("high"), owner(2)));
        let (version, epoch) = (TableVersion(2), Epoch(1));
        Arc::new(KnownTable { version, epoch, table: table.expect("a split") })
    }

    #[test]
    fn actors_are_granted_only_in_open_ranges() {
        let ranges = Ranges::new(None);
        assert_eq!(ranges.grant(0, "a", ME), Grant::Coming, "nothing is known");
        ranges.note_table(0, known());
        assert_eq!(ranges.grant(0, "a", ME), Grant::Coming, "the table is no grant");
        assert_eq!(ranges.grant(0, "z", ME), Grant::Elsewhere);
        let range = known().table.find("a").range.clone();
        ranges.hold(0, &name("low"), range, Generation::new(5));
        assert_eq!(ranges.grant(0, "a", ME), Grant::Held(Generation::new(5)));
        assert_eq!(ranges.grant(1, "a", ME), Grant::Coming, "another kind is another matter");
        ranges.close(0, &name("low"));
        assert_eq!(ranges.grant(0, "a", ME), Grant::Coming);
    }

    #[test]
    fn an_older_closing_is_not_the_present_one() {
        let ranges = Ranges::new(None);
        ranges.hold(0, &name("all"), KeyRange::ALL, Generation::new(5));
        let first = ranges.close(0, &name("all")).expect("it is held");
        assert!(ranges.is_closed(0, &name("all"), first));
        ranges.hold(0, &name("all"), KeyRange::ALL, Generation::new(5));
        assert!(!ranges.is_closed(0, &name("all"), first), "it is open");
        let second = ranges.close(0, &name("all")).expect("it is held");
        assert!(!ranges.is_closed(0, &name("all"), first) && ranges.is_closed(0, &name("all"), second));
    }
}
