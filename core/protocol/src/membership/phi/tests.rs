use proptest::prelude::*;

use super::*;

const NOBODY_EXCUSED: Millis = Millis::ZERO;

/// A detector that was beaten every `period` from 0 on, `count` times, and when the last heartbeat came.
fn beaten(period: u64, count: u64) -> (PhiAccrual, Millis) {
    let mut detector = PhiAccrual::new(Millis(0), PhiSettings::default());
    (0..count).for_each(|n| detector.heartbeat(Millis(n * period)));
    (detector, Millis(count.saturating_sub(1) * period))
}

/// Proves: R182-R186, R431
#[test]
fn the_defaults_are_those_of_the_requirements() {
    let settings = PhiSettings::default();
    assert_eq!(settings.threshold_permille, 8_000);
    assert_eq!(settings.max_sample_size, 200);
    assert_eq!(settings.min_std_deviation, Millis(100));
    assert_eq!(settings.acceptable_heartbeat_pause, Millis(0));
    assert_eq!(settings.first_heartbeat_estimate, Millis(1_000));
}

/// With a period of 1 s and the least deviation of 100 ms, phi passes 8 at 5.6 deviations. Proves: R181, R187, R188, R468
#[test]
fn regular_beats_make_silence_suspicious_soon() {
    let (detector, last) = beaten(1_000, 300);
    assert!(detector.phi(last + Millis(1_000), NOBODY_EXCUSED) < 1.0);
    assert!(detector.is_available(last + Millis(1_560), NOBODY_EXCUSED));
    assert!(!detector.is_available(last + Millis(1_563), NOBODY_EXCUSED));
}

/// Proves: R187, R468
#[test]
fn irregular_beats_make_it_patient() {
    let mut detector = PhiAccrual::new(Millis(0), PhiSettings::default());
    let mut now = Millis(0);
    for n in 0..200 {
        now = now + Millis(if n % 2 == 0 { 500 } else { 1_500 });
        detector.heartbeat(now);
    }
    assert!(detector.is_available(now + Millis(3_500), NOBODY_EXCUSED));
    assert!(!detector.is_available(now + Millis(4_500), NOBODY_EXCUSED));
}

/// Proves: R186, R200
#[test]
fn whoever_never_beat_is_suspected_too() {
    let detector = PhiAccrual::new(Millis(5_000), PhiSettings::default());
    assert!(detector.is_available(Millis(6_000), NOBODY_EXCUSED));
    assert!(!detector.is_available(Millis(8_000), NOBODY_EXCUSED));
}

/// Proves: R183
#[test]
fn old_intervals_are_forgotten() {
    let (mut detector, mut now) = beaten(100, 200);
    for _ in 0..200 {
        now = now + Millis(1_000);
        detector.alive(now - Millis(1));
        detector.heartbeat(now);
    }
    assert_eq!(detector.intervals.len(), 200);
    assert!((detector.mean() - 1_000.0).abs() < 0.1);
}

/// Proves: R185
#[test]
fn an_acceptable_pause_is_accepted() {
    let settings = PhiSettings { acceptable_heartbeat_pause: Millis(3_000), ..PhiSettings::default() };
    let mut detector = PhiAccrual::new(Millis(0), settings);
    (0..50).for_each(|n| detector.heartbeat(Millis(n * 1_000)));
    assert!(detector.is_available(Millis(49_000 + 4_500), NOBODY_EXCUSED));
    assert!(!detector.is_available(Millis(49_000 + 4_600), NOBODY_EXCUSED));
}

#[test]
fn the_silence_of_a_suspect_is_no_sample() {
    let (mut detector, last) = beaten(1_000, 50);
    let mean = detector.mean();
    detector.heartbeat(last + Millis(60_000));
    assert!((detector.mean() - mean).abs() < f64::EPSILON);
    assert!(!detector.is_available(last + Millis(62_000), NOBODY_EXCUSED), "it is judged as before");
}

#[test]
fn other_traffic_proves_life_and_changes_no_interval() {
    let (mut detector, last) = beaten(1_000, 50);
    (0..1_000).for_each(|n| detector.alive(last + Millis(n)));
    assert!(
        detector.is_available(last + Millis(999 + 1_500), NOBODY_EXCUSED),
        "traffic every ms is no beat every ms"
    );
    assert_eq!(detector.last_life(), last + Millis(999));
}

proptest! {
    /// Proves: R187, R188
    #[test]
    fn suspicion_grows_with_silence_and_never_breaks(
        gaps in proptest::collection::vec(0..u64::from(u32::MAX), 0..300), silence: u32, more: u32,
    ) {
        let mut detector = PhiAccrual::new(Millis(0), PhiSettings::default());
        let mut now = Millis(0);
        for gap in gaps {
            now = now + Millis(gap);
            detector.heartbeat(now);
        }
        let at = |silence: u64| detector.phi(now + Millis(silence), NOBODY_EXCUSED);
        let (early, late) = (at(silence.into()), at(u64::from(silence) + u64::from(more)));
        prop_assert!(early.is_finite() && late.is_finite() && early >= 0.0);
        prop_assert!(early <= late + 1e-9);
        prop_assert!(detector.intervals.len() <= 200);
    }
}
