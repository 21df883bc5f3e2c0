//! What reaches the keeper of a kind, and what is to be done about it.

use alloc::vec::Vec;

use crate::identity::{Generation, PartitionName};
use crate::ranges::{KeyRange, KnownTable};
use crate::time::Millis;

/// How long a keeper waits for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeeperLimits {
    /// The first and the longest pause between two requests that come to nothing.
    pub retry: (Millis, Millis),
    /// How long the actors of a partition may take to end. Beyond that they go on.
    pub empty: Millis,
    /// How long they go on before they are asked again.
    pub rest: Millis,
    /// How often a partition is claimed that is not wanted, but may come here with a claim that was not answered.
    pub stray: Millis,
}

impl KeeperLimits {
    /// What a keeper has that says nothing.
    pub const DEFAULT: Self = Self {
        retry: (Millis(50), Millis(1_000)),
        empty: Millis(10_000),
        rest: Millis(5_000),
        stray: Millis(3_000),
    };

    pub(super) fn pause(&self, failures: u32) -> Millis {
        let factor = 1_u64.checked_shl(failures).unwrap_or(u64::MAX);
        Millis(self.retry.0.0.saturating_mul(factor)).min(self.retry.1)
    }
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeeperEvent {
    /// A table of the kind; only one that is newer than all before counts.
    Table(KnownTable),
    /// The answer to [`KeeperAction::Claim`].
    Claimed {
        /// Which one.
        partition: PartitionName,
        /// The answer.
        outcome: PartitionClaim,
    },
    /// The answer to [`KeeperAction::Empty`]: no actor of the range runs here, and none is granted.
    Emptied(PartitionName),
    /// The answer to [`KeeperAction::LetGo`].
    LetGo {
        /// Which one.
        partition: PartitionName,
        /// The answer.
        outcome: LetGoOutcome,
    },
    /// The node leaves: whatever the tables say, it is to have nothing.
    Leave,
    /// The time asked for by [`KeeperAction::WakeAt`] has come.
    WokeUp,
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionClaim {
    /// It is this node's.
    Placed(Generation),
    /// Another node has it.
    Taken,
    /// A parent has an owner.
    NotRetired,
    /// It has been divided or merged.
    Retired,
    /// No answer, or none that says anything: it may still be applied.
    Unanswered,
    /// This node's session is over.
    SessionLost,
}

/// What came of giving a partition up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LetGoOutcome {
    /// It is not this node's any more.
    Done,
    /// Certainly not applied.
    Unapplied,
    /// May be applied now or later.
    Unknown,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeeperAction {
    /// Claim the partition, after its parents.
    Claim {
        /// Which one.
        partition: PartitionName,
        /// What it was made of.
        parents: Vec<PartitionName>,
    },
    /// Let actors of the range run here from now on, under this generation.
    Serve {
        /// Which one.
        partition: PartitionName,
        /// Its keys.
        range: KeyRange,
        /// The generation.
        generation: Generation,
    },
    /// Let no further actor of the range begin to run here, and have all end. [`Serve`](Self::Serve) takes it back.
    Empty {
        /// Which one.
        partition: PartitionName,
        /// Its keys.
        range: KeyRange,
    },
    /// Give the partition up in the directory.
    LetGo {
        /// Which one.
        partition: PartitionName,
        /// The generation that ends.
        generation: Generation,
        /// For ever, because it was divided or merged; otherwise another node claims it.
        retire: bool,
    },
    /// The partition is not here any more.
    Forget(PartitionName),
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}
