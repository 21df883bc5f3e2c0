//! How old a position is.
//!
//! The stream forgets deletes after a while, so a watch may go on only after a position that is younger than that. The
//! answers to this store's own writes tell: whatever has a greater sequence was stored after that write was sent. Clocks
//! of servers play no part.

use std::collections::VecDeque;
use std::time::Duration;

use crate::clock::Moment;

/// Sequences, and when each was not yet given.
#[derive(Debug)]
pub(crate) struct Recent {
    samples: VecDeque<(Moment, u64)>,
    /// How long a position may be watched from.
    span: Duration,
}

impl Recent {
    pub(crate) fn new(span: Duration) -> Self {
        Self { samples: VecDeque::new(), span }
    }

    /// Takes in that a write sent at `sent` was stored as `seq`.
    pub(crate) fn note(&mut self, sent: Moment, seq: u64) {
        let spaced = |&(at, _): &(Moment, u64)| at.elapsed() > self.span / SAMPLES;
        if self.samples.back().is_none_or(spaced) {
            self.samples.push_back((sent, seq));
            while self.samples.front().is_some_and(|(at, _)| at.elapsed() > self.span) {
                self.samples.pop_front();
            }
        }
    }

    /// Whether everything after `seq` was certainly stored within the span.
    pub(crate) fn covers(&self, seq: u64) -> bool {
        self.samples.iter().any(|&(at, given)| given <= seq && at.elapsed() <= self.span)
    }
}

const SAMPLES: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_after_an_own_write_is_known_to_be_recent() {
        let mut recent = Recent::new(Duration::from_secs(60));
        assert!(!recent.covers(u64::MAX));
        recent.note(Moment::now(), 10);
        assert!(recent.covers(10) && recent.covers(11) && !recent.covers(9));
    }

    #[test]
    fn what_is_older_than_the_span_is_not_recent() {
        let mut recent = Recent::new(Duration::ZERO);
        recent.note(Moment::now(), 10);
        std::thread::yield_now();
        assert!(!recent.covers(10));
    }

    #[test]
    fn it_keeps_a_bounded_number_of_samples() {
        let mut recent = Recent::new(Duration::from_secs(60));
        (0..10_000).for_each(|seq| recent.note(Moment::now(), seq));
        assert!(recent.samples.len() <= 66);
    }
}
