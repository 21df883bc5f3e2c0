use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::contract::Epoch;
use crate::datacenter::{DataCenterInfo, DataCenterVersion};

const TTL: Millis = Millis(30_000);
const POLL: u64 = 10_000;
const STALE_AFTER: Millis = Millis(30_000);

fn id(name: &str) -> DataCenterId {
    DataCenterId::new(name).unwrap()
}

fn record(name: &str, version: u64) -> DataCenterRecord {
    DataCenterRecord {
        info: DataCenterInfo::new(name, "", "").unwrap(),
        state: DataCenterState::Active,
        epoch: Epoch(1),
        lease_ttl: TTL,
        // Long ago: the wall clock of the other side decides nothing.
        lease_expiry_ms: 1,
        version: DataCenterVersion(version),
    }
}

fn listed(revision: u64, records: &[DataCenterRecord]) -> LivenessEvent {
    LivenessEvent::Listed { revision: Revision(revision), records: records.to_vec() }
}

fn active(liveness: &DataCenterLiveness) -> Vec<&str> {
    liveness.active().into_iter().map(|record| record.id().as_str()).collect()
}

/// Proves: R349, R378, R392, R393
#[test]
fn a_record_that_stands_still_for_its_lease_is_left_out() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    for round in 0..=3 {
        let answer = listed(round, &[record("beats", round + 2), record("silent", 1)]);
        liveness.handle(Millis(round * POLL), answer);
        assert_eq!(active(&liveness), ["silent", "beats"], "round {round}");
    }
    let answer = listed(4, &[record("beats", 6), record("silent", 1)]);
    let changed = liveness.handle(Millis(4 * POLL), answer);
    assert!(changed.contains(&LivenessAction::Changed(id("silent"))), "{changed:?}");
    assert_eq!(active(&liveness), ["beats"]);
    assert_eq!(liveness.standing(&id("silent")), Some(DataCenterState::Inactive));
}

#[test]
fn a_lease_is_not_ended_before_its_margin_is_over() {
    let due = times::observer_wait(TTL);
    for (at, alive) in [(due - Millis(1), true), (due, false)] {
        let mut liveness = DataCenterLiveness::new(STALE_AFTER);
        for step in 0..=3 {
            liveness.handle(Millis(step * POLL), listed(1, &[record("a", 1)]));
        }
        liveness.handle(at, listed(1, &[record("a", 1)]));
        assert_eq!(active(&liveness) == ["a"], alive, "at {at}");
    }
}

/// Proves: R346
#[test]
fn an_outage_of_any_length_ends_no_lease_and_makes_the_view_stale() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    liveness.handle(Millis(0), listed(1, &[record("a", 1)]));
    let mut now = 0;
    for _ in 0..1_000 {
        now += POLL;
        liveness.handle(Millis(now), LivenessEvent::Unanswered);
        assert_eq!(active(&liveness), ["a"]);
        assert_eq!(liveness.is_stale(Millis(now)), now > STALE_AFTER.0);
    }
    liveness.handle(Millis(now), listed(1, &[record("a", 1)]));
    assert_eq!(active(&liveness), ["a"], "the outage is not counted");
    assert!(!liveness.is_stale(Millis(now)));
    for _ in 0..4 {
        now += POLL;
        liveness.handle(Millis(now), listed(1, &[record("a", 1)]));
    }
    assert_eq!(active(&liveness), [""; 0], "what follows the outage is");
}

#[test]
fn time_next_to_a_failure_is_not_counted_but_the_rest_adds_up() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    let mut now = 0;
    for round in 0..24_u64 {
        now += 5_000;
        let event = if round % 3 == 2 { LivenessEvent::Unanswered } else { listed(1, &[record("a", 1)]) };
        liveness.handle(Millis(now), event);
        // One interval in three lies between two answers: 5 of every 15 seconds count.
        let counted = Millis(round.div_ceil(3) * 5_000);
        assert_eq!(active(&liveness) == ["a"], counted < times::observer_wait(TTL), "round {round}");
    }
}

#[test]
fn a_long_gap_without_a_question_is_not_counted() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    liveness.handle(Millis(0), listed(1, &[record("a", 1)]));
    liveness.handle(Millis(3_600_000), listed(1, &[record("a", 1)]));
    assert_eq!(active(&liveness), ["a"]);
}

#[test]
fn time_before_a_version_was_received_is_not_counted() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    liveness.handle(Millis(0), listed(1, &[record("a", 1)]));
    for round in 1..=3 {
        liveness.handle(Millis(round * POLL), listed(1, &[record("a", 1)]));
    }
    let put = LivenessEvent::Put { revision: Revision(2), record: record("a", 2) };
    liveness.handle(Millis(39_000), put);
    let due = Millis(39_000) + times::observer_wait(TTL);
    for at in [40_000, 50_000, 60_000, due.0 - 1] {
        liveness.handle(Millis(at), listed(2, &[record("a", 2)]));
        assert_eq!(active(&liveness), ["a"], "at {at}");
    }
    liveness.handle(due, listed(2, &[record("a", 2)]));
    assert_eq!(active(&liveness), [""; 0]);
}

/// Proves: R389
#[test]
fn a_listing_is_merged_with_what_a_watch_told_since() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    liveness.handle(Millis(0), listed(5, &[record("a", 1), record("b", 1)]));
    liveness.handle(Millis(1), LivenessEvent::Put { revision: Revision(7), record: record("c", 7) });
    liveness.handle(Millis(2), LivenessEvent::Gone { revision: Revision(8), id: id("b") });
    liveness.handle(Millis(3), listed(6, &[record("a", 1), record("b", 1)]));
    assert_eq!(active(&liveness), ["a", "c"], "an older listing takes nothing back");
    liveness.handle(Millis(4), listed(9, &[record("a", 1)]));
    assert_eq!(active(&liveness), ["a"], "a newer one is complete");
}

/// Proves: R379
#[test]
fn older_versions_and_repeats_change_nothing() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    liveness.handle(Millis(0), listed(5, &[record("a", 5)]));
    let before = liveness.clone();
    for version in [4, 5] {
        let put = LivenessEvent::Put { revision: Revision(5), record: record("a", version) };
        assert_eq!(liveness.handle(Millis(1), put), vec![]);
    }
    assert_eq!(liveness, before);
}

#[test]
fn an_ended_lease_is_revived_only_by_a_newer_version() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    for round in 0..=4 {
        liveness.handle(Millis(round * POLL), listed(1, &[record("a", 1)]));
    }
    liveness.handle(Millis(50_000), LivenessEvent::Unanswered);
    liveness.handle(Millis(60_000), listed(1, &[record("a", 1)]));
    assert_eq!(active(&liveness), [""; 0]);
    liveness.handle(Millis(70_000), listed(2, &[record("a", 2)]));
    assert_eq!(active(&liveness), ["a"]);
}

#[test]
fn only_active_datacenters_are_active() {
    for state in DataCenterState::ALL {
        let mut liveness = DataCenterLiveness::new(STALE_AFTER);
        liveness.handle(Millis(0), listed(1, &[DataCenterRecord { state, ..record("a", 1) }]));
        assert_eq!(active(&liveness).len(), usize::from(state == DataCenterState::Active));
        assert_eq!(liveness.standing(&id("a")), Some(state));
    }
}

proptest! {
    /// The invariant: whatever comes in whatever order, a lease ends only after its version was shown by answers that
    /// span at least the lease.
    #[test]
    fn a_lease_ends_only_after_answers_that_span_it(steps in proptest::collection::vec((1_u64..20_000, 0_u8..4), 1..60)) {
        let mut liveness = DataCenterLiveness::new(STALE_AFTER);
        let (mut now, mut version, mut first_shown) = (0, 1, None);
        for (length, what) in steps {
            now += length;
            let event = match what {
                0 => LivenessEvent::Unanswered,
                1 => {
                    (version, first_shown) = (version + 1, None);
                    listed(1, &[record("a", version)])
                }
                _ => listed(1, &[record("a", version)]),
            };
            if matches!(event, LivenessEvent::Listed { .. }) {
                first_shown.get_or_insert(now);
            }
            liveness.handle(Millis(now), event);
            if liveness.standing(&id("a")) == Some(DataCenterState::Inactive) {
                prop_assert!(first_shown.is_some_and(|first| now - first >= times::observer_wait(TTL).0));
            }
        }
    }
}

/// The control plane was set up anew and counts from the beginning. While a watch lives, a listing that seems older is an old
/// one; without one it is all there is.
///
/// Proves: R389
#[test]
fn without_a_watch_a_listing_replaces_what_was_known() {
    let mut merged = DataCenterLiveness::new(STALE_AFTER);
    merged.handle(Millis(0), listed(90, &[record("a", 80), record("b", 90)]));
    let mut replaced = merged.clone();
    let anew = [record("a", 2)];
    merged.handle(Millis(POLL), listed(2, &anew));
    assert_eq!(active(&merged), ["a", "b"], "it merges");
    let event = LivenessEvent::Replaced { revision: Revision(2), records: anew.to_vec() };
    replaced.handle(Millis(POLL), event);
    assert_eq!(active(&replaced), ["a"]);
    assert_eq!(replaced.known().map(|(record, _)| record.version.0).collect::<Vec<_>>(), [2]);
    let event =
        LivenessEvent::Replaced { revision: Revision(3), records: vec![record("a", 3), record("b", 1)] };
    replaced.handle(Millis(2 * POLL), event);
    assert_eq!(active(&replaced), ["b", "a"]);
}

/// Whoever lists again at the time that `next_end` names finds the lease ended, and not a moment before.
#[test]
fn the_end_of_a_lease_is_foreseen() {
    let mut liveness = DataCenterLiveness::new(STALE_AFTER);
    assert_eq!(liveness.next_end(), None);
    liveness.handle(Millis(0), listed(1, &[record("a", 1)]));
    for step in 1..=3 {
        assert_eq!(liveness.next_end(), Some(times::observer_wait(TTL)));
        liveness.handle(Millis(step * POLL), listed(1, &[record("a", 1)]));
    }
    liveness.handle(Millis(3 * POLL + 1), LivenessEvent::Unanswered);
    assert_eq!(liveness.next_end(), None, "nobody's time runs");
    liveness.handle(Millis(4 * POLL), listed(1, &[record("a", 1)]));
    let end = liveness.next_end().unwrap();
    liveness.handle(end - Millis(1), listed(1, &[record("a", 1)]));
    assert_eq!(active(&liveness), ["a"]);
    liveness.handle(end, listed(1, &[record("a", 1)]));
    assert_eq!((active(&liveness).len(), liveness.next_end()), (0, None));
}
