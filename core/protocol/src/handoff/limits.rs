//! The bounds and times of a move.

use crate::time::Millis;

/// How much may wait for a shard that moves, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandoffLimits {
    /// How many jobs wait for one shard at most.
    pub hold_jobs: usize,
    /// How many bytes those jobs may have. What the whole node may hold, its shell knows.
    pub hold_bytes: usize,
    /// How long the target may think about an offer.
    pub offer: Millis,
    /// How long a drain may take.
    pub drain: Millis,
    /// A drain is cancelled once a job on hold has less than this left: no caller fails because of a drain.
    pub patience: Millis,
    /// How long the parcels may take to be acknowledged; then the shard moves cold.
    pub parcels: Millis,
    /// How many bytes of state go along at most; more, and the shard moves cold.
    pub parcel_bytes: u64,
    /// How many bytes of parcels a node keeps that nobody has used yet; more, and they are refused.
    pub parcel_room: usize,
    /// How long parcels are kept that nobody has used.
    pub parcel_keep: Millis,
    /// How long a transfer may stay unanswered before it is made impossible.
    pub transfer: Millis,
    /// The first and the longest pause between two reassertions.
    pub reassert: (Millis, Millis),
    /// The first and the longest pause between two claims.
    pub claim: (Millis, Millis),
    /// For how long an unanswered claim is repeated.
    pub claim_give_up: Millis,
}

impl HandoffLimits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        hold_jobs: 1_024,
        hold_bytes: 1 << 20,
        offer: Millis(500),
        drain: Millis(2_000),
        patience: Millis(200),
        parcels: Millis(1_000),
        parcel_bytes: 64 << 20,
        parcel_room: 256 << 20,
        parcel_keep: Millis(30_000),
        transfer: Millis(1_000),
        reassert: (Millis(100), Millis(1_000)),
        claim: (Millis(50), Millis(1_000)),
        claim_give_up: Millis(30_000),
    };

    /// Whether a handler has run for so long that a drain would most likely only pause the shard and then give up.
    pub const fn is_busy(&self, oldest_handler: Millis) -> bool {
        oldest_handler.0 > self.drain.0 / 2
    }
}

impl Default for HandoffLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The pause after so many attempts: doubled each time, up to the longest.
pub(super) fn pause((first, longest): (Millis, Millis), attempts: u32) -> Millis {
    let factor = 1_u64.checked_shl(attempts).unwrap_or(u64::MAX);
    Millis(first.0.saturating_mul(factor)).min(longest)
}
