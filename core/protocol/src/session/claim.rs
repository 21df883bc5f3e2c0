//! One claim of a key: what to look at, in which order, and when to write.
//!
//! [`Claim`] decides by EVIDENCE (the record of another session is replaced only once its lease was *read* as ended), PIN
//! (an absent lease is written down first and is no evidence) and RECAS (a record that names the claimer itself is written
//! anew, never adopted). Each write names what it replaces. Reading and writing are the shell's; whether the answer lets
//! the node serve is [`SessionHolder::grants`](super::SessionHolder::grants).
//!
//! Invariant: `Placed` is said only of a write of this very claim that was answered as applied.

use super::lease::{Lease, LeaseAnswer, LeaseSeen, Session};
use crate::contract::{OwnerRecord, PlacementDecision};
use crate::identity::Placement;

/// The machine of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Claim {
    session: Session,
    /// The record to write over, as the claimer knows it.
    over: Option<OwnerRecord>,
    /// Whether `over` came from the answer to a write of this claim.
    raced: bool,
    guarded: bool,
    rounds_left: u8,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimEvent {
    /// The holder's lease was read, also an old version of it; `None` = absent.
    HolderRead(Option<LeaseSeen>),
    /// The pin was answered.
    Pinned(LeaseAnswer),
    /// The owner record was read; `None` = the key is free.
    OwnerRead(Option<OwnerRecord>),
    /// The write was applied: the key is the claimer's.
    Applied(Placement),
    /// The write found another record, or none, and changed nothing.
    Conflict(Option<OwnerRecord>),
    /// The write found no poster of the claimer and changed nothing.
    GuardFailed,
    /// The claimer's own lease was read; `None` = absent.
    OwnRead(Option<LeaseSeen>),
}

/// What the shell does next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ClaimAction {
    /// Read the lease of the session that holds the key.
    ReadHolder(Session),
    /// Write down that this lease is absent.
    Pin(Session),
    /// Read the owner record.
    ReadOwner,
    /// Write the claimer over this record, or where there is none.
    Write {
        /// What is replaced.
        over: Option<OwnerRecord>,
        /// Whether the claimer's poster must stand.
        guarded: bool,
    },
    /// Read the claimer's own lease.
    ReadOwn,
    /// The claim is decided.
    Decided(PlacementDecision),
    /// The claimer's session is not live.
    SessionLost,
    /// Others write the record again and again; this is the last of it that was seen.
    Contested(Option<OwnerRecord>),
}

impl Claim {
    /// Starts a claim by `session` of a key whose record is `expected`, as far as the claimer knows.
    pub fn start(session: Session, expected: Option<OwnerRecord>) -> (Self, ClaimAction) {
        let mut claim =
            Self { session, over: expected, raced: false, guarded: true, rounds_left: CLAIM_ROUNDS };
        let action = claim.next_round();
        (claim, action)
    }

    /// Takes the answer to the last action and returns the next.
    pub fn handle(&mut self, event: ClaimEvent) -> ClaimAction {
        match event {
            ClaimEvent::HolderRead(None) => match &self.over {
                Some(held) => ClaimAction::Pin(held.session()),
                None => self.write(),
            },
            ClaimEvent::HolderRead(Some(seen)) => self.on_judged(has_ended(&seen)),
            ClaimEvent::Pinned(LeaseAnswer::Found(Some(seen))) => self.on_judged(has_ended(&seen)),
            ClaimEvent::Pinned(_) => self.on_judged(false),
            ClaimEvent::OwnerRead(record) => self.on_owner_read(record),
            ClaimEvent::Applied(placement) => ClaimAction::Decided(PlacementDecision::Placed(placement)),
            ClaimEvent::Conflict(current) => self.look_again(current),
            ClaimEvent::GuardFailed => ClaimAction::ReadOwn,
            ClaimEvent::OwnRead(seen) => self.on_own_read(seen),
        }
    }

    /// The session that claims; its node may have another by now.
    pub fn session(&self) -> Session {
        self.session
    }

    fn next_round(&mut self) -> ClaimAction {
        let Some(left) = self.rounds_left.checked_sub(1) else {
            return ClaimAction::Contested(self.over.clone());
        };
        self.rounds_left = left;
        match &self.over {
            Some(held) if held.placement.node != self.session.id => ClaimAction::ReadHolder(held.session()),
            _ => self.write(),
        }
    }

    fn write(&self) -> ClaimAction {
        ClaimAction::Write { over: self.over.clone(), guarded: self.guarded }
    }

    /// If the holder has not ended, and the claimer's view of the record may be old, looks once more.
    fn on_judged(&mut self, ended: bool) -> ClaimAction {
        match self.over.clone() {
            Some(winner) if !ended && self.raced => ClaimAction::Decided(PlacementDecision::Raced { winner }),
            Some(_) if !ended => ClaimAction::ReadOwner,
            _ => self.write(),
        }
    }

    fn on_owner_read(&mut self, record: Option<OwnerRecord>) -> ClaimAction {
        let placement = |record: &Option<OwnerRecord>| record.as_ref().map(|record| record.placement.clone());
        match record {
            Some(fresh) if placement(&self.over).as_ref() == Some(&fresh.placement) => {
                ClaimAction::Decided(PlacementDecision::AlreadyPlaced(fresh))
            }
            newer => self.look_again(newer),
        }
    }

    fn look_again(&mut self, current: Option<OwnerRecord>) -> ClaimAction {
        self.over = current;
        self.raced = true;
        self.next_round()
    }

    /// The poster is only a hint: if it is missing, the lease decides.
    fn on_own_read(&mut self, seen: Option<LeaseSeen>) -> ClaimAction {
        match seen {
            Some(seen) if matches!(seen.lease, Lease::Live { .. }) => {
                self.guarded = false;
                self.next_round()
            }
            _ => ClaimAction::SessionLost,
        }
    }
}

fn has_ended(seen: &LeaseSeen) -> bool {
    seen.lease.has_ended()
}

/// Each round but the last two answers a change by somebody else; more than this is a storm, and the caller looks again.
const CLAIM_ROUNDS: u8 = 6;

#[cfg(test)]
mod tests {
    use super::super::lease::{EndReason, LeaseVersion};
    use super::*;
    use crate::identity::{Generation, NodeId, OwnedKey};
    use crate::time::Millis;

    const ME: Session = Session { id: NodeId::new(1), ttl: Millis(6_000) };
    const OTHER: Session = Session { id: NodeId::new(2), ttl: Millis(9_000) };

    fn record(session: Session, generation: u64) -> OwnerRecord {
        let generation = Generation::new(generation);
        let placement = Placement { key: OwnedKey::role("k").unwrap(), node: session.id, generation };
        OwnerRecord { placement, since: generation, ttl: session.ttl, moved: None }
    }

    fn lease(session: Session, lease: Lease) -> LeaseSeen {
        LeaseSeen { id: session.id, version: LeaseVersion(1), lease }
    }

    fn live(session: Session) -> LeaseSeen {
        lease(session, Lease::Live { seq: 0, nonce: 0, ttl: session.ttl })
    }

    fn ended(session: Session) -> LeaseSeen {
        lease(session, Lease::Ended { why: EndReason::Silent, by: ME.id })
    }

    fn write(over: Option<OwnerRecord>) -> ClaimAction {
        ClaimAction::Write { over, guarded: true }
    }

    #[test]
    fn a_free_key_is_written_at_once() {
        assert_eq!(Claim::start(ME, None).1, write(None));
    }

    #[test]
    fn a_record_that_names_the_claimer_is_written_anew() {
        assert_eq!(Claim::start(ME, Some(record(ME, 3))).1, write(Some(record(ME, 3))));
    }

    #[test]
    fn a_record_of_an_ended_session_is_replaced_where_it_was_read() {
        let (mut claim, first) = Claim::start(ME, Some(record(OTHER, 3)));
        assert_eq!(first, ClaimAction::ReadHolder(OTHER));
        assert_eq!(claim.handle(ClaimEvent::HolderRead(Some(ended(OTHER)))), write(Some(record(OTHER, 3))));
    }

    #[test]
    fn an_absent_lease_is_pinned_with_the_time_of_the_record_and_proves_nothing() {
        let (mut claim, _) = Claim::start(ME, Some(record(OTHER, 3)));
        assert_eq!(claim.handle(ClaimEvent::HolderRead(None)), ClaimAction::Pin(OTHER));
        let pinned = ClaimEvent::Pinned(LeaseAnswer::Applied(LeaseVersion(4)));
        assert_eq!(claim.handle(pinned), ClaimAction::ReadOwner);
        let held = claim.handle(ClaimEvent::OwnerRead(Some(record(OTHER, 3))));
        assert_eq!(held, ClaimAction::Decided(PlacementDecision::AlreadyPlaced(record(OTHER, 3))));
    }

    #[test]
    fn whoever_lost_to_a_live_session_is_told_the_winner() {
        let (mut claim, _) = Claim::start(ME, None);
        let judged = claim.handle(ClaimEvent::Conflict(Some(record(OTHER, 7))));
        assert_eq!(judged, ClaimAction::ReadHolder(OTHER));
        let decided = claim.handle(ClaimEvent::HolderRead(Some(live(OTHER))));
        assert_eq!(decided, ClaimAction::Decided(PlacementDecision::Raced { winner: record(OTHER, 7) }));
    }

    #[test]
    fn a_missing_poster_is_excused_by_a_live_lease_only() {
        for (seen, expected) in [
            (Some(live(ME)), ClaimAction::Write { over: None, guarded: false }),
            (Some(ended(ME)), ClaimAction::SessionLost),
            (None, ClaimAction::SessionLost),
        ] {
            let (mut claim, _) = Claim::start(ME, None);
            assert_eq!(claim.handle(ClaimEvent::GuardFailed), ClaimAction::ReadOwn);
            assert_eq!(claim.handle(ClaimEvent::OwnRead(seen)), expected);
        }
    }

    #[test]
    fn a_storm_of_changes_ends_the_claim() {
        let (mut claim, mut action) = Claim::start(ME, None);
        for generation in 1..=u64::from(CLAIM_ROUNDS) {
            assert!(matches!(action, ClaimAction::Write { .. }));
            action = claim.handle(ClaimEvent::Conflict(Some(record(ME, generation))));
        }
        assert_eq!(action, ClaimAction::Contested(Some(record(ME, u64::from(CLAIM_ROUNDS)))));
    }
}
