//! Ids that were removed long ago: no longer told to others, still not believed.

use alloc::collections::{BTreeSet, VecDeque};

use crate::identity::NodeId;

/// The last ids whose tombstones were pruned, up to a bound; the oldest go first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Forgotten {
    order: VecDeque<NodeId>,
    ids: BTreeSet<NodeId>,
}

impl Forgotten {
    /// The most ids kept: 16 bytes each. Whoever comes back from behind so many removals is unreachable to everybody
    /// and has no session, so it goes again by way of [`MembershipAction::Revoke`](super::MembershipAction::Revoke).
    pub(super) const MAX: usize = 16_384;

    pub(super) fn extend(&mut self, ids: BTreeSet<NodeId>) {
        for id in ids {
            if self.ids.insert(id) {
                self.order.push_back(id);
            }
        }
        while self.order.len() > Self::MAX {
            let Some(oldest) = self.order.pop_front() else { return };
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, id: NodeId) -> bool {
        self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_beyond_the_bound() {
        let mut forgotten = Forgotten::default();
        let last = Forgotten::MAX as u64;
        (0..=last).for_each(|id| forgotten.extend(BTreeSet::from([NodeId::new(id)])));
        assert!(!forgotten.contains(NodeId::new(0)));
        assert!(forgotten.contains(NodeId::new(1)) && forgotten.contains(NodeId::new(last)));
        assert_eq!(forgotten.order.len(), Forgotten::MAX);
    }
}
