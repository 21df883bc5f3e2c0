//! How long to wait before a peer is dialled again.

use crate::time::Millis;

/// Waits that double from a first one up to a longest, each cut by chance so that nodes do not dial in step.
///
/// A wait lies between half of its nominal length and all of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Backoff {
    first: Millis,
    longest: Millis,
    failures: u32,
}

impl Backoff {
    /// The first wait, by default.
    pub const FIRST: Millis = Millis(1_000);
    /// The longest wait, by default.
    pub const LONGEST: Millis = Millis(30_000);

    /// Waits from `first`, doubling, up to `longest`.
    pub const fn new(first: Millis, longest: Millis) -> Self {
        Self { first, longest, failures: 0 }
    }

    /// The wait after one more failure; `random` is any number.
    pub fn next(&mut self, random: u64) -> Millis {
        let nominal = self.nominal();
        self.failures = self.failures.saturating_add(1);
        jittered(nominal, random)
    }

    /// The longest wait, for a failure that time alone will hardly mend; `random` is any number.
    pub fn at_the_cap(&self, random: u64) -> Millis {
        jittered(self.longest, random)
    }

    /// Begins with the first wait again: there was a success.
    pub const fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were since the last success.
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    fn nominal(&self) -> Millis {
        let factor = 1_u64.checked_shl(self.failures).unwrap_or(u64::MAX);
        Millis(self.first.0.saturating_mul(factor)).min(self.longest)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Self::FIRST, Self::LONGEST)
    }
}

/// Between half of `nominal` and all of it, as `random` says.
pub(super) fn jittered(nominal: Millis, random: u64) -> Millis {
    let half = nominal.0 / 2;
    Millis(nominal.0 - half + random % (half + 1))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// The random number that makes a wait as long as it can be.
    fn full(nominal: u64) -> u64 {
        nominal / 2
    }

    /// Proves: R120, R430
    #[test]
    fn waits_double_from_one_second_to_thirty() {
        let mut backoff = Backoff::default();
        let expected = [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000];
        let waits: Vec<u64> = expected.iter().map(|&nominal| backoff.next(full(nominal)).0).collect();
        assert_eq!(waits, expected);
        assert_eq!(backoff.at_the_cap(full(30_000)), Millis(30_000));
    }

    /// Proves: R120
    #[test]
    fn a_success_starts_the_waits_anew() {
        let mut backoff = Backoff::default();
        (0..200).for_each(|random| assert!(backoff.next(random) <= Backoff::LONGEST));
        assert_eq!(backoff.next(full(30_000)), Millis(30_000), "many failures do not wrap");
        backoff.reset();
        assert_eq!(backoff.next(full(1_000)), Millis(1_000));
    }

    proptest! {
        #[test]
        fn a_wait_is_between_half_and_all_of_its_length(random: u64, failures in 0_u32..100) {
            let mut backoff = Backoff { failures, ..Backoff::default() };
            let nominal = backoff.nominal();
            let wait = backoff.next(random);
            prop_assert!(Millis(nominal.0 / 2) <= wait && wait <= nominal);
        }
    }
}
