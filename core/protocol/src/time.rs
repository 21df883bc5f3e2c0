//! Time as the machines see it: milliseconds on a clock that somebody else reads.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// A point on the node's own monotonic clock, or a length of time, in milliseconds.
///
/// The clock also counts suspend. Its zero is arbitrary: a `Millis` means nothing on another node, so on the
/// wire there are only lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    /// The clock's zero, and the empty length.
    pub const ZERO: Self = Self(0);
    /// Later than every event: "never".
    pub const MAX: Self = Self(u64::MAX);

    /// The length from `earlier` to `self`; zero if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// The same length as a [`Duration`].
    pub const fn to_duration(self) -> Duration {
        Duration::from_millis(self.0)
    }

    /// `length` in whole milliseconds, rounded up so that a wait is never cut short.
    pub fn from_duration(length: Duration) -> Self {
        let whole = length.as_millis() + u128::from(!length.subsec_nanos().is_multiple_of(1_000_000));
        Self(u64::try_from(whole).unwrap_or(u64::MAX))
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, length: Self) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl Sub for Millis {
    type Output = Self;
    fn sub(self, length: Self) -> Self {
        self.since(length)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Millis::MAX + Millis(1), Millis::MAX);
        assert_eq!(Millis(1) - Millis(2), Millis::ZERO);
    }

    #[test]
    fn durations_round_up() {
        assert_eq!(Millis::from_duration(Duration::from_micros(1)), Millis(1));
        assert_eq!(Millis::from_duration(Duration::from_millis(7)), Millis(7));
        assert_eq!(Millis::from_duration(Duration::MAX), Millis::MAX);
    }
}
