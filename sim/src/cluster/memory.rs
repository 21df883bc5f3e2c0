//! What the counters have in memory, and whether all of it goes along when their shards move.
//!
//! A lineage is what one activation after the other should know of an actor: it grows with every handler, goes on in an
//! activation that got the state of the last, and begins anew in one that did not.

use std::collections::BTreeMap;
use std::time::Duration;

use archipelago_protocol::contract::Move;
use archipelago_protocol::identity::NodeId;
use serde::{Deserialize, Serialize};

use crate::common::{ActorNumber, Place};

/// What a counter has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// How many handlers have begun.
    pub(crate) begun: u64,
    /// How many of them have ended.
    pub(crate) ended: u64,
}

/// What is true of the memory of all counters.
#[derive(Default)]
pub(crate) struct Lineages(BTreeMap<ActorNumber, Lineage>);

#[derive(Default)]
struct Lineage {
    memory: Memory,
    /// The activation that has it.
    holder: Option<u64>,
    /// Where and when it was taken from an actor for a move, if nothing has happened to it since.
    packed: Option<(NodeId, Duration)>,
}

/// An activation that begins without the state that it should have got.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) lost: Memory,
    pub(crate) packed_by: NodeId,
    pub(crate) after: Duration,
}

impl Lineages {
    /// A handler begins, in an activation that has got state along or not. Answers with what it should have got.
    pub(crate) fn begun(&mut self, at: &Place, warm: bool, now: Duration) -> Option<Cold> {
        let lineage = self.0.entry(at.actor).or_default();
        let cold = lineage.adopt(at.activation, warm, now);
        lineage.memory.begun += 1;
        cold
    }

    /// A handler has ended.
    pub(crate) fn ended(&mut self, at: &Place) {
        let lineage = self.0.entry(at.actor).or_default();
        if lineage.holder == Some(at.activation) {
            lineage.memory.ended += 1;
        }
    }

    /// The state of an activation was taken.
    pub(crate) fn packed(&mut self, at: &Place, warm: bool, now: Duration) {
        let lineage = self.0.entry(at.actor).or_default();
        lineage.adopt(at.activation, warm, now);
        lineage.packed = Some((at.node, now));
    }

    /// An activation has got state. Answers with what it should be, and where it comes from.
    pub(crate) fn taken(&mut self, at: &Place) -> (Memory, Option<NodeId>) {
        let lineage = self.0.entry(at.actor).or_default();
        (lineage.memory, lineage.packed.take().map(|(node, _)| node))
    }
}

impl Lineage {
    /// An activation goes on with it, or without it.
    fn adopt(&mut self, activation: u64, warm: bool, now: Duration) -> Option<Cold> {
        let packed = self.packed.take();
        if self.holder.replace(activation) == Some(activation) || warm {
            return None;
        }
        let lost = std::mem::take(&mut self.memory);
        packed.map(|(packed_by, at)| Cold { lost, packed_by, after: now.saturating_sub(at) })
    }
}

impl Cold {
    /// Whether the record of the actor's shard says that its state came along, so that it should have been there. States that
    /// wait for too long are forgotten.
    pub(crate) fn is_loss(&self, moved: Option<Move>, kept: Duration) -> bool {
        let came_along = moved.is_some_and(|moved| moved.state && moved.from == self.packed_by);
        came_along && self.lost.begun > 0 && self.after < kept.mul_f64(0.9).min(PARCELS_KEPT)
    }
}

/// Less than the time for which parcels wait for their shard.
const PARCELS_KEPT: Duration = Duration::from_secs(25);
