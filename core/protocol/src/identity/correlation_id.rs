//! The name of a pending call, on the node that made it.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Ties a response to the call that waits for it: a slot of a lane, and how often the slot was used before.
///
/// Unique per node among the pending calls, not across nodes. A slot's `turn` grows with each call that used it, so a
/// late response cannot complete a newer call in the same slot until the turn has gone round, 2^16 calls later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CorrelationId(u64);

impl CorrelationId {
    /// The `turn`-th use of `slot` in `lane`.
    pub const fn new(lane: u16, slot: u32, turn: u16) -> Self {
        Self((lane as u64) << LANE_SHIFT | (slot as u64) << SLOT_SHIFT | turn as u64)
    }

    /// Unpacks what [`as_u64`](Self::as_u64) gave. Every number is a correlation id.
    pub const fn from_u64(packed: u64) -> Self {
        Self(packed)
    }

    /// All three parts in one number, as on the wire.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The lane that the call went through.
    pub const fn lane(self) -> u16 {
        (self.0 >> LANE_SHIFT) as u16
    }

    /// The call's place in the lane.
    pub const fn slot(self) -> u32 {
        (self.0 >> SLOT_SHIFT) as u32
    }

    /// How often the slot had been used before, modulo 2^16.
    pub const fn turn(self) -> u16 {
        self.0 as u16
    }

    /// The id for the next call in the same slot.
    pub const fn next_turn(self) -> Self {
        Self::new(self.lane(), self.slot(), self.turn().wrapping_add(1))
    }
}

impl fmt::Display for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.lane(), self.slot(), self.turn())
    }
}

impl fmt::Debug for CorrelationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CorrelationId({self})")
    }
}

const SLOT_SHIFT: u32 = 16;
const LANE_SHIFT: u32 = 48;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Proves: C42, R32
    #[test]
    fn an_id_comes_back_only_after_all_turns_of_its_slot() {
        let first = CorrelationId::new(3, 9, 65_000);
        let mut id = first.next_turn();
        let mut turns = 1;
        while id != first {
            assert_eq!((id.lane(), id.slot()), (3, 9));
            id = id.next_turn();
            turns += 1;
        }
        assert_eq!(turns, 1 << 16);
    }

    proptest! {
        /// Proves: R30, C42
        #[test]
        fn the_three_parts_fit_into_one_number(lane: u16, slot: u32, turn: u16) {
            let id = CorrelationId::from_u64(CorrelationId::new(lane, slot, turn).as_u64());
            prop_assert_eq!((id.lane(), id.slot(), id.turn()), (lane, slot, turn));
        }

        /// Proves: R31, C42
        #[test]
        fn ids_are_equal_only_if_all_parts_are(a: (u16, u32, u16), b: (u16, u32, u16)) {
            let id = |(lane, slot, turn)| CorrelationId::new(lane, slot, turn);
            prop_assert_eq!(id(a) == id(b), a == b);
            let (lane, slot, turn) = a;
            prop_assert_ne!(id(a), id((lane, slot, turn ^ 1)));
            prop_assert_ne!(id(a), id((lane, slot ^ 1, turn)));
            prop_assert_ne!(id(a), id((lane ^ 1, slot, turn)));
        }
    }
}
