//! Who leads: a rule that every node with the same view answers the same, without an election.
//!
//! Leading means to take members in and let them go. Whatever needs one holder (coordinators) is claimed in the
//! directory; two leaders for a while do no harm.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::{Member, MemberStatus, Plugged};
use crate::identity::NodeId;

/// Names the leader among members that this node reaches. Plug your own in with [`LeaderRule::own`], the same on all nodes
/// of a cluster.
///
/// # Every implementation
///
/// - *deterministic*: the answer follows from the candidates alone, in whatever order they come: from no clock, no
///   randomness and no state of its own.
/// - *names_a_candidate*: the answer is one of them; none only if there are none. Any other answer counts as none, and
///   while nobody leads no member comes in or goes.
/// - *quick*: it neither blocks nor panics. It is asked on the node's control arbiter whenever the view changes.
///
/// Leading is no privilege to own anything: two leaders for a while, or a leader that changes often, do no harm.
pub trait LeaderProvider: fmt::Debug + Send + Sync + 'static {
    /// The leader among `candidates`, who all have the same status.
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId>;
}

/// The member with the lowest address, by host, then port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LowestAddress;

impl LeaderProvider for LowestAddress {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        candidates.min_by_key(|member| (&member.info.address, member.id())).map(Member::id)
    }
}

/// The member that was let in first; it changes less often, since newcomers never lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Oldest;

impl LeaderProvider for Oldest {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        let age = |member: &&Member| (member.up_number, member.info.address.clone(), member.id());
        candidates.min_by_key(age).map(Member::id)
    }
}

/// Which rule a node follows; all nodes of a cluster follow the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeaderRule {
    /// [`LowestAddress`].
    #[default]
    LowestAddress,
    /// [`Oldest`].
    Oldest,
    /// One of the user's.
    Own(Plugged<dyn LeaderProvider>),
}

impl LeaderRule {
    /// A rule of the user's own.
    pub fn own(rule: impl LeaderProvider) -> Self {
        Self::Own(Plugged::new(Arc::new(rule)))
    }
}

impl LeaderProvider for LeaderRule {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        match self {
            Self::LowestAddress => LowestAddress.leader(candidates),
            Self::Oldest => Oldest.leader(candidates),
            Self::Own(rule) => named_by(rule.rule(), candidates),
        }
    }
}

/// Whom a rule of the user's names, if it names a candidate.
fn named_by(rule: &dyn LeaderProvider, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
    let candidates: Vec<&Member> = candidates.collect();
    let named = rule.leader(&mut candidates.iter().copied())?;
    candidates.iter().any(|member| member.id() == named).then_some(named)
}

/// The leader among `members`: of those that are up, or while there are none, of those closest to it. So the first
/// node of a cluster lets itself in, and the last ones to leave let each other go.
pub fn leader_among<'a>(
    rule: &dyn LeaderProvider,
    members: impl Iterator<Item = &'a Member> + Clone,
) -> Option<NodeId> {
    use MemberStatus::{Exiting, Joining, Leaving, Up};
    let with = |status| members.clone().filter(move |member: &&Member| member.status == status);
    [Up, Leaving, Exiting, Joining].into_iter().find_map(|status| rule.leader(&mut with(status)))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::membership::samples::{info_at, member};

    fn named(rule: &dyn LeaderProvider, members: &[Member]) -> Option<NodeId> {
        let backwards: Vec<Member> = members.iter().rev().cloned().collect();
        assert_eq!(leader_among(rule, members.iter()), leader_among(rule, backwards.iter()));
        leader_among(rule, members.iter())
    }

    /// Proves: R141, C3
    #[test]
    fn the_lowest_address_leads_by_host_and_then_port() {
        let at = |id, address| Member {
            info: info_at(id, address),
            up_number: 10 - id,
            ..member(id, MemberStatus::Up)
        };
        let members = [at(1, "b:1"), at(2, "a:10"), at(3, "a:9")];
        assert_eq!(named(&LowestAddress, &members), Some(NodeId::new(3)));
        assert_eq!(named(&LeaderRule::default(), &members), Some(NodeId::new(3)));
    }

    /// Proves: R141, R496
    #[test]
    fn only_the_up_lead_while_there_are_any() {
        let mut members =
            [member(1, MemberStatus::Joining), member(2, MemberStatus::Leaving), member(3, MemberStatus::Up)];
        assert_eq!(named(&LowestAddress, &members), Some(NodeId::new(3)));
        members[2].status = MemberStatus::Down;
        assert_eq!(named(&LowestAddress, &members), Some(NodeId::new(2)));
        members[1].status = MemberStatus::Down;
        assert_eq!(named(&LowestAddress, &members), Some(NodeId::new(1)));
        members[0].status = MemberStatus::Down;
        assert_eq!(named(&LowestAddress, &members), None);
    }

    /// Names whoever has the greatest id, or somebody who is not there.
    #[derive(Debug)]
    struct Greatest {
        beyond: u64,
    }

    impl LeaderProvider for Greatest {
        fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
            candidates.map(Member::id).max().map(|id| NodeId::new(id.as_u64() + self.beyond))
        }
    }

    #[test]
    fn a_rule_of_ones_own_leads_and_must_name_a_candidate() {
        let members =
            [member(1, MemberStatus::Up), member(2, MemberStatus::Up), member(3, MemberStatus::Leaving)];
        let own = LeaderRule::own(Greatest { beyond: 0 });
        assert_eq!(named(&own, &members), Some(NodeId::new(2)));
        let astray = LeaderRule::own(Greatest { beyond: 7 });
        assert_eq!(named(&astray, &members), None);
        assert_eq!(own, own.clone());
        assert_ne!(own, LeaderRule::own(Greatest { beyond: 0 }));
    }

    /// Proves: C40
    #[test]
    fn a_newcomer_with_a_lower_address_does_not_lead_where_the_oldest_does() {
        let old = Member { up_number: 1, ..member(9, MemberStatus::Up) };
        let new = Member { up_number: 2, ..member(1, MemberStatus::Up) };
        assert_eq!(named(&Oldest, &[new.clone(), old.clone()]), Some(old.id()));
        assert_eq!(named(&LeaderRule::Oldest, &[new.clone(), old.clone()]), Some(old.id()));
        assert_eq!(named(&LowestAddress, &[new.clone(), old]), Some(new.id()));
    }
}
