//! Whom a node has refused a message for a shard, and to whom it owes the news of where the shard is.
//!
//! Per lane and shard. STICKY: after one message of a lane was returned all that follow are, until the sender has settled;
//! otherwise a later message could start before the returned one. SETTLE: the answer to a settle frame says where the
//! shard is; if this node does not know, it owes a notice. Returning jobs and sending frames is left to the shell.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::identity::Generation;
use crate::link::{Hint, ReturnReason, ShardRef};

/// What one data arbiter remembers about the lanes that lead to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Refusals {
    refusing: BTreeSet<(ShardRef, LaneId)>,
    /// Which lanes wait for a notice, and from which generation on it helps them.
    owed: BTreeMap<(ShardRef, LaneId), Generation>,
    /// Which lanes have sent for a shard and would like a notice.
    used: BTreeSet<(ShardRef, LaneId)>,
}

/// One incarnation of a lane, by a number that the shell gives it and never gives again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u64);

/// What to do with a message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Take it.
    Take,
    /// Give it back, over the same lane.
    Return(ReturnReason),
}

/// Where a shard is, as this node knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// This node serves it; the hint names this node.
    Here(Hint),
    /// This node does not serve it; the newest place that it knows.
    Elsewhere(Option<Hint>),
}

impl Refusals {
    /// Nobody is refused.
    pub const fn new() -> Self {
        Self { refusing: BTreeSet::new(), owed: BTreeMap::new(), used: BTreeSet::new() }
    }

    /// Judges a message for `shard` that came by `lane`. `serving`: this node can take it, into an inbox or on hold, under
    /// the generation that the message carries.
    pub fn on_data(&mut self, lane: LaneId, shard: ShardRef, serving: bool) -> Verdict {
        if self.is_refusing(lane, shard) {
            return Verdict::Return(ReturnReason::Sticky);
        }
        if serving {
            return Verdict::Take;
        }
        self.refuse(lane, shard);
        Verdict::Return(ReturnReason::NotOwner)
    }

    /// Notes that a message of `lane` for `shard` is given back for any other reason: too many on hold, the shard has
    /// gone, the node is fenced. Everything that this lane still has here unstarted goes back as well.
    pub fn refuse(&mut self, lane: LaneId, shard: ShardRef) {
        self.refusing.insert((shard, lane));
    }

    /// Notes that `lane` sends for `shard`, so that it is told when the shard goes. Once is enough.
    pub fn note_use(&mut self, lane: LaneId, shard: ShardRef) {
        self.used.insert((shard, lane));
    }

    /// The sender at the other end of `lane` has stopped sending for `shard`; it knew `generation`. The answer is the hint
    /// of the settled frame. The shell has given back everything unstarted of that lane and shard *before*.
    pub fn on_settle(
        &mut self,
        lane: LaneId,
        shard: ShardRef,
        generation: Generation,
        place: Place,
    ) -> Option<Hint> {
        self.refusing.remove(&(shard, lane));
        self.used.remove(&(shard, lane));
        let hint = match place {
            Place::Here(hint) => Some(hint),
            Place::Elsewhere(known) => known.filter(|hint| hint.generation > generation),
        };
        match hint {
            Some(_) => self.owed.remove(&(shard, lane)),
            None => self.owed.insert((shard, lane), generation),
        };
        hint
    }

    /// Owes `lane` no notice of `shard` any more: its sender was told to look for itself.
    pub fn forgive(&mut self, lane: LaneId, shard: ShardRef) {
        self.owed.remove(&(shard, lane));
    }

    /// The lanes to which a notice with `hint` is owed; they are not owed one any more. Those that know something newer
    /// already stay: the hint would not help them.
    pub fn notices_due(&mut self, shard: ShardRef, hint: Hint) -> Vec<LaneId> {
        let helped = |(&(_, lane), &generation): (&(ShardRef, LaneId), &Generation)| {
            (generation <= hint.generation).then_some(lane)
        };
        let due: Vec<LaneId> = self.owed.range(all_lanes(shard)).filter_map(helped).collect();
        for &lane in &due {
            self.owed.remove(&(shard, lane));
        }
        due
    }

    /// The lanes that have used a shard which this node gives up; they are forgotten. To tell them is a courtesy.
    pub fn courtesies(&mut self, shard: ShardRef) -> Vec<LaneId> {
        let lanes: Vec<LaneId> = self.used.range(all_lanes(shard)).map(|&(_, lane)| lane).collect();
        for &lane in &lanes {
            self.used.remove(&(shard, lane));
        }
        lanes
    }

    /// Forgets a lane that is lost: whatever comes from its sender later comes by another.
    pub fn lane_lost(&mut self, lane: LaneId) {
        self.refusing.retain(|&(_, other)| other != lane);
        self.used.retain(|&(_, other)| other != lane);
        self.owed.retain(|&(_, other), _| other != lane);
    }

    /// Whether messages of `lane` for `shard` are given back.
    pub fn is_refusing(&self, lane: LaneId, shard: ShardRef) -> bool {
        self.refusing.contains(&(shard, lane))
    }
}

fn all_lanes(shard: ShardRef) -> core::ops::RangeInclusive<(ShardRef, LaneId)> {
    (shard, LaneId(0))..=(shard, LaneId(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::NodeId;

    const SHARD: ShardRef = ShardRef { kind: 1, number: 7 };
    const OTHER: ShardRef = ShardRef { kind: 1, number: 8 };
    const LANE: LaneId = LaneId(3);

    fn hint(owner: u64, generation: u64) -> Hint {
        Hint { owner: NodeId::new(owner), generation: Generation::new(generation) }
    }

    fn settle(refusals: &mut Refusals, place: Place) -> Option<Hint> {
        refusals.on_settle(LANE, SHARD, Generation::new(5), place)
    }

    #[test]
    fn a_refusal_sticks_until_the_sender_settles() {
        let mut refusals = Refusals::new();
        assert_eq!(refusals.on_data(LANE, SHARD, false), Verdict::Return(ReturnReason::NotOwner));
        assert_eq!(refusals.on_data(LANE, SHARD, true), Verdict::Return(ReturnReason::Sticky));
        assert_eq!(refusals.on_data(LaneId(4), SHARD, true), Verdict::Take, "another lane");
        assert_eq!(refusals.on_data(LANE, OTHER, true), Verdict::Take, "another shard");
        settle(&mut refusals, Place::Here(hint(1, 6)));
        assert_eq!(refusals.on_data(LANE, SHARD, true), Verdict::Take);
    }

    #[test]
    fn the_answer_to_a_settle_is_the_best_that_is_known() {
        let mut refusals = Refusals::new();
        assert_eq!(settle(&mut refusals, Place::Here(hint(1, 5))), Some(hint(1, 5)));
        assert_eq!(settle(&mut refusals, Place::Elsewhere(Some(hint(2, 6)))), Some(hint(2, 6)));
        assert!(refusals.notices_due(SHARD, hint(2, 9)).is_empty(), "who was told is owed nothing");
        assert_eq!(settle(&mut refusals, Place::Elsewhere(Some(hint(2, 5)))), None, "no news");
        assert_eq!(refusals.notices_due(SHARD, hint(2, 9)), [LANE]);
    }

    #[test]
    fn a_notice_is_owed_once_and_only_to_those_it_helps() {
        let mut refusals = Refusals::new();
        settle(&mut refusals, Place::Elsewhere(None));
        refusals.on_settle(LaneId(4), SHARD, Generation::new(9), Place::Elsewhere(None));
        assert!(refusals.notices_due(OTHER, hint(2, 9)).is_empty());
        assert_eq!(refusals.notices_due(SHARD, hint(2, 5)), [LANE]);
        assert_eq!(refusals.notices_due(SHARD, hint(2, 9)), [LaneId(4)]);
        assert!(refusals.notices_due(SHARD, hint(2, 9)).is_empty());
    }

    #[test]
    fn who_used_a_shard_is_told_of_its_end_unless_it_has_left() {
        let mut refusals = Refusals::new();
        [LANE, LaneId(4), LaneId(4)].into_iter().for_each(|lane| refusals.note_use(lane, SHARD));
        settle(&mut refusals, Place::Elsewhere(None));
        assert_eq!(refusals.courtesies(SHARD), [LaneId(4)]);
        assert!(refusals.courtesies(SHARD).is_empty());
    }

    #[test]
    fn a_lost_lane_is_forgotten() {
        let mut refusals = Refusals::new();
        settle(&mut refusals, Place::Elsewhere(None));
        refusals.refuse(LANE, OTHER);
        refusals.note_use(LANE, OTHER);
        refusals.lane_lost(LANE);
        assert_eq!(refusals, Refusals::new());
    }
}
