use super::*;

mod model;

const LOW: NodeId = NodeId::new(1);
const HIGH: NodeId = NodeId::new(2);
const A: ConnectionId = ConnectionId(1);
const B: ConnectionId = ConnectionId(2);

fn low() -> PeerLink {
    PeerLink::new(LOW, HIGH)
}

fn high() -> PeerLink {
    PeerLink::new(HIGH, LOW)
}

/// Feeds `event` at `now`; the random number makes every wait as short as it can be, half of its length.
fn at(link: &mut PeerLink, now: u64, event: LinkEvent) -> Vec<LinkAction> {
    link.handle(Millis(now), 0, event)
}

fn dialing(link: &mut PeerLink, now: u64) -> AttemptId {
    at(link, now, LinkEvent::Wanted);
    link.newest_attempt()
}

/// Connected at `now` by a dial of ours.
fn up(link: &mut PeerLink, now: u64) {
    let attempt = dialing(link, now);
    at(link, now, LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(0) });
    assert_eq!(link.connection(), Some(A));
}

fn fail(link: &mut PeerLink, now: u64, failure: DialFailure) -> Vec<LinkAction> {
    let attempt = link.newest_attempt();
    at(link, now, LinkEvent::DialFailed { attempt, failure })
}

fn hello(connection: ConnectionId, attempt: u64) -> LinkEvent {
    LinkEvent::Hello { connection, peer_attempt: AttemptId(attempt) }
}

fn dials(actions: &[LinkAction]) -> bool {
    actions.iter().any(|action| matches!(action, LinkAction::Dial { .. }))
}

fn waits_until(link: &PeerLink, until: u64) -> bool {
    link.state() == LinkState::Backoff { until: Millis(until) }
}

#[test]
fn a_wanted_link_is_dialled_and_used() {
    let mut link = low();
    let actions = at(&mut link, 50, LinkEvent::Wanted);
    let attempt = AttemptId(50);
    let report = LinkAction::Report(LinkReport::Connecting);
    assert_eq!(actions, [report, LinkAction::Dial { attempt }, LinkAction::WakeAt(Millis(10_050))]);
    assert_eq!(at(&mut link, 60, LinkEvent::Wanted), [], "once is enough");
    let dialled = LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(0) };
    let report = LinkAction::Report(LinkReport::Connected);
    assert_eq!(at(&mut link, 70, dialled), [LinkAction::Use { connection: A }, report]);
    assert_eq!(at(&mut link, 80, LinkEvent::WokeUp), []);
}

/// Proves: R120, R430
#[test]
fn an_unreachable_peer_is_dialled_at_growing_distances() {
    let mut link = low();
    dialing(&mut link, 0);
    let mut now = 0;
    for wait in [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000] {
        fail(&mut link, now, DialFailure::Unreachable);
        assert!(waits_until(&link, now + wait), "{:?}", link.state());
        assert_eq!(at(&mut link, now + 1, LinkEvent::Wanted), [], "wanting does not shorten the wait");
        let early = at(&mut link, now + wait - 1, LinkEvent::WokeUp);
        now += wait;
        assert_eq!(early, [LinkAction::WakeAt(Millis(now))]);
        assert!(dials(&at(&mut link, now, LinkEvent::WokeUp)));
    }
    let attempt = link.newest_attempt();
    at(&mut link, now, LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(0) });
    now += 10_000;
    at(&mut link, now, LinkEvent::Lost { connection: A });
    fail(&mut link, now, DialFailure::Unreachable);
    assert!(waits_until(&link, now + 500), "a connection that holds starts the waits anew");
}

/// Connections that hold for so long, one after the other, are followed by these waits.
fn waits_after_connections_of(held: u64, waits: &[u64]) {
    let mut link = low();
    let mut now = 0;
    up(&mut link, now);
    assert!(dials(&at(&mut link, now, LinkEvent::Lost { connection: A })), "once it is tried at once");
    for wait in waits {
        let attempt = link.newest_attempt();
        at(&mut link, now, LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(0) });
        now += held;
        at(&mut link, now, LinkEvent::Lost { connection: A });
        assert!(waits_until(&link, now + wait), "{:?}", link.state());
        now += wait;
        assert!(dials(&at(&mut link, now, LinkEvent::WokeUp)));
    }
}

#[test]
fn a_peer_that_shakes_hands_and_breaks_is_dialled_at_growing_distances() {
    waits_after_connections_of(999, &[500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
}

#[test]
fn a_peer_that_is_lost_after_a_while_is_dialled_as_soon_as_ever() {
    waits_after_connections_of(1_000, &[500; 5]);
}

#[test]
fn a_peer_that_another_link_has_reached_is_dialled_at_once_and_once() {
    let mut link = low();
    dialing(&mut link, 0);
    fail(&mut link, 100, DialFailure::Unreachable);
    assert!(at(&mut link, 200, LinkEvent::PeerReached { at: Millis(100) }).is_empty(), "before the failure");
    assert!(dials(&at(&mut link, 200, LinkEvent::PeerReached { at: Millis(150) })));
    fail(&mut link, 300, DialFailure::Unreachable);
    assert!(at(&mut link, 301, LinkEvent::PeerReached { at: Millis(150) }).is_empty(), "that was before");
    assert!(matches!(link.state(), LinkState::Backoff { .. }), "{:?}", link.state());
}

#[test]
fn a_dial_without_an_answer_is_given_up() {
    let mut link = low();
    let attempt = dialing(&mut link, 0);
    assert_eq!(at(&mut link, 9_999, LinkEvent::WokeUp), [LinkAction::WakeAt(Millis(10_000))]);
    let actions = at(&mut link, 10_000, LinkEvent::WokeUp);
    assert_eq!(actions[0], LinkAction::Abandon { attempt });
    assert!(waits_until(&link, 10_500));
    let late =
        at(&mut link, 10_001, LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(0) });
    assert_eq!(late, [LinkAction::Drop { connection: A, code: CloseCode::Replaced }]);
}

#[test]
fn a_refused_dial_waits_the_longest_and_is_reported() {
    let mut link = low();
    dialing(&mut link, 0);
    let actions = fail(&mut link, 5, DialFailure::Refused);
    assert_eq!(actions[0], LinkAction::Report(LinkReport::Refused));
    assert!(waits_until(&link, 15_005));
}

#[test]
fn the_lower_node_refuses_the_other_dial_while_its_own_is_under_way() {
    let mut link = low();
    dialing(&mut link, 0);
    let refuse = LinkAction::Refuse { connection: B, why: RefusalReason::Race };
    assert_eq!(at(&mut link, 1, hello(B, 1)), [refuse]);
    fail(&mut link, 2, DialFailure::Unreachable);
    assert_eq!(at(&mut link, 3, hello(B, 1))[0], LinkAction::Accept { connection: B }, "its own has failed");
}

#[test]
fn the_higher_node_gives_its_own_dial_up() {
    let mut link = high();
    let attempt = dialing(&mut link, 0);
    let actions = at(&mut link, 1, hello(B, 1));
    let expected = [
        LinkAction::Abandon { attempt },
        LinkAction::Accept { connection: B },
        LinkAction::Use { connection: B },
        LinkAction::Report(LinkReport::Connected),
    ];
    assert_eq!(actions, expected);
    assert_eq!(fail(&mut link, 2, DialFailure::Race), [], "what it gave up is over");
}

#[test]
fn who_was_refused_for_the_other_dial_waits_for_it_but_not_for_ever() {
    let mut link = high();
    dialing(&mut link, 0);
    assert_eq!(fail(&mut link, 1, DialFailure::Race), [LinkAction::WakeAt(Millis(501))]);
    let mut waits = link.clone();
    assert!(dials(&at(&mut waits, 501, LinkEvent::WokeUp)));
    at(&mut link, 400, hello(B, 1));
    assert_eq!(link.state(), LinkState::Up { connection: B, dialled_by_us: false });
}

#[test]
fn a_newer_dial_of_the_peer_replaces_the_connection() {
    let mut link = low();
    at(&mut link, 0, hello(A, 5));
    let actions = at(&mut link, 1, hello(B, 6));
    let expected = [
        LinkAction::Drop { connection: A, code: CloseCode::Replaced },
        LinkAction::Report(LinkReport::Disconnected { retry_at: None }),
        LinkAction::Accept { connection: B },
        LinkAction::Use { connection: B },
        LinkAction::Report(LinkReport::Connected),
    ];
    assert_eq!(actions, expected);
    assert_eq!(at(&mut link, 2, LinkEvent::Lost { connection: A }), [], "the old one is forgotten");
}

#[test]
fn a_hello_that_was_overtaken_does_not_replace_the_connection() {
    let mut link = low();
    let attempt = dialing(&mut link, 0);
    at(&mut link, 1, LinkEvent::Dialled { attempt, connection: A, peer_attempt: AttemptId(7) });
    let refuse = LinkAction::Refuse { connection: B, why: RefusalReason::Race };
    assert_eq!(at(&mut link, 2, hello(B, 7)), [refuse]);
    assert_eq!(at(&mut link, 3, hello(B, 8))[2], LinkAction::Accept { connection: B });
}

/// Proves: R119
#[test]
fn a_connection_that_nobody_uses_stays() {
    let mut link = low();
    at(&mut link, 0, hello(A, 1));
    assert_eq!(at(&mut link, 86_400_000, LinkEvent::WokeUp), []);
    assert_eq!(link.connection(), Some(A));
}

#[test]
fn a_loss_is_answered_at_once_the_first_time_and_then_after_a_wait() {
    let mut link = low();
    up(&mut link, 0);
    assert!(dials(&at(&mut link, 100, LinkEvent::Lost { connection: A })));
    let again = |link: &mut PeerLink, now| {
        let attempt = link.newest_attempt();
        at(link, now, LinkEvent::Dialled { attempt, connection: B, peer_attempt: AttemptId(0) });
    };
    again(&mut link, 200);
    assert!(!dials(&at(&mut link, 300, LinkEvent::Lost { connection: B })), "it breaks again and again");
    assert!(waits_until(&link, 800));
    at(&mut link, 800, LinkEvent::WokeUp);
    again(&mut link, 900);
    assert!(dials(&at(&mut link, 10_900, LinkEvent::Lost { connection: B })), "it had held for a while");
}

#[test]
fn a_loss_that_nobody_minds_leaves_the_link_idle() {
    let mut link = low();
    at(&mut link, 0, hello(A, 1));
    let report = LinkAction::Report(LinkReport::Disconnected { retry_at: None });
    assert_eq!(at(&mut link, 1, LinkEvent::Lost { connection: A }), [report]);
    assert_eq!(link.state(), LinkState::Idle);
}

#[test]
fn how_the_peer_closed_says_when_to_come_back() {
    let closed = |code| {
        let mut link = low();
        up(&mut link, 0);
        let actions = at(&mut link, 20_000, LinkEvent::Closed { connection: A, code });
        (link, actions)
    };
    assert!(waits_until(&closed(CloseCode::Stopping).0, 35_000));
    let (link, actions) = closed(CloseCode::Protocol);
    assert!(waits_until(&link, 35_000));
    assert!(actions.contains(&LinkAction::Report(LinkReport::Refused)));
    assert!(dials(&closed(CloseCode::Done).1));
}

#[test]
fn a_departed_peer_without_a_connection_is_given_up_at_once() {
    for failed in [None, Some(DialFailure::Unreachable), Some(DialFailure::Race)] {
        let mut link = low();
        dialing(&mut link, 0);
        failed.map(|failure| fail(&mut link, 10, failure));
        let actions = at(&mut link, 20, LinkEvent::Departed { at_once: false });
        assert_eq!(actions.last(), Some(&LinkAction::Report(LinkReport::Gone)));
        assert_eq!(link.state(), LinkState::Gone);
        assert_eq!(at(&mut link, 60_000, LinkEvent::WokeUp), [], "it is not dialled any more");
    }
}

#[test]
fn a_departed_peer_keeps_its_connection_until_it_ends_but_not_for_ever() {
    let mut link = low();
    up(&mut link, 0);
    let end = Millis(5_000) + PeerLink::PARTING;
    assert_eq!(at(&mut link, 5_000, LinkEvent::Departed { at_once: false }), [LinkAction::WakeAt(end)]);
    assert_eq!(at(&mut link, 6_000, LinkEvent::Departed { at_once: false }), [LinkAction::WakeAt(end)]);
    assert_eq!(link.connection(), Some(A), "it may say goodbye");
    let mut silent = link.clone();
    let actions = at(&mut link, 7_000, LinkEvent::Closed { connection: A, code: CloseCode::Stopping });
    assert!(!dials(&actions) && link.state() == LinkState::Gone);
    assert_eq!(at(&mut silent, end.0 - 1, LinkEvent::WokeUp), [LinkAction::WakeAt(end)]);
    let drop = LinkAction::Drop { connection: A, code: CloseCode::Stopping };
    assert_eq!(at(&mut silent, end.0, LinkEvent::WokeUp), [drop, LinkAction::Report(LinkReport::Gone)]);
}

#[test]
fn nothing_more_is_heard_of_a_peer_that_departed_at_once() {
    let mut link = low();
    up(&mut link, 0);
    let drop = LinkAction::Drop { connection: A, code: CloseCode::Stopping };
    let actions = at(&mut link, 5_000, LinkEvent::Departed { at_once: true });
    assert_eq!(actions, [drop, LinkAction::Report(LinkReport::Gone)]);
}

#[test]
fn after_the_stop_nothing_lives() {
    let gone = LinkAction::Report(LinkReport::Gone);
    let mut link = low();
    up(&mut link, 0);
    let drop = LinkAction::Drop { connection: A, code: CloseCode::Stopping };
    assert_eq!(at(&mut link, 1, LinkEvent::Stop), [drop, gone]);
    let refuse = LinkAction::Refuse { connection: B, why: RefusalReason::Stopping };
    assert_eq!(at(&mut link, 2, hello(B, 9)), [refuse]);
    assert_eq!(at(&mut link, 3, LinkEvent::Wanted), []);
    assert_eq!(at(&mut link, 4, LinkEvent::Stop), []);

    let mut link = high();
    let attempt = dialing(&mut link, 0);
    assert_eq!(at(&mut link, 1, LinkEvent::Stop), [LinkAction::Abandon { attempt }, gone]);
    let late = at(&mut link, 2, LinkEvent::Dialled { attempt, connection: B, peer_attempt: AttemptId(0) });
    assert_eq!(late, [LinkAction::Drop { connection: B, code: CloseCode::Stopping }]);
}
