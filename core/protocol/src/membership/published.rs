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
    /// The events that lead from what was published to what stands now.
    pub(super) fn catch_up(&mut self, now: Present<'_>) -> Vec<MembershipAction> {
        let mut events = self.member_events(now.state);
        events.extend(self.suspicion_events(now.state, &now.suspects));
        if self.leader != now.leader {
            events.push(MemberEvent::LeaderChanged(now.leader));
        }
        events.extend(self.convergence(&now));
        let mut actions: Vec<_> = events.into_iter().map(MembershipAction::Publish).collect();
        let reachable = reachable(now.state, &now.suspects);
        if self.reachable != reachable {
            actions.push(MembershipAction::Reachable(reachable.clone()));
        }
        self.members = now.state.members.clone();
        (self.suspects, self.reachable, self.leader) = (now.suspects, reachable, now.leader);
        actions
    }

    fn member_events(&self, state: &GossipState) -> Vec<MemberEvent> {
        let mut events = Vec::new();
        let gone = self.members.values().filter(|member| state.member(member.id()).is_none());
        events.extend(gone.cloned().map(MemberEvent::MemberRemoved));
        for member in state.members() {
            let known = self.members.get(&member.id()).map(|known| known.status);
            if known.is_none() {
                events.push(MemberEvent::MemberJoined(member.clone()));
            }
            if known.unwrap_or(MemberStatus::Joining) != member.status {
                events.extend(event_of(member));
            }
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

    fn convergence(&mut self, now: &Present<'_>) -> Option<MemberEvent> {
        let fingerprint = now.state.fingerprint();
        let is_news = self.converged != Some(fingerprint) && now.state.is_converged(now.me);
        is_news.then(|| {
            self.converged = Some(fingerprint);
            MemberEvent::Converged
        })
    }
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
