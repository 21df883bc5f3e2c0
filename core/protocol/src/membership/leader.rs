//! Who leads: a rule that every node with the same view answers the same, without an election.
//!
//! Leading means to take members in and let them go. Whatever needs one holder (coordinators) is claimed in the
//! directory; two leaders for a while do no harm.

use super::{Member, MemberStatus};
use crate::identity::NodeId;

/// Names the leader among members that this node reaches.
///
/// # Every implementation
///
/// - *deterministic*: the answer follows from the candidates alone, in whatever order they come.
/// - *names_a_candidate*: the answer is one of them; none only if there are none.
pub trait LeaderProvider {
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

/// Which of our own rules a node follows; all nodes of a cluster follow the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LeaderRule {
    /// [`LowestAddress`].
    #[default]
    LowestAddress,
    /// [`Oldest`].
    Oldest,
}

impl LeaderProvider for LeaderRule {
    fn leader(&self, candidates: &mut dyn Iterator<Item = &Member>) -> Option<NodeId> {
        match self {
            Self::LowestAddress => LowestAddress.leader(candidates),
            Self::Oldest => Oldest.leader(candidates),
        }
    }
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
