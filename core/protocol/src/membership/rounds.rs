//! Rounds of gossip: what is sent to whom, and what is taken over.
//!
//! Each period a node sends one peer a [`Digest`]: fingerprints of its view. Where they are the same, only who has seen the
//! view is compared; where they differ, the two exchange the parts that do ([`Delta`]), each at most once. A view
//! of a thousand nodes is some 80 KB, its digest half a kilobyte, and most of the time nothing has changed.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;

use super::fingerprint::{Fingerprints, part_of};
use super::gossip_state::Observation;
use super::machine::News;
use super::{
    Delta, Digest, Entered, GossipState, Member, MemberStatus, MemberWord, Membership, MembershipAction,
    MembershipFrame, NodeLoad,
};
use crate::identity::NodeId;
use crate::time::Millis;

impl Membership {
    /// One round: a digest to one peer, and a request to the seeds while nobody has answered.
    pub(super) fn gossip(&mut self, random: u64) -> Vec<MembershipAction> {
        let mut actions = self.ask_seeds();
        if let Some(to) = self.choose_peer(random) {
            let digest = self.digest(false);
            actions.push(MembershipAction::Send { to, frame: MembershipFrame::Digest(digest) });
        }
        actions
    }

    pub(super) fn ask_seeds(&self) -> Vec<MembershipAction> {
        if self.has_met_others {
            return Vec::new();
        }
        let join = |seed: &_| {
            let frame = MembershipFrame::Join(self.me.clone());
            MembershipAction::SendToAddress { to: Clone::clone(seed), frame }
        };
        self.seeds.iter().map(join).collect()
    }

    /// Takes a frame of a peer.
    pub(super) fn on_received(
        &mut self,
        now: Millis,
        from: NodeId,
        frame: MembershipFrame,
    ) -> Vec<MembershipAction> {
        if self.is_gone(from) {
            return self.tell_the_gone(from, &frame);
        }
        self.note_heard(from);
        match frame {
            MembershipFrame::Join(info) => self.on_join(now, from, &info),
            MembershipFrame::Digest(digest) => self.on_digest(now, from, digest),
            MembershipFrame::Delta(delta) => self.on_delta(now, from, &delta),
            MembershipFrame::Heartbeat => reply(from, MembershipFrame::HeartbeatAnswer),
            MembershipFrame::Gone => self.end(),
            // For the heartbeats alone.
            MembershipFrame::HeartbeatAnswer
            | MembershipFrame::ProbeRequest { .. }
            | MembershipFrame::ProbeAnswer { .. } => Vec::new(),
        }
    }

    /// Takes a load that is newer than the one known, and passes it on for some rounds.
    pub(super) fn note_load(&mut self, node: NodeId, load: NodeLoad) {
        if self.state.note_load(node, load) {
            self.told_loads.insert(node, 0);
        }
    }

    fn is_gone(&self, node: NodeId) -> bool {
        let is_down = self.state.member(node).is_some_and(|member| member.status == MemberStatus::Down);
        is_down || self.state.is_buried(node) || self.forgotten.contains(node)
    }

    /// Whoever does not know that it is gone hears so; whatever else it says does not count.
    fn tell_the_gone(&self, from: NodeId, frame: &MembershipFrame) -> Vec<MembershipAction> {
        match frame {
            MembershipFrame::Join(_) | MembershipFrame::Digest(_) | MembershipFrame::Heartbeat => {
                reply(from, MembershipFrame::Gone)
            }
            _ => Vec::new(),
        }
    }

    fn on_join(
        &mut self,
        now: Millis,
        from: NodeId,
        info: &crate::identity::NodeInfo,
    ) -> Vec<MembershipAction> {
        if info.id != from || matches!(self.enter(info), Entered::Refused | Entered::Gone) {
            return Vec::new();
        }
        let everything = vec![0; 1];
        let delta = self.delta(now, &everything, true);
        reply(from, MembershipFrame::Delta(delta))
    }

    fn on_digest(&mut self, now: Millis, from: NodeId, digest: Digest) -> Vec<MembershipAction> {
        digest.loads.iter().for_each(|(node, load)| self.note_load(*node, *load));
        if digest.fingerprint != self.state.fingerprint() {
            return reply(from, MembershipFrame::Delta(self.delta(now, &digest.parts, true)));
        }
        self.has_met_others = true;
        let theirs = self.seen_of(&digest.seen);
        let knows_more = self.state.seen().iter().any(|node| !theirs.contains(node));
        let mut is_news = self.state.see(from);
        theirs.into_iter().for_each(|node| is_news |= self.state.see(node));
        self.note_if(News::Seen, is_news);
        if knows_more && !digest.is_answer {
            return reply(from, MembershipFrame::Digest(self.digest(true)));
        }
        Vec::new()
    }

    fn on_delta(&mut self, now: Millis, from: NodeId, delta: &Delta) -> Vec<MembershipAction> {
        self.has_met_others = true;
        if delta.tombstones.iter().any(|(node, _)| *node == self.me.id) {
            return self.end();
        }
        self.take_over(now, delta);
        if self.state.fingerprint() == delta.fingerprint {
            let is_news = self.state.see(from);
            self.note_if(News::Seen, is_news);
            self.state.see(self.me.id);
            return reply(from, MembershipFrame::Digest(self.digest(true)));
        }
        if delta.wants_answer {
            return reply(from, MembershipFrame::Delta(self.delta(now, &delta.parts, false)));
        }
        Vec::new()
    }

    /// Joins what the delta tells into the view, but for what this node knows better.
    fn take_over(&mut self, now: Millis, delta: &Delta) {
        let before = self.state.fingerprint();
        let mut news = GossipState::new();
        let room = GossipState::MAX_MEMBERS.saturating_sub(self.state.members.len());
        let mut new_members = 0;
        for word in &delta.members {
            let id = word.member.id();
            let is_known = self.state.member(id).is_some();
            new_members += usize::from(!is_known);
            if !self.forgotten.contains(id) && (is_known || new_members <= room) {
                self.add_word(&mut news, word);
            }
        }
        for (node, remaining) in &delta.tombstones {
            if !self.forgotten.contains(*node) {
                news.tombstones.insert(*node, now + (*remaining).min(self.settings.tombstone_life));
            }
        }
        self.state.join(&news);
        if self.state.fingerprint() != before {
            self.state.seen = BTreeSet::from([self.me.id]);
            self.note_if(News::View, true);
        }
    }

    /// What this node observed and said it knows best itself.
    fn add_word(&mut self, news: &mut GossipState, word: &MemberWord) {
        let id = word.member.id();
        news.members.insert(id, word.member.clone());
        if id == self.me.id {
            return;
        }
        news.clock.advance(id, word.clock);
        if word.observed > 0 {
            let unreachable = word.unreachable.iter().copied().collect();
            news.observations.insert(id, Observation { version: word.observed, unreachable });
        }
        if let Some(load) = word.load.filter(|load| self.state.load(id).is_none_or(|known| known < *load)) {
            news.loads.insert(id, load);
            self.told_loads.insert(id, 0);
        }
    }

    fn digest(&mut self, is_answer: bool) -> Digest {
        let Fingerprints { whole, parts } = self.state.fingerprints(self.state.part_count());
        Digest { fingerprint: whole, parts, seen: self.seen_bits(), loads: self.loads_to_tell(), is_answer }
    }

    /// What this view holds in the parts that differ from `theirs`, up to the size of a frame; everything if none does.
    fn delta(&self, now: Millis, theirs: &[u32], wants_answer: bool) -> Delta {
        let count = theirs.len().max(1);
        let Fingerprints { whole, parts } = self.state.fingerprints(count);
        let nothing_differs = parts == theirs;
        let differs = |id: NodeId| {
            let part = part_of(id, count);
            nothing_differs || parts.get(part) != theirs.get(part)
        };
        let mut room = MAX_DELTA;
        let mut members = Vec::new();
        for member in self.members().filter(|member| differs(member.id())) {
            let word = self.word_of(member);
            let size = postcard::experimental::serialized_size(&word).unwrap_or(room);
            if size > room {
                break;
            }
            room -= size;
            members.push(word);
        }
        let remembered = self.state.tombstones.iter().filter(|(id, _)| differs(**id));
        let tombstones = remembered.map(|(id, until)| (*id, until.since(now))).collect();
        Delta { fingerprint: whole, parts, members, tombstones, wants_answer }
    }

    fn word_of(&self, member: &Member) -> MemberWord {
        let row = self.state.observations.get(&member.id());
        MemberWord {
            clock: self.state.clock.count(member.id()),
            observed: row.map_or(0, |row| row.version),
            unreachable: row.map_or_else(Vec::new, |row| row.unreachable.iter().copied().collect()),
            load: self.state.load(member.id()),
            member: member.clone(),
        }
    }

    fn seen_bits(&self) -> Vec<u8> {
        let mut bits = vec![0u8; self.state.members.len().div_ceil(8)];
        for (place, id) in self.state.members.keys().enumerate() {
            bits[place / 8] |= u8::from(self.state.seen.contains(id)) << (place % 8);
        }
        bits
    }

    fn seen_of(&self, bits: &[u8]) -> BTreeSet<NodeId> {
        let bit = |place: usize| bits.get(place / 8).is_some_and(|byte| byte >> (place % 8) & 1 == 1);
        self.state.members.keys().enumerate().filter(|(place, _)| bit(*place)).map(|(_, id)| *id).collect()
    }

    /// The loads that were passed on least; each is passed on a number of times that grows with the logarithm of the
    /// cluster, which is enough for everybody to hear of it.
    fn loads_to_tell(&mut self) -> Vec<(NodeId, NodeLoad)> {
        let enough = (2 * (self.state.members.len() + 1).ilog2() + 2) as u8;
        let Self { told_loads, state, .. } = self;
        told_loads.retain(|id, told| *told < enough && state.loads.contains_key(id));
        let mut least: Vec<(u8, NodeId)> = told_loads.iter().map(|(id, told)| (*told, *id)).collect();
        least.sort_unstable();
        least.truncate(Digest::MAX_LOADS);
        least.iter().for_each(|(told, id)| _ = told_loads.insert(*id, told + 1));
        least.into_iter().filter_map(|(_, id)| Some((id, state.load(id)?))).collect()
    }

    /// Mostly somebody reachable who has not seen the view yet, sometimes somebody suspected: a split heals by talking.
    fn choose_peer(&self, random: u64) -> Option<NodeId> {
        let suspects = self.state.suspects(self.me.id);
        let present = self.members().filter(|member| member.status.is_present() && member.id() != self.me.id);
        let (cut_off, reachable): (Vec<NodeId>, Vec<NodeId>) =
            present.map(Member::id).partition(|id| suspects.contains(id));
        let unaware: Vec<NodeId> =
            reachable.iter().copied().filter(|id| !self.state.seen.contains(id)).collect();
        let choice = match random % 8 {
            0 => [&cut_off, &reachable],
            1 | 2 => [&reachable, &cut_off],
            _ => [&unaware, &reachable],
        };
        let among = choice.into_iter().find(|nodes| !nodes.is_empty()).unwrap_or(&cut_off);
        let place = (random / 8) % among.len().max(1) as u64;
        among.get(place as usize).copied()
    }
}

fn reply(to: NodeId, frame: MembershipFrame) -> Vec<MembershipAction> {
    vec![MembershipAction::Send { to, frame }]
}

/// The most bytes of members in one delta; what is left over differs still, and comes in a later round.
const MAX_DELTA: usize = 512 << 10;
