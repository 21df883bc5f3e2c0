//! Membership of one node: the machine that a shell drives.
//!
//! [`Membership`] holds the node's view, gossips, and does the leader's duties when this node leads. It decides who is let
//! in; whom this node does not reach it takes from [`HeartbeatMachine`](super::HeartbeatMachine), which it tells whom to
//! watch; who is *down* it takes from the directory ([`MembershipEvent::SessionEnded`]). It does no I/O, reads no clock and
//! draws no random number.
//!
//! Invariant: nobody becomes `Down` by gossip's own judgement: only by the end of a session, or because another node
//! stands at the same address, came there later, and speaks.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::forgotten::Forgotten;
use super::published::{self, Present, Published};
use super::{
    Entered, GossipState, Member, MemberEvent, MemberStatus, MembershipAction, MembershipEvent,
    MembershipSettings, NodeLoad, SplitWatch, leader_among,
};
use crate::identity::{NodeAddress, NodeId, NodeInfo};
use crate::time::Millis;

/// The membership of one node, from its start until it is down or has left; a node that rejoins makes another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    pub(super) me: NodeInfo,
    pub(super) settings: MembershipSettings,
    pub(super) state: GossipState,
    /// Whom this node itself does not reach.
    unreachable: BTreeSet<NodeId>,
    pub(super) split: SplitWatch,
    pub(super) forgotten: Forgotten,
    pub(super) seeds: BTreeSet<NodeAddress>,
    /// Whether anybody's view has been taken over, or was found to be the same.
    pub(super) has_met_others: bool,
    pub(super) has_seen_directory: bool,
    pub(super) started_at: Millis,
    pub(super) next_gossip: Millis,
    /// How often each load was passed on since it was news.
    pub(super) told_loads: BTreeMap<NodeId, u8>,
    published: Published,
    /// What may have changed since consequences were last drawn.
    pub(super) news: News,
    /// Those whose posters appeared at the address of somebody else, and who have not been heard yet.
    unheard: BTreeSet<NodeId>,
    is_over: bool,
}

/// What may have changed, from nothing to everything. Where only little has, little is looked at: most of what
/// comes in a great cluster says who has seen the view, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum News {
    #[default]
    Nothing,
    /// Who has seen the view, or how patient one has to be; the view says what it said.
    Seen,
    /// What the view says, or whom this node does not reach.
    View,
}

impl Membership {
    /// The membership of node `me`, which begins to join at `now`. `me.id` is the id of the node's session.
    pub fn new(now: Millis, me: NodeInfo, settings: MembershipSettings) -> (Self, Vec<MembershipAction>) {
        let mut state = GossipState::new();
        state.enter(&me);
        let mut membership = Self {
            unreachable: BTreeSet::new(),
            split: SplitWatch::new(settings.stable_after),
            forgotten: Forgotten::default(),
            seeds: BTreeSet::new(),
            has_met_others: false,
            has_seen_directory: false,
            started_at: now,
            next_gossip: now,
            told_loads: BTreeMap::new(),
            published: Published::default(),
            news: News::View,
            unheard: BTreeSet::new(),
            is_over: false,
            me,
            settings,
            state,
        };
        let actions = membership.settle(now);
        (membership, actions)
    }

    /// Takes one event at time `now` and returns what to do about it, in order. After
    /// [`MembershipAction::SelfDown`] or [`MembershipAction::SelfLeft`] nothing is answered any more.
    pub fn handle(&mut self, now: Millis, event: MembershipEvent) -> Vec<MembershipAction> {
        if self.is_over {
            return Vec::new();
        }
        let mut actions = match event {
            MembershipEvent::Wake { random } => self.on_wake(now, random),
            MembershipEvent::JoinThrough(seeds) => self.on_join_through(seeds),
            MembershipEvent::Announced(info) => self.on_announced(&info),
            MembershipEvent::Listed(info) => self.on_listed(&info),
            MembershipEvent::DirectoryListed => self.on_directory_listed(),
            MembershipEvent::SessionEnded(node) => self.on_session_ended(now, node),
            MembershipEvent::Received { from, frame } => self.on_received(now, from, frame),
            MembershipEvent::Unreachable(nodes) => self.on_unreachable(nodes),
            MembershipEvent::LoadMeasured(load) => self.on_load(load),
            MembershipEvent::LeaveRequested => self.on_leave_requested(),
            MembershipEvent::HandedOff => self.on_handed_off(),
        };
        actions.extend(self.settle(now));
        actions
    }

    /// The node's own id.
    pub const fn id(&self) -> NodeId {
        self.me.id
    }

    /// The view.
    pub const fn view(&self) -> &GossipState {
        &self.state
    }

    /// The members, the removed left out, in the order of their ids.
    pub fn members(&self) -> impl Iterator<Item = &Member> + Clone {
        self.state.members()
    }

    /// The node's own status; `Removed` once it is over.
    pub fn status(&self) -> MemberStatus {
        let known = self.state.member(self.me.id).filter(|_| !self.is_over);
        known.map_or(MemberStatus::Removed, |member| member.status)
    }

    /// Where a member is reached.
    pub fn address(&self, node: NodeId) -> Option<&NodeAddress> {
        self.state.member(node).map(|member| &member.info.address)
    }

    /// Whether a member is suspected, by this node or by one that it reaches.
    pub fn is_suspect(&self, node: NodeId) -> bool {
        self.state.suspects(self.me.id).contains(&node)
    }

    /// The nodes that are there and not suspected, this one among them.
    pub fn reachable(&self) -> BTreeSet<NodeId> {
        published::reachable(&self.state, &self.state.suspects(self.me.id))
    }

    /// Who leads, as this node sees it.
    pub fn leader(&self) -> Option<NodeId> {
        let suspects = self.state.suspects(self.me.id);
        leader_among(&self.settings.leader, self.members().filter(|member| !suspects.contains(&member.id())))
    }

    /// Whether everybody with a say has seen the view as it stands.
    pub fn is_converged(&self) -> bool {
        self.state.is_converged(self.me.id)
    }

    /// What a node last said about its load.
    pub fn load(&self, node: NodeId) -> Option<NodeLoad> {
        self.state.load(node)
    }

    fn on_wake(&mut self, now: Millis, random: u64) -> Vec<MembershipAction> {
        let mut actions = Vec::new();
        if now >= self.next_gossip {
            self.next_gossip = now + self.settings.gossip_period;
            self.forget_the_removed(now);
            actions.extend(self.gossip(random));
            // Patience with seeds may have run out; and a first listing that does not end must not hold everything up.
            self.note_if(if self.has_seen_directory { News::Seen } else { News::View }, true);
        }
        actions
    }

    fn on_join_through(&mut self, seeds: Vec<NodeAddress>) -> Vec<MembershipAction> {
        let others = seeds.into_iter().filter(|seed| *seed != self.me.address);
        self.seeds.extend(others);
        self.ask_seeds()
    }

    /// A poster at somebody's address may be the late word of one who died before that one began: it proves nothing until
    /// the node itself is heard.
    fn on_announced(&mut self, info: &NodeInfo) -> Vec<MembershipAction> {
        let entered = self.enter_beside(info);
        if entered == Entered::New {
            self.note_if(News::View, true);
            self.unheard.retain(|id| self.state.member(*id).is_some());
            if self.stands_at_the_address_of(info).next().is_some() {
                self.unheard.insert(info.id);
            }
        }
        told_if_refused(entered, info.id)
    }

    /// Of two lives at one address, both listed, either may be the later one; the end of a session will tell.
    ///
    /// What follows from the first listing is drawn once it has been handed in as a whole.
    fn on_listed(&mut self, info: &NodeInfo) -> Vec<MembershipAction> {
        let entered = self.enter_beside(info);
        self.note_if(News::View, entered == Entered::New && self.has_seen_directory);
        told_if_refused(entered, info.id)
    }

    fn on_directory_listed(&mut self) -> Vec<MembershipAction> {
        self.has_seen_directory = true;
        self.note_if(News::View, true);
        Vec::new()
    }

    /// A node whose id is removed stays so, also if its tombstone was forgotten.
    fn enter_beside(&mut self, info: &NodeInfo) -> Entered {
        if self.forgotten.contains(info.id) {
            return Entered::Gone;
        }
        self.state.enter(info)
    }

    /// Enters one who says so itself.
    pub(super) fn enter(&mut self, info: &NodeInfo) -> Entered {
        let entered = self.enter_beside(info);
        if entered == Entered::New {
            self.note_if(News::View, true);
            self.replace_at_the_address_of(info);
        }
        entered
    }

    /// A node whose poster appeared at somebody's address speaks: it really has taken the address over.
    pub(super) fn note_heard(&mut self, node: NodeId) {
        if self.unheard.remove(&node)
            && let Some(info) = self.state.member(node).map(|member| member.info.clone())
        {
            self.replace_at_the_address_of(&info);
        }
    }

    /// One that has just come, and takes an address over, proves that whoever stood there is gone.
    fn replace_at_the_address_of(&mut self, info: &NodeInfo) {
        let replaced: Vec<NodeId> = self.stands_at_the_address_of(info).collect();
        for node in replaced {
            let stepped = self.state.step_by(self.me.id, node, MemberStatus::Down);
            self.note_if(News::View, stepped);
        }
    }

    /// Who has been let in at the address of another. This node itself is not gone: what says so can only be old news.
    fn stands_at_the_address_of(&self, info: &NodeInfo) -> impl Iterator<Item = NodeId> {
        let stood_there = self.members().filter(|member| {
            member.info.address == info.address
                && ![info.id, self.me.id].contains(&member.id())
                && member.status != MemberStatus::Joining
        });
        stood_there.map(Member::id)
    }

    fn on_session_ended(&mut self, now: Millis, node: NodeId) -> Vec<MembershipAction> {
        if node == self.me.id {
            return self.end();
        }
        let has_gone = |member: &Member| member.status == MemberStatus::Exiting || member.handed_off;
        let is_down = self.state.member(node).is_some_and(|member| !has_gone(member));
        if is_down {
            let stepped = self.state.step(node, MemberStatus::Down);
            self.note_if(News::View, stepped);
        } else if !self.forgotten.contains(node) && !self.state.is_buried(node) {
            self.state.bury(node, now + self.settings.tombstone_life);
            self.note_if(News::View, true);
        }
        Vec::new()
    }

    fn on_load(&mut self, load: NodeLoad) -> Vec<MembershipAction> {
        let counter = self.load(self.me.id).map_or(0, |known| known.counter).saturating_add(1);
        self.note_load(self.me.id, NodeLoad { counter, ..load });
        Vec::new()
    }

    fn on_leave_requested(&mut self) -> Vec<MembershipAction> {
        let stepped = self.state.step_by(self.me.id, self.me.id, MemberStatus::Leaving);
        self.note_if(News::View, stepped);
        Vec::new()
    }

    fn on_handed_off(&mut self) -> Vec<MembershipAction> {
        if self.status() == MemberStatus::Leaving {
            let is_news = self.state.hand_off(self.me.id);
            self.note_if(News::View, is_news);
        }
        Vec::new()
    }

    fn on_unreachable(&mut self, nodes: BTreeSet<NodeId>) -> Vec<MembershipAction> {
        self.note_if(News::View, self.unreachable != nodes);
        self.unreachable = nodes;
        Vec::new()
    }

    /// Remembers that something may have changed, if it did.
    pub(super) fn note_if(&mut self, news: News, is_news: bool) {
        if is_news {
            self.news = self.news.max(news);
        }
    }

    /// Draws the consequences of what changed, until nothing changes any more.
    fn settle(&mut self, now: Millis) -> Vec<MembershipAction> {
        let mut actions = Vec::new();
        for _ in 0..MAX_CONSEQUENCES {
            let news = core::mem::take(&mut self.news);
            if self.is_over || news == News::Nothing {
                break;
            }
            actions.extend(self.draw_consequences(now, news));
        }
        if !self.is_over {
            // Last: a split that these consequences have healed must not be judged.
            actions.extend(self.judge_split(now));
            actions.push(MembershipAction::WakeAt(self.next_wake().max(now)));
        }
        actions
    }

    fn draw_consequences(&mut self, now: Millis, news: News) -> Vec<MembershipAction> {
        let mut actions = match news {
            News::View => self.show_view(now),
            News::Nothing | News::Seen => {
                self.published.convergence(&self.state, self.me.id).into_iter().collect()
            }
        };
        // Last, so that every step of a member was published before the next is taken.
        if !self.is_over {
            self.do_duties(now);
            if self.has_left() {
                actions.extend(self.end());
            }
        }
        actions
    }

    /// Looks at the view as a whole, and tells what changed in it.
    fn show_view(&mut self, now: Millis) -> Vec<MembershipAction> {
        let me = self.me.id;
        let present = self.present();
        self.state.observe(me, self.unreachable.intersection(&present).copied().collect());
        self.state.see(me);
        if self.is_expelled() {
            return self.end();
        }
        let suspects = self.state.suspects(me);
        let leader = self.leader();
        let view = Present { me, state: &self.state, suspects: suspects.clone(), leader };
        let mut actions = self.published.catch_up(view);
        actions.push(MembershipAction::Watch { present, suspected: suspects });
        self.look_at_split(now);
        actions
    }

    /// Everybody who should be there.
    fn present(&self) -> BTreeSet<NodeId> {
        self.members().filter(|member| member.status.is_present()).map(Member::id).collect()
    }

    /// Whether others have taken this node off: by the end of its session, as they saw it.
    fn is_expelled(&self) -> bool {
        self.state.member(self.me.id).is_none_or(|member| member.status >= MemberStatus::Down)
    }

    /// Whether everybody knows that this node is exiting.
    fn has_left(&self) -> bool {
        self.status() == MemberStatus::Exiting && self.is_converged()
    }

    /// This node is no member any more: by its own wish, or because its session has ended.
    pub(super) fn end(&mut self) -> Vec<MembershipAction> {
        let was_leaving = self
            .state
            .member(self.me.id)
            .is_some_and(|member| matches!(member.status, MemberStatus::Leaving | MemberStatus::Exiting));
        self.is_over = true;
        let action = if was_leaving { MembershipAction::SelfLeft } else { MembershipAction::SelfDown };
        alloc::vec![action]
    }

    fn forget_the_removed(&mut self, now: Millis) {
        let due = self.state.prune(now);
        self.note_if(News::View, !due.is_empty());
        self.forgotten.extend(due);
    }

    fn next_wake(&self) -> Millis {
        self.split.due().map_or(self.next_gossip, |split| self.next_gossip.min(split))
    }
}

fn told_if_refused(entered: Entered, id: NodeId) -> Vec<MembershipAction> {
    let refused = entered == Entered::Refused;
    refused.then_some(MembershipAction::Publish(MemberEvent::Refused(id))).into_iter().collect()
}

/// A consequence may have consequences (the only node lets itself in), but never this many.
const MAX_CONSEQUENCES: usize = 8;

#[cfg(test)]
mod tests;
