use super::*;

const ME: NodeId = NodeId::new(5);
const OTHER: NodeId = NodeId::new(9);
const TTL: Millis = Millis(6_000);
/// W for `TTL`.
const WAIT: u64 = 6_420;

fn monitor() -> LeaseObserver {
    let mut observer = LeaseObserver::new(ME);
    let actions = observer.handle(Millis::ZERO, ObserverEvent::Reachable(BTreeSet::from([OTHER])));
    assert_eq!(actions, [ObserverAction::WatchAll(true)]);
    observer
}

fn live(seq: u64, version: u64) -> ObserverEvent {
    seen(Lease::Live { seq, nonce: seq, ttl: TTL }, version)
}

fn seen(lease: Lease, version: u64) -> ObserverEvent {
    ObserverEvent::Seen(LeaseSeen { id: OTHER, version: LeaseVersion(version), lease })
}

fn unanswered(version: u64) -> ObserverEvent {
    let version = LeaseVersion(version);
    ObserverEvent::EndAnswered { id: OTHER, version, outcome: LeaseOutcome::Unknown }
}

fn ends(observer: &mut LeaseObserver, now: u64) -> Option<(LeaseVersion, EndReason)> {
    let actions = observer.handle(Millis(now), ObserverEvent::Wake);
    actions.into_iter().find_map(|action| match action {
        ObserverAction::End { id: OTHER, version, why } => Some((version, why)),
        _ => None,
    })
}

/// Mutant 5: W has the drift and the grace in it, and comes from the record.
///
/// Proves: R203
#[test]
fn a_lease_that_stands_still_for_w_is_ended_at_the_version_received() {
    let mut observer = monitor();
    let actions = observer.handle(Millis(100), live(3, 10));
    assert_eq!(actions, [ObserverAction::WakeAt(Millis(100 + WAIT))]);
    assert_eq!(ends(&mut observer, 100 + WAIT - 1), None);
    assert_eq!(ends(&mut observer, 100 + WAIT), Some((LeaseVersion(10), EndReason::Silent)));
}

/// H20: the T of the record, not the observer's own.
#[test]
fn a_longer_ttl_in_the_record_is_waited_for() {
    let mut observer = monitor();
    observer.handle(Millis(0), seen(Lease::Live { seq: 1, nonce: 1, ttl: Millis(30_000) }, 10));
    assert_eq!(ends(&mut observer, 30_899), None);
    assert!(ends(&mut observer, 30_900).is_some());
}

#[test]
fn each_new_version_counts_anew_and_the_same_or_an_older_one_does_not() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    observer.handle(Millis(2_000), live(2, 11));
    observer.handle(Millis(4_000), live(2, 11));
    observer.handle(Millis(5_000), live(1, 10));
    assert_eq!(ends(&mut observer, 2_000 + WAIT - 1), None);
    assert_eq!(ends(&mut observer, 2_000 + WAIT), Some((LeaseVersion(11), EndReason::Silent)));
}

/// REVOKE is a last beat: W counts from the mark, never straight to the end.
#[test]
fn a_revoked_lease_is_ended_one_w_after_the_mark() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    observer.handle(Millis(6_000), seen(Lease::Revoked { ttl: TTL, by: ME }, 11));
    assert_eq!(ends(&mut observer, WAIT), None);
    assert_eq!(ends(&mut observer, 6_000 + WAIT), Some((LeaseVersion(11), EndReason::Revoked)));
}

#[test]
fn a_broken_watch_counts_anew_with_the_next_answer() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    assert_eq!(observer.handle(Millis(3_000), ObserverEvent::Interrupted), []);
    assert_eq!(ends(&mut observer, WAIT), None);
    observer.handle(Millis(7_000), live(1, 10));
    assert_eq!(ends(&mut observer, 7_000 + WAIT - 1), None);
    assert!(ends(&mut observer, 7_000 + WAIT).is_some());
}

/// Mutant 10 (H1): absence is never the end.
#[test]
fn an_absent_lease_is_never_ended() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    observer.handle(Millis(1_000), ObserverEvent::Gone(OTHER));
    assert_eq!(ends(&mut observer, 1_000_000), None);
    assert!(!observer.has_ended(OTHER));
}

/// A stale replica, or a lease that came back: whoever is told that it is gone asks, and finds what was there before.
#[test]
fn a_lease_that_was_not_gone_after_all_counts_anew() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    let asked = observer.handle(Millis(1_000), ObserverEvent::Gone(OTHER));
    assert!(asked.contains(&ObserverAction::ReadOrPin(Session { id: OTHER, ttl: TTL })), "{asked:?}");
    observer.handle(Millis(1_100), live(1, 10));
    assert_eq!(ends(&mut observer, 1_100 + WAIT - 1), None, "counted from the answer, not from before");
    assert_eq!(ends(&mut observer, 1_100 + WAIT), Some((LeaseVersion(10), EndReason::Silent)));
}

#[test]
fn an_end_that_loses_against_a_beat_counts_anew() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    assert!(ends(&mut observer, WAIT).is_some());
    let ObserverEvent::Seen(found) = live(2, 11) else { unreachable!() };
    let outcome = LeaseOutcome::Found(Some(found));
    observer.handle(
        Millis(WAIT + 5),
        ObserverEvent::EndAnswered { id: OTHER, version: LeaseVersion(10), outcome },
    );
    assert_eq!(ends(&mut observer, WAIT + WAIT), None);
    assert!(!observer.has_ended(OTHER));
}

#[test]
fn an_unanswered_end_is_repeated_for_the_same_version() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    let first = ends(&mut observer, WAIT);
    let unknown = unanswered(10);
    assert_eq!(observer.handle(Millis(WAIT), unknown), [ObserverAction::WakeAt(Millis(WAIT + 500))]);
    assert_eq!(ends(&mut observer, WAIT + 500), first);
}

/// Found by the small world: the repetition was scheduled for whatever version was known by then.
#[test]
fn an_unanswered_end_does_not_shorten_the_count_of_a_newer_version() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    assert!(ends(&mut observer, WAIT).is_some());
    observer.handle(Millis(WAIT + 10), live(2, 11));
    observer.handle(Millis(WAIT + 20), unanswered(10));
    assert_eq!(ends(&mut observer, WAIT + 10 + WAIT - 1), None);
    assert_eq!(ends(&mut observer, WAIT + 10 + WAIT), Some((LeaseVersion(11), EndReason::Silent)));
}

/// Mutants 24 and 25 in small: what has ended is told once, and is final.
#[test]
fn an_ended_session_is_told_once() {
    let mut observer = monitor();
    let ended = || seen(Lease::Ended { why: EndReason::Closed, by: OTHER }, 11);
    assert_eq!(observer.handle(Millis(0), ended()), [ObserverAction::Ended(OTHER)]);
    assert_eq!(observer.handle(Millis(1), ended()), []);
    assert!(observer.has_ended(OTHER));
    assert_eq!(ends(&mut observer, 1_000_000), None);
}

#[test]
fn who_is_no_monitor_ends_only_what_blocks_it() {
    let mut observer = LeaseObserver::new(ME);
    let lower = BTreeSet::from([1, 2, 3].map(NodeId::new));
    observer.handle(Millis(0), ObserverEvent::Reachable(lower));
    observer.handle(Millis(0), live(1, 10));
    assert_eq!(ends(&mut observer, 1_000_000), None);
    let blocked = ObserverEvent::Blocked(Session { id: OTHER, ttl: TTL });
    let actions = observer.handle(Millis(1_000_000), blocked);
    assert!(actions.contains(&ObserverAction::ReadOrPin(Session { id: OTHER, ttl: TTL })));
    assert_eq!(ends(&mut observer, 1_000_000), Some((LeaseVersion(10), EndReason::Silent)));
}

#[test]
fn a_blocker_that_beats_again_is_let_go() {
    let mut observer = LeaseObserver::new(ME);
    observer.handle(Millis(0), ObserverEvent::Blocked(Session { id: OTHER, ttl: TTL }));
    observer.handle(Millis(1), live(1, 10));
    observer.handle(Millis(2_000), live(2, 11));
    assert_eq!(ends(&mut observer, 1_000_000), None);
}

#[test]
fn a_node_never_judges_itself() {
    let mut observer = monitor();
    let lease = Lease::Live { seq: 1, nonce: 1, ttl: TTL };
    let own = LeaseSeen { id: ME, version: LeaseVersion(1), lease };
    assert_eq!(observer.handle(Millis(0), ObserverEvent::Seen(own)), []);
    assert_eq!(observer.handle(Millis(0), ObserverEvent::Blocked(Session { id: ME, ttl: TTL })), []);
}

/// PIN: a store that loses a lease must not make its dead holder a member for ever.
#[test]
fn a_monitor_writes_the_absence_of_a_lease_down_until_that_has_worked() {
    let mut observer = monitor();
    observer.handle(Millis(0), live(1, 10));
    let pin = ObserverAction::ReadOrPin(Session { id: OTHER, ttl: TTL });
    assert!(observer.handle(Millis(1_000), ObserverEvent::Gone(OTHER)).contains(&pin));
    observer.handle(Millis(1_010), ObserverEvent::Unread(OTHER));
    assert!(!observer.handle(Millis(2_999), ObserverEvent::Wake).contains(&pin));
    assert!(observer.handle(Millis(3_000), ObserverEvent::Wake).contains(&pin), "it is tried again");
    observer.handle(Millis(3_010), seen(Lease::Missing { ttl: TTL }, 11));
    assert_eq!(ends(&mut observer, 3_010 + WAIT - 1), None);
    assert_eq!(ends(&mut observer, 3_010 + WAIT).map(|(version, _)| version), Some(LeaseVersion(11)));
}

#[test]
fn a_lease_that_a_new_list_does_not_have_is_gone_unless_it_had_ended() {
    let (mut observer, nothing) = (monitor(), || ObserverEvent::Listed(BTreeSet::new()));
    observer.handle(Millis(0), live(1, 10));
    let listed = observer.handle(Millis(10), ObserverEvent::Listed(BTreeSet::from([OTHER])));
    assert!(!listed.iter().any(|action| matches!(action, ObserverAction::ReadOrPin(_))));
    let missing = observer.handle(Millis(20), nothing());
    assert!(missing.iter().any(|action| matches!(action, ObserverAction::ReadOrPin(_))), "{missing:?}");
    observer.handle(Millis(30), seen(Lease::Ended { why: EndReason::Closed, by: OTHER }, 11));
    assert_eq!(observer.handle(Millis(40), nothing()), [], "what was collected stays away");
}
