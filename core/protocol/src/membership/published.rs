//! What the rest of the node was told, so that it is told what changed and nothing twice.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::{GossipState, Member, MemberEvent, MemberStatus, MembershipAction};
use crate::identity::NodeId;

/// The view as it was last published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Published {
    members: BTreeMap<NodeId, Member>,
    suspects: BTreeSet<NodeId>,
    reachable: BTreeSet<NodeId>,
    leader: Option<NodeId>,
    /// The fingerprint of the view that was last said to be known to all.
    converged: Option<u64>,
}

/// The view as it stands.
pub(super) struct Present<'a> {
    pub(super) me: NodeId,
    pub(super) state: &'a GossipState,
    pub(super) suspects: BTreeSet<NodeId>,
    pub(super) leader: Option<NodeId>,
}

impl Published {
    /// What leads from what was published to what stands now.
    pub(super) fn catch_up(&mut self, now: Present<'_>) -> Vec<MembershipAction> {
        let mut events = self.member_events(now.state);
        events.extend(self.suspicion_events(now.state, &now.suspects));
        if self.leader != now.leader {
            events.push(MemberEvent::LeaderChanged(now.leader));
        }
        let mut actions: Vec<_> = events.into_iter().map(MembershipAction::Publish).collect();
        actions.extend(self.convergence(now.state, now.me));
        let reachable = reachable(now.state, &now.suspects);
        if self.reachable != reachable {
            actions.push(MembershipAction::Reachable(reachable.clone()));
        }
        (self.suspects, self.reachable, self.leader) = (now.suspects, reachable, now.leader);
        actions
    }

    /// Says that everybody has seen the view as it stands, unless that was said of it before.
    pub(super) fn convergence(&mut self, state: &GossipState, me: NodeId) -> Option<MembershipAction> {
        let fingerprint = state.fingerprint();
        let is_news = self.converged != Some(fingerprint) && state.is_converged(me);
        is_news.then(|| {
            self.converged = Some(fingerprint);
            MembershipAction::Publish(MemberEvent::Converged)
        })
    }

    /// What became of members, by walking through both views side by side: of a great view little changes at a time.
    fn member_events(&mut self, state: &GossipState) -> Vec<MemberEvent> {
        let mut gone = Vec::new();
        let mut changed = Vec::new();
        let mut known = self.members.values().peekable();
        for member in state.members() {
            while let Some(lost) = known.next_if(|known| known.id() < member.id()) {
                gone.push(lost.id());
            }
            let before = known.next_if(|known| known.id() == member.id());
            if before.is_none_or(|before| standing(before) != standing(member)) {
                changed.push((before.map(|before| before.status), member));
            }
        }
        gone.extend(known.map(Member::id));
        let gone = gone.into_iter().filter_map(|id| self.members.remove(&id));
        let mut events: Vec<MemberEvent> = gone.map(MemberEvent::MemberRemoved).collect();
        for (before, member) in changed {
            if before.is_none() {
                events.push(MemberEvent::MemberJoined(member.clone()));
            }
            if before.unwrap_or(MemberStatus::Joining) != member.status {
                events.extend(event_of(member));
            }
            self.members.insert(member.id(), member.clone());
        }
        events
    }

    fn suspicion_events(&self, state: &GossipState, suspects: &BTreeSet<NodeId>) -> Vec<MemberEvent> {
        let with = |ids: &mut dyn Iterator<Item = &NodeId>, event: fn(Member) -> MemberEvent| -> Vec<_> {
            let members = ids.filter_map(|id| state.member(*id));
            members.filter(|member| member.status.is_present()).cloned().map(event).collect()
        };
        let mut events = with(&mut suspects.difference(&self.suspects), MemberEvent::Unreachable);
        events.extend(with(&mut self.suspects.difference(suspects), MemberEvent::ReachableAgain));
        events
    }
}

/// What may change of a member; its description does not for one id.
const fn standing(member: &Member) -> (MemberStatus, u64, bool) {
    (member.status, member.up_number, member.handed_off)
}

/// The nodes that are there and not suspected.
pub(super) fn reachable(state: &GossipState, suspects: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
    let present = state.members().filter(|member| member.status.is_present());
    present.map(Member::id).filter(|id| !suspects.contains(id)).collect()
}

fn event_of(member: &Member) -> Option<MemberEvent> {
    let member = member.clone();
    match member.status {
        MemberStatus::Joining => None,
        MemberStatus::Up => Some(MemberEvent::MemberUp(member)),
        MemberStatus::Leaving => Some(MemberEvent::MemberLeaving(member)),
        MemberStatus::Exiting => Some(MemberEvent::MemberExiting(member)),
        MemberStatus::Down => Some(MemberEvent::MemberDowned(member)),
        MemberStatus::Removed => Some(MemberEvent::MemberRemoved(member)),
    }
}
