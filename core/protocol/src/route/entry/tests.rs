use super::*;
use crate::link::ReturnReason;

mod model;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);

type Entry = RouteEntry<u32>;
type Action = RouteAction<u32>;

fn hint(owner: NodeId, generation: u64) -> Hint {
    Hint { owner, generation: Generation::new(generation) }
}

/// Feeds `event` at `now`; messages from 1,000 on are over.
fn at(entry: &mut Entry, now: u64, event: RouteEvent<u32>) -> Vec<Action> {
    entry.handle(Millis(now), event, |&message| message >= 1_000)
}

fn send(entry: &mut Entry, now: u64, message: u32) -> Vec<Action> {
    at(entry, now, RouteEvent::Send(message))
}

fn back(from: NodeId, message: u32) -> RouteEvent<u32> {
    RouteEvent::Returned { from, message, local_only: false, reason: ReturnReason::NotOwner }
}

fn settled(from: NodeId, generation: u64, hint: Option<Hint>) -> RouteEvent<u32> {
    RouteEvent::Settled { from, generation: Generation::new(generation), hint }
}

fn deliver(owner: NodeId, generation: u64, message: u32) -> Action {
    RouteAction::Deliver { owner, generation: Generation::new(generation), message }
}

fn settle(owner: NodeId, generation: u64) -> Action {
    RouteAction::SendSettle { owner, generation: Generation::new(generation) }
}

fn wake(at: u64) -> Action {
    RouteAction::WakeAt(Millis(at))
}

fn open(owner: NodeId, generation: u64) -> RouteState {
    RouteState::Open { owner, generation: Generation::new(generation) }
}

fn waiting(generation: u64, on: Option<NodeId>) -> RouteState {
    RouteState::Waiting { generation: Generation::new(generation), on }
}

/// Open to A at generation 5, with message 1 sent if `dirty`.
fn opened(dirty: bool) -> Entry {
    let mut entry = Entry::default();
    at(&mut entry, 0, RouteEvent::Learn(hint(A, 5)));
    if dirty {
        assert_eq!(send(&mut entry, 0, 1), [deliver(A, 5, 1)]);
    }
    entry
}

/// Proves: R285, R292
#[test]
fn a_message_to_an_unknown_place_waits_and_asks_for_it_again_and_again() {
    let mut entry = Entry::default();
    assert_eq!(send(&mut entry, 0, 1), [RouteAction::LookUp, wake(50)]);
    assert_eq!(send(&mut entry, 1, 2), [], "one question at a time");
    assert_eq!(at(&mut entry, 2, RouteEvent::LookedUp(None)), []);
    let (mut now, mut distance) = (50, 50);
    for _ in 0..8 {
        distance = (distance * 2).min(1_000);
        let expected = [RouteAction::LookUp, wake(now + distance)];
        assert_eq!(at(&mut entry, now, RouteEvent::WokeUp), expected);
        now += distance;
    }
    let actions = at(&mut entry, now, RouteEvent::LookedUp(Some(hint(A, 5))));
    assert_eq!(actions, [deliver(A, 5, 1), deliver(A, 5, 2)]);
    assert_eq!(entry.state(), open(A, 5));
}

#[test]
fn an_unused_route_follows_the_shard_and_asks_nobody() {
    let mut entry = opened(false);
    assert_eq!(at(&mut entry, 1, RouteEvent::Learn(hint(B, 6))), []);
    assert_eq!(entry.state(), open(B, 6));
    at(&mut entry, 2, RouteEvent::Learn(hint(A, 5)));
    assert_eq!(entry.state(), open(B, 6), "older than what is known");
}

#[test]
fn a_new_generation_of_the_same_owner_needs_no_settling() {
    let mut entry = opened(true);
    assert_eq!(at(&mut entry, 1, RouteEvent::Learn(hint(A, 6))), []);
    assert_eq!(send(&mut entry, 2, 2), [deliver(A, 6, 2)]);
}

#[test]
fn a_used_route_leaves_its_owner_only_after_it_has_settled() {
    let mut entry = opened(true);
    assert_eq!(at(&mut entry, 1, RouteEvent::Learn(hint(B, 6))), [settle(A, 5), wake(1_001)]);
    assert_eq!(send(&mut entry, 2, 2), []);
    assert_eq!(at(&mut entry, 3, back(A, 1)), []);
    assert_eq!(at(&mut entry, 3, settled(B, 5, None)), [], "not from whom it was asked");
    let actions = at(&mut entry, 4, settled(A, 5, None));
    assert_eq!(actions, [deliver(B, 6, 1), deliver(B, 6, 2)]);
}

/// Proves: R236, R241, R452
#[test]
fn what_came_back_goes_to_the_right_owner_before_what_is_new() {
    let mut entry = opened(true);
    send(&mut entry, 1, 2);
    assert_eq!(at(&mut entry, 2, back(A, 1)), [settle(A, 5), wake(1_002)]);
    assert_eq!(send(&mut entry, 3, 3), []);
    assert_eq!(at(&mut entry, 4, back(A, 2)), []);
    let actions = at(&mut entry, 5, settled(A, 5, Some(hint(B, 7))));
    assert_eq!(actions, [deliver(B, 7, 1), deliver(B, 7, 2), deliver(B, 7, 3)]);
}

#[test]
fn of_two_places_the_newer_one_counts() {
    for (learned, told, expected) in [(8, 7, open(A, 8)), (6, 7, open(B, 7)), (5, 5, open(B, 5))] {
        let mut entry = opened(true);
        at(&mut entry, 1, back(A, 1));
        at(&mut entry, 2, RouteEvent::Learn(hint(A, learned)));
        at(&mut entry, 3, settled(A, 5, Some(hint(B, told))));
        assert_eq!(entry.state(), expected);
    }
}

#[test]
fn an_owner_that_knows_nothing_owes_a_notice_and_is_asked_past_after_a_while() {
    let mut entry = opened(true);
    at(&mut entry, 1, back(A, 1));
    at(&mut entry, 2, RouteEvent::Learn(hint(A, 5)));
    assert_eq!(at(&mut entry, 3, settled(A, 5, Some(hint(A, 4)))), [wake(53)], "no hint of use");
    assert_eq!(entry.state(), waiting(5, Some(A)));
    let mut told = entry.clone();
    assert_eq!(at(&mut told, 4, RouteEvent::Learn(hint(A, 5))), [deliver(A, 5, 1)], "it serves again");
    let mut lost = entry.clone();
    let loss = RouteEvent::LaneLost { node: A, unsent: Vec::new() };
    assert_eq!(at(&mut lost, 4, loss), [RouteAction::LookUp, wake(54)]);
    assert_eq!(at(&mut entry, 53, RouteEvent::WokeUp), [RouteAction::LookUp, wake(153)]);
}

#[test]
fn unsent_messages_go_behind_what_came_back_and_before_what_was_kept() {
    let mut entry = opened(true);
    at(&mut entry, 1, back(A, 1));
    send(&mut entry, 2, 4);
    let actions = at(&mut entry, 3, RouteEvent::LaneLost { node: A, unsent: Vec::from([2, 3]) });
    assert_eq!(actions, [RouteAction::LookUp, wake(53)]);
    let actions = at(&mut entry, 4, RouteEvent::LookedUp(Some(hint(A, 5))));
    assert_eq!(actions, [1, 2, 3, 4].map(|message| deliver(A, 5, message)));
}

#[test]
fn a_lost_lane_counts_as_settled() {
    let mut entry = opened(true);
    at(&mut entry, 1, RouteEvent::Learn(hint(B, 6)));
    send(&mut entry, 2, 2);
    let actions = at(&mut entry, 3, RouteEvent::LaneLost { node: A, unsent: Vec::new() });
    assert_eq!(actions, [deliver(B, 6, 2)]);
    assert_eq!(at(&mut entry, 4, settled(A, 5, None)), [], "too late");
}

#[test]
fn an_owner_that_does_not_settle_in_time_loses_its_lane_unless_it_is_heard_of() {
    let mut entry = opened(true);
    at(&mut entry, 1, back(A, 1));
    assert_eq!(at(&mut entry, 1_000, RouteEvent::WokeUp), [wake(1_001)]);
    let checked = |alive| RouteEvent::LaneChecked { node: A, alive };
    for now in [1_001, 2_001, 3_001] {
        assert_eq!(at(&mut entry, now, RouteEvent::WokeUp), [RouteAction::CheckLane { owner: A }]);
        assert_eq!(at(&mut entry, now, checked(true)), [wake(now + 1_000)]);
    }
    assert_eq!(at(&mut entry, 4_001, RouteEvent::WokeUp), [RouteAction::CheckLane { owner: A }]);
    assert_eq!(at(&mut entry, 4_001, checked(false)), [RouteAction::CloseLane { owner: A }]);
    at(&mut entry, 4_002, RouteEvent::LaneLost { node: A, unsent: Vec::new() });
    assert_eq!(at(&mut entry, 4_003, checked(false)), [], "too late");
}

/// Proves: R80
#[test]
fn a_local_only_message_that_comes_back_fails_and_goes_nowhere() {
    let mut entry = opened(true);
    let event =
        RouteEvent::Returned { from: A, message: 1, local_only: true, reason: ReturnReason::NotOwner };
    let refuse = RouteAction::Refuse { message: 1, why: RouteRefusal::LocalOnly };
    assert_eq!(at(&mut entry, 1, event), [refuse, settle(A, 5), wake(1_001)]);
    assert_eq!(entry.waiting(), 0);
}

#[test]
fn what_is_over_is_not_sent() {
    let mut entry = opened(true);
    let actions = at(&mut entry, 1, back(A, 1_001));
    assert_eq!(actions, [RouteAction::Over(1_001), settle(A, 5), wake(1_001)]);
    send(&mut entry, 2, 1_002);
    send(&mut entry, 2, 3);
    let actions = at(&mut entry, 3, settled(A, 5, Some(hint(B, 6))));
    assert_eq!(actions, [RouteAction::Over(1_002), deliver(B, 6, 3)]);
}

#[test]
fn a_full_route_makes_room_from_what_is_over_and_then_refuses() {
    let mut entry = Entry::new(2);
    send(&mut entry, 0, 1);
    send(&mut entry, 0, 1_001);
    assert_eq!(send(&mut entry, 1, 2), [RouteAction::Over(1_001)]);
    let refuse = RouteAction::Refuse { message: 3, why: RouteRefusal::Full { bound: 2 } };
    assert_eq!(send(&mut entry, 2, 3), [refuse]);
    assert_eq!(entry.take_all(), [1, 2]);
    assert_eq!(Entry::BOUND, 1_000);
}

/// One round: the route is open, message 1 comes back at `now`, and the owner settles with `told`.
fn round(entry: &mut Entry, now: u64, told: Hint) -> Vec<Action> {
    at(entry, now, back(A, 1));
    at(entry, now, settled(A, 5, Some(told)))
}

#[test]
fn a_message_that_keeps_coming_back_pauses_and_looks_again() {
    let mut entry = opened(true);
    for now in [1, 2] {
        assert_eq!(round(&mut entry, now, hint(A, 5)), [deliver(A, 5, 1)]);
    }
    let mut now = 3;
    for pause in [5, 10, 20, 40, 80, 160, 200, 200] {
        let expected = [RouteAction::LookUp, wake(now + pause)];
        assert_eq!(round(&mut entry, now, hint(A, 5)), expected);
        assert_eq!(at(&mut entry, now + 1, RouteEvent::LookedUp(Some(hint(A, 5)))), [wake(now + pause)]);
        now += pause;
        assert_eq!(at(&mut entry, now, RouteEvent::WokeUp), [deliver(A, 5, 1)]);
    }
    let calm = now + 1_000;
    assert_eq!(round(&mut entry, calm, hint(A, 5)), [deliver(A, 5, 1)], "it had worked for a while");
}

#[test]
fn who_leaves_is_settled_first() {
    let mut entry = opened(true);
    assert_eq!(at(&mut entry, 1, RouteEvent::Bye(B)), []);
    assert_eq!(at(&mut entry, 1, RouteEvent::Bye(A)), [settle(A, 5), wake(1_001)]);
    assert!(!entry.is_clear_of(A));
    at(&mut entry, 2, settled(A, 5, None));
    assert!(entry.is_clear_of(A));
    let mut unused = opened(false);
    assert_eq!(at(&mut unused, 1, RouteEvent::Bye(A)), []);
    assert!(unused.is_clear_of(A));
}

/// A message kept coming back, so the route pauses before it goes to A once more; meanwhile A leaves.
#[test]
fn a_pause_does_not_end_at_a_node_that_has_left_meanwhile() {
    let mut entry = opened(true);
    let mut now = 1;
    let pause = loop {
        at(&mut entry, now, back(A, 1));
        match at(&mut entry, now, settled(A, 5, Some(hint(A, 5)))).as_slice() {
            [RouteAction::Deliver { .. }] => now += 1,
            [RouteAction::LookUp, RouteAction::WakeAt(at)] => break at.0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(entry.state(), waiting(5, Some(A)));
    assert!(entry.is_clear_of(A));
    assert_eq!(at(&mut entry, now, RouteEvent::Bye(A)), [RouteAction::LookUp, wake(now + 50)]);
    assert_eq!(at(&mut entry, pause, RouteEvent::WokeUp), [wake(now + 50)]);
    assert_eq!(
        entry.state(),
        waiting(5, None),
        "whoever has heard that nothing goes to A any more was told the truth"
    );
    assert_eq!(at(&mut entry, pause, RouteEvent::LookedUp(Some(hint(B, 6)))), [deliver(B, 6, 1)]);
}

#[test]
fn the_short_way_is_open_only_while_nothing_waits() {
    let mut entry = opened(false);
    assert_eq!(entry.direct(), Some(hint(A, 5)));
    assert_eq!(at(&mut entry, 1, RouteEvent::Learn(hint(B, 6)))[0], settle(A, 5), "it counts as sent");
    assert_eq!(entry.direct(), None);
}

#[test]
fn an_entry_is_forgotten_only_while_nothing_waits_and_nothing_of_ours_is_out() {
    assert!(Entry::default().may_be_forgotten());
    assert!(opened(false).may_be_forgotten());
    let mut entry = opened(true);
    assert!(!entry.may_be_forgotten(), "a message may still come back");
    at(&mut entry, 1, RouteEvent::Bye(A));
    assert!(!entry.may_be_forgotten(), "as long as A has not settled");
    at(&mut entry, 2, settled(A, 5, Some(hint(A, 5))));
    assert_eq!(entry.state(), open(A, 5));
    assert!(entry.may_be_forgotten());
    assert_eq!(entry.direct(), Some(hint(A, 5)));
    assert!(!entry.may_be_forgotten(), "it was used again");
    let mut waiting = Entry::default();
    send(&mut waiting, 0, 1);
    assert!(!waiting.may_be_forgotten());
}
