//! The state of the model, and what each step does to it.
//!
//! A is a node that lives its whole life here: it opens sessions, beats, claims, leaves, closes, crashes and comes back. B
//! observes A and wants the same key; its own session never runs out, which makes it the worst partner. Both decide with
//! the machines of `core/protocol`. A read and what follows from it are one step: what is then written travels on its own,
//! so a pause in between is covered by a write that lands late.

use archipelago_protocol::contract::{OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{
    Claim, ClaimAction, ClaimEvent, EndReason, HolderAction, HolderEvent, Lease, LeaseAnswer, LeaseObserver,
    LeaseOutcome, LeaseSeen, LeaseVersion, ObserverAction, ObserverEvent, Session, SessionHolder, times,
};
use archipelago_protocol::time::Millis;

use super::mutant::Mutant;
use super::store::{Cell, Expect, Flight, FlightState, Waiter, Who, Write};

/// Everything that is true at one instant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) tick: u64,
    /// The leases of A's sessions.
    pub(crate) leases: Vec<Cell<Lease>>,
    pub(crate) owner: Cell<NodeId>,
    pub(crate) flights: Vec<Flight>,
    pub(crate) holder: Option<SessionHolder>,
    pub(crate) opened: usize,
    pub(crate) observer: LeaseObserver,
    pub(crate) duties: [Duty; 2],
    /// Sessions whose lease once said `Ended`.
    pub(crate) ended: Vec<bool>,
    /// Whether one of them was live again.
    pub(crate) revived: bool,
    /// Mutant 11 only: since when B has known each lease as absent.
    pub(crate) absent_since: Option<u64>,
}

/// What a node does about the key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Duty {
    Idle,
    Claiming(Box<Claim>),
    Serving {
        session: NodeId,
        generation: u64,
    },
    /// Stopped, and gave the key away; waits for the answer.
    Leaving {
        session: NodeId,
        generation: u64,
    },
}

/// How the world behaves: what is broken, and whether reads may be stale.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) mutant: Option<Mutant>,
    pub(crate) stale_reads: bool,
}

impl Rules {
    pub(crate) fn breaks(self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}

impl World {
    pub(crate) fn new(sessions: usize, monitoring: bool) -> Self {
        let mut observer = LeaseObserver::new(B);
        if monitoring {
            observer.handle(Millis::ZERO, ObserverEvent::Reachable([B].into()));
        }
        Self {
            tick: 0,
            leases: vec![Cell::empty(); sessions],
            owner: Cell::empty(),
            flights: Vec::new(),
            holder: None,
            opened: 0,
            observer,
            duties: [Duty::Idle, Duty::Idle],
            ended: vec![false; sessions],
            revived: false,
            absent_since: None,
        }
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(self.tick * TICK.0)
    }

    pub(crate) fn duty(&self, who: Who) -> &Duty {
        &self.duties[who as usize]
    }

    pub(crate) fn duty_mut(&mut self, who: Who) -> &mut Duty {
        &mut self.duties[who as usize]
    }

    /// The session and generation at which `who` serves right now.
    pub(crate) fn serves(&self, rules: Rules, who: Who) -> Option<(NodeId, u64)> {
        let Duty::Serving { session, generation } = *self.duty(who) else { return None };
        let open = match (who, &self.holder) {
            (Who::B, _) => true,
            (Who::A, None) => false,
            (Who::A, Some(holder)) => {
                let unfenced = rules.breaks(Mutant::NoSelfFence) && holder.gate().serve_until > Millis::ZERO;
                holder.session().id == session && (holder.serving(self.now()) || unfenced)
            }
        };
        open.then_some((session, generation))
    }

    pub(crate) fn present_session(&self, who: Who) -> Option<Session> {
        match who {
            Who::A => self.holder.as_ref().map(SessionHolder::session),
            Who::B => Some(Session { id: B, ttl: TTL }),
        }
    }

    pub(crate) fn waits(&self, waits: impl Fn(Waiter) -> bool) -> bool {
        self.flights.iter().filter_map(|flight| flight.waiter).any(waits)
    }

    // ---- the session of A ----

    pub(crate) fn open(&mut self, rules: Rules) {
        let index = if rules.breaks(Mutant::ReopensSameId) { 0 } else { self.opened };
        self.opened += 1;
        self.open_session(rules, index);
    }

    fn open_session(&mut self, rules: Rules, index: usize) {
        let session = Session { id: session_id(index), ttl: TTL };
        let (holder, actions) = SessionHolder::open(self.now(), session, self.nonce());
        self.holder = Some(holder);
        self.carry_out(rules, actions);
    }

    pub(crate) fn tell_holder(&mut self, rules: Rules, event: HolderEvent) {
        let now = self.now();
        if let Some(holder) = &mut self.holder {
            let actions = holder.handle(now, event);
            self.carry_out(rules, actions);
        }
    }

    fn carry_out(&mut self, rules: Rules, actions: Vec<HolderAction>) {
        for action in actions {
            match action {
                HolderAction::SendOpen { session, nonce } => {
                    let lease = Lease::Live { seq: 0, nonce, ttl: session.ttl };
                    self.send_lease(rules, session.id, Expect::Absent, lease, Some(Waiter::Open));
                }
                HolderAction::SendBeat(beat) => {
                    let lease = Lease::Live { seq: beat.seq, nonce: beat.nonce, ttl: beat.session.ttl };
                    let expect = or_anything(rules, Mutant::BeatWithoutCas, Expect::At(beat.expect.0));
                    self.send_lease(rules, beat.session.id, expect, lease, Some(Waiter::Beat(beat.seq)));
                }
                HolderAction::ReadBack(id) => {
                    let seen = self.lease_seen(id, false);
                    self.tell_holder(rules, HolderEvent::Seen(seen));
                }
                HolderAction::SendClose(session) => self.send_close(rules, session.id),
                HolderAction::Lost { .. } => self.lose_session(),
                HolderAction::Announce | HolderAction::Gate(_) | HolderAction::WakeAt(_) => {}
            }
        }
        if self.holder.as_ref().is_some_and(SessionHolder::is_over) {
            self.lose_session();
        }
    }

    /// Everything stops; the next session has another id.
    fn lose_session(&mut self) {
        self.holder = None;
        if matches!(self.duty(Who::A), Duty::Serving { .. }) {
            *self.duty_mut(Who::A) = Duty::Idle;
        }
        self.give_up_all(|waiter| matches!(waiter, Waiter::Open | Waiter::Beat(_)));
    }

    pub(crate) fn close(&mut self, rules: Rules) {
        if rules.breaks(Mutant::ClosesBeforeStopping) {
            let id = self.holder.as_ref().map(|holder| holder.session().id);
            id.into_iter().for_each(|id| self.send_close(rules, id));
        } else {
            self.tell_holder(rules, HolderEvent::Close);
        }
    }

    fn send_close(&mut self, rules: Rules, id: NodeId) {
        if let Some(seen) = self.lease_seen(id, false).filter(|seen| !seen.lease.has_ended()) {
            let ended = Lease::Ended { why: EndReason::Closed, by: id };
            self.send_lease(rules, id, Expect::At(seen.version.0), ended, None);
        }
    }

    pub(crate) fn crash(&mut self) {
        self.holder = None;
        *self.duty_mut(Who::A) = Duty::Idle;
        self.give_up_all(|waiter| waiter.node() == Who::A);
    }

    fn give_up_all(&mut self, whose: impl Fn(Waiter) -> bool) {
        for flight in self.flights.iter_mut().filter(|flight| flight.waiter.is_some_and(&whose)) {
            flight.waiter = None;
        }
        self.flights.retain(|flight| flight.waiter.is_some() || flight.state == FlightState::Sent);
    }

    // ---- B as an observer ----

    pub(crate) fn look(&mut self, rules: Rules, index: usize, stale: bool) {
        let id = session_id(index);
        let Some(seen) = self.lease_seen(id, stale) else {
            self.tell_observer(rules, self.now(), ObserverEvent::Gone(id));
            return self.count_absence(rules, index);
        };
        self.absent_since = None;
        self.observer_sees(rules, seen);
    }

    fn observer_sees(&mut self, rules: Rules, mut seen: LeaseSeen) {
        if let (true, Lease::Live { ttl, .. }) =
            (rules.breaks(Mutant::ObserverUsesItsOwnTtl), &mut seen.lease)
        {
            *ttl = Millis(ttl.0 / 2);
        }
        let early = if rules.breaks(Mutant::StampsBeforeAsking) { TICK } else { Millis::ZERO };
        self.tell_observer(rules, self.now() - early, ObserverEvent::Seen(seen));
    }

    fn count_absence(&mut self, rules: Rules, index: usize) {
        if !rules.breaks(Mutant::CountsAbsence) {
            return;
        }
        let since = *self.absent_since.get_or_insert(self.tick);
        if Millis((self.tick - since) * TICK.0) >= times::observer_wait(TTL) {
            let ended = Lease::Ended { why: EndReason::Missing, by: B };
            self.send_lease(rules, session_id(index), Expect::Absent, ended, None);
        }
    }

    pub(crate) fn tell_observer(&mut self, rules: Rules, now: Millis, event: ObserverEvent) {
        for action in self.observer.handle(now, event) {
            match action {
                ObserverAction::End { id, version, why } => {
                    let expect = or_anything(rules, Mutant::EndNamesNoVersion, Expect::At(version.0));
                    let waiter = Waiter::End { session: index_of(id), version: version.0 };
                    self.send_lease(rules, id, expect, Lease::Ended { why, by: B }, Some(waiter));
                }
                ObserverAction::ReadOrPin(session) => match self.lease_seen(session.id, false) {
                    Some(seen) => self.observer_sees(rules, seen),
                    None if rules.breaks(Mutant::AbsenceIsLife) => {}
                    None => {
                        let missing = Lease::Missing { ttl: session.ttl };
                        let waiter = Waiter::ObserverPin(index_of(session.id));
                        self.send_lease(rules, session.id, Expect::Absent, missing, Some(waiter));
                    }
                },
                ObserverAction::WatchAll(_) | ObserverAction::Ended(_) | ObserverAction::WakeAt(_) => {}
            }
        }
    }

    /// The resolver, which is B here, stops further beats.
    pub(crate) fn revoke(&mut self, rules: Rules, index: usize) {
        let lease = if rules.breaks(Mutant::RevokesByEnding) {
            Lease::Ended { why: EndReason::Revoked, by: B }
        } else {
            Lease::Revoked { ttl: TTL, by: B }
        };
        let expect = Expect::At(self.leases[index].version);
        self.send_lease(rules, session_id(index), expect, lease, None);
    }

    pub(crate) fn evict(&mut self, rules: Rules) {
        let expect = or_anything(rules, Mutant::EvictsByKey, Expect::At(self.owner.version));
        self.send(rules, expect, Write::Owner(None), None);
    }

    // ---- the key ----

    pub(crate) fn claim(&mut self, rules: Rules, who: Who, stale: bool) {
        let Some(session) = self.present_session(who) else { return };
        let (version, owner) = self.owner.read(stale);
        if owner == Some(session.id) && rules.breaks(Mutant::NeverRecasts) {
            return;
        }
        if owner == Some(session.id) && rules.breaks(Mutant::AdoptsByReading) {
            *self.duty_mut(who) = Duty::Serving { session: session.id, generation: version };
            return;
        }
        let (claim, action) = Claim::start(session, owner.map(|owner| record(owner, version)));
        self.go_on_claiming(rules, who, claim, action, stale);
    }

    fn go_on_claiming(
        &mut self,
        rules: Rules,
        who: Who,
        mut claim: Claim,
        mut action: ClaimAction,
        stale: bool,
    ) {
        *self.duty_mut(who) = Duty::Idle;
        loop {
            let event = match action {
                ClaimAction::ReadHolder(holder) => {
                    ClaimEvent::HolderRead(self.holder_evidence(rules, holder.id, stale))
                }
                ClaimAction::ReadOwner => {
                    let (version, owner) = self.owner.read(false);
                    ClaimEvent::OwnerRead(owner.map(|owner| record(owner, version)))
                }
                ClaimAction::ReadOwn => ClaimEvent::OwnRead(None),
                ClaimAction::Pin(holder) => {
                    let missing = Lease::Missing { ttl: holder.ttl };
                    self.send_lease(rules, holder.id, Expect::Absent, missing, Some(Waiter::ClaimPin(who)));
                    *self.duty_mut(who) = Duty::Claiming(Box::new(claim));
                    return;
                }
                ClaimAction::Write { over, .. } => return self.send_claim(rules, who, claim, over),
                ClaimAction::Decided(PlacementDecision::Placed(placement)) => {
                    return self.grant(rules, who, &placement);
                }
                ClaimAction::Decided(
                    PlacementDecision::AlreadyPlaced(held) | PlacementDecision::Raced { winner: held },
                ) => return self.blocked(rules, who, held.session()),
                ClaimAction::SessionLost | ClaimAction::Contested(_) => return,
            };
            action = claim.handle(event);
        }
    }

    /// What a claimer learns about the session that holds the key.
    fn holder_evidence(&self, rules: Rules, id: NodeId, stale: bool) -> Option<LeaseSeen> {
        let seen = self.lease_seen(id, stale);
        let as_if = |lease| Some(LeaseSeen { id, version: LeaseVersion(0), lease });
        let ended = Lease::Ended { why: EndReason::Silent, by: B };
        match (rules.mutant, &seen) {
            (Some(Mutant::TakesOnSuspicion), _) | (Some(Mutant::AbsenceIsDeath), None) => as_if(ended),
            (Some(Mutant::AbsenceIsLife), None) => as_if(Lease::Live { seq: 0, nonce: 0, ttl: TTL }),
            _ => seen,
        }
    }

    fn send_claim(&mut self, rules: Rules, who: Who, claim: Claim, over: Option<OwnerRecord>) {
        let expect = over.map_or(Expect::Absent, |over| Expect::At(over.placement.generation.as_u64()));
        let expect = or_anything(rules, Mutant::ClaimWithoutCas, expect);
        let id = claim.session().id;
        self.send(rules, expect, Write::Owner(Some(id)), Some(Waiter::Claim(who)));
        *self.duty_mut(who) = Duty::Claiming(Box::new(claim));
    }

    fn grant(&mut self, rules: Rules, who: Who, placement: &Placement) {
        let generation = placement.generation.as_u64();
        let granted = match (who, &self.holder) {
            (Who::B, _) => Some(B),
            (Who::A, Some(holder)) if rules.breaks(Mutant::OldClaimGrants) => Some(holder.session().id),
            (Who::A, Some(holder)) => holder.grants(self.now(), placement).then_some(placement.node),
            (Who::A, None) => None,
        };
        if let Some(session) = granted {
            *self.duty_mut(who) = Duty::Serving { session, generation };
        }
    }

    fn blocked(&mut self, rules: Rules, who: Who, by: Session) {
        if who == Who::B && !self.observer.is_monitoring() {
            self.tell_observer(rules, self.now(), ObserverEvent::Blocked(by));
        }
    }

    pub(crate) fn release(&mut self, rules: Rules, who: Who) {
        let Duty::Serving { session, generation } = *self.duty(who) else { return };
        if !rules.breaks(Mutant::ReleasesBeforeStopping) {
            *self.duty_mut(who) = Duty::Leaving { session, generation };
        }
        let names_owner = rules.breaks(Mutant::ReleaseNamesOwner);
        let expect = if names_owner { Expect::OwnedBy(session) } else { Expect::At(generation) };
        self.send(rules, expect, Write::Owner(None), Some(Waiter::Leave(who)));
    }

    pub(crate) fn transfer(&mut self, rules: Rules) {
        let Duty::Serving { session, generation } = *self.duty(Who::A) else { return };
        *self.duty_mut(Who::A) = Duty::Leaving { session, generation };
        let names_owner = rules.breaks(Mutant::TransferNamesOwner);
        let expect = if names_owner { Expect::OwnedBy(session) } else { Expect::At(generation) };
        self.send(rules, expect, Write::Owner(Some(B)), Some(Waiter::Leave(Who::A)));
    }

    // ---- writes on their way ----

    fn send_lease(&mut self, rules: Rules, id: NodeId, expect: Expect, lease: Lease, waiter: Option<Waiter>) {
        self.send(rules, expect, Write::Lease(index_of(id), lease), waiter);
    }

    fn send(&mut self, rules: Rules, expect: Expect, write: Write, waiter: Option<Waiter>) {
        let timed =
            [Mutant::CountsFromTheRepeat, Mutant::AcceptsMissing].into_iter().any(|m| rules.breaks(m));
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

    fn apply_lease(&mut self, rules: Rules, index: usize, expect: Expect, lease: Lease) -> FlightState {
        if !expect.allows(&self.leases[index], None) {
            return FlightState::FoundLease(self.lease_seen(session_id(index), false));
        }
        self.revived |= self.ended[index] && matches!(lease, Lease::Live { .. });
        self.ended[index] |= lease.has_ended();
        self.leases[index].set(Some(lease), rules.stale_reads);
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
            (Some(Mutant::RecreatesAbsentLease), LeaseOutcome::Found(None)) => {
                self.open_session(rules, index_of(session.id));
            }
            _ => return false,
        }
        true
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

    // ---- reading ----

    fn lease_seen(&self, id: NodeId, stale: bool) -> Option<LeaseSeen> {
        if id == B {
            let lease = Lease::Live { seq: 0, nonce: 0, ttl: TTL };
            return Some(LeaseSeen { id, version: LeaseVersion(1), lease });
        }
        let (version, lease) = self.leases[index_of(id)].read(stale);
        lease.map(|lease| LeaseSeen { id, version: LeaseVersion(version), lease })
    }

    /// Tells the processes of A apart, as random numbers would.
    fn nonce(&self) -> u64 {
        self.opened as u64
    }
}

fn or_anything(rules: Rules, mutant: Mutant, expect: Expect) -> Expect {
    if rules.breaks(mutant) { Expect::Anything } else { expect }
}

fn record(owner: NodeId, version: u64) -> OwnerRecord {
    let generation = Generation::new(version);
    OwnerRecord { placement: placement(owner, version), since: generation, ttl: TTL, moved: None }
}

fn placement(node: NodeId, version: u64) -> Placement {
    let key = OwnedKey::role("k").expect("a valid name");
    Placement { key, node, generation: Generation::new(version) }
}

pub(crate) fn session_id(index: usize) -> NodeId {
    NodeId::new(index as u64 + 1)
}

pub(crate) fn index_of(id: NodeId) -> usize {
    usize::try_from(id.as_u64()).expect("a small number") - 1
}

/// The id of B's session.
pub(crate) const B: NodeId = NodeId::new(100);
/// Long enough that the grace of an observer is small beside it.
pub(crate) const TTL: Millis = Millis(30_000);
/// One third of an observer's wait, rounded up: a holder serves for three ticks, an observer ends after three.
pub(crate) const TICK: Millis = Millis(10_300);
