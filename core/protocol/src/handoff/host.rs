//! One shard at one node: when its messages are taken, kept or given back, and how it comes and goes.
//!
//! [`HostedShard`] decides everything that a node does about a shard. It serves only at a generation that a write of its
//! own gave it (OWN); it moves the shard itself, with one compare-and-swap, after everything has stopped (CONSENT,
//! QUIET); after a write that may still be applied it serves again only through a second write that made the first
//! impossible (LATE). Messages that come while this is open are kept, within bounds, and then started here or given back to
//! their senders, never passed on. Inboxes, handlers, hooks, lanes, the directory and timers are the shell's.
//!
//! Invariants: a message of a lane is taken only if none before it was given back since the lane settled (STICKY); what is
//! given back was not started and goes by the lane it came by (SAME-LANE); while the shard is served nothing is on hold.

mod leave;
mod take;

use alloc::vec::Vec;

use super::events::{DropReason, HostAction, HostEvent, Job, Moment, Owned, RefuseReason};
use super::hold::Hold;
use super::limits::HandoffLimits;
use super::state::{Assertion, HostState, Tenancy};
use crate::identity::{Generation, NodeId};
use crate::link::{Hint, ReturnReason, ShardRef};
use crate::route::{LaneId, Place, Refusals, Verdict};
use crate::time::Millis;

/// One shard at one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostedShard<J> {
    me: NodeId,
    shard: ShardRef,
    state: HostState,
    /// The highest generation that was given up here.
    let_go: Generation,
    /// The newest record that was seen.
    view: Option<Hint>,
    lanes: Refusals,
    hold: Hold<J>,
    /// When the first message ends that a drain keeps waiting at its sender.
    away: Millis,
    /// The generation of an order that is being carried out.
    order: Option<Generation>,
    parcels: Option<Parcels>,
    limits: HandoffLimits,
    /// The wake-up that the shell was last asked for.
    wake_at: Option<Millis>,
}

/// State that was announced by an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Parcels {
    move_id: u64,
    arrived: bool,
    /// The record was looked at because of them.
    looked: bool,
    keep_until: Millis,
}

type Out<J> = Vec<HostAction<J>>;

impl<J> HostedShard<J> {
    /// A shard that node `me` has nothing to do with.
    pub const fn new(me: NodeId, shard: ShardRef, limits: HandoffLimits) -> Self {
        Self {
            me,
            shard,
            state: HostState::Absent,
            let_go: Generation::new(0),
            view: None,
            lanes: Refusals::new(),
            hold: Hold::new(),
            away: Millis::MAX,
            order: None,
            parcels: None,
            limits,
            wake_at: None,
        }
    }

    /// Takes one event and returns what to do about it, in order.
    pub fn handle(&mut self, at: Moment, event: HostEvent<J>) -> Vec<HostAction<J>> {
        let mut out = Vec::new();
        let out = &mut out;
        match event {
            HostEvent::Data(job) => self.on_data(at, job, out),
            HostEvent::Settle { lane, generation } => self.on_settle(lane, generation, out),
            HostEvent::GaveBack { generation, expires } => self.on_gave_back(at, generation, expires, out),
            HostEvent::LaneLost(lane) => self.on_lane_lost(lane),
            HostEvent::Asked => self.on_asked(at, out),
            HostEvent::Claimed(outcome) => self.on_claimed(at, outcome, out),
            HostEvent::Seen(record) => self.on_seen(at, record, out),
            HostEvent::SeenGone(generation) => self.on_gone(at, generation, out),
            HostEvent::LookedUp(found) => self.on_looked_up(at, found, out),
            HostEvent::HandOff { generation, to, move_id, busy } => {
                self.on_hand_off(at, generation, (to, move_id), busy, out);
            }
            HostEvent::Release { move_id } => self.on_release(at, move_id, out),
            HostEvent::OfferOk { move_id, session } => self.on_offer_ok(at, move_id, session, out),
            HostEvent::OfferNo { move_id } => self.on_offer_no(move_id, out),
            HostEvent::Sealed(jobs) => self.on_sealed(at, jobs, out),
            HostEvent::Stopped { move_id, state } => self.on_stopped(at, move_id, state, out),
            HostEvent::ParcelsAcked { move_id } => self.on_parcels_sent(at, move_id, true, out),
            HostEvent::ParcelsRefused { move_id } => self.on_parcels_sent(at, move_id, false, out),
            HostEvent::TransferUnapplied { move_id } => self.on_unapplied(at, move_id, out),
            HostEvent::TransferUnknown { move_id } => self.on_unknown(at, move_id, out),
            HostEvent::Cancel => self.on_cancel(at, out),
            HostEvent::Offered { from, move_id, bytes } => self.on_offered(at, (from, move_id), bytes, out),
            HostEvent::ParcelsArrived { move_id } => self.on_parcels_arrived(move_id),
            HostEvent::Fence => self.fence(out),
            HostEvent::Rejoined(me) => self.on_rejoined(me, out),
            HostEvent::WokeUp => self.on_woke_up(at, out),
        }
        self.ask_to_be_woken(out);
        core::mem::take(out)
    }

    /// Whether a message that came by `lane` under `generation` goes straight into its inbox; whoever asks puts it there.
    /// This is [`Data`](HostEvent::Data) for the usual case, without a list of actions.
    pub fn admits(&mut self, lane: LaneId, generation: Generation) -> bool {
        let HostState::Serving { tenancy, .. } = self.state else { return false };
        let admits = tenancy.admits(generation) && !self.lanes.is_refusing(lane, self.shard);
        if admits {
            self.lanes.note_use(lane, self.shard);
        }
        admits
    }

    /// Where it stands.
    pub const fn state(&self) -> HostState {
        self.state
    }

    /// Under which generations the shard is served; none if it is not, or not at present.
    pub const fn serving(&self) -> Option<Tenancy> {
        match self.state {
            HostState::Serving { tenancy, .. } => Some(tenancy),
            _ => None,
        }
    }

    /// How many jobs are on hold, and their bytes.
    pub fn held(&self) -> (usize, usize) {
        (self.hold.len(), self.hold.bytes())
    }

    /// The highest generation that was given up here.
    pub const fn let_go_of(&self) -> Generation {
        self.let_go
    }

    // ---- messages ----

    fn on_data(&mut self, at: Moment, job: Job<J>, out: &mut Out<J>) {
        let runs = match self.state {
            HostState::Serving { .. } => true,
            HostState::Draining(drain) => drain.parcels_until.is_none(),
            _ => false,
        };
        if job.inner && runs {
            return out.push(HostAction::Deliver(job));
        }
        match self.state {
            HostState::Serving { tenancy, .. } => self.judge(tenancy.admits(job.generation), job, out),
            HostState::Fenced => self.give_back(job, ReturnReason::Fenced, out),
            HostState::Absent if !self.may_be_here(job.generation) => self.judge(false, job, out),
            HostState::Absent if self.lanes.is_refusing(job.lane, self.shard) => self.judge(true, job, out),
            HostState::Absent => {
                self.state = HostState::Probing;
                out.push(HostAction::LookUp);
                self.keep(at, job, out);
            }
            _ => self.keep(at, job, out),
        }
        self.lose_patience(at, out);
    }

    /// A message that was given back is as good a reason to look, and its caller waits as well.
    fn on_gave_back(&mut self, at: Moment, generation: Generation, expires: Millis, out: &mut Out<J>) {
        match self.state {
            HostState::Absent if self.may_be_here(generation) => {
                self.state = HostState::Probing;
                out.push(HostAction::LookUp);
            }
            HostState::Draining(_) => {
                self.away = self.away.min(expires);
                self.lose_patience(at, out);
            }
            _ => {}
        }
    }

    /// Whether a message sent under `generation` may know more than this node.
    fn may_be_here(&self, generation: Generation) -> bool {
        let elsewhere = self.view.is_some_and(|view| view.generation >= generation && view.owner != self.me);
        generation > self.let_go && !elsewhere
    }

    /// Puts a job into its inbox, or gives it back.
    fn judge(&mut self, meant_for_us: bool, job: Job<J>, out: &mut Out<J>) {
        match self.lanes.on_data(job.lane, self.shard, meant_for_us) {
            Verdict::Take => {
                self.note_use(&job);
                out.push(HostAction::Deliver(job));
            }
            Verdict::Return(reason) => self.give_back(job, reason, out),
        }
    }

    /// Keeps a job until it is known whether the shard is here. Over the bound first everything of its lane goes back, in
    /// order, and then the newcomer (HOLD).
    fn keep(&mut self, at: Moment, job: Job<J>, out: &mut Out<J>) {
        if self.lanes.is_refusing(job.lane, self.shard) {
            self.give_back(job, ReturnReason::Sticky, out);
        } else if job.bytes <= at.room && self.hold.fits(job.bytes, &self.limits) {
            self.note_use(&job);
            self.hold.push(job);
        } else {
            self.return_held_of(job.lane, ReturnReason::Overflow, out);
            self.give_back(job, ReturnReason::Overflow, out);
        }
    }

    /// Every lane that has a job here is known to have, so that none of its later ones is taken if that one goes back.
    fn note_use(&mut self, job: &Job<J>) {
        if !job.orphan {
            self.lanes.note_use(job.lane, self.shard);
        }
    }

    fn on_settle(&mut self, lane: LaneId, generation: Generation, out: &mut Out<J>) {
        let place = match self.state {
            HostState::Serving { tenancy, .. } => {
                out.push(HostAction::ReturnQueued { lane, reason: ReturnReason::Sticky });
                Place::Here(self.mine_at(tenancy.generation))
            }
            _ => Place::Elsewhere(self.view),
        };
        self.return_held_of(lane, ReturnReason::Sticky, out);
        let hint = self.lanes.on_settle(lane, self.shard, generation, place);
        out.push(HostAction::SendSettled { lane, generation, hint });
    }

    fn on_lane_lost(&mut self, lane: LaneId) {
        self.lanes.lane_lost(lane);
        self.hold.orphan(lane);
    }

    fn return_held_of(&mut self, lane: LaneId, reason: ReturnReason, out: &mut Out<J>) {
        for job in self.hold.take_lane(lane) {
            self.give_back(job, reason, out);
        }
    }

    fn return_held(&mut self, reason: ReturnReason, out: &mut Out<J>) {
        for job in self.hold.take_all() {
            self.give_back(job, reason, out);
        }
    }

    fn give_back(&mut self, job: Job<J>, reason: ReturnReason, out: &mut Out<J>) {
        if job.orphan {
            return out.push(HostAction::Drop { job, why: DropReason::Orphan });
        }
        self.lanes.refuse(job.lane, self.shard);
        out.push(HostAction::Return { job, reason });
    }

    /// Delivers what is on hold, in order.
    fn deliver_held(&mut self, at: Moment, tenancy: Tenancy, out: &mut Out<J>) {
        for job in self.hold.take_all() {
            let meant_for_us = tenancy.admits(job.generation);
            if job.expires <= at.now {
                out.push(HostAction::Drop { job, why: DropReason::Expired });
            } else if !job.orphan {
                self.judge(meant_for_us, job, out);
            } else if meant_for_us {
                out.push(HostAction::Deliver(job));
            } else {
                out.push(HostAction::Drop { job, why: DropReason::Orphan });
            }
        }
    }

    /// Tells the lanes that wait for it where the shard is (NOTICE).
    fn notify_owed(&mut self, hint: Hint, out: &mut Out<J>) {
        let lanes = self.lanes.notices_due(self.shard, hint);
        out.extend(lanes.into_iter().map(|lane| HostAction::Notify { lane, hint }));
    }

    // ---- the end of a session ----

    fn fence(&mut self, out: &mut Out<J>) {
        if self.state == HostState::Fenced {
            return;
        }
        self.state = HostState::Fenced;
        self.order = None;
        // What comes later by a lane that gets something back from an inbox must not be taken.
        for lane in self.lanes.courtesies(self.shard) {
            self.lanes.refuse(lane, self.shard);
        }
        out.push(HostAction::Abort);
        self.return_held(ReturnReason::Fenced, out);
        out.push(HostAction::Answer(None));
    }

    fn on_rejoined(&mut self, me: NodeId, out: &mut Out<J>) {
        self.fence(out);
        self.me = me;
        self.state = HostState::Absent;
    }

    /// Must not happen while the session lives: somebody else wrote the record. After that it is no wonder.
    fn contradicted(&mut self, at: Moment, served: Generation, out: &mut Out<J>) {
        if at.now < at.serve_until {
            out.push(HostAction::Contradicted { served });
        }
        self.fence(out);
    }

    // ---- time ----

    fn on_woke_up(&mut self, at: Moment, out: &mut Out<J>) {
        self.wake_at = None;
        if let Some(parcels) = self.parcels.filter(|parcels| parcels.keep_until <= at.now) {
            self.parcels = None;
            out.push(HostAction::DropParcels { move_id: parcels.move_id });
        }
        match self.state {
            HostState::Reasserting(assertion) => self.assert_again(at, assertion, out),
            HostState::Serving { offer: Some(offer), .. } if offer.until <= at.now => {
                self.offer_unanswered(out)
            }
            HostState::Draining(_) => self.drain_woke_up(at, out),
            HostState::Transferring(departure) if departure.until <= at.now => {
                self.on_unknown(at, departure.move_id, out);
            }
            _ => {}
        }
    }

    fn ask_to_be_woken(&mut self, out: &mut Out<J>) {
        let due = self.due();
        if due != self.wake_at {
            self.wake_at = due;
            out.extend(due.map(HostAction::WakeAt));
        }
    }

    fn due(&self) -> Option<Millis> {
        let state = match self.state {
            HostState::Reasserting(Assertion::Claim { again_at, .. }) => again_at,
            HostState::Reasserting(Assertion::Recast { again_at, .. }) => Some(again_at),
            HostState::Serving { offer, .. } => offer.map(|offer| offer.until),
            HostState::Draining(drain) => {
                let due = drain.until.min(self.earliest() - self.limits.patience);
                Some(drain.parcels_until.map_or(due, |parcels| due.min(parcels)))
            }
            HostState::Transferring(departure) => Some(departure.until),
            HostState::Absent | HostState::Probing | HostState::Fenced => None,
        };
        let parcels = self.parcels.map(|parcels| parcels.keep_until);
        [state, parcels].into_iter().flatten().min()
    }

    const fn mine_at(&self, generation: Generation) -> Hint {
        Hint { owner: self.me, generation }
    }
}

#[cfg(test)]
mod tests;
