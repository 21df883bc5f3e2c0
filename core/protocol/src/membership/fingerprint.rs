//! Telling views apart without sending them: fingerprints of a view and of its parts.
//!
//! A view is divided into parts by the ids of its members. The fingerprint of a part is the sum of the fingerprints
//! of what it holds, that of the view the sum of all, so it does not depend on the division. Equal views have
//! equal fingerprints; different ones differ but for one case in 2⁶⁴ (a part: 2³², and a view whose fingerprint
//! differs while no part does is sent whole).
//!
//! What is summed is what a view *says*: members, words, marks, tombstones. Loads, and who has seen it, are not.

use alloc::vec;
use alloc::vec::Vec;

use super::gossip_state::{GossipState, Observation};
use super::{Digest, Member};
use crate::identity::NodeId;

/// The fingerprints of one view, divided into a number of parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprints {
    pub(super) whole: u64,
    pub(super) parts: Vec<u32>,
}

impl GossipState {
    /// The fingerprint of what the view says.
    pub const fn fingerprint(&self) -> u64 {
        self.whole
    }

    /// As many parts as make one hold about [`MEMBERS_OF_A_PART`] members.
    pub(super) fn part_count(&self) -> usize {
        (self.members.len() / MEMBERS_OF_A_PART).clamp(1, Digest::MAX_PARTS)
    }

    pub(super) fn fingerprints(&self, parts: usize) -> Fingerprints {
        let sums = self.divided(parts);
        // The upper half: the lower bits of a sum depend on the lower bits of its terms only.
        let parts = sums.into_iter().map(|sum| (sum >> 32) as u32).collect();
        Fingerprints { whole: self.whole, parts }
    }

    /// The fingerprint, from what the view says.
    pub(super) fn summed(&self) -> u64 {
        self.divided(1).into_iter().fold(0, u64::wrapping_add)
    }

    /// What the view says under one id.
    pub(super) fn print_of(&self, id: NodeId) -> u64 {
        let buried = if self.tombstones.contains_key(&id) { mix(TOMBSTONE, id.as_u64()) } else { 0 };
        let member = self.members.get(&id);
        let print =
            member.map_or(0, |member| print_of(member, self.clock.count(id), self.observations.get(&id)));
        print.wrapping_add(buried)
    }

    fn divided(&self, parts: usize) -> Vec<u64> {
        let parts = parts.max(1);
        let mut sums = vec![0u64; parts];
        let mut add = |id: NodeId, print: u64| {
            let sum = &mut sums[part_of(id, parts)];
            *sum = sum.wrapping_add(print);
        };
        for (id, member) in &self.members {
            add(*id, print_of(member, self.clock.count(*id), self.observations.get(id)));
        }
        self.tombstones.keys().for_each(|id| add(*id, mix(TOMBSTONE, id.as_u64())));
        sums
    }
}

/// The part to which a node belongs.
pub(super) fn part_of(id: NodeId, parts: usize) -> usize {
    (mix(PART, id.as_u64()) % parts.max(1) as u64) as usize
}

/// Leaves the description out: it belongs to the id, as the id is never used twice.
fn print_of(member: &Member, clock: u64, row: Option<&Observation>) -> u64 {
    let status = (member.status as u64) << 1 | u64::from(member.handed_off);
    let words = [status, member.up_number, clock, row.map_or(0, |row| row.version)];
    let base = words.into_iter().fold(mix(MEMBER, member.id().as_u64()), mix);
    row.map_or(base, |row| row.unreachable.iter().fold(base, |print, id| mix(print, id.as_u64())))
}

/// Every bit of both moves every bit of the result.
const fn mix(state: u64, word: u64) -> u64 {
    let mut x = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

const MEMBERS_OF_A_PART: usize = 16;
const MEMBER: u64 = 1;
const TOMBSTONE: u64 = 2;
const PART: u64 = 3;
