//! The rules of a move that a run can break, one at a time.
//!
//! Each switch sits in what surrounds the machines; the machines stay as the nodes run them.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutant {
    /// A sender takes its own settle frame for the answer: it goes to the new owner at once.
    SwitchAtOnce,
    /// A lane that was refused counts as a new one: the next message is taken again.
    NotSticky,
    /// A full hold returns only the newcomer.
    OverflowNewestOnly,
    /// What comes later waits before what had reached an inbox.
    HoldBeforeInbox,
    /// New messages are flushed before returned ones.
    FlushBufFirst,
    /// A message is taken whatever generation it was sent under.
    GenUnchecked,
    /// Neither that nor stickiness.
    GenAndSticky,
    /// The old incarnation of a lane is read after the new one was opened.
    OldLaneRead,
    /// What was never sent is queued before what came back.
    UnsentToHead,
    /// `Settled` is sent before held jobs are returned.
    SettleNoFlush,
    /// A job goes back over another incarnation of its lane.
    OrphanReturned,
    /// The transfer is sent before handlers have ended.
    ReleaseBeforeQuiet,
    /// A new instance starts before the old one is gone.
    PassivationTwin,
    /// The lease is not looked at again when a record is seen.
    ActivateAfterFence,
    /// A coordinator that waits for too long writes the move itself.
    CoordForces,
    /// A new owner serves on the offer, before the record.
    EarlyOpen,
    /// An owner serves again because a read still shows it.
    UnsealOnRead,
    /// A transfer is a plain put.
    TransferNoExpect,
    /// A session ends while its node serves on.
    NoSelfFence,
    /// Who is not the owner drops messages.
    DropWhenNotOwner,
    /// The queues of stopped actors are dropped.
    LetGoDropsInbox,
    /// The same at passivation.
    PassivationDrops,
    /// A node leaves without a goodbye.
    LeaveAtOnce,
    /// Nobody is told after a drain that was given up.
    NoNotice,
    /// A waiting sender ignores the loss of the lane that owes it a notice.
    WaitIgnoresLoss,
    /// Calls inside the draining shard are held.
    InnerHeld,
    /// State is collected before handlers have ended.
    ParcelBeforeQuiet,
    /// The transfer does not wait for the acknowledgement.
    ParcelNoAck,
    /// Parcels and acknowledgements are named by generation.
    ParcelNoMoveId,
    /// Whatever parcel is there is used.
    ParcelAnyMove,
}
