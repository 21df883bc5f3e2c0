//! Deliberate bugs, to see that the simulator finds them.
//!
//! Each [`Mutant`] breaks one rule at the one place that keeps it. Without the feature `mutants` none can be
//! switched on, and the switches cost nothing.

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(not(feature = "mutants"), expect(unreachable_pub, reason = "exported with the feature only"))]
pub enum Mutant {
    /// Actors begin in a range that this node is about to give up.
    ClosedRangeGrants,
    /// The session's deadlines are counted from the answer to a beat, and not from its sending.
    #[cfg_attr(not(feature = "mutants"), expect(dead_code, reason = "a build without them cannot count so"))]
    DeadlineFromReceipt,
    /// A node that is not the owner drops what comes for a shard, and does not give it back.
    DropWhenNotOwner,
    /// An actor that stops takes the messages that wait for it along.
    InboxDropsQueueOnStop,
    /// Messages wait in any order.
    InboxForgetsOrder,
    /// A message starts while another runs.
    InterleavesAlways,
    /// What waits in the inboxes of a shard that moves is dropped.
    LetGoDropsInbox,
    /// A node that leaves says goodbye to nobody.
    LeaveAtOnce,
    /// A late reply ends whatever call has its place in the table now.
    LateReplyCompletes,
    /// A node that has lost its session lets detached handlers go on.
    NoFence,
    /// The session's deadlines are never looked at.
    NoGate,
    /// The sessions of silent nodes are left alone.
    NobodyMonitors,
    /// State that came ahead is used whichever move it was sent for.
    ParcelAnyMove,
    /// The state of an actor is taken while a handler of it runs.
    ParcelBeforeQuiet,
    /// A shard moves before its state is acknowledged.
    ParcelNoAck,
    /// A range that came out of another is claimed before that one has been given up.
    RangeBeforeItsParents,
    /// A range is given up before its actors have ended.
    RangeGivenUpFull,
    /// A node serves what another one has got before it.
    RaceLostServesAnyway,
    /// A shard goes to its new owner before its actors have ended.
    ReleaseBeforeQuiet,
    /// The record of a single actor is released while messages for it are still taken.
    ReleasesUnsealed,
    /// A claim without an answer counts as granted.
    ServeWithoutGrant,
    /// A route that has led somewhere is never looked up again.
    StaleRouteForEver,
    /// A call starts although it has ended.
    StartsEndedCalls,
    /// A node that does not answer has its session ended at once.
    SuspicionTakenForDeath,
    /// A sender turns to a new owner without waiting for the word of the old one.
    SwitchAtOnce,
    /// An actor is activated again before the last activation has ended.
    TwinActivation,
    /// A node serves a shard again although its transfer may still be applied.
    UnsealAfterUnknown,
}

#[cfg(feature = "mutants")]
mod switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Breaks one rule, or none, on this thread from now on.
    pub fn set_mutant(mutant: Option<Mutant>) {
        ACTIVE.set(mutant);
    }

    /// True if this rule is broken.
    pub(crate) fn broken(rule: Mutant) -> bool {
        ACTIVE.get() == Some(rule)
    }
}

#[cfg(not(feature = "mutants"))]
mod switch {
    use super::Mutant;

    /// True if this rule is broken: never.
    pub(crate) const fn broken(_: Mutant) -> bool {
        false
    }
}

pub(crate) use switch::broken;
#[cfg(feature = "mutants")]
pub use switch::set_mutant;
