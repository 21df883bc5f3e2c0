//! The store: every write is a compare-and-swap that may be carried out late, and answered late or never.

use archipelago_protocol::contract::Move;
use archipelago_protocol::handoff::{HostEvent, HostState, Owned};
use archipelago_protocol::identity::{Generation, NodeId};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::ClaimOutcome;

use super::Handoff;
use super::mutant::Mutant;
use super::world::{Answer, Record, What, World, id, index_of};

impl World {
    /// The store carries out a write, or refuses it because the record is another one.
    pub(crate) fn apply(&mut self, model: &Handoff, number: usize) {
        let write = self.writes[number];
        let answer = match write.what {
            What::Claim { expect } => Answer::Claimed(self.apply_claim(write.by, expect)),
            What::Reassert(base) => {
                if self.record().generation == base.hint.generation.as_u64() && self.record().owned.is_some()
                {
                    let state = self.record().state;
                    self.put(base.hint.owner, Some(base.since), base.moved, state);
                }
                self.standing()
            }
            What::Transfer { expect, to, moved, state } => {
                if self.record().generation == expect || model.breaks(Mutant::TransferNoExpect) {
                    self.put(to, None, Some(moved), state);
                }
                self.standing()
            }
        };
        self.writes[number].answer = Some(answer);
        if !write.awaited {
            self.writes.remove(number);
        }
    }

    fn apply_claim(&mut self, by: usize, expect: u64) -> ClaimOutcome {
        let current = self.record();
        match self.live_owner() {
            None if current.generation == expect => {
                self.put(id(by), None, None, 0);
                ClaimOutcome::Placed(Generation::new(self.record().generation))
            }
            None => ClaimOutcome::Unanswered,
            Some(owned) => ClaimOutcome::Taken(owned.hint),
        }
    }

    fn put(&mut self, owner: NodeId, since: Option<Generation>, moved: Option<Move>, state: u32) {
        let generation = self.record().generation + 1;
        let hint = Hint { owner, generation: Generation::new(generation) };
        let owned = Owned { hint, since: since.unwrap_or(hint.generation), moved };
        self.records.push(Record { owned: Some(owned), generation, state });
    }

    fn standing(&self) -> Answer {
        Answer::Seen(self.record().owned.expect("no run deletes the record"))
    }

    pub(crate) fn answer(&mut self, model: &Handoff, number: usize) {
        let write = self.writes.remove(number);
        match write.answer {
            Some(Answer::Seen(owned)) => self.tell(model, write.by, HostEvent::Seen(owned)),
            Some(Answer::Claimed(outcome)) => self.tell(model, write.by, HostEvent::Claimed(outcome)),
            None => {}
        }
    }

    /// Nobody learns what became of a write; it may still be carried out.
    pub(crate) fn leave_unanswered(&mut self, model: &Handoff, number: usize) {
        let write = self.writes[number];
        if write.answer.is_some() {
            self.writes.remove(number);
        } else {
            self.writes[number].awaited = false;
        }
        let event = match write.what {
            What::Claim { .. } => HostEvent::Claimed(ClaimOutcome::Unanswered),
            // The machine repeats it by itself.
            What::Reassert(_) => return,
            What::Transfer { moved, .. } if self.unseals(model, write.by) => {
                HostEvent::TransferUnapplied { move_id: moved.id }
            }
            What::Transfer { moved, .. } => HostEvent::TransferUnknown { move_id: moved.id },
        };
        self.tell(model, write.by, event);
    }

    fn unseals(&self, model: &Handoff, node: usize) -> bool {
        let mine = self.record().owned.is_some_and(|owned| index_of(owned.hint.owner) == node);
        mine && model.breaks(Mutant::UnsealOnRead)
    }

    /// The store certainly does not take a transfer.
    pub(crate) fn refuse(&mut self, model: &Handoff, number: usize) {
        let write = self.writes.remove(number);
        if let What::Transfer { moved, .. } = write.what {
            self.tell(model, write.by, HostEvent::TransferUnapplied { move_id: moved.id });
        }
    }

    pub(crate) fn read_owned(&self) -> Option<Owned> {
        self.live_owner()
    }

    /// A coordinator that does not ask.
    pub(crate) fn force(&mut self, to: usize) {
        self.put(id(to), None, None, 0);
    }

    /// Whether the machine of a node is on its way somewhere.
    pub(crate) fn is_moving(&self, node: usize) -> bool {
        let state = self.nodes[node].host.state();
        !matches!(state, HostState::Absent | HostState::Serving { offer: None, .. } | HostState::Fenced)
    }
}
