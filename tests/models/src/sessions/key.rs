//! What a node does about the key: claim, serve, give away.
//!
//! Claiming is decided by [`Claim`], granting by the session's holder. STOP-FIRST is kept here: whoever sends a release or a
//! transfer has stopped, and what it gave away is dead for it unless the write was certainly never applied.

use archipelago_protocol::contract::{OwnerRecord, PlacementDecision};
use archipelago_protocol::identity::{NodeId, Placement};
use archipelago_protocol::session::{
    Claim, ClaimAction, ClaimEvent, EndReason, Lease, LeaseSeen, LeaseVersion, ObserverEvent, Session,
};

use super::mutant::Mutant;
use super::store::{Expect, Waiter, Who, Write};
use super::world::{B, Duty, Rules, TTL, World, or_anything, record};

impl World {
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

    pub(super) fn go_on_claiming(
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
            (Some(Mutant::TakesOnSuspicion), _)
            | (Some(Mutant::AbsenceIsDeath | Mutant::EndsByDeleting), None) => as_if(ended),
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
}
