//! Where the open routes of an arbiter lead, for messages that follow others: found without looking at the route.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashTable;

use super::routes::{Open, Shard};

/// The open routes of one arbiter.
#[derive(Default)]
pub(super) struct OpenRoutes {
    /// By kind and number.
    kinds: Vec<OfKind>,
    /// Those to shards of other datacenters.
    abroad: BTreeMap<Shard, Rc<Open>>,
}

/// The open routes to one kind.
enum OfKind {
    /// By the number of the shard.
    Shards(Vec<Option<Rc<Open>>>),
    /// By the hash of the actor.
    Singles(HashTable<(u64, Rc<Open>)>),
}

impl OpenRoutes {
    #[inline]
    pub(super) fn get(&self, shard: Shard) -> Option<&Rc<Open>> {
        if !shard.is_home() {
            return self.abroad.get(&shard);
        }
        match self.kinds.get(shard.kind as usize)? {
            OfKind::Shards(open) => open.get(place(shard)?)?.as_ref(),
            OfKind::Singles(open) => {
                open.find(shard.number, |(number, _)| *number == shard.number).map(|(_, open)| open)
            }
        }
    }

    pub(super) fn forget(&mut self, shard: Shard) {
        if !shard.is_home() {
            self.abroad.remove(&shard);
            return;
        }
        match self.kinds.get_mut(shard.kind as usize) {
            Some(OfKind::Shards(open)) => {
                if let Some(open) = place(shard).and_then(|at| open.get_mut(at)) {
                    *open = None;
                }
            }
            Some(OfKind::Singles(open)) => {
                let known = open.find_entry(shard.number, |(number, _)| *number == shard.number);
                if let Ok(known) = known {
                    known.remove();
                }
            }
            None => {}
        }
    }

    pub(super) fn remember(&mut self, shard: Shard, single: bool, open: &Rc<Open>) {
        if !shard.is_home() {
            self.abroad.insert(shard, Rc::clone(open));
            return;
        }
        self.forget(shard);
        let kind = shard.kind as usize;
        if self.kinds.len() <= kind {
            self.kinds.resize_with(kind + 1, || OfKind::Shards(Vec::new()));
        }
        if single && matches!(self.kinds[kind], OfKind::Shards(_)) {
            self.kinds[kind] = OfKind::Singles(HashTable::new());
        }
        match &mut self.kinds[kind] {
            OfKind::Shards(places) => {
                let Some(at) = place(shard) else { return };
                if places.len() <= at {
                    places.resize_with(at + 1, || None);
                }
                places[at] = Some(Rc::clone(open));
            }
            OfKind::Singles(places) => {
                places.insert_unique(shard.number, (shard.number, Rc::clone(open)), |(number, _)| *number);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.kinds.clear();
        self.abroad.clear();
    }
}

/// The place of a shard among those of its kind.
fn place(shard: Shard) -> Option<usize> {
    usize::try_from(shard.number).ok()
}
