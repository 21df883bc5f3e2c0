//! The calls of one lane that wait for an answer, each with the place of its frame.
//!
//! Invariant: an id is given out again only after all turns of its slot, and no slot is at or beyond the bound of calls.

use alloc::vec::Vec;

use crate::identity::CorrelationId;
use crate::time::Millis;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Calls<W> {
    lane: u16,
    slots: Vec<Slot<W>>,
    free: Vec<u32>,
    /// No pending deadline is earlier than this.
    earliest: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Slot<W> {
    turn: u16,
    call: Option<Call<W>>,
}

/// A call that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call<W> {
    pub(super) waiter: W,
    pub(super) deadline: Millis,
    /// Where its frame begins, counted from the first byte that the lane ever held.
    pub(super) at: u64,
}

impl<W> Calls<W> {
    pub(super) const fn new(lane: u16) -> Self {
        Self { lane, slots: Vec::new(), free: Vec::new(), earliest: Millis::MAX }
    }

    /// The id that the next call would get.
    pub(super) fn next_id(&self) -> CorrelationId {
        let slot = self.free.last().copied().unwrap_or(self.slots.len() as u32);
        CorrelationId::new(self.lane, slot, self.slots.get(slot as usize).map_or(0, |slot| slot.turn))
    }

    /// Registers a call under [`next_id`](Self::next_id).
    pub(super) fn open(&mut self, call: Call<W>) {
        self.earliest = self.earliest.min(call.deadline);
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize].call = Some(call),
            None => self.slots.push(Slot { turn: 0, call: Some(call) }),
        }
    }

    pub(super) fn end(&mut self, id: CorrelationId) -> Option<Call<W>> {
        if id.lane() != self.lane {
            return None;
        }
        let slot = self.slots.get_mut(id.slot() as usize).filter(|slot| slot.turn == id.turn())?;
        let call = slot.call.take()?;
        slot.turn = slot.turn.wrapping_add(1);
        self.free.push(id.slot());
        Some(call)
    }

    pub(super) fn find(&self, id: CorrelationId) -> Option<&Call<W>> {
        let slot = self.slots.get(id.slot() as usize)?;
        slot.call.as_ref().filter(|_| slot.turn == id.turn() && id.lane() == self.lane)
    }

    pub(super) fn find_mut(&mut self, id: CorrelationId) -> Option<&mut Call<W>> {
        let slot = self.slots.get_mut(id.slot() as usize)?;
        slot.call.as_mut().filter(|_| slot.turn == id.turn() && id.lane() == self.lane)
    }

    /// The calls whose deadline is at or before `now`, in the order of their slots.
    pub(super) fn due(&self, now: Millis) -> Vec<CorrelationId> {
        if now < self.earliest { Vec::new() } else { self.ids(|call| call.deadline <= now) }
    }

    pub(super) fn ids(&self, wanted: impl Fn(&Call<W>) -> bool) -> Vec<CorrelationId> {
        (0_u32..)
            .zip(&self.slots)
            .filter(|(_, slot)| slot.call.as_ref().is_some_and(&wanted))
            .map(|(n, slot)| CorrelationId::new(self.lane, n, slot.turn))
            .collect()
    }

    /// Looks up the earliest deadline anew, if `now` has come to what was thought to be it.
    pub(super) fn refresh_earliest(&mut self, now: Millis) {
        if now >= self.earliest {
            let deadlines = self.slots.iter().filter_map(|slot| slot.call.as_ref()).map(|call| call.deadline);
            self.earliest = deadlines.min().unwrap_or(Millis::MAX);
        }
    }

    /// No deadline is earlier; `None` if nothing is pending.
    pub(super) fn earliest(&self) -> Option<Millis> {
        (self.len() > 0).then_some(self.earliest)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}
