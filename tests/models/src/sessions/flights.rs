//! Writes on their way: sent, applied at any later time, answered, given up, refused.

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{
    ClaimEvent, HolderAction, HolderEvent, Lease, LeaseAnswer, LeaseOutcome, LeaseSeen, LeaseVersion,
    LostReason, ObserverEvent, Session, SessionHolder,
};
use archipelago_protocol::time::Millis;

use super::mutant::Mutant;
use super::store::{Expect, Flight, FlightState, Waiter, Who, Write};
use super::world::{Duty, Rules, TICK, TTL, World, index_of, placement, record, session_id};

impl World {
    pub(super) fn send_lease(
        &mut self,
        rules: Rules,
        id: NodeId,
        expect: Expect,
        lease: Lease,
        waiter: Option<Waiter>,
    ) {
        let deletes = rules.breaks(Mutant::EndsByDeleting) && lease.has_ended();
        self.send(rules, expect, Write::Lease(index_of(id), (!deletes).then_some(lease)), waiter);
    }

    pub(super) fn send(&mut self, rules: Rules, expect: Expect, write: Write, waiter: Option<Waiter>) {
        let timed = [Mutant::CountsFromTheRepeat, Mutant::AcceptsMissing, Mutant::AcceptsOlderSeq];
        let timed = timed.into_iter().any(|mutant| rules.breaks(mutant));
        let sent = if timed { self.tick } else { 0 };
        self.flights.push(Flight { expect, write, state: FlightState::Sent, waiter, sent });
    }

    /// The store carries a write out, or refuses it.
    pub(crate) fn apply(&mut self, rules: Rules, number: usize) {
        let flight = self.flights[number].clone();
        let state = match flight.write {
            Write::Lease(index, lease) => self.apply_lease(rules, index, flight.expect, lease),
            Write::Owner(owner) => self.apply_owner(rules, flight.expect, owner),
        };
        if flight.waiter.is_none() {
            self.flights.remove(number);
        } else {
            self.flights[number].state = state;
        }
    }

    fn apply_lease(
        &mut self,
        rules: Rules,
        index: usize,
        expect: Expect,
        lease: Option<Lease>,
    ) -> FlightState {
        if !expect.allows(&self.leases[index], None) {
            return FlightState::FoundLease(self.lease_seen(session_id(index), false));
        }
        self.revived |= self.ended[index] && matches!(lease, Some(Lease::Live { .. }));
        self.ended[index] |= lease.as_ref().is_none_or(Lease::has_ended);
        self.leases[index].set(lease, rules.stale_reads);
        FlightState::Applied(self.leases[index].version)
    }

    fn apply_owner(&mut self, rules: Rules, expect: Expect, owner: Option<NodeId>) -> FlightState {
        if !expect.allows(&self.owner, self.owner.value) {
            return FlightState::FoundOwner(self.owner.value.map(|owner| (owner, self.owner.version)));
        }
        self.owner.set(owner, rules.stale_reads);
        if owner.is_none() && rules.breaks(Mutant::GenerationsStartAgain) {
            self.owner.version = 0;
        }
        FlightState::Applied(self.owner.version)
    }

    /// The answer reaches whoever waits for it.
    pub(crate) fn answer(&mut self, rules: Rules, number: usize) {
        let flight = self.flights.remove(number);
        let Some(waiter) = flight.waiter else { return };
        match waiter {
            Waiter::Open | Waiter::Beat(_) => self.answer_holder(rules, waiter, &flight),
            Waiter::End { session, version } => {
                self.end_answered(rules, session, version, flight.state.lease_outcome())
            }
            Waiter::Claim(who) => self.claim_answered(rules, who, &flight.state),
            Waiter::ClaimPin(who) => self.claim_pinned(rules, who, &flight.state),
            Waiter::ObserverPin(index) => self.observer_pinned(rules, index, &flight.state),
            Waiter::Leave(who) => self.left(who),
        }
    }

    /// No answer in time: the write may be applied now or later.
    pub(crate) fn give_up(&mut self, rules: Rules, number: usize) {
        let Some(waiter) = self.flights[number].waiter.take() else { return };
        if self.flights[number].state != FlightState::Sent {
            self.flights.remove(number);
        }
        match waiter {
            Waiter::Open if rules.breaks(Mutant::RepeatsOpen) => {
                let session = self.holder.as_ref().map(SessionHolder::session);
                let again = Lease::Live { seq: 0, nonce: self.nonce(), ttl: TTL };
                let id = session.expect("a holder waits").id;
                self.send_lease(rules, id, Expect::Absent, again, Some(Waiter::Open));
            }
            Waiter::Open => self.tell_holder(rules, HolderEvent::OpenAnswered(LeaseOutcome::Unknown)),
            Waiter::Beat(seq) => {
                self.tell_holder(rules, HolderEvent::BeatAnswered { seq, outcome: LeaseOutcome::Unknown })
            }
            Waiter::End { session, version } => {
                self.end_answered(rules, session, version, LeaseOutcome::Unknown)
            }
            Waiter::Claim(who) | Waiter::ClaimPin(who) => *self.duty_mut(who) = Duty::Idle,
            Waiter::ObserverPin(index) => {
                self.tell_observer(rules, self.now(), ObserverEvent::Unread(session_id(index)))
            }
            Waiter::Leave(who) => self.left(who),
        }
    }

    /// The store did not take the write, and says so: certainly never applied.
    pub(crate) fn refuse(&mut self, rules: Rules, number: usize) {
        let Some(waiter) = self.flights.remove(number).waiter else { return };
        let outcome = LeaseOutcome::Unavailable;
        match waiter {
            Waiter::Open => self.tell_holder(rules, HolderEvent::OpenAnswered(outcome)),
            Waiter::Beat(seq) => self.tell_holder(rules, HolderEvent::BeatAnswered { seq, outcome }),
            Waiter::End { session, version } => self.end_answered(rules, session, version, outcome),
            Waiter::Claim(who) | Waiter::ClaimPin(who) => *self.duty_mut(who) = Duty::Idle,
            Waiter::ObserverPin(index) => {
                self.tell_observer(rules, self.now(), ObserverEvent::Unread(session_id(index)))
            }
            Waiter::Leave(who) => {
                if let Duty::Leaving { session, generation } = *self.duty(who) {
                    *self.duty_mut(who) = Duty::Serving { session, generation };
                }
            }
        }
    }

    /// The way to the store carries a write twice.
    pub(crate) fn repeat(&mut self, number: usize) {
        let copy = Flight { waiter: None, ..self.flights[number].clone() };
        self.flights.push(copy);
    }

    fn answer_holder(&mut self, rules: Rules, waiter: Waiter, flight: &Flight) {
        let outcome = flight.state.lease_outcome();
        if self.answer_broken_holder(rules, flight, &outcome) {
            return;
        }
        let event = match waiter {
            Waiter::Beat(seq) => HolderEvent::BeatAnswered { seq, outcome },
            _ => HolderEvent::OpenAnswered(outcome),
        };
        self.tell_holder(rules, event);
    }

    /// Mutants of the holder: it goes on as one that was confirmed at another time, or opens once more.
    fn answer_broken_holder(&mut self, rules: Rules, flight: &Flight, outcome: &LeaseOutcome) -> bool {
        let Some(holder) = &self.holder else { return false };
        let (session, sent) = (holder.session(), Millis(flight.sent * TICK.0));
        match (rules.mutant, outcome) {
            (Some(Mutant::CountsFromTheAnswer), LeaseOutcome::Applied(version)) => {
                self.confirmed_anew(rules, session, self.now(), *version);
            }
            (Some(Mutant::CountsFromTheRepeat), LeaseOutcome::Found(Some(seen)))
                if matches!(seen.lease, Lease::Live { .. }) =>
            {
                self.confirmed_anew(rules, session, sent, seen.version);
            }
            (Some(Mutant::AcceptsMissing), LeaseOutcome::Found(Some(seen)))
                if matches!(seen.lease, Lease::Missing { .. }) =>
            {
                self.confirmed_anew(rules, session, sent, seen.version);
            }
            (Some(Mutant::AcceptsOlderSeq), LeaseOutcome::Found(Some(seen)))
                if self.is_own_and_old(holder, seen) =>
            {
                self.confirmed_anew(rules, session, sent, seen.version);
            }
            (Some(Mutant::RecreatesAbsentLease), LeaseOutcome::Found(None)) => {
                self.open_session(rules, index_of(session.id));
            }
            _ => return false,
        }
        true
    }

    /// Whether this process sent what the record shows, but no later than what is confirmed: for the holder that is foreign.
    fn is_own_and_old(&self, holder: &SessionHolder, seen: &LeaseSeen) -> bool {
        let own = matches!(seen.lease, Lease::Live { nonce, .. } if nonce == self.nonce());
        let actions = holder.clone().handle(self.now(), HolderEvent::Seen(Some(seen.clone())));
        own && actions
            .iter()
            .any(|action| matches!(action, HolderAction::Lost { reason: LostReason::Foreign, .. }))
    }

    fn confirmed_anew(&mut self, rules: Rules, session: Session, sent: Millis, version: LeaseVersion) {
        self.holder = Some(SessionHolder::open(sent, session, self.nonce()).0);
        self.tell_holder(rules, HolderEvent::OpenAnswered(LeaseOutcome::Applied(version)));
    }

    fn end_answered(&mut self, rules: Rules, session: usize, version: u64, outcome: LeaseOutcome) {
        let (id, version) = (session_id(session), LeaseVersion(version));
        self.tell_observer(rules, self.now(), ObserverEvent::EndAnswered { id, version, outcome });
    }

    fn observer_pinned(&mut self, rules: Rules, index: usize, state: &FlightState) {
        let id = session_id(index);
        match state.lease_outcome() {
            LeaseOutcome::Applied(version) => {
                self.observer_sees(rules, LeaseSeen { id, version, lease: Lease::Missing { ttl: TTL } })
            }
            LeaseOutcome::Found(Some(seen)) => self.observer_sees(rules, seen),
            _ => self.tell_observer(rules, self.now(), ObserverEvent::Unread(id)),
        }
    }

    fn claim_answered(&mut self, rules: Rules, who: Who, state: &FlightState) {
        let Duty::Claiming(claim) = self.duty(who).clone() else { return };
        let mut claim = *claim;
        let event = match state {
            FlightState::Applied(version) => {
                let id = claim.session().id;
                ClaimEvent::Applied(placement(id, *version))
            }
            FlightState::FoundOwner(found) => {
                ClaimEvent::Conflict(found.map(|(owner, version)| record(owner, version)))
            }
            _ => return,
        };
        let action = claim.handle(event);
        self.go_on_claiming(rules, who, claim, action, false);
    }

    fn claim_pinned(&mut self, rules: Rules, who: Who, state: &FlightState) {
        let Duty::Claiming(claim) = self.duty(who).clone() else { return };
        let mut claim = *claim;
        let answer = match state {
            FlightState::Applied(version) => LeaseAnswer::Applied(LeaseVersion(*version)),
            FlightState::FoundLease(found) => LeaseAnswer::Found(found.clone()),
            _ => return,
        };
        let action = claim.handle(ClaimEvent::Pinned(answer));
        self.go_on_claiming(rules, who, claim, action, false);
    }

    fn left(&mut self, who: Who) {
        *self.duty_mut(who) = Duty::Idle;
    }
}
