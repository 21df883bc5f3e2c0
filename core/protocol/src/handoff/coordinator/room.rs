//! How many orders may still be given to each node, beside those that are open.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::handoff::allocate::ShardMove;
use crate::identity::NodeId;

/// How many orders the nodes have room for.
pub(super) struct Room {
    per_source: usize,
    /// How many each owner hands over.
    giving: BTreeMap<NodeId, usize>,
    /// How many more each target takes.
    taking: BTreeMap<NodeId, usize>,
}

impl Room {
    /// Nothing is open: each node gives `per_source` shards at a time, each of these takes `per_target`.
    pub(super) fn new(targets: Vec<NodeId>, per_source: usize, per_target: usize) -> Self {
        let taking = targets.into_iter().map(|node| (node, per_target)).collect();
        Self { per_source, giving: BTreeMap::new(), taking }
    }

    pub(super) fn targets(&self) -> usize {
        self.taking.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.taking.values().all(|left| *left == 0)
    }

    pub(super) fn has_for(&self, step: &ShardMove) -> bool {
        let gives = self.giving.get(&step.from).copied().unwrap_or(0);
        gives < self.per_source && self.taking.get(&step.to).is_some_and(|left| *left > 0)
    }

    pub(super) fn take(&mut self, step: &ShardMove) {
        *self.giving.entry(step.from).or_default() += 1;
        if let Some(left) = self.taking.get_mut(&step.to) {
            *left = left.saturating_sub(1);
        }
    }
}
