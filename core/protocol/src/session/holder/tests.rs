use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::lease::EndReason;
use super::*;
use crate::identity::{Generation, OwnedKey};

const TTL: Millis = Millis(6_000);
const START: Millis = Millis(1_000);
/// `serve_until` of a beat sent at `START`.
const DEADLINE: Millis = Millis(1_000 + 5_280);

fn session() -> Session {
    Session { id: NodeId::new(1), ttl: TTL }
}

fn opening() -> SessionHolder {
    SessionHolder::open(START, session(), 100).0
}

fn opened() -> SessionHolder {
    let mut holder = opening();
    holder.handle(Millis(1_010), HolderEvent::OpenAnswered(LeaseOutcome::Applied(LeaseVersion(10))));
    holder
}

fn live(seq: u64, nonce: u64, version: u64) -> Option<LeaseSeen> {
    seen(Lease::Live { seq, nonce, ttl: TTL }, version)
}

fn seen(lease: Lease, version: u64) -> Option<LeaseSeen> {
    Some(LeaseSeen { id: NodeId::new(1), version: LeaseVersion(version), lease })
}

fn beat(holder: &mut SessionHolder, now: u64, nonce: u64) -> Beat {
    let actions = holder.handle(Millis(now), HolderEvent::Wake { nonce });
    let beats = actions.iter().find_map(|action| match action {
        HolderAction::SendBeat(beat) => Some(*beat),
        _ => None,
    });
    beats.expect("a beat is due")
}

fn lost(actions: &[HolderAction]) -> Option<LostReason> {
    actions.iter().find_map(|action| match action {
        HolderAction::Lost { reason, .. } => Some(*reason),
        _ => None,
    })
}

fn answer(holder: &mut SessionHolder, now: u64, seq: u64, outcome: LeaseOutcome) -> Vec<HolderAction> {
    holder.handle(Millis(now), HolderEvent::BeatAnswered { seq, outcome })
}

#[test]
fn the_gate_opens_with_the_confirmed_open_and_counts_from_its_sending() {
    let mut holder = opening();
    assert!(!holder.serving(START));
    let confirmed = LeaseOutcome::Applied(LeaseVersion(10));
    let actions = holder.handle(Millis(3_000), HolderEvent::OpenAnswered(confirmed));
    assert!(actions.contains(&HolderAction::Announce));
    assert_eq!(holder.gate(), Gate { serve_until: DEADLINE, fence_at: Millis(6_880) });
    assert!(holder.serving(Millis(DEADLINE.0 - 1)) && !holder.serving(DEADLINE));
}

/// Proves: R167
#[test]
fn the_poster_is_asked_for_until_it_stands() {
    let mut holder = opened();
    let first = beat(&mut holder, 3_100, 7);
    let outcome = LeaseOutcome::Applied(LeaseVersion(11));
    assert!(answer(&mut holder, 3_101, first.seq, outcome).contains(&HolderAction::Announce));
    holder.handle(Millis(3_102), HolderEvent::Announced);
    let second = beat(&mut holder, 5_200, 8);
    let outcome = LeaseOutcome::Applied(LeaseVersion(12));
    assert!(!answer(&mut holder, 5_201, second.seq, outcome).contains(&HolderAction::Announce));
}

#[test]
fn an_unanswered_open_is_read_back_and_never_repeated() {
    let mut holder = opening();
    let actions = holder.handle(Millis(2_000), HolderEvent::OpenAnswered(LeaseOutcome::Unknown));
    assert_eq!(actions, [HolderAction::ReadBack(NodeId::new(1))]);
    let actions = holder.handle(Millis(3_100), HolderEvent::Wake { nonce: 5 });
    assert!(actions.contains(&HolderAction::ReadBack(NodeId::new(1))));
    assert!(!actions.iter().any(|a| matches!(a, HolderAction::SendOpen { .. } | HolderAction::SendBeat(_))));
    holder.handle(Millis(3_200), HolderEvent::Seen(live(0, 100, 10)));
    assert_eq!(holder.gate().serve_until, DEADLINE, "counts from the sending of the open");
}

#[test]
fn an_open_that_cannot_be_found_throws_its_id_away() {
    let thrown = |event| lost(&opening().handle(Millis(1_100), event)) == Some(LostReason::OpenFailed);
    assert!(thrown(HolderEvent::Seen(None)));
    assert!(thrown(HolderEvent::OpenAnswered(LeaseOutcome::Unavailable)));
    assert!(thrown(HolderEvent::OpenAnswered(LeaseOutcome::Found(None))));
    let foreign = HolderEvent::Seen(live(0, 999, 10));
    assert_eq!(lost(&opening().handle(Millis(1_100), foreign)), Some(LostReason::Foreign));
}

#[test]
fn beats_are_sent_every_third_of_the_ttl_with_their_own_number() {
    let mut holder = opened();
    assert_eq!(
        holder.handle(Millis(2_999), HolderEvent::Wake { nonce: 7 }),
        [HolderAction::WakeAt(Millis(3_000))]
    );
    let first = beat(&mut holder, 3_000, 7);
    let second = beat(&mut holder, 5_000, 8);
    assert_eq!((first.seq, first.nonce, first.expect), (1, 7, LeaseVersion(10)));
    assert_eq!((second.seq, second.nonce, second.expect), (2, 8, LeaseVersion(10)));
}

/// Mutants 3 and 4: neither the answer's time nor a repeat's may move the gate (H4).
#[test]
fn a_lost_answer_counts_from_the_attempt_in_the_record() {
    let mut holder = opened();
    let first = beat(&mut holder, 3_000, 7);
    answer(&mut holder, 4_000, first.seq, LeaseOutcome::Unknown);
    let second = beat(&mut holder, 4_600, 8);
    answer(&mut holder, 4_700, second.seq, LeaseOutcome::Found(live(1, 7, 11)));
    assert_eq!(holder.gate().serve_until, Millis(3_000 + 5_280));
    assert_eq!(beat(&mut holder, 6_700, 9).expect, LeaseVersion(11), "goes on from the version found");
}

#[test]
fn an_answer_that_comes_after_a_newer_one_changes_nothing() {
    let mut holder = opened();
    let first = beat(&mut holder, 3_000, 7);
    answer(&mut holder, 3_100, 1, LeaseOutcome::Found(live(1, 7, 11)));
    let second = beat(&mut holder, 5_000, 8);
    answer(&mut holder, 5_100, second.seq, LeaseOutcome::Applied(LeaseVersion(12)));
    let gate = holder.gate();
    assert_eq!(answer(&mut holder, 5_200, first.seq, LeaseOutcome::Applied(LeaseVersion(11))), []);
    assert_eq!(answer(&mut holder, 5_200, first.seq, LeaseOutcome::Found(live(1, 7, 11))), []);
    assert_eq!(holder.gate(), gate);
}

/// Mutants 12 and 13 (H7): none of these is ever healed.
#[test]
fn whatever_else_stands_in_the_record_shuts_the_gate_at_once() {
    let ended = Lease::Ended { why: EndReason::Silent, by: NodeId::new(2) };
    let revoked = Lease::Revoked { ttl: TTL, by: NodeId::new(2) };
    for (found, reason) in [
        (None, LostReason::Gone),
        (seen(ended, 11), LostReason::Ended),
        (seen(revoked, 11), LostReason::Revoked),
        (seen(Lease::Missing { ttl: TTL }, 11), LostReason::Missing),
        (live(0, 100, 11), LostReason::Foreign),
        (live(9, 9, 11), LostReason::Foreign),
    ] {
        let mut holder = opened();
        let first = beat(&mut holder, 3_000, 7);
        let actions = answer(&mut holder, 3_100, first.seq, LeaseOutcome::Found(found));
        assert_eq!(lost(&actions), Some(reason));
        assert!(actions.contains(&HolderAction::Gate(Gate::default())));
        assert!(!holder.serving(Millis(3_100)));
        assert_eq!(holder.handle(Millis(3_200), HolderEvent::Seen(live(1, 7, 12))), [], "never used again");
    }
}

#[test]
fn a_cloned_process_is_found_by_its_nonce() {
    let mut holder = opened();
    let mine = beat(&mut holder, 3_000, 7);
    let actions = answer(&mut holder, 3_100, mine.seq, LeaseOutcome::Found(live(mine.seq, 8, 11)));
    assert_eq!(lost(&actions), Some(LostReason::Foreign));
}

/// Mutant 2: no self-fence.
#[test]
fn a_session_without_confirmed_beats_is_lost_at_its_deadline() {
    let mut holder = opened();
    for now in [3_000, 5_000] {
        let sent = beat(&mut holder, now, now);
        answer(&mut holder, now + 1, sent.seq, LeaseOutcome::Unknown);
    }
    let actions = holder.handle(DEADLINE, HolderEvent::Wake { nonce: 1 });
    assert_eq!(lost(&actions), Some(LostReason::Fenced));
    let late = answer(&mut holder, DEADLINE.0 + 1, 2, LeaseOutcome::Applied(LeaseVersion(12)));
    assert_eq!(late, [], "a late confirmation does not bring it back");
}

#[test]
fn the_machine_asks_to_be_woken_no_later_than_its_deadline() {
    let mut holder = opened();
    beat(&mut holder, 5_000, 1);
    let actions = holder.handle(Millis(5_001), HolderEvent::Wake { nonce: 2 });
    assert_eq!(actions, [HolderAction::WakeAt(DEADLINE)]);
}

#[test]
fn a_refused_beat_is_tried_again_soon() {
    let mut holder = opened();
    let first = beat(&mut holder, 3_000, 7);
    let actions = answer(&mut holder, 3_010, first.seq, LeaseOutcome::Unavailable);
    assert_eq!(actions, [HolderAction::WakeAt(Millis(3_510))]);
    assert_eq!(beat(&mut holder, 3_510, 8).seq, 2);
}

#[test]
fn after_a_jump_of_the_clock_only_a_beat_sent_afterwards_opens_the_gate() {
    let mut holder = opened();
    let before = beat(&mut holder, 3_000, 7);
    let actions = holder.handle(Millis(3_100), HolderEvent::ClockJumped { nonce: 8 });
    let doubtful = |action: &HolderAction| matches!(action, HolderAction::Gate(gate) if gate.serve_until == Millis::ZERO && gate.fence_at > Millis(3_100));
    assert!(actions.iter().any(doubtful), "nothing new is taken, and what runs goes on");
    assert!(actions.iter().any(|action| matches!(action, HolderAction::SendBeat(_))));
    answer(&mut holder, 3_110, before.seq, LeaseOutcome::Applied(LeaseVersion(11)));
    assert!(!holder.serving(Millis(3_110)));
    let after = beat(&mut holder, 5_200, 9);
    answer(&mut holder, 5_210, after.seq, LeaseOutcome::Applied(LeaseVersion(12)));
    assert!(holder.serving(Millis(5_210)));
}

/// Mutant 21: the gate is shut before the close is sent, and stays shut whatever comes back.
#[test]
fn closing_shuts_the_gate_before_the_close_is_sent() {
    let mut holder = opened();
    let actions = holder.handle(Millis(2_000), HolderEvent::Close);
    assert_eq!(actions, [HolderAction::Gate(Gate::default()), HolderAction::SendClose(session())]);
    holder.handle(Millis(2_100), HolderEvent::Seen(live(0, 100, 10)));
    assert!(!holder.serving(Millis(2_100)) && holder.is_over());
}

/// Found by the small world: end, collect, and the late open brings the id back (P4).
#[test]
fn a_session_that_was_never_confirmed_is_thrown_away_and_not_closed() {
    let mut holder = opening();
    let actions = holder.handle(Millis(1_100), HolderEvent::Close);
    assert_eq!(lost(&actions), Some(LostReason::OpenFailed));
    assert!(!actions.iter().any(|action| matches!(action, HolderAction::SendClose(_))) && holder.is_over());
}

/// Mutant 18 (H6).
#[test]
fn a_claim_answered_under_another_session_grants_nothing() {
    let holder = opened();
    let owned = |node| Placement {
        key: OwnedKey::role("leader").unwrap(),
        node: NodeId::new(node),
        generation: Generation::new(3),
    };
    assert!(holder.grants(Millis(2_000), &owned(1)));
    assert!(!holder.grants(Millis(2_000), &owned(2)));
    assert!(!holder.grants(DEADLINE, &owned(1)));
}

/// What the store may do with each attempt: apply it now and answer, apply it and lose the answer, keep it for later,
/// or refuse it.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Answered,
    ReplyLost,
    Late,
    Refused,
}

fn fates() -> impl Strategy<Value = Vec<(u64, Fate)>> {
    let fate =
        prop_oneof![Just(Fate::Answered), Just(Fate::ReplyLost), Just(Fate::Late), Just(Fate::Refused)];
    proptest::collection::vec((1_u64..2_500, fate), 1..40)
}

/// A lease record under honest compare-and-swap, and when each version was really written.
struct Record {
    version: u64,
    seq: u64,
    nonce: u64,
    /// When the attempt that is in the record was sent.
    sent_at: u64,
}

impl Record {
    fn apply(&mut self, beat: &Beat, sent_at: u64) -> LeaseOutcome {
        if beat.expect != LeaseVersion(self.version) {
            return LeaseOutcome::Found(live(self.seq, self.nonce, self.version));
        }
        *self = Self { version: self.version + 1, seq: beat.seq, nonce: beat.nonce, sent_at };
        LeaseOutcome::Applied(LeaseVersion(self.version))
    }
}

proptest! {
    /// Whatever the store loses, delays or refuses: the gate is never open longer than the beat that really is in the
    /// record allows, and an honest store never makes the holder believe in a foreign beat.
    #[test]
    fn the_gate_never_outlives_the_beat_in_the_record(schedule in fates()) {
        let mut holder = opened();
        let mut record = Record { version: 10, seq: 0, nonce: 100, sent_at: START.0 };
        let mut late: Vec<(Beat, u64)> = Vec::new();
        let mut now = START.0 + 10;
        for (step, fate) in schedule {
            now += step;
            for (beat, sent_at) in late.drain(..) {
                record.apply(&beat, sent_at);
            }
            for action in holder.handle(Millis(now), HolderEvent::Wake { nonce: now }) {
                prop_assert_ne!(lost(core::slice::from_ref(&action)), Some(LostReason::Foreign));
                let HolderAction::SendBeat(beat) = action else { continue };
                let outcome = match fate {
                    Fate::Answered => record.apply(&beat, now),
                    Fate::ReplyLost => { record.apply(&beat, now); LeaseOutcome::Unknown }
                    Fate::Late => { late.push((beat, now)); LeaseOutcome::Unknown }
                    Fate::Refused => LeaseOutcome::Unavailable,
                };
                let actions = answer(&mut holder, now + 1, beat.seq, outcome);
                prop_assert_ne!(lost(&actions), Some(LostReason::Foreign));
            }
            prop_assert!(holder.gate().serve_until <= times::serve_until(Millis(record.sent_at), TTL));
        }
    }
}
