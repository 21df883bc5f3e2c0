//! What one node believes about everybody: the state that gossip makes the same everywhere.
//!
//! [`GossipState`] is a join-semilattice: [`merge`](GossipState::merge) is commutative, associative and idempotent, so
//! it does not matter in which order, how often or by which way news arrives. It holds no authority: who owns
//! what is decided by sessions in the directory alone.
//!
//! Each part has one writer or one direction: a status only grows; what an observer does not reach is one row
//! that only this observer writes, and its newer version wins; a tombstone beats everything said of its id.
//! Facts that every node reads in the directory are entered without a count on the clock, since everybody enters the
//! same; words of a node (its marks, its leaving, the decisions of a leader) are counted on the clock.
//!
//! Invariant: clock, observations and loads are only about members, no member has a tombstone, and the sizes stay
//! within the bounds named here.

use alloc::collections::{BTreeMap, BTreeSet};

use super::{Member, MemberStatus, NodeLoad, VectorClock};
use crate::identity::{NodeId, NodeInfo};
use crate::time::Millis;

/// The view of one node. See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct GossipState {
    pub(super) members: BTreeMap<NodeId, Member>,
    /// The removed, and until when they are remembered, on this node's clock.
    pub(super) tombstones: BTreeMap<NodeId, Millis>,
    pub(super) observations: BTreeMap<NodeId, Observation>,
    pub(super) clock: VectorClock,
    pub(super) seen: BTreeSet<NodeId>,
    pub(super) loads: BTreeMap<NodeId, NodeLoad>,
    /// The fingerprint of what the view says: always that of the other fields, and at hand.
    pub(super) whole: u64,
}

/// What one observer says, as a whole; the greater version wins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Observation {
    pub(super) version: u64,
    pub(super) unreachable: BTreeSet<NodeId>,
}

/// What became of a node that was to be entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entered {
    /// It is a member now.
    New,
    /// It was one before.
    Known,
    /// It was removed: an id does not come back.
    Gone,
    /// The view is full, or the node's description too long.
    Refused,
}

impl GossipState {
    /// The most members; further nodes are refused.
    pub const MAX_MEMBERS: usize = 4_096;
    /// The most tombstones; beyond it those are forgotten first that would be soonest anyway.
    pub const MAX_TOMBSTONES: usize = 4_096;
    /// The most marks in one frame.
    pub const MAX_MARKS: usize = 65_536;

    /// A view that knows nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes over everything that `other` knows beyond this.
    pub fn merge(&mut self, other: &Self) {
        let before = self.clone();
        self.join(other);
        self.seen = BTreeSet::new();
        for part in [&before, other] {
            if part.says_the_same(self) {
                self.seen.extend(&part.seen);
            }
        }
    }

    /// Enters a node that the directory or the node itself announced.
    pub fn enter(&mut self, info: &NodeInfo) -> Entered {
        if self.tombstones.contains_key(&info.id) {
            return Entered::Gone;
        }
        if self.members.contains_key(&info.id) {
            return Entered::Known;
        }
        if self.members.len() >= Self::MAX_MEMBERS || !Member::is_bounded(info) {
            return Entered::Refused;
        }
        self.revise(info.id, |state| state.members.insert(info.id, Member::joining(info.clone())));
        self.seen.clear();
        Entered::New
    }

    /// Takes `node` to `status` as a fact that everybody learns from the directory; `false` if that is no legal step.
    pub fn step(&mut self, node: NodeId, status: MemberStatus) -> bool {
        let Some(member) = self.members.get(&node) else { return false };
        let Ok(next) = member.status.step(status) else { return false };
        self.revise_member(node, |member| member.status = next);
        self.seen.clear();
        true
    }

    /// Takes `node` to `status` by the word of `by`; `false` if that is no legal step.
    pub fn step_by(&mut self, by: NodeId, node: NodeId, status: MemberStatus) -> bool {
        let stepped = self.step(node, status);
        if stepped {
            self.say(by);
        }
        stepped
    }

    /// Lets a joining node in, by the word of `by`, and gives it the next number.
    pub fn let_in(&mut self, by: NodeId, node: NodeId) -> bool {
        let next = self.members.values().map(|member| member.up_number).max().unwrap_or(0).saturating_add(1);
        let stepped = self.step_by(by, node, MemberStatus::Up);
        if stepped {
            self.revise_member(node, |member| member.up_number = next);
        }
        stepped
    }

    /// Notes that `node` has handed over, by its own word.
    pub fn hand_off(&mut self, node: NodeId) -> bool {
        if self.members.get(&node).is_none_or(|member| member.handed_off) {
            return false;
        }
        self.revise_member(node, |member| member.handed_off = true);
        self.say(node);
        true
    }

    /// Turns `node` into a tombstone that is remembered until `until`. Harmless if nobody knows it.
    pub fn bury(&mut self, node: NodeId, until: Millis) {
        self.tombstones.entry(node).or_insert(until);
        self.seen.clear();
        self.tidy();
    }

    /// Forgets the tombstones whose time has come, and the soonest beyond the bound; answers whose.
    pub fn prune(&mut self, now: Millis) -> BTreeSet<NodeId> {
        let mut due: BTreeSet<NodeId> =
            self.tombstones.iter().filter(|(_, until)| **until <= now).map(|(id, _)| *id).collect();
        let excess = (self.tombstones.len() - due.len()).saturating_sub(Self::MAX_TOMBSTONES);
        if excess > 0 {
            let mut rest: alloc::vec::Vec<(Millis, NodeId)> = self
                .tombstones
                .iter()
                .filter(|(id, _)| !due.contains(id))
                .map(|(id, until)| (*until, *id))
                .collect();
            rest.sort_unstable();
            due.extend(rest.into_iter().take(excess).map(|(_, id)| id));
        }
        if !due.is_empty() {
            self.tombstones.retain(|id, _| !due.contains(id));
            self.whole = self.summed();
            self.seen.clear();
        }
        due
    }

    /// Says whom `observer` does not reach; counts as its word if it is news.
    pub fn observe(&mut self, observer: NodeId, unreachable: BTreeSet<NodeId>) -> bool {
        let known = self.observations.get(&observer);
        if known.map_or(unreachable.is_empty(), |row| row.unreachable == unreachable) {
            return false;
        }
        let version = known.map_or(0, |row| row.version).saturating_add(1);
        let row = Observation { version, unreachable };
        self.revise(observer, |state| state.observations.insert(observer, row));
        self.say(observer);
        true
    }

    /// Notes that `node` has seen the view as it stands; whether that is news.
    pub fn see(&mut self, node: NodeId) -> bool {
        self.members.contains_key(&node) && self.seen.insert(node)
    }

    /// Takes a node's word about its load if it is newer.
    pub fn note_load(&mut self, node: NodeId, load: NodeLoad) -> bool {
        let is_news =
            self.members.contains_key(&node) && self.loads.get(&node).is_none_or(|known| *known < load);
        if is_news {
            self.loads.insert(node, load);
        }
        is_news
    }

    /// The members, the removed left out, in the order of their ids.
    pub fn members(&self) -> impl Iterator<Item = &Member> + Clone {
        self.members.values()
    }

    /// The member with this id.
    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.members.get(&node)
    }

    /// Whether the node was removed and is remembered as such.
    pub fn is_buried(&self, node: NodeId) -> bool {
        self.tombstones.contains_key(&node)
    }

    /// Everybody who is gone for ever, as long as that is remembered.
    pub fn buried(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.tombstones.keys().copied()
    }

    /// What a node last said about its load.
    pub fn load(&self, node: NodeId) -> Option<NodeLoad> {
        self.loads.get(&node).copied()
    }

    /// Whether `observer` says that it does not reach `subject`.
    pub fn is_marked_by(&self, observer: NodeId, subject: NodeId) -> bool {
        self.observations.get(&observer).is_some_and(|row| row.unreachable.contains(&subject))
    }

    /// The members that are suspected as `me` sees it: by itself, or by somebody whom it reaches.
    ///
    /// What is said by those whom `me` does not reach is left out: in a split they say the same of everybody here.
    pub fn suspects(&self, me: NodeId) -> BTreeSet<NodeId> {
        let trusted = self.observations.iter().filter(|(observer, _)| !self.is_marked_by(me, **observer));
        let marked = trusted.flat_map(|(_, row)| row.unreachable.iter().copied());
        marked.filter(|subject| *subject != me).collect()
    }

    /// Who has seen the view as it stands.
    pub const fn seen(&self) -> &BTreeSet<NodeId> {
        &self.seen
    }

    /// The version of the view.
    pub const fn clock(&self) -> &VectorClock {
        &self.clock
    }

    /// Whether everybody with a say whom `me` can reach has seen the view as it stands; while nobody has a say yet,
    /// those who are joining.
    pub fn is_converged(&self, me: NodeId) -> bool {
        let suspects = self.suspects(me);
        let anybody_has_a_say = self.members().any(|member| member.status.has_a_say());
        let must_see = |member: &&Member| match member.status {
            MemberStatus::Joining => !anybody_has_a_say,
            status => status.has_a_say(),
        };
        let reachable = self.members().filter(|member| !suspects.contains(&member.id()));
        self.seen.contains(&me) && reachable.filter(must_see).all(|member| self.seen.contains(&member.id()))
    }

    /// Joins everything but who has seen it.
    pub(super) fn join(&mut self, other: &Self) {
        for (id, member) in &other.members {
            match self.members.get_mut(id) {
                Some(known) => known.merge(member),
                None => drop(self.members.insert(*id, member.clone())),
            }
        }
        for (id, until) in &other.tombstones {
            let known = self.tombstones.entry(*id).or_insert(*until);
            *known = (*known).min(*until);
        }
        for (id, row) in &other.observations {
            self.observations.entry(*id).or_default().merge(row);
        }
        for (id, load) in &other.loads {
            let known = self.loads.entry(*id).or_insert(*load);
            *known = (*known).max(*load);
        }
        self.clock.merge(&other.clock);
        if self.tombstones.is_empty() {
            self.whole = self.summed();
        } else {
            self.tidy();
        }
    }

    /// Counts a word of `node`: nobody else has seen the view that it makes.
    fn say(&mut self, node: NodeId) {
        self.revise(node, |state| state.clock.increment(node));
        self.seen.clear();
    }

    fn revise_member(&mut self, node: NodeId, change: impl FnOnce(&mut Member)) {
        self.revise(node, |state| state.members.get_mut(&node).map(change));
    }

    /// Changes what the view says under one id, and its fingerprint with it.
    fn revise<T>(&mut self, node: NodeId, change: impl FnOnce(&mut Self) -> T) {
        let before = self.print_of(node);
        change(self);
        self.whole = self.whole.wrapping_sub(before).wrapping_add(self.print_of(node));
    }

    /// Restores the invariant after members went: nothing but a tombstone makes one go.
    pub(super) fn tidy(&mut self) {
        let Self { members, tombstones, observations, clock, seen, loads, whole: _ } = self;
        members.retain(|id, _| !tombstones.contains_key(id));
        clock.prune(|id| members.contains_key(&id));
        loads.retain(|id, _| members.contains_key(id));
        observations.retain(|id, _| members.contains_key(id));
        observations.values_mut().for_each(|row| row.unreachable.retain(|id| !tombstones.contains_key(id)));
        seen.retain(|id| members.contains_key(id));
        self.whole = self.summed();
    }

    /// Whether both say the same; until when tombstones are remembered, loads, and who has seen it do not matter.
    fn says_the_same(&self, other: &Self) -> bool {
        self.clock == other.clock
            && self.members == other.members
            && self.observations == other.observations
            && self.tombstones.keys().eq(other.tombstones.keys())
    }
}

impl Observation {
    /// Two rows of one version only a fault can bring about; then all marks count.
    pub(super) fn merge(&mut self, other: &Self) {
        match self.version.cmp(&other.version) {
            core::cmp::Ordering::Less => self.clone_from(other),
            core::cmp::Ordering::Equal => self.unreachable.extend(&other.unreachable),
            core::cmp::Ordering::Greater => {}
        }
    }
}

#[cfg(test)]
mod tests;
