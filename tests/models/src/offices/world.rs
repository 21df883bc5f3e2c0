//! The record of the role, what is on its way to it, and the two nodes.

use archipelago_protocol::contract::{OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{Generation, NodeId, OwnedKey, Placement};
use archipelago_protocol::session::{
    Claim, ClaimAction, ClaimEvent, Lease, LeaseSeen, LeaseVersion, RoleAction, RoleClaim, RoleEvent,
    RoleHolder, RoleSight, Session,
};
use archipelago_protocol::time::Millis;

use super::mutant::Mutant;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct World {
    /// Whom the record names, at which version.
    pub(super) record: Option<(usize, u64)>,
    /// Of the last change.
    pub(super) version: u64,
    pub(super) flights: Vec<Flight>,
    pub(super) nodes: [Node; NODES],
    /// A record was released by a node that never held the role at its generation.
    pub(super) given_back: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) machine: RoleHolder,
    /// The claim whose write is waited for.
    claim: Option<Claim>,
    /// A look at the record is under way.
    pub(super) looks: bool,
    pub(super) has_held: bool,
    last_held: u64,
}

/// A write on its way: only over this version, or where there is no record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Flight {
    pub(super) by: usize,
    over: Option<u64>,
    /// Otherwise it claims.
    releases: bool,
    pub(super) waits: bool,
}

type Broken = Option<Mutant>;

impl Default for World {
    fn default() -> Self {
        let node =
            Node { machine: RoleHolder::new(TTL), claim: None, looks: false, has_held: false, last_held: 0 };
        Self { record: None, version: 0, flights: Vec::new(), nodes: [node.clone(), node], given_back: false }
    }
}

impl World {
    // ---- steps ----

    pub(super) fn lead(&mut self, broken: Broken, n: usize) {
        self.apply(broken, n, LATE, RoleEvent::Wanted);
    }

    pub(super) fn follow(&mut self, broken: Broken, n: usize) {
        self.apply(broken, n, LATE, RoleEvent::Unwanted);
    }

    pub(super) fn step_down(&mut self, broken: Broken, n: usize) {
        self.apply(broken, n, Millis::ZERO, RoleEvent::GivenUp);
    }

    pub(super) fn read(&mut self, broken: Broken, n: usize) {
        self.nodes[n].looks = false;
        let sight = match self.record {
            Some((owner, version)) if owner == n => RoleSight::Ours(Generation::new(version)),
            _ => RoleSight::NotOurs,
        };
        if sight == RoleSight::NotOurs && broken == Some(Mutant::LooksOnce) {
            self.nodes[n].machine = RoleHolder::new(TTL);
            return;
        }
        let event = match sight {
            RoleSight::Ours(found) if broken == Some(Mutant::AdoptsByReading) => {
                RoleEvent::Claimed(RoleClaim::Placed(found))
            }
            sight => RoleEvent::LookedUp(sight),
        };
        self.apply(broken, n, Millis::ZERO, event);
    }

    pub(super) fn unread(&mut self, broken: Broken, n: usize) {
        self.nodes[n].looks = false;
        self.apply(broken, n, Millis::ZERO, RoleEvent::LookedUp(RoleSight::Unanswered));
    }

    /// The sender of the write that node `n` waits for waits no longer.
    pub(super) fn leave(&mut self, broken: Broken, n: usize) {
        let Some(flight) = self.flights.iter_mut().find(|flight| flight.waits && flight.by == n) else {
            return;
        };
        flight.waits = false;
        let releases = flight.releases;
        self.unanswered(broken, n, releases);
    }

    pub(super) fn land(&mut self, broken: Broken, number: usize, heard: bool) {
        let Flight { by, over, releases, waits } = self.flights.remove(number);
        let applied = self.write(broken, by, over, releases);
        match (waits, heard) {
            (false, _) => {}
            (true, false) => self.unanswered(broken, by, releases),
            // Applied or not: the record is not at that generation any more.
            (true, true) if releases => self.apply(broken, by, Millis::ZERO, RoleEvent::Released(true)),
            (true, true) => self.claim_answered(broken, by, applied),
        }
    }

    // ---- the store ----

    fn write(&mut self, broken: Broken, by: usize, over: Option<u64>, releases: bool) -> bool {
        let here = self.record.map(|(_, version)| version);
        let anything = releases && broken == Some(Mutant::ReleasesAnything);
        let is_own = self.record.is_some_and(|(owner, _)| owner == by);
        if here != over && !(anything && is_own) {
            return false;
        }
        if releases {
            self.given_back |= over.is_some_and(|over| over != self.nodes[by].last_held);
            self.record = None;
        } else {
            self.version += 1;
            self.record = Some((by, self.version));
        }
        true
    }

    // ---- the nodes ----

    fn apply(&mut self, broken: Broken, n: usize, now: Millis, event: RoleEvent) {
        for action in self.nodes[n].machine.handle(now, event) {
            match action {
                RoleAction::Claim => {
                    let (claim, action) = Claim::start(session(n), None);
                    self.go_on(broken, n, claim, action);
                }
                RoleAction::LookUp => self.nodes[n].looks = true,
                RoleAction::Release(generation) => self.send(n, Some(generation.as_u64()), true),
                RoleAction::TakeOffice(generation) => {
                    (self.nodes[n].has_held, self.nodes[n].last_held) = (true, generation.as_u64());
                }
                RoleAction::PassedOver => {}
            }
        }
    }

    fn unanswered(&mut self, broken: Broken, n: usize, releases: bool) {
        self.nodes[n].claim = None;
        let event = match releases {
            true => RoleEvent::Released(broken == Some(Mutant::ReleasesOnce)),
            false if broken == Some(Mutant::ForgetsUnanswered) => RoleEvent::Claimed(RoleClaim::Refused),
            false => RoleEvent::Claimed(RoleClaim::Unanswered),
        };
        self.apply(broken, n, Millis::ZERO, event);
    }

    fn claim_answered(&mut self, broken: Broken, n: usize, applied: bool) {
        let Some(mut claim) = self.nodes[n].claim.take() else { return };
        let event = if applied {
            ClaimEvent::Applied(placement(n, self.version))
        } else {
            ClaimEvent::Conflict(self.record.map(|(owner, version)| owned(owner, version)))
        };
        let action = claim.handle(event);
        self.go_on(broken, n, claim, action);
    }

    /// Both sessions are live, so what a claim asks about them is answered at once.
    fn go_on(&mut self, broken: Broken, n: usize, mut claim: Claim, mut action: ClaimAction) {
        loop {
            let event = match action {
                ClaimAction::Write { over, .. } => {
                    self.nodes[n].claim = Some(claim);
                    return self.send(n, over.map(|record| record.placement.generation.as_u64()), false);
                }
                ClaimAction::ReadHolder(holder) => ClaimEvent::HolderRead(Some(live(holder))),
                ClaimAction::ReadOwner => {
                    ClaimEvent::OwnerRead(self.record.map(|(owner, version)| owned(owner, version)))
                }
                ClaimAction::Decided(decision) => return self.decided(broken, n, decision),
                other => unreachable!("both sessions are live: {other:?}"),
            };
            action = claim.handle(event);
        }
    }

    fn decided(&mut self, broken: Broken, n: usize, decision: PlacementDecision) {
        let claim = RoleClaim::of(session(n).id, Some(&Ok(decision)));
        self.apply(broken, n, Millis::ZERO, RoleEvent::Claimed(claim));
    }

    fn send(&mut self, by: usize, over: Option<u64>, releases: bool) {
        self.flights.push(Flight { by, over, releases, waits: true });
    }

    // ---- what must hold ----

    /// Whoever holds the role stands in the record, at that very generation.
    pub(super) fn offices_are_recorded(&self) -> bool {
        self.nodes
            .iter()
            .enumerate()
            .all(|(n, node)| node.machine.held().is_none_or(|held| self.record == Some((n, held.as_u64()))))
    }

    /// Whom the record names holds the role, waits for an answer about it, or will look.
    pub(super) fn records_are_known(&self) -> bool {
        self.record.is_none_or(|(owner, _)| {
            let node = &self.nodes[owner];
            let waits = self.flights.iter().any(|flight| flight.waits && flight.by == owner);
            node.machine.held().is_some() || waits || node.looks || node.machine.is_in_doubt()
        })
    }
}

fn session(n: usize) -> Session {
    Session { id: NodeId::new(n as u64 + 1), ttl: TTL }
}

fn placement(n: usize, version: u64) -> Placement {
    let key = OwnedKey::role("k").expect("a valid name");
    Placement { key, node: session(n).id, generation: Generation::new(version) }
}

fn owned(n: usize, version: u64) -> OwnerRecord {
    OwnerRecord { placement: placement(n, version), since: Generation::new(version), ttl: TTL, moved: None }
}

fn live(holder: Session) -> LeaseSeen {
    let lease = Lease::Live { seq: 0, nonce: 0, ttl: holder.ttl };
    LeaseSeen { id: holder.id, version: LeaseVersion(1), lease }
}

pub(super) const NODES: usize = 2;
/// No longer than the first pause: then all pauses are alike, and there are fewer states.
const TTL: Millis = Millis(500);
/// Answers come at time zero, and whoever looks is always late enough: time itself decides nothing here.
const LATE: Millis = Millis(1_000_000);
