//! What reaches a shard at a node, and what is to be done about it.

use alloc::vec::Vec;

use crate::contract::{Move, OwnerRecord};
use crate::identity::{Generation, NodeId};
use crate::link::{Hint, ReturnReason};
use crate::placement::ClaimOutcome;
use crate::route::LaneId;
use crate::session::Session;
use crate::time::Millis;

/// A message that a node has accepted, and how it came.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Job<J> {
    /// The lane that it came by, and may go back by.
    pub lane: LaneId,
    /// The generation that its sender knew.
    pub generation: Generation,
    /// When its caller stops waiting.
    pub expires: Millis,
    /// How much it weighs.
    pub bytes: usize,
    /// Whether a running handler of this shard has sent it to an actor of this shard (INNER).
    pub inner: bool,
    /// Whether its lane is lost, so that it cannot go back (SAME-LANE).
    pub orphan: bool,
    /// The message.
    pub body: J,
}

/// The owner record of the shard, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    /// Whose it is, and at which generation.
    pub hint: Hint,
    /// The generation at which this tenure began.
    pub since: Generation,
    /// How the shard came there, if it was handed over.
    pub moved: Option<Move>,
}

impl From<&OwnerRecord> for Owned {
    fn from(record: &OwnerRecord) -> Self {
        let hint = Hint { owner: record.placement.node, generation: record.placement.generation };
        Self { hint, since: record.since, moved: record.moved }
    }
}

/// When an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time.
    pub now: Millis,
    /// Until when the node's session lets it serve.
    pub serve_until: Millis,
    /// How many bytes jobs on hold may still take on this node.
    pub room: usize,
}

/// What reaches the machine. "Seen" is the same event whether the answer of an own write, the watch or a look-up shows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostEvent<J> {
    /// A message for the shard came in.
    Data(Job<J>),
    /// The sender at the other end of a lane has stopped sending for the shard.
    Settle {
        /// The lane.
        lane: LaneId,
        /// The generation that it knew.
        generation: Generation,
    },
    /// A message for the shard was given back before it came here, or waits at its sender because the shard is not served.
    GaveBack {
        /// The generation that its sender knew; zero if it knew none.
        generation: Generation,
        /// When its caller stops waiting.
        expires: Millis,
    },
    /// A lane is lost. Its jobs cannot go back any more.
    LaneLost(LaneId),
    /// Somebody wants this node to own the shard, which nobody does, or only an ended session.
    Asked,
    /// A claim has ended.
    Claimed(ClaimOutcome),
    /// A record of the shard was seen.
    Seen(Owned),
    /// The record that stood at this generation has been deleted, and nothing was put in its place.
    SeenGone(Generation),
    /// The answer to [`HostAction::LookUp`]; none if nobody owns the shard, or there was no answer.
    LookedUp(Option<Owned>),
    /// The coordinator, or this node itself because it leaves, asks for a move.
    HandOff {
        /// The generation that is to be moved.
        generation: Generation,
        /// To whom.
        to: NodeId,
        /// A fresh number for this attempt.
        move_id: u64,
        /// For how long the oldest running handler of the shard has run.
        busy: Millis,
    },
    /// This node leaves and nobody takes the shard: give it up once nothing runs.
    Release {
        /// A fresh number for this attempt.
        move_id: u64,
    },
    /// The target takes the shard.
    OfferOk {
        /// The move.
        move_id: u64,
        /// The target's session.
        session: Session,
    },
    /// The target does not take it.
    OfferNo {
        /// The move.
        move_id: u64,
    },
    /// The answer to [`HostAction::Seal`], before anything else happens: the unstarted outer jobs of all inboxes, in order.
    Sealed(Vec<Job<J>>),
    /// The answer to [`HostAction::Stop`]: QUIET but for the parcels. No handler runs, detached ones included, no inner job
    /// waits, every activation has stopped and its hook has ended.
    Stopped {
        /// The move.
        move_id: u64,
        /// How many bytes of state are to go along; none if no actor of the shard has any.
        state: Option<u64>,
    },
    /// The target has all parcels of the move.
    ParcelsAcked {
        /// The move.
        move_id: u64,
    },
    /// The target does not take the parcels of the move, or cannot be reached.
    ParcelsRefused {
        /// The move.
        move_id: u64,
    },
    /// The transfer, or the release, was certainly not applied.
    TransferUnapplied {
        /// The move.
        move_id: u64,
    },
    /// The transfer, or the release, may be applied now or later.
    TransferUnknown {
        /// The move.
        move_id: u64,
    },
    /// The move is not wanted any more.
    Cancel,
    /// Another node offers the shard.
    Offered {
        /// Who offers it.
        from: NodeId,
        /// The move.
        move_id: u64,
        /// How many bytes of state would come along.
        bytes: u64,
    },
    /// All parcels of a move are here.
    ParcelsArrived {
        /// The move.
        move_id: u64,
    },
    /// The session is lost, or its time to serve is over.
    Fence,
    /// The node has a session again, under this id.
    Rejoined(NodeId),
    /// The time asked for by [`HostAction::WakeAt`] has come.
    WokeUp,
}

/// What the shell does about it, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostAction<J> {
    /// Put the job into the inbox of its actor.
    Deliver(Job<J>),
    /// Give the job back over its lane, unstarted.
    Return {
        /// The job.
        job: Job<J>,
        /// Why.
        reason: ReturnReason,
    },
    /// Forget the job: its caller does not wait for it any more.
    Drop {
        /// The job.
        job: Job<J>,
        /// Why.
        why: DropReason,
    },
    /// Give back every unstarted outer job of this lane that is in an inbox of the shard, in order.
    ReturnQueued {
        /// The lane.
        lane: LaneId,
        /// Why.
        reason: ReturnReason,
    },
    /// Stop all activations of the shard now, without their hooks; give back every unstarted outer job of their inboxes
    /// whose lane is still there.
    Abort,
    /// Answer a settle frame, behind everything that was given back.
    SendSettled {
        /// The lane.
        lane: LaneId,
        /// The generation of the settle frame.
        generation: Generation,
        /// Where the shard is, if known.
        hint: Option<Hint>,
    },
    /// Say on this lane where the shard is.
    Notify {
        /// The lane.
        lane: LaneId,
        /// Where it is.
        hint: Hint,
    },
    /// Look the record up, linearizable, and answer with [`HostEvent::LookedUp`].
    LookUp,
    /// Claim the shard, and answer with [`HostEvent::Claimed`].
    Claim,
    /// Write this record of the node's own anew; whatever the answer shows is [`HostEvent::Seen`] or
    /// [`HostEvent::SeenGone`]. No answer needs no event.
    Reassert(Owned),
    /// Serve the shard from now on; activations that a drain has stopped may come back.
    Serve {
        /// At this generation.
        generation: Generation,
        /// Messages sent under this one or a later one are taken.
        since: Generation,
    },
    /// The shard is not here any more: forget the state that was kept for its actors.
    LetGo(Generation),
    /// Tell everybody who asked where the shard is; `None`: it could not be found out.
    Answer(Option<Hint>),
    /// Offer the shard to the target.
    Offer {
        /// To whom.
        to: NodeId,
        /// The move.
        move_id: u64,
        /// The generation that would move.
        generation: Generation,
    },
    /// Accept or decline what was offered.
    AnswerOffer {
        /// To whom.
        to: NodeId,
        /// The move.
        move_id: u64,
        /// Whether the shard may come.
        accept: bool,
    },
    /// Take the unstarted outer jobs out of all inboxes and hand them over with [`HostEvent::Sealed`], before anything else.
    /// From now on nothing but inner jobs starts.
    Seal,
    /// Let what runs end, stop the activations, run their hooks, and say so with [`HostEvent::Stopped`].
    Stop {
        /// The move.
        move_id: u64,
    },
    /// Send the state of the actors ahead, and keep a copy until the shard is let go.
    SendParcels {
        /// To whom.
        to: NodeId,
        /// The move.
        move_id: u64,
    },
    /// Write the transfer; what the answer shows is [`HostEvent::Seen`].
    Transfer {
        /// The generation that the record must have.
        generation: Generation,
        /// To whom.
        to: Session,
        /// What the record says about the move.
        moved: Move,
    },
    /// Delete the record; the answer is [`HostEvent::SeenGone`].
    Release {
        /// The generation that the record must have.
        generation: Generation,
        /// The move.
        move_id: u64,
    },
    /// Give the state that came ahead to the actors, before any message.
    InstallParcels {
        /// The move.
        move_id: u64,
    },
    /// Forget state that came ahead.
    DropParcels {
        /// The move.
        move_id: u64,
    },
    /// Tell the coordinator what became of its order. Advice only.
    HandOffDone {
        /// The generation of the order.
        generation: Generation,
        /// What became of it.
        outcome: HandOffOutcome,
    },
    /// The directory contradicts what this node was granted: give the node up, this must not happen.
    Contradicted {
        /// The generation that was served.
        served: Generation,
    },
    /// Wake the machine at this time; replaces any earlier wish.
    WakeAt(Millis),
}

/// Why a job is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropReason {
    /// Its lane is lost and the shard is gone; its caller has been told that the outcome is unknown.
    Orphan,
    /// Its deadline has passed.
    Expired,
}

/// What became of an order to hand a shard over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum HandOffOutcome {
    /// The shard has another owner.
    Moved(Generation),
    /// The shard is nobody's now.
    Released,
    /// The shard was paused, or could have been, and is served here as before.
    Stays(StayReason),
    /// Nothing was begun.
    Refused(RefuseReason),
}

/// Why a shard stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum StayReason {
    /// The target does not want it.
    Declined,
    /// The target did not answer in time.
    OfferUnanswered,
    /// What runs did not end in time.
    DrainTooLong,
    /// A caller would have failed.
    CallerInAHurry,
    /// The move was cancelled.
    Cancelled,
    /// The directory did not take the transfer.
    Unavailable,
    /// The transfer was left unanswered and then made impossible.
    Unanswered,
}

/// Why an order is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum RefuseReason {
    /// The shard is not served here, or is on its way already.
    NotServing,
    /// It is served at another generation.
    WrongGeneration,
    /// A handler has run for long and most likely goes on.
    Busy,
    /// The target is this node.
    OwnTarget,
}
