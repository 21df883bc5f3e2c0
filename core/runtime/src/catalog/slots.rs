//! The slots of one kind on one arbiter, by shard: a shard that moves costs what it has, not what all have. Where shards are few,
//! and where every actor is a part of its own, they are divided further by the first bits of their hashes: a listing looks at one
//! table at a time.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use archipelago_protocol::placement::{KindLayout, ShardCount};
use hashbrown::HashTable;

use super::slot::Slot;
use crate::message::VirtualActor;

/// The slots of one kind.
pub(super) struct Slots<A: VirtualActor> {
    tables: Box<[Table<A>]>,
    /// None if every actor is a part of its own.
    shards: Option<ShardCount>,
    /// So many bits of a hash say which table of its shard a slot is in.
    split: u32,
    count: Cell<usize>,
}

/// The slots of one part, by the hash of their actors.
type Table<A> = RefCell<HashTable<Rc<Slot<A>>>>;

impl<A: VirtualActor> Slots<A> {
    pub(super) fn new(layout: KindLayout) -> Self {
        let shards = layout.shards();
        let parts = shards.map_or(1, |shards| u32::from(shards.get()));
        let split = LEAST_TABLES.div_ceil(parts).next_power_of_two().trailing_zeros();
        let tables = (0..parts << split).map(|_| RefCell::default()).collect();
        Self { tables, shards, split, count: Cell::new(0) }
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, wanted: &str) -> Option<Rc<Slot<A>>> {
        let slots = self.table(hash)?.borrow();
        slots
            .find(spread(hash), |slot| {
                let key = slot.id.key().as_str();
                // A ref that has been used before shares its key with the slot.
                std::ptr::eq(key, wanted) || key == wanted
            })
            .cloned()
    }

    /// Adds a slot that is not there.
    pub(super) fn insert(&self, slot: &Rc<Slot<A>>) {
        let Some(table) = self.table(slot.hash) else { return };
        table.borrow_mut().insert_unique(spread(slot.hash), Rc::clone(slot), |slot| spread(slot.hash));
        self.count.set(self.count.get() + 1);
    }

    /// Removes a slot; false if it was not there.
    pub(super) fn remove(&self, slot: &Rc<Slot<A>>) -> bool {
        let Some(table) = self.table(slot.hash) else { return false };
        let mut table = table.borrow_mut();
        let Ok(found) = table.find_entry(spread(slot.hash), |known| Rc::ptr_eq(known, slot)) else {
            return false;
        };
        found.remove();
        if table.is_empty() {
            // A shard that has gone leaves no memory behind.
            *table = HashTable::new();
        }
        self.count.set(self.count.get() - 1);
        true
    }

    pub(super) fn len(&self) -> usize {
        self.count.get()
    }

    /// Those of one part of the kind.
    pub(super) fn of_shard(&self, shard: u64) -> Vec<Rc<Slot<A>>> {
        if self.shards.is_some() {
            let first = usize::try_from(shard << self.split).unwrap_or(usize::MAX);
            let tables = self.tables.iter().skip(first).take(1 << self.split);
            return tables.flat_map(|table| table.borrow().iter().cloned().collect::<Vec<_>>()).collect();
        }
        let Some(table) = self.table(shard) else { return Vec::new() };
        let table = table.borrow();
        table.iter_hash(spread(shard)).filter(|slot| slot.hash == shard).cloned().collect()
    }

    pub(super) fn all(&self) -> Vec<Rc<Slot<A>>> {
        self.tables.iter().flat_map(|table| table.borrow().iter().cloned().collect::<Vec<_>>()).collect()
    }

    /// How many tables there are.
    pub(super) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The next slots of a table in the order of their hashes, so many at most, and whether there are more.
    pub(super) fn after(
        &self,
        table: usize,
        after: Option<&(u64, String)>,
        most: usize,
    ) -> (Vec<Rc<Slot<A>>>, bool) {
        let Some(table) = self.tables.get(table) else { return (Vec::new(), false) };
        let is_after = |slot: &&Rc<Slot<A>>| {
            after.is_none_or(|(hash, key)| (slot.hash, slot.id.key().as_str()) > (*hash, key.as_str()))
        };
        let mut slots: Vec<Rc<Slot<A>>> = table.borrow().iter().filter(is_after).cloned().collect();
        let in_order = |one: &Rc<Slot<A>>, other: &Rc<Slot<A>>| {
            (one.hash, one.id.key().as_str()).cmp(&(other.hash, other.id.key().as_str()))
        };
        let more = slots.len() > most;
        if more {
            // Only what is shown is sorted.
            slots.select_nth_unstable_by(most, in_order);
            slots.truncate(most);
        }
        slots.sort_unstable_by(in_order);
        (slots, more)
    }

    /// Forgets all; how many there were.
    pub(super) fn clear(&self) -> usize {
        self.tables.iter().for_each(|table| drop(table.take()));
        self.count.replace(0)
    }

    #[inline]
    fn table(&self, hash: u64) -> Option<&Table<A>> {
        let shard = self.shards.map_or(0, |shards| shards.shard_of(hash));
        // Not to be divided at all is to shift everything out.
        let part = hash.checked_shr(u64::BITS - self.split).unwrap_or(0);
        self.tables.get(usize::try_from(shard << self.split | part).ok()?)
    }
}

/// How many tables a kind has at least.
const LEAST_TABLES: u32 = 256;

/// The hash by which a table finds its slots. All of one shard have the same lowest bits, which are those that a table counts on
/// to differ.
const fn spread(hash: u64) -> u64 {
    hash.rotate_left(32)
}
