//! What a leader does, and what is done about a split.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::machine::News;
use super::{Member, MemberStatus, Membership, MembershipAction, Sides, SplitBrain, SplitPicture, ring};
use crate::identity::NodeId;
use crate::time::Millis;

impl Membership {
    /// Lets members in and out, if this node leads and everybody has seen the view as it stands.
    ///
    /// Nobody is let in whom this node cannot reach, or while it may be about to meet a cluster that knows more.
    pub(super) fn do_duties(&mut self, now: Millis) {
        if !self.is_converged() || self.leader() != Some(self.me.id) || !self.may_decide(now) {
            return;
        }
        let suspects = self.state.suspects(self.me.id);
        let mut waiting: Vec<&Member> = self.members().filter(|member| may_move(member)).collect();
        waiting.sort_by(|a, b| a.info.address.cmp(&b.info.address));
        let waiting: Vec<Member> = waiting.into_iter().cloned().collect();
        for member in waiting {
            let moved = self.decide_on(now, &member, suspects.contains(&member.id()));
            self.note_if(News::View, moved);
        }
    }

    /// Whether the member's status moved.
    fn decide_on(&mut self, now: Millis, member: &Member, is_suspect: bool) -> bool {
        let (me, id) = (self.me.id, member.id());
        match member.status {
            MemberStatus::Joining if !is_suspect => self.state.let_in(me, id),
            MemberStatus::Leaving if member.handed_off => self.state.step_by(me, id, MemberStatus::Exiting),
            // Everybody has seen that it goes. The leader itself is let go by whoever leads next.
            MemberStatus::Exiting | MemberStatus::Down if id != me => {
                self.state.step_by(me, id, MemberStatus::Removed);
                self.state.bury(id, now + self.settings.tombstone_life);
                true
            }
            _ => false,
        }
    }

    fn may_decide(&self, now: Millis) -> bool {
        let knows_nobody = self.seeds.is_empty() && self.members().all(|member| member.id() == self.me.id);
        let is_alone = self.has_seen_directory && knows_nobody;
        self.has_met_others || is_alone || now >= self.started_at + self.settings.join_patience
    }

    /// Shows the split watch how things stand.
    pub(super) fn look_at_split(&mut self, now: Millis) {
        let suspected = self.state.suspects(self.me.id);
        let lost = self.lost(&suspected);
        if lost.is_empty() {
            return self.split.look(now, SplitPicture::default());
        }
        let members = self.members().map(|member| (member.id(), member.status)).collect();
        self.split.look(now, SplitPicture { members, suspected, lost });
    }

    /// Those whom nobody on this side reaches: all who watch them say so.
    fn lost(&self, suspected: &BTreeSet<NodeId>) -> BTreeSet<NodeId> {
        if suspected.is_empty() {
            return BTreeSet::new();
        }
        let present = self.members().filter(|member| member.status.is_present());
        let present: BTreeSet<NodeId> = present.map(Member::id).collect();
        let is_lost = |subject: &&NodeId| {
            let mut watchers = ring::watchers_of(**subject, &present, suspected).into_iter();
            watchers.all(|watcher| self.state.is_marked_by(watcher, **subject))
        };
        suspected.intersection(&present).filter(is_lost).copied().collect()
    }

    /// Asks for the sessions of the lost, if the split stood still, this side wins and this node leads it.
    pub(super) fn judge_split(&mut self, now: Millis) -> Vec<MembershipAction> {
        let Some(picture) = self.split.judge(now) else { return Vec::new() };
        let lost = picture.lost.clone();
        if self.leader() != Some(self.me.id) || !self.our_side_wins(&lost) {
            return Vec::new();
        }
        lost.into_iter().map(MembershipAction::Revoke).collect()
    }

    fn our_side_wins(&self, lost: &BTreeSet<NodeId>) -> bool {
        let with_a_say = self.members().filter(|member| member.status.has_a_say());
        let (theirs, ours) = with_a_say.partition(|member| lost.contains(&member.id()));
        self.settings.strategy.ours_wins(&Sides { ours, theirs })
    }
}

/// Whether a leader may have to decide on the member; most are up and stay so.
const fn may_move(member: &Member) -> bool {
    match member.status {
        MemberStatus::Up | MemberStatus::Removed => false,
        MemberStatus::Leaving => member.handed_off,
        MemberStatus::Joining | MemberStatus::Exiting | MemberStatus::Down => true,
    }
}
