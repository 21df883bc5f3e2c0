//! Which side of a split keeps its sessions.
//!
//! A strategy only votes. It stops nobody: the side that wins has the sessions of the other revoked in the
//! directory, the side that loses does nothing ([`SplitWatch`](super::SplitWatch) decides when). A node that is
//! healthy and reaches the store therefore never stops because of counting heads alone.

use alloc::sync::Arc;
use core::fmt;

use super::{Member, Plugged};

/// The two sides of a split, as one node sees it: members that have a say (`Up` or `Leaving`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sides<'a> {
    /// Those that this node reaches, itself among them.
    pub ours: alloc::vec::Vec<&'a Member>,
    /// Those that nobody on this side reaches.
    pub theirs: alloc::vec::Vec<&'a Member>,
}

/// Votes on a split. Plug your own in with [`SplitStrategy::own`], the same on all nodes of a cluster.
///
/// # Every implementation
///
/// - *one_winner*: of two sides that see each other's members as the other side, at most one wins. If both win, each has
///   the sessions of the other revoked, and the cluster stops; two owners of an actor there are never.
/// - *deterministic*: the vote follows from the two sides alone, in whatever order their members come: from no clock, no
///   randomness and no state of its own. Asked again about the same split it answers the same.
/// - *quick*: it neither blocks nor panics. It is asked on the node's control arbiter, between two heartbeats.
///
/// It need not name a winner: if no side wins, nobody's session is revoked, and the split lasts until it heals or sessions run
/// out.
pub trait SplitBrain: fmt::Debug + Send + Sync + 'static {
    /// Whether our side keeps its sessions, and theirs are revoked.
    fn ours_wins(&self, sides: &Sides<'_>) -> bool;
}

/// The side with more members wins; of two equal halves the one with the lowest address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeepMajority;

impl SplitBrain for KeepMajority {
    fn ours_wins(&self, sides: &Sides<'_>) -> bool {
        let lowest = |side: &[&Member]| side.iter().map(|m| (m.info.address.clone(), m.id())).min();
        match sides.ours.len().cmp(&sides.theirs.len()) {
            core::cmp::Ordering::Greater => true,
            core::cmp::Ordering::Less => false,
            core::cmp::Ordering::Equal => lowest(&sides.ours)
                .is_some_and(|ours| lowest(&sides.theirs).is_none_or(|theirs| ours < theirs)),
        }
    }
}

/// The side with at least `size` members wins. More than half of the greatest size of the cluster, or both may win.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StaticQuorum {
    /// How many members are enough.
    pub size: usize,
}

impl SplitBrain for StaticQuorum {
    fn ours_wins(&self, sides: &Sides<'_>) -> bool {
        let both_could = sides.theirs.len() >= self.size;
        sides.ours.len() >= self.size && !both_could
    }
}

/// The side of the member that was let in first wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KeepOldest;

impl SplitBrain for KeepOldest {
    fn ours_wins(&self, sides: &Sides<'_>) -> bool {
        let oldest =
            |side: &[&Member]| side.iter().map(|m| (m.up_number, m.info.address.clone(), m.id())).min();
        oldest(&sides.ours).is_some_and(|ours| oldest(&sides.theirs).is_none_or(|theirs| ours < theirs))
    }
}

/// Which strategy a node follows; all nodes of a cluster follow the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum SplitStrategy {
    /// [`KeepMajority`].
    #[default]
    KeepMajority,
    /// [`StaticQuorum`] of this size.
    StaticQuorum(usize),
    /// [`KeepOldest`].
    KeepOldest,
    /// One of the user's.
    Own(Plugged<dyn SplitBrain>),
}

impl SplitStrategy {
    /// A strategy of the user's own.
    pub fn own(strategy: impl SplitBrain) -> Self {
        Self::Own(Plugged::new(Arc::new(strategy)))
    }
}

impl SplitBrain for SplitStrategy {
    fn ours_wins(&self, sides: &Sides<'_>) -> bool {
        match self {
            Self::KeepMajority => KeepMajority.ours_wins(sides),
            Self::StaticQuorum(size) => StaticQuorum { size: *size }.ours_wins(sides),
            Self::KeepOldest => KeepOldest.ours_wins(sides),
            Self::Own(strategy) => strategy.rule().ours_wins(sides),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::membership::MemberStatus;
    use crate::membership::samples::member;

    fn members(ids: &[u64]) -> Vec<Member> {
        // The higher the address, the older.
        ids.iter().map(|&id| Member { up_number: 100 - id, ..member(id, MemberStatus::Up) }).collect()
    }

    fn wins(strategy: &dyn SplitBrain, ours: &[u64], theirs: &[u64]) -> bool {
        let (ours, theirs) = (members(ours), members(theirs));
        strategy.ours_wins(&Sides { ours: ours.iter().collect(), theirs: theirs.iter().collect() })
    }

    /// Proves: R150, R151, R153
    #[test]
    fn the_majority_is_kept() {
        let default = SplitStrategy::default();
        assert!(wins(&default, &[3, 4, 5], &[1, 2]));
        assert!(!wins(&default, &[1, 2], &[3, 4, 5]));
    }

    /// Proves: R152
    #[test]
    fn of_two_halves_the_one_with_the_lowest_address_is_kept() {
        assert!(wins(&KeepMajority, &[1, 4], &[2, 3]));
        assert!(!wins(&KeepMajority, &[2, 3], &[1, 4]));
    }

    /// Proves: R496
    #[test]
    fn a_quorum_is_kept_and_two_quorums_keep_everybody() {
        let quorum = SplitStrategy::StaticQuorum(2);
        assert!(wins(&quorum, &[1, 2], &[3]));
        assert!(!wins(&quorum, &[3], &[1, 2]));
        assert!(
            !wins(&quorum, &[1, 2], &[3, 4]),
            "the quorum is too small for this cluster: nobody is revoked"
        );
    }

    /// Proves: R496
    #[test]
    fn the_side_of_the_oldest_is_kept() {
        assert!(wins(&SplitStrategy::KeepOldest, &[9], &[1, 2, 3]));
        assert!(!wins(&SplitStrategy::KeepOldest, &[1, 2, 3], &[9]));
    }

    proptest! {
        /// Proves: R150-R152, R448
        #[test]
        fn never_do_both_sides_win(split in proptest::collection::vec(any::<bool>(), 1..20), size in 0..12usize) {
            let side = |which| -> Vec<u64> {
                let ids = (1..).zip(&split).filter(|(_, side)| **side == which);
                ids.map(|(id, _)| id).collect()
            };
            let (a, b) = (side(true), side(false));
            for strategy in [SplitStrategy::KeepMajority, SplitStrategy::StaticQuorum(size), SplitStrategy::KeepOldest] {
                let both = (wins(&strategy, &a, &b), wins(&strategy, &b, &a));
                prop_assert!(both != (true, true));
                prop_assert!(matches!(strategy, SplitStrategy::StaticQuorum(_)) || both.0 || both.1);
            }
        }
    }
}
