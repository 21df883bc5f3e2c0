//! What one arbiter counts of each message of a kind: how many were started, and how long some of them took.
//!
//! To count a start is an increment in memory that only this arbiter has. The place of a message in the list is a constant where the
//! derives say it; whoever implements the traits by hand pays for a short search. Times come from the few messages that are
//! measured anyway ([`Timing`](crate::arbiter)), so they may cost something.
//!
//! Invariant: there are as many tallies as the kind has messages, whatever is sent.

use std::any::TypeId;
use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::inspect::MESSAGE_BOUNDS;

/// The tallies of one kind on one arbiter.
pub(crate) struct Tallies {
    of: Box<[Tally]>,
}

/// What is counted of one message.
struct Tally {
    message: TypeId,
    started: Cell<u64>,
    name: &'static str,
    times: RefCell<Times>,
}

/// How long the messages took that were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) sampled: u64,
    pub(crate) sum: Duration,
    pub(crate) slowest: Duration,
    /// How many took up to each bound and longer than the one before; at last those that took longer than all.
    pub(crate) buckets: [u64; MESSAGE_BOUNDS.len() + 1],
}

/// A copy of one tally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tallied {
    pub(crate) message: &'static str,
    pub(crate) started: u64,
    pub(crate) times: Times,
}

impl Tallies {
    /// For messages of these types and names.
    pub(super) fn new(messages: impl Iterator<Item = (TypeId, &'static str)>) -> Self {
        let tally =
            |(message, name)| Tally { message, started: Cell::new(0), name, times: RefCell::default() };
        Self { of: messages.map(tally).collect() }
    }

    /// A message of type `M` is started, which is probably the one at `place`.
    #[inline]
    pub(super) fn start<M: 'static>(&self, place: usize) {
        let message = TypeId::of::<M>();
        match self.of.get(place) {
            Some(tally) if tally.message == message => tally.start(),
            _ => self.start_elsewhere(message),
        }
    }

    #[cold]
    fn start_elsewhere(&self, message: TypeId) {
        if let Some(tally) = self.of.iter().find(|tally| tally.message == message) {
            tally.start();
        }
    }

    /// A message took so many seconds.
    #[cold]
    pub(super) fn took(&self, name: &str, seconds: f64) {
        if let Some(tally) = self.of.iter().find(|tally| tally.name == name) {
            tally.times.borrow_mut().add(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
        }
    }

    /// A copy of all, in the order in which the kind lists its messages.
    pub(crate) fn all(&self) -> impl Iterator<Item = Tallied> + '_ {
        self.of.iter().map(|tally| Tallied {
            message: tally.name,
            started: tally.started.get(),
            times: tally.times.borrow().clone(),
        })
    }
}

impl Tally {
    #[inline]
    fn start(&self) {
        self.started.set(self.started.get().wrapping_add(1));
    }
}

impl Times {
    fn add(&mut self, took: Duration) {
        let bucket = MESSAGE_BOUNDS.iter().position(|bound| took <= *bound).unwrap_or(MESSAGE_BOUNDS.len());
        self.buckets[bucket] += 1;
        self.sampled += 1;
        self.sum = self.sum.saturating_add(took);
        self.slowest = self.slowest.max(took);
    }

    /// Adds what another arbiter has measured.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.sampled += other.sampled;
        self.sum = self.sum.saturating_add(other.sum);
        self.slowest = self.slowest.max(other.slowest);
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own += more;
        }
    }

    /// The mean; zero if nothing was measured.
    pub(crate) fn mean(&self) -> Duration {
        match self.sampled {
            0 => Duration::ZERO,
            sampled => Duration::from_secs_f64(self.sum.as_secs_f64() / sampled as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct First;
    struct Second;
    struct Stranger;

    fn tallies() -> Tallies {
        Tallies::new([(TypeId::of::<First>(), "first"), (TypeId::of::<Second>(), "second")].into_iter())
    }

    fn started(tallies: &Tallies) -> Vec<u64> {
        tallies.all().map(|tallied| tallied.started).collect()
    }

    #[test]
    fn a_message_is_counted_as_itself_wherever_it_is_said_to_be() {
        let tallies = tallies();
        tallies.start::<First>(0);
        tallies.start::<Second>(1);
        tallies.start::<Second>(0);
        tallies.start::<Second>(usize::MAX);
        assert_eq!(started(&tallies), [1, 3]);
        tallies.start::<Stranger>(1);
        assert_eq!(started(&tallies), [1, 3], "what is not in the list is not counted");
    }

    #[test]
    fn times_go_into_the_bucket_of_the_first_bound_that_is_not_below_them() {
        let tallies = tallies();
        for seconds in [0.0, 0.000_001, 0.000_002, 100.0] {
            tallies.took("second", seconds);
        }
        tallies.took("stranger", 1.0);
        let [first, second]: [Tallied; 2] = tallies.all().collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((first.times.sampled, first.times.mean()), (0, Duration::ZERO));
        let times = second.times;
        assert_eq!((times.sampled, times.slowest), (4, Duration::from_secs(100)));
        assert_eq!(times.buckets[..3], [2, 1, 0]);
        assert_eq!(times.buckets.last(), Some(&1), "longer than all bounds");
        assert_eq!(times.mean().as_secs(), 25);
    }

    #[test]
    fn what_two_arbiters_have_measured_adds_up() {
        let (one, other) = (tallies(), tallies());
        one.took("first", 1.0);
        other.took("first", 3.0);
        let [mut sum, more] = [&one, &other].map(|tallies| tallies.all().next().unwrap().times);
        sum.merge(&more);
        assert_eq!(
            (sum.sampled, sum.mean(), sum.slowest),
            (2, Duration::from_secs(2), Duration::from_secs(3))
        );
        assert_eq!(sum.buckets.iter().sum::<u64>(), 2);
    }
}
