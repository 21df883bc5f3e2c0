//! How many requests are answered: so many in a second, and no more at once than come in a second.
//!
//! It reads no clock.

use std::num::NonZeroU32;

use archipelago_protocol::time::Millis;

/// A bucket that fills at a steady rate; each request takes one from it.
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

    /// Lets one request in at `now`, or says how long it has to wait.
    pub(crate) fn admit(&mut self, now: Millis) -> Result<(), Wait> {
        let passed = self.at.map_or(0, |at| now.since(at).0);
        // Millis times requests per second are thousandths of a request.
        let more = passed.saturating_mul(self.per_second);
        self.left = self.left.saturating_add(more).min(self.per_second * ONE);
        self.at = Some(now);
        if self.left >= ONE {
            self.left -= ONE;
            return Ok(());
        }
        Err(Wait(Millis((ONE - self.left).div_ceil(self.per_second))))
    }
}

/// One request.
const ONE: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(rate: &mut Rate, at: u64, tries: usize) -> usize {
        (0..tries).filter(|_| rate.admit(Millis(at)).is_ok()).count()
    }

    #[test]
    fn no_more_is_let_in_than_comes_in_a_second() {
        let mut rate = Rate::new(NonZeroU32::new(10).unwrap());
        assert_eq!(admitted(&mut rate, 5_000, 25), 10);
        assert_eq!(rate.admit(Millis(5_000)), Err(Wait(Millis(100))));
        assert_eq!(admitted(&mut rate, 5_099, 5), 0, "not yet");
        assert_eq!(admitted(&mut rate, 5_100, 5), 1);
        assert_eq!(admitted(&mut rate, 5_350, 5), 2);
        assert_eq!(admitted(&mut rate, 900_000, 50), 10, "a pause saves up one second and no more");
    }

    #[test]
    fn a_steady_stream_gets_its_rate() {
        let mut rate = Rate::new(NonZeroU32::new(200).unwrap());
        let all: usize = (0..10_000).map(|at| admitted(&mut rate, at, 1)).sum();
        assert!((2_195..=2_200).contains(&all), "{all} in ten seconds, and the first second's worth");
    }
}
