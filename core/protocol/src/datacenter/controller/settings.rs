//! The times by which a controller goes, with the defaults.

use crate::time::Millis;

/// How often a controller does what. Of the defaults only the lease depends on the kind of the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ControllerSettings {
    /// Between two heartbeats, more or less [`JITTER_PERCENT`]. Default 10 s.
    pub heartbeat: Millis,
    /// Between two readings of all records, more or less [`JITTER_PERCENT`]; at most a third of the shortest lease seen.
    /// Default 10 s.
    pub refresh: Millis,
    /// How often to look whether this node leads. Default 5 s.
    pub leader_check: Millis,
    /// Without an answer for longer than this the map is stale. Default 30 s.
    pub max_staleness: Millis,
    /// How long one request may take. Default 3 s.
    pub request_timeout: Millis,
    /// Whether changes are watched, too. Default true.
    pub watch: bool,
    /// The longest pause after a request that failed. Default 30 s.
    pub max_backoff: Millis,
    /// The lease of this datacenter; heartbeats that fail are repeated at least twice within it. Default 30 s, which holds
    /// for an embedded control plane only: others have to be told.
    pub lease_ttl: Millis,
}

impl Default for ControllerSettings {
    fn default() -> Self {
        Self {
            heartbeat: Millis(10_000),
            refresh: Millis(10_000),
            leader_check: Millis(5_000),
            max_staleness: Millis(30_000),
            request_timeout: Millis(3_000),
            watch: true,
            max_backoff: Millis(30_000),
            lease_ttl: EMBEDDED_LEASE,
        }
    }
}

/// How far an interval is shortened or lengthened by chance, in percent.
pub const JITTER_PERCENT: u64 = 10;

/// The lease of a datacenter whose control plane is embedded.
pub const EMBEDDED_LEASE: Millis = Millis(30_000);

/// `interval`, more or less [`JITTER_PERCENT`].
pub(in super::super) fn jittered(interval: Millis, random: u64) -> Millis {
    let spread = interval.0.saturating_mul(JITTER_PERCENT) / 100;
    let width = spread.saturating_mul(2).saturating_add(1);
    Millis(interval.0 - spread + random % width)
}

/// The pause after so many failures in a row: doubles from [`FIRST_PAUSE`] to `longest`.
pub(super) fn backoff(failures: u32, longest: Millis) -> Millis {
    let doubled =
        FIRST_PAUSE.0.saturating_mul(1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX));
    Millis(doubled).min(longest)
}

const FIRST_PAUSE: Millis = Millis(1_000);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Proves: R418, R419, R420, R421, R422, R423, R424, C34, C49
    #[test]
    fn the_defaults_are_the_documented_ones() {
        let settings = ControllerSettings::default();
        assert_eq!((settings.heartbeat, JITTER_PERCENT), (Millis(10_000), 10));
        assert_eq!(settings.refresh, Millis(10_000));
        assert_eq!(settings.leader_check, Millis(5_000));
        assert_eq!(settings.max_staleness, Millis(30_000));
        assert_eq!(settings.request_timeout, Millis(3_000));
        assert!(settings.watch);
        assert_eq!(settings.max_backoff, Millis(30_000));
        assert_eq!(settings.lease_ttl, Millis(30_000));
    }

    /// Proves: R442
    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses = [1, 2, 3, 4, 5, 6, 7, 40, 100].map(|failures| backoff(failures, Millis(30_000)).0);
        assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
    }

    proptest! {
        /// Proves: R387
        #[test]
        fn jitter_stays_within_a_tenth(interval in 0_u64..100_000, random in any::<u64>()) {
            let chosen = jittered(Millis(interval), random).0;
            prop_assert!(chosen >= interval - interval / 10 && chosen <= interval + interval / 10);
        }
    }
}
