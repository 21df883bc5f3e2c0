//! Each test is named after what it shows of the rules of a move.

use alloc::vec;

use super::*;
use crate::contract::Move;
use crate::handoff::{HandOffOutcome, StayReason};
use crate::placement::ClaimOutcome;
use crate::session::Session;

mod properties;

const ME: NodeId = NodeId::new(1);
const OTHER: NodeId = NodeId::new(2);
const SHARD: ShardRef = ShardRef { kind: 0, number: 3 };
const LANE: LaneId = LaneId(7);
const SECOND: LaneId = LaneId(8);
const TARGET: Session = Session { id: OTHER, ttl: Millis(6_000) };
const NOW: Moment = Moment { now: Millis(0), serve_until: Millis(100_000), room: usize::MAX };

type Host = HostedShard<u32>;

fn at(now: u64) -> Moment {
    Moment { now: Millis(now), ..NOW }
}

const fn generation(number: u64) -> Generation {
    Generation::new(number)
}

const fn owned(owner: NodeId, number: u64, since: u64) -> Owned {
    let hint = Hint { owner, generation: generation(number) };
    Owned { hint, since: generation(since), moved: None }
}

fn job(lane: LaneId, under: u64, body: u32) -> Job<u32> {
    let expires = Millis(50_000);
    Job { lane, generation: generation(under), expires, bytes: 10, inner: false, orphan: false, body }
}

fn data(lane: LaneId, under: u64, body: u32) -> HostEvent<u32> {
    HostEvent::Data(job(lane, under, body))
}

fn hand_off(under: u64) -> HostEvent<u32> {
    HostEvent::HandOff { generation: generation(under), to: OTHER, move_id: 9, busy: Millis(0) }
}

fn new() -> Host {
    HostedShard::new(ME, SHARD, HandoffLimits::DEFAULT)
}

/// Serves at generation 5.
fn serving() -> Host {
    let mut host = new();
    assert_eq!(host.handle(NOW, HostEvent::Asked), [HostAction::Claim]);
    host.handle(NOW, HostEvent::Claimed(ClaimOutcome::Placed(generation(5))));
    assert_eq!(host.serving(), Some(Tenancy { generation: generation(5), since: generation(5) }));
    host
}

fn draining(sealed: Vec<Job<u32>>) -> Host {
    let mut host = serving();
    host.handle(NOW, hand_off(5));
    let actions = host.handle(NOW, HostEvent::OfferOk { move_id: 9, session: TARGET });
    assert_eq!(actions[0], HostAction::Seal);
    let actions = host.handle(NOW, HostEvent::Sealed(sealed));
    assert!(actions.contains(&HostAction::Stop { move_id: 9 }));
    host
}

fn transferring() -> Host {
    let mut host = draining(vec![]);
    let actions = host.handle(NOW, HostEvent::Stopped { move_id: 9, state: None });
    let moved = Move { id: 9, from: ME, state: false };
    assert_eq!(actions[0], HostAction::Transfer { generation: generation(5), to: TARGET, moved });
    host
}

/// The bodies of delivered and of returned jobs, in order.
fn fates(actions: &[HostAction<u32>]) -> (Vec<u32>, Vec<u32>) {
    let (mut delivered, mut returned) = (vec![], vec![]);
    for action in actions {
        match action {
            HostAction::Deliver(job) => delivered.push(job.body),
            HostAction::Return { job, .. } => returned.push(job.body),
            _ => {}
        }
    }
    (delivered, returned)
}

fn notified(actions: &[HostAction<u32>]) -> Vec<(LaneId, Hint)> {
    let notice = |action: &HostAction<u32>| match action {
        HostAction::Notify { lane, hint } => Some((*lane, *hint)),
        _ => None,
    };
    actions.iter().filter_map(notice).collect()
}

fn outcome(actions: &[HostAction<u32>]) -> Option<HandOffOutcome> {
    actions.iter().find_map(|action| match action {
        HostAction::HandOffDone { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

/// Proves: R302, R303, R304, R305, R307
#[test]
fn a_shard_moves_when_everything_has_stopped_and_its_messages_go_back() {
    let mut host = draining(vec![job(LANE, 5, 1)]);
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 2))), (vec![], vec![]), "kept");
    let actions = host.handle(NOW, HostEvent::Stopped { move_id: 9, state: None });
    assert!(matches!(actions[0], HostAction::Transfer { .. }));
    host.handle(NOW, data(SECOND, 5, 3));
    let actions = host.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    assert_eq!(fates(&actions), (vec![], vec![1, 2, 3]));
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Moved(generation(6))));
    assert_eq!((host.state(), host.let_go_of()), (HostState::Absent, generation(5)));
    let hint = owned(OTHER, 6, 6).hint;
    assert_eq!(notified(&actions), [(LANE, hint), (SECOND, hint)], "as a courtesy");
}

/// Proves: R298, R304
#[test]
fn nothing_is_transferred_before_everything_has_stopped() {
    let mut host = draining(vec![]);
    for event in [HostEvent::ParcelsAcked { move_id: 9 }, HostEvent::Stopped { move_id: 8, state: None }] {
        let actions = host.handle(NOW, event);
        assert!(!actions.iter().any(|action| matches!(action, HostAction::Transfer { .. })));
    }
}

#[test]
fn a_shard_that_was_handed_over_is_served_only_after_a_write_of_ones_own() {
    let mut host = new();
    assert_eq!(host.handle(NOW, data(LANE, 6, 1))[0], HostAction::LookUp);
    let actions = host.handle(NOW, HostEvent::LookedUp(Some(owned(ME, 6, 6))));
    assert_eq!(actions[0], HostAction::Reassert(owned(ME, 6, 6)));
    assert_eq!(host.serving(), None);
    let actions = host.handle(NOW, HostEvent::Seen(owned(ME, 7, 6)));
    assert_eq!(fates(&actions), (vec![1], vec![]));
    assert_eq!(host.serving(), Some(Tenancy { generation: generation(7), since: generation(6) }));
}

#[test]
fn a_record_seen_after_the_session_serves_nothing() {
    let mut host = new();
    let late = Moment { now: Millis(5), serve_until: Millis(5), room: 0 };
    assert!(host.handle(late, HostEvent::Seen(owned(ME, 6, 6))).is_empty());
    host.handle(NOW, HostEvent::Seen(owned(ME, 6, 6)));
    host.handle(late, HostEvent::Seen(owned(ME, 7, 6)));
    assert_eq!(host.serving(), None);
}

#[test]
fn an_unanswered_transfer_is_made_impossible_before_the_shard_is_served_again() {
    let mut host = transferring();
    host.handle(NOW, data(LANE, 5, 1));
    let actions = host.handle(NOW, HostEvent::TransferUnknown { move_id: 9 });
    assert_eq!(actions[0], HostAction::Reassert(owned(ME, 5, 5)));
    host.handle(NOW, HostEvent::Seen(owned(ME, 5, 5)));
    host.handle(NOW, HostEvent::LookedUp(Some(owned(ME, 5, 5))));
    host.handle(NOW, HostEvent::TransferUnapplied { move_id: 9 });
    assert_eq!(host.serving(), None, "a read that still shows us proves nothing");
    assert!(host.handle(at(100), HostEvent::WokeUp).contains(&HostAction::Reassert(owned(ME, 5, 5))));
    let actions = host.handle(NOW, HostEvent::Seen(owned(ME, 7, 5)));
    assert_eq!(fates(&actions), (vec![1], vec![]), "sent under an earlier generation of the same tenure");
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::Unanswered)));
}

#[test]
fn a_transfer_without_an_answer_for_a_second_is_unanswered() {
    let mut host = transferring();
    assert_eq!(host.handle(at(999), HostEvent::WokeUp), [HostAction::WakeAt(Millis(1_000))]);
    let actions = host.handle(at(1_000), HostEvent::WokeUp);
    assert_eq!(actions, [HostAction::Reassert(owned(ME, 5, 5)), HostAction::WakeAt(Millis(1_100))]);
}

#[test]
fn a_transfer_that_landed_late_is_let_go() {
    let mut host = transferring();
    host.handle(NOW, HostEvent::TransferUnknown { move_id: 9 });
    let actions = host.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    assert!(actions.contains(&HostAction::LetGo(generation(5))));
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Moved(generation(6))));
}

#[test]
fn a_transfer_that_was_certainly_not_applied_changes_nothing() {
    let mut host = transferring();
    host.handle(NOW, data(LANE, 5, 1));
    let actions = host.handle(NOW, HostEvent::TransferUnapplied { move_id: 9 });
    assert_eq!(fates(&actions), (vec![1], vec![]));
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::Unavailable)));
    assert_eq!(host.serving().unwrap().generation, generation(5));
}

#[test]
fn a_drain_that_takes_too_long_is_given_up_and_those_who_wait_are_told() {
    let mut host = draining(vec![job(LANE, 5, 1)]);
    let actions = host.handle(NOW, HostEvent::Settle { lane: LANE, generation: generation(5) });
    assert_eq!(fates(&actions), (vec![], vec![1]));
    let settled = HostAction::SendSettled { lane: LANE, generation: generation(5), hint: None };
    assert_eq!(actions[1..], [settled]);
    host.handle(NOW, data(SECOND, 5, 2));
    let actions = host.handle(at(2_000), HostEvent::WokeUp);
    assert_eq!(fates(&actions), (vec![2], vec![]));
    assert_eq!(notified(&actions), [(LANE, owned(ME, 5, 5).hint)]);
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::DrainTooLong)));
}

#[test]
fn no_caller_fails_because_of_a_drain() {
    let mut host = draining(vec![]);
    let hurried = Job { expires: Millis(700), ..job(LANE, 5, 1) };
    let actions = host.handle(NOW, HostEvent::Data(hurried));
    assert_eq!(actions, [HostAction::WakeAt(Millis(500))]);
    let actions = host.handle(at(500), HostEvent::WokeUp);
    assert_eq!(fates(&actions), (vec![1], vec![]));
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::CallerInAHurry)));
}

#[test]
fn a_caller_who_waits_at_the_sender_does_not_fail_because_of_a_drain_either() {
    let away = |expires| HostEvent::GaveBack { generation: generation(5), expires: Millis(expires) };
    let mut host = draining(vec![]);
    assert_eq!(host.handle(NOW, away(900)), [HostAction::WakeAt(Millis(700))]);
    assert!(host.handle(NOW, away(5_000)).is_empty(), "others have more time");
    let actions = host.handle(at(700), HostEvent::WokeUp);
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::CallerInAHurry)));
    host.handle(at(700), hand_off(5));
    let actions = host.handle(at(700), HostEvent::OfferOk { move_id: 9, session: TARGET });
    assert_eq!(actions, [HostAction::Seal, HostAction::WakeAt(Millis(2_700))], "the next drain begins anew");
}

#[test]
fn a_message_that_was_given_back_makes_a_node_look_once_unless_it_knows_better() {
    let gave_back = |under| HostEvent::GaveBack { generation: generation(under), expires: Millis(900) };
    let mut host = transferring();
    host.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    assert!(host.handle(NOW, gave_back(0)).is_empty(), "its sender knows nothing");
    assert!(host.handle(NOW, gave_back(6)).is_empty(), "this node knows who has it");
    assert_eq!(host.handle(NOW, gave_back(7)), [HostAction::LookUp]);
    assert!(host.handle(NOW, gave_back(8)).is_empty(), "it looks already");
    let actions = host.handle(NOW, HostEvent::LookedUp(Some(owned(ME, 7, 7))));
    assert_eq!(actions[0], HostAction::Reassert(owned(ME, 7, 7)));
}

#[test]
fn calls_inside_the_shard_are_delivered_while_it_drains() {
    let mut host = draining(vec![]);
    let inner = Job { inner: true, ..job(LANE, 5, 1) };
    assert_eq!(fates(&host.handle(NOW, HostEvent::Data(inner))), (vec![1], vec![]));
}

#[test]
fn an_overflow_returns_the_whole_lane_in_order_and_sticks() {
    let limits = HandoffLimits { hold_jobs: 2, ..HandoffLimits::DEFAULT };
    let mut host = HostedShard { limits, ..draining(vec![]) };
    host.handle(NOW, data(LANE, 5, 1));
    host.handle(NOW, data(SECOND, 5, 2));
    let actions = host.handle(NOW, data(LANE, 5, 3));
    assert_eq!(fates(&actions), (vec![], vec![1, 3]));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 4))), (vec![], vec![4]), "although there is room");
    let actions = host.handle(NOW, HostEvent::Cancel);
    assert_eq!(fates(&actions), (vec![2], vec![]));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 5))), (vec![], vec![5]), "until it settles");
    host.handle(NOW, HostEvent::Settle { lane: LANE, generation: generation(5) });
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 3))), (vec![3], vec![]));
}

#[test]
fn a_hold_is_bounded_by_bytes_and_by_the_room_of_the_node() {
    let limits = HandoffLimits { hold_bytes: 15, ..HandoffLimits::DEFAULT };
    let mut host = HostedShard { limits, ..draining(vec![]) };
    let crowded = Moment { room: 9, ..NOW };
    assert_eq!(fates(&host.handle(crowded, data(SECOND, 5, 9))).1, [9]);
    host.handle(NOW, data(LANE, 5, 1));
    assert_eq!(host.held(), (1, 10));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 2))).1, [1, 2]);
    assert_eq!(host.held(), (0, 0));
}

#[test]
fn a_message_of_another_tenure_goes_back() {
    let mut host = serving();
    assert!(host.admits(LANE, generation(5)));
    assert!(!host.admits(LANE, generation(4)) && !host.admits(LANE, generation(6)));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 4, 1))), (vec![], vec![1]));
    assert!(!host.admits(LANE, generation(5)), "sticky");
    assert!(host.admits(SECOND, generation(5)));
}

#[test]
fn a_node_that_knows_better_returns_at_once_and_one_that_does_not_looks() {
    let mut host = new();
    host.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 6, 1))).1, [1]);
    assert_eq!(host.handle(NOW, data(SECOND, 7, 2)), [HostAction::LookUp]);
    let actions = host.handle(NOW, HostEvent::LookedUp(None));
    assert_eq!(fates(&actions).1, [2], "without an answer its sender looks for itself");
}

#[test]
fn what_was_given_up_is_never_taken_again() {
    let mut host = transferring();
    host.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    host.handle(NOW, HostEvent::Seen(owned(ME, 5, 5)));
    assert_eq!(host.state(), HostState::Absent);
    assert_eq!(fates(&host.handle(NOW, data(LANE, 5, 1))).1, [1]);
    let actions = host.handle(NOW, HostEvent::Seen(owned(ME, 8, 8)));
    assert_eq!(actions[0], HostAction::Reassert(owned(ME, 8, 8)), "but what came back is");
}

#[test]
fn jobs_of_a_lost_lane_are_handled_if_the_shard_stays_and_dropped_if_it_goes() {
    let mut host = draining(vec![job(LANE, 5, 1)]);
    host.handle(NOW, HostEvent::LaneLost(LANE));
    let mut gone = host.clone();
    assert_eq!(fates(&host.handle(NOW, HostEvent::Cancel)), (vec![1], vec![]));
    gone.handle(NOW, HostEvent::Stopped { move_id: 9, state: None });
    let actions = gone.handle(NOW, HostEvent::Seen(owned(OTHER, 6, 6)));
    assert_eq!(fates(&actions), (vec![], vec![]));
    assert!(actions.iter().any(|action| matches!(action, HostAction::Drop { why: DropReason::Orphan, .. })));
}

#[test]
fn a_fenced_node_returns_everything_and_refuses_what_follows_even_in_its_next_session() {
    let mut host = draining(vec![job(LANE, 5, 1)]);
    assert!(host.handle(NOW, data(SECOND, 5, 2)).is_empty());
    let actions = host.handle(NOW, HostEvent::Fence);
    assert_eq!((actions[0].clone(), fates(&actions).1), (HostAction::Abort, vec![1, 2]));
    assert!(host.handle(NOW, HostEvent::Fence).is_empty());
    host.handle(NOW, HostEvent::Rejoined(NodeId::new(3)));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 6, 3))).1, [3]);
}

#[test]
fn a_lane_with_jobs_in_an_inbox_is_refused_after_a_fence() {
    let mut host = serving();
    assert!(host.admits(LANE, generation(5)));
    host.handle(NOW, HostEvent::Fence);
    host.handle(NOW, HostEvent::Rejoined(NodeId::new(3)));
    assert_eq!(fates(&host.handle(NOW, data(LANE, 6, 2))).1, [2], "the one in the inbox went back");
}

#[test]
fn an_order_for_another_generation_or_a_busy_shard_is_refused() {
    let mut host = serving();
    let refused = |host: &mut Host, event| match outcome(&host.handle(NOW, event)) {
        Some(HandOffOutcome::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut host, hand_off(4)), RefuseReason::WrongGeneration);
    let to_us = HostEvent::HandOff { generation: generation(5), to: ME, move_id: 1, busy: Millis(0) };
    assert_eq!(refused(&mut host, to_us), RefuseReason::OwnTarget);
    let busy = HostEvent::HandOff { generation: generation(5), to: OTHER, move_id: 1, busy: Millis(1_001) };
    assert_eq!(refused(&mut host, busy), RefuseReason::Busy);
    host.handle(NOW, hand_off(5));
    assert_eq!(refused(&mut host, hand_off(5)), RefuseReason::NotServing, "one at a time");
    assert_eq!(refused(&mut new(), hand_off(5)), RefuseReason::NotServing);
}

#[test]
fn an_offer_that_is_declined_or_left_unanswered_pauses_nothing() {
    let mut host = serving();
    host.handle(NOW, hand_off(5));
    assert!(host.admits(LANE, generation(5)), "nothing is paused yet");
    let actions = host.handle(NOW, HostEvent::OfferNo { move_id: 9 });
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::Declined)));
    let actions = host.handle(NOW, hand_off(5));
    assert_eq!(actions[1], HostAction::WakeAt(Millis(500)));
    let actions = host.handle(at(500), HostEvent::WokeUp);
    assert_eq!(outcome(&actions), Some(HandOffOutcome::Stays(StayReason::OfferUnanswered)));
    host.handle(at(500), HostEvent::OfferOk { move_id: 9, session: TARGET });
    assert!(host.serving().is_some());
}

#[test]
fn state_goes_ahead_and_is_taken_over_only_for_the_move_that_the_record_names() {
    let mut host = draining(vec![]);
    let actions = host.handle(NOW, HostEvent::Stopped { move_id: 9, state: Some(100) });
    assert_eq!(actions[0], HostAction::SendParcels { to: OTHER, move_id: 9 });
    host.handle(NOW, HostEvent::ParcelsAcked { move_id: 8 });
    assert!(matches!(host.state(), HostState::Draining(_)), "of another move");
    let actions = host.handle(NOW, HostEvent::ParcelsAcked { move_id: 9 });
    let moved = Move { id: 9, from: ME, state: true };
    assert_eq!(actions[0], HostAction::Transfer { generation: generation(5), to: TARGET, moved });

    let arrive = |move_id| {
        let mut target = new();
        let actions = target.handle(NOW, HostEvent::Offered { from: OTHER, move_id, bytes: 100 });
        assert_eq!(actions[0], HostAction::AnswerOffer { to: OTHER, move_id, accept: true });
        target.handle(NOW, HostEvent::ParcelsArrived { move_id });
        target.handle(NOW, HostEvent::Seen(Owned { moved: Some(moved), ..owned(ME, 6, 6) }));
        target.handle(NOW, HostEvent::Seen(owned(ME, 7, 6)))
    };
    assert_eq!(arrive(9)[0], HostAction::InstallParcels { move_id: 9 });
    assert_eq!(arrive(8)[0], HostAction::DropParcels { move_id: 8 });
}

#[test]
fn a_node_that_is_asked_for_a_shard_whose_state_it_has_looks_at_the_record_before_it_claims() {
    let with_parcels = || {
        let mut target = new();
        target.handle(NOW, HostEvent::Offered { from: OTHER, move_id: 9, bytes: 0 });
        target.handle(NOW, HostEvent::ParcelsArrived { move_id: 9 });
        assert_eq!(target.handle(NOW, HostEvent::Asked)[0], HostAction::LookUp);
        assert!(target.handle(NOW, HostEvent::Asked).is_empty(), "the answer is on its way");
        target
    };
    let mut target = with_parcels();
    let moved = Some(Move { id: 9, from: OTHER, state: true });
    target.handle(NOW, HostEvent::LookedUp(Some(Owned { moved, ..owned(ME, 6, 6) })));
    let actions = target.handle(NOW, HostEvent::Seen(owned(ME, 7, 6)));
    assert_eq!(actions[0], HostAction::InstallParcels { move_id: 9 });

    let mut target = with_parcels();
    let actions = target.handle(NOW, HostEvent::LookedUp(None));
    assert!(actions.contains(&HostAction::Answer(None)));
    assert_eq!(target.handle(NOW, HostEvent::Asked)[0], HostAction::Claim, "one look is enough");
}

#[test]
fn too_much_state_or_slow_parcels_move_the_shard_cold() {
    let cold = |actions: &[HostAction<u32>]| {
        matches!(actions[0], HostAction::Transfer { moved: Move { state: false, .. }, .. })
    };
    let mut host = draining(vec![]);
    assert!(cold(&host.handle(NOW, HostEvent::Stopped { move_id: 9, state: Some(65 << 20) })));
    let mut host = draining(vec![]);
    host.handle(NOW, HostEvent::Stopped { move_id: 9, state: Some(1) });
    assert!(cold(&host.handle(at(1_000), HostEvent::WokeUp)));
    let mut host = draining(vec![]);
    host.handle(NOW, HostEvent::Stopped { move_id: 9, state: Some(1) });
    assert!(
        cold(&host.handle(NOW, HostEvent::ParcelsRefused { move_id: 9 })),
        "there is nothing to wait for"
    );
}

#[test]
fn parcels_that_nobody_uses_are_forgotten() {
    let mut host = new();
    let actions = host.handle(NOW, HostEvent::Offered { from: OTHER, move_id: 4, bytes: 1 });
    assert_eq!(actions[1], HostAction::WakeAt(Millis(30_000)));
    assert_eq!(host.handle(at(30_000), HostEvent::WokeUp), [HostAction::DropParcels { move_id: 4 }]);
    assert_eq!(host, new());
    let actions = serving().handle(NOW, HostEvent::Offered { from: OTHER, move_id: 4, bytes: 1 });
    assert_eq!(actions, [HostAction::AnswerOffer { to: OTHER, move_id: 4, accept: false }]);
}

#[test]
fn a_leaving_node_gives_up_what_nobody_takes() {
    let mut host = serving();
    host.handle(NOW, HostEvent::Release { move_id: 3 });
    host.handle(NOW, HostEvent::Sealed(vec![job(LANE, 5, 1)]));
    let actions = host.handle(NOW, HostEvent::Stopped { move_id: 3, state: Some(1) });
    assert_eq!(actions[0], HostAction::Release { generation: generation(5), move_id: 3 });
    let actions = host.handle(NOW, HostEvent::SeenGone(generation(5)));
    assert_eq!(fates(&actions).1, [1]);
    assert_eq!((host.state(), host.let_go_of()), (HostState::Absent, generation(5)));
}

#[test]
fn a_record_that_moved_under_the_server_is_a_contradiction_and_fences() {
    let events = [HostEvent::Seen(owned(OTHER, 6, 6)), HostEvent::Seen(owned(ME, 6, 5))];
    for event in events.into_iter().chain([HostEvent::SeenGone(generation(5))]) {
        for mut host in [serving(), draining(vec![])] {
            let actions = host.handle(NOW, event.clone());
            assert_eq!(actions[0], HostAction::Contradicted { served: generation(5) });
            assert_eq!(host.state(), HostState::Fenced);
        }
    }
    let mut host = serving();
    assert!(host.handle(NOW, HostEvent::Seen(owned(OTHER, 4, 4))).is_empty(), "an old sight");
}

#[test]
fn a_claim_is_repeated_with_growing_pauses_and_given_up() {
    let mut host = new();
    host.handle(NOW, HostEvent::Asked);
    let (mut now, mut pauses) = (0, vec![]);
    loop {
        let actions = host.handle(at(now), HostEvent::Claimed(ClaimOutcome::Unanswered));
        match actions[..] {
            [HostAction::WakeAt(next)] => {
                pauses.push(next.0 - now);
                now = next.0;
                assert_eq!(host.handle(at(now), HostEvent::WokeUp), [HostAction::Claim]);
            }
            [HostAction::Answer(None)] => break,
            ref other => panic!("{other:?}"),
        }
    }
    assert_eq!(pauses[..6], [50, 100, 200, 400, 800, 1_000]);
    assert!((30_000..31_000).contains(&now));
    assert_eq!(host.state(), HostState::Absent);
}

/// Proves: R237
#[test]
fn a_shard_is_served_once_the_claim_is_answered_and_one_claim_is_under_way_at_a_time() {
    let mut host = new();
    assert_eq!(host.handle(NOW, HostEvent::Asked), [HostAction::Claim]);
    assert!(host.handle(NOW, HostEvent::Asked).is_empty(), "one claim is under way");
    let actions = host.handle(NOW, HostEvent::Claimed(ClaimOutcome::Placed(generation(5))));
    let serve = HostAction::Serve { generation: generation(5), since: generation(5) };
    let here = HostAction::Answer(Some(owned(ME, 5, 5).hint));
    assert_eq!(actions, [serve, here.clone()]);
    assert_eq!(host.handle(NOW, HostEvent::Asked), [here]);
}

#[test]
fn a_grant_that_comes_after_the_session_serves_nothing() {
    let mut host = new();
    host.handle(NOW, HostEvent::Asked);
    let late = Moment { now: Millis(50), serve_until: Millis(50), ..NOW };
    host.handle(late, HostEvent::Claimed(ClaimOutcome::Placed(generation(5))));
    assert_eq!(host.serving(), None);
}

/// Proves: R235, R238
#[test]
fn the_loser_of_a_race_names_the_winner_and_gives_everything_back() {
    let mut host = new();
    host.handle(NOW, HostEvent::Asked);
    host.handle(NOW, data(LANE, 6, 1));
    let hint = owned(OTHER, 6, 6).hint;
    let actions = host.handle(NOW, HostEvent::Claimed(ClaimOutcome::Taken(hint)));
    assert_eq!(fates(&actions).1, [1]);
    assert!(actions.contains(&HostAction::Answer(Some(hint))));
}
