//! The state of the model, and what each step does to it.
//!
//! A is a node that lives its whole life here: it opens sessions, beats, claims, leaves, closes, crashes and comes back. B
//! observes A and wants the same key; its own session never runs out, which makes it the worst partner. Both decide with
//! the machines of `core/protocol`. A read and what follows from it are one step: what is then written travels on its own,
//! so a pause in between is covered by a write that lands late.

use archipelago_protocol::contract::OwnerRecord;
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{
    Claim, EndReason, HolderAction, HolderEvent, Lease, LeaseObserver, LeaseSeen, LeaseVersion,
    ObserverAction, ObserverEvent, Session, SessionHolder, times,
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

    pub(super) fn open_session(&mut self, rules: Rules, index: usize) {
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

    pub(super) fn observer_sees(&mut self, rules: Rules, mut seen: LeaseSeen) {
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

    // ---- reading ----

    pub(super) fn lease_seen(&self, id: NodeId, stale: bool) -> Option<LeaseSeen> {
        if id == B {
            let lease = Lease::Live { seq: 0, nonce: 0, ttl: TTL };
            return Some(LeaseSeen { id, version: LeaseVersion(1), lease });
        }
        let (version, lease) = self.leases[index_of(id)].read(stale);
        lease.map(|lease| LeaseSeen { id, version: LeaseVersion(version), lease })
    }

    /// Tells the processes of A apart, as random numbers would.
    pub(super) fn nonce(&self) -> u64 {
        self.opened as u64
    }
}

pub(super) fn or_anything(rules: Rules, mutant: Mutant, expect: Expect) -> Expect {
    if rules.breaks(mutant) { Expect::Anything } else { expect }
}

pub(super) fn record(owner: NodeId, version: u64) -> OwnerRecord {
    let generation = Generation::new(version);
    OwnerRecord { placement: placement(owner, version), since: generation, ttl: TTL, moved: None }
}

pub(super) fn placement(node: NodeId, version: u64) -> Placement {
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
