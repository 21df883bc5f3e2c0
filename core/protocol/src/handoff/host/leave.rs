//! How the owner of a shard hands it over: offer, drain, state ahead, one compare-and-swap.
//!
//! Until the transfer is sent the owner can always stay. After that only the record tells.

use alloc::vec::Vec;

use super::{HostAction, HostState, HostedShard, Job, Moment, Out, Owned, RefuseReason, Tenancy};
use crate::contract::Move;
use crate::handoff::state::{Departure, Drain, Offered};
use crate::handoff::{HandOffOutcome, StayReason};
use crate::identity::{Generation, NodeId};
use crate::session::Session;
use crate::time::Millis;

impl<J> HostedShard<J> {
    // ---- the order ----

    pub(super) fn on_hand_off(
        &mut self,
        at: Moment,
        generation: Generation,
        (to, move_id): (NodeId, u64),
        busy: Millis,
        out: &mut Out<J>,
    ) {
        let served = match self.state {
            HostState::Serving { tenancy, offer: None } => Ok(tenancy),
            _ => Err(RefuseReason::NotServing),
        };
        let allowed = served.and_then(|tenancy| match () {
            () if tenancy.generation != generation => Err(RefuseReason::WrongGeneration),
            () if to == self.me => Err(RefuseReason::OwnTarget),
            () if self.limits.is_busy(busy) => Err(RefuseReason::Busy),
            () => Ok(tenancy),
        });
        match allowed {
            Ok(tenancy) => {
                let offer = Some(Offered { move_id, until: at.now + self.limits.offer });
                self.state = HostState::Serving { tenancy, offer };
                self.order = Some(generation);
                out.push(HostAction::Offer { to, move_id, generation });
            }
            Err(reason) => {
                let outcome = HandOffOutcome::Refused(reason);
                out.push(HostAction::HandOffDone { generation, outcome });
            }
        }
    }

    pub(super) fn on_release(&mut self, at: Moment, move_id: u64, out: &mut Out<J>) {
        if let HostState::Serving { tenancy, .. } = self.state {
            self.drain(at, tenancy, (None, move_id), out);
        }
    }

    pub(super) fn on_offer_ok(&mut self, at: Moment, move_id: u64, session: Session, out: &mut Out<J>) {
        if let HostState::Serving { tenancy, offer: Some(offer) } = self.state
            && offer.move_id == move_id
        {
            self.drain(at, tenancy, (Some(session), move_id), out);
        }
    }

    pub(super) fn on_offer_no(&mut self, move_id: u64, out: &mut Out<J>) {
        if let HostState::Serving { tenancy, offer: Some(offer) } = self.state
            && offer.move_id == move_id
        {
            self.withdraw(tenancy, StayReason::Declined, out);
        }
    }

    pub(super) fn offer_unanswered(&mut self, out: &mut Out<J>) {
        if let HostState::Serving { tenancy, .. } = self.state {
            self.withdraw(tenancy, StayReason::OfferUnanswered, out);
        }
    }

    /// Nothing was paused yet.
    fn withdraw(&mut self, tenancy: Tenancy, why: StayReason, out: &mut Out<J>) {
        self.state = HostState::Serving { tenancy, offer: None };
        self.done(HandOffOutcome::Stays(why), out);
    }

    // ---- the drain ----

    fn drain(
        &mut self,
        at: Moment,
        tenancy: Tenancy,
        (to, move_id): (Option<Session>, u64),
        out: &mut Out<J>,
    ) {
        let until = at.now + self.limits.drain;
        self.away = Millis::MAX;
        self.state = HostState::Draining(Drain { tenancy, to, move_id, until, parcels_until: None });
        out.push(HostAction::Seal);
    }

    /// Jobs that had reached an inbox wait before those that come later (SEAL).
    pub(super) fn on_sealed(&mut self, at: Moment, jobs: Vec<Job<J>>, out: &mut Out<J>) {
        let HostState::Draining(Drain { move_id, .. }) = self.state else {
            return jobs.into_iter().for_each(|job| self.on_data(at, job, out));
        };
        for job in jobs {
            if job.orphan {
                self.hold.push(job);
            } else {
                self.keep(at, job, out);
            }
        }
        self.lose_patience(at, out);
        if matches!(self.state, HostState::Draining(_)) {
            out.push(HostAction::Stop { move_id });
        }
    }

    pub(super) fn on_stopped(&mut self, at: Moment, move_id: u64, state: Option<u64>, out: &mut Out<J>) {
        let HostState::Draining(drain) = self.state else { return };
        if drain.move_id != move_id || drain.parcels_until.is_some() {
            return;
        }
        match (drain.to, state) {
            (Some(to), Some(bytes)) if bytes <= self.limits.parcel_bytes => {
                let parcels_until = Some(at.now + self.limits.parcels);
                self.state = HostState::Draining(Drain { parcels_until, ..drain });
                out.push(HostAction::SendParcels { to: to.id, move_id });
            }
            _ => self.transfer(at, drain, false, out),
        }
    }

    /// The target has the state, or will not have it: then there is nothing to wait for and the shard moves cold.
    pub(super) fn on_parcels_sent(&mut self, at: Moment, move_id: u64, acked: bool, out: &mut Out<J>) {
        if let HostState::Draining(drain) = self.state
            && drain.move_id == move_id
            && drain.parcels_until.is_some()
        {
            self.transfer(at, drain, acked, out);
        }
    }

    pub(super) fn on_cancel(&mut self, at: Moment, out: &mut Out<J>) {
        match self.state {
            HostState::Serving { tenancy, offer: Some(_) } => {
                self.withdraw(tenancy, StayReason::Cancelled, out)
            }
            HostState::Draining(_) => self.stay(at, StayReason::Cancelled, out),
            _ => {}
        }
    }

    /// When the first of the callers whom the drain keeps waiting stops waiting.
    pub(super) fn earliest(&self) -> Millis {
        self.hold.earliest().min(self.away)
    }

    /// A drain ends as soon as a caller whose message it keeps waiting could fail because of it (PATIENCE).
    pub(super) fn lose_patience(&mut self, at: Moment, out: &mut Out<J>) {
        let is_draining = matches!(self.state, HostState::Draining(_));
        if is_draining && self.earliest() - self.limits.patience <= at.now {
            self.stay(at, StayReason::CallerInAHurry, out);
        }
    }

    pub(super) fn drain_woke_up(&mut self, at: Moment, out: &mut Out<J>) {
        self.lose_patience(at, out);
        match self.state {
            HostState::Draining(drain) if drain.until <= at.now => {
                self.stay(at, StayReason::DrainTooLong, out)
            }
            HostState::Draining(drain) if drain.parcels_until.is_some_and(|until| until <= at.now) => {
                self.transfer(at, drain, false, out);
            }
            _ => {}
        }
    }

    /// The drain ends and the shard stays, at the same generation and without a write.
    fn stay(&mut self, at: Moment, why: StayReason, out: &mut Out<J>) {
        let tenancy = match self.state {
            HostState::Draining(drain) => drain.tenancy,
            HostState::Transferring(departure) => departure.tenancy,
            _ => return,
        };
        self.done(HandOffOutcome::Stays(why), out);
        self.resume(at, tenancy, out);
    }

    // ---- the transfer ----

    /// Everything has stopped (QUIET).
    fn transfer(&mut self, at: Moment, drain: Drain, state: bool, out: &mut Out<J>) {
        let Drain { tenancy, to, move_id, .. } = drain;
        let until = at.now + self.limits.transfer;
        self.state = HostState::Transferring(Departure { tenancy, to, move_id, until });
        let generation = tenancy.generation;
        out.push(match to {
            Some(to) => {
                let moved = Move { id: move_id, from: self.me, state };
                HostAction::Transfer { generation, to, moved }
            }
            None => HostAction::Release { generation, move_id },
        });
    }

    pub(super) fn on_unapplied(&mut self, at: Moment, move_id: u64, out: &mut Out<J>) {
        if matches!(self.state, HostState::Transferring(departure) if departure.move_id == move_id) {
            self.stay(at, StayReason::Unavailable, out);
        }
    }

    /// A read that still shows this node proves nothing: the write may land later (LATE).
    pub(super) fn on_unknown(&mut self, at: Moment, move_id: u64, out: &mut Out<J>) {
        if let HostState::Transferring(departure) = self.state
            && departure.move_id == move_id
        {
            let Tenancy { generation, since } = departure.tenancy;
            self.reassert(at, Owned { hint: self.mine_at(generation), since, moved: None }, 0, out);
        }
    }

    /// The shard is served here again although an order is open: its transfer was made impossible.
    pub(super) fn stays(&mut self, out: &mut Out<J>) {
        self.done(HandOffOutcome::Stays(StayReason::Unanswered), out);
    }

    fn done(&mut self, outcome: HandOffOutcome, out: &mut Out<J>) {
        if let Some(generation) = self.order.take() {
            out.push(HostAction::HandOffDone { generation, outcome });
        }
    }
}
