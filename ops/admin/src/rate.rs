//! How much is answered: so much in a second, and no more at once than comes in a second.
//!
//! Requests weigh differently: what asks a store or all members costs more than what is at hand. It reads no clock.

use std::num::NonZeroU32;

use archipelago_protocol::time::Millis;

/// A bucket that fills at a steady rate; each request takes what it weighs from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    per_second: u64,
    /// In thousandths of a request.
    left: u64,
    at: Option<Millis>,
}

/// How long to wait for the next try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait(pub(crate) Millis);

impl Rate {
    pub(crate) fn new(per_second: NonZeroU32) -> Self {
        let per_second = u64::from(per_second.get());
        Self { per_second, left: per_second * ONE, at: None }
    }

    /// Lets a request of this weight in at `now`, or says how long it has to wait. None weighs more than a full bucket.
    pub(crate) fn admit(&mut self, now: Millis, weight: u64) -> Result<(), Wait> {
        let wanted = weight.saturating_mul(ONE).min(self.per_second * ONE);
        let passed = self.at.map_or(0, |at| now.since(at).0);
        // Millis times requests per second are thousandths of a request.
        let more = passed.saturating_mul(self.per_second);
        self.left = self.left.saturating_add(more).min(self.per_second * ONE);
        self.at = Some(now);
        if self.left >= wanted {
            self.left -= wanted;
            return Ok(());
        }
        Err(Wait(Millis((wanted - self.left).div_ceil(self.per_second))))
    }
}

/// The lightest request.
const ONE: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(rate: &mut Rate, at: u64, tries: usize) -> usize {
        (0..tries).filter(|_| rate.admit(Millis(at), 1).is_ok()).count()
    }

    #[test]
    fn no_more_is_let_in_than_comes_in_a_second() {
        let mut rate = Rate::new(NonZeroU32::new(10).unwrap());
        assert_eq!(admitted(&mut rate, 5_000, 25), 10);
        assert_eq!(rate.admit(Millis(5_000), 1), Err(Wait(Millis(100))));
        assert_eq!(admitted(&mut rate, 5_099, 5), 0, "not yet");
        assert_eq!(admitted(&mut rate, 5_100, 5), 1);
        assert_eq!(admitted(&mut rate, 5_350, 5), 2);
        assert_eq!(admitted(&mut rate, 900_000, 50), 10, "a pause saves up one second and no more");
    }

    #[test]
    fn what_weighs_more_takes_more_and_never_more_than_all() {
        let mut rate = Rate::new(NonZeroU32::new(10).unwrap());
        assert_eq!(rate.admit(Millis(0), 8), Ok(()));
        assert_eq!(rate.admit(Millis(0), 5), Err(Wait(Millis(300))));
        assert_eq!(rate.admit(Millis(300), 5), Ok(()));
        assert_eq!(rate.admit(Millis(800), 5_000), Err(Wait(Millis(500))));
        assert_eq!(rate.admit(Millis(1_300), u64::MAX), Ok(()), "a full bucket is enough for anything");
    }

    #[test]
    fn a_steady_stream_gets_its_rate() {
        let mut rate = Rate::new(NonZeroU32::new(200).unwrap());
        let all: usize = (0..10_000).map(|at| admitted(&mut rate, at, 1)).sum();
        assert!((2_195..=2_200).contains(&all), "{all} in ten seconds, and the first second's worth");
    }
}
