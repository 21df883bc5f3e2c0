//! One attempt to place an actor in one datacenter: what is known of it, and whether another datacenter may be tried.
//!
//! The home of the actor is written down before anything is said to the datacenter. [`PlacingAttempt`] decides what becomes of that
//! record if no endpoint takes the actor. Writing, asking and taking back are the shell's.
//!
//! Invariant: a record is taken back only by the attempt that wrote it, and only if no endpoint can have taken the actor:
//! nothing has left this node, or whoever was asked has refused. A record that stood before, or one whose question may have arrived
//! and was not refused, stays.

use crate::contract::HomeStamp;
use crate::time::Millis;

/// What is known of an attempt to place an actor in a datacenter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlacingAttempt {
    made: Option<HomeStamp>,
    may_have_arrived: bool,
    until: Millis,
    endpoints: usize,
}

/// What came of asking one endpoint that did not take the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EndpointSaid {
    /// The question never left this node, and never will.
    NeverAsked,
    /// It has answered that it does not take the actor, before it wrote anything down.
    NotTaken,
    /// It may have arrived, or has: the endpoint may have written the home down, or may do so still.
    MayHaveTaken,
}

/// What becomes of the home record of an attempt that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AfterAttempt {
    /// It is taken back. If that succeeds nothing of the attempt is left, and another datacenter may take the actor.
    TakeBack(HomeStamp),
    /// It stays: the actor may live there.
    Stays,
}

impl PlacingAttempt {
    /// An attempt that may go on until then and has so many endpoints; `made` is what wrote the home down, if it did not stand before.
    pub const fn new(made: Option<HomeStamp>, until: Millis, endpoints: usize) -> Self {
        Self { made, may_have_arrived: false, until, endpoints }
    }

    /// How long the next endpoint may take: each of those that are left gets its share of the time.
    pub fn next_share(&mut self, now: Millis) -> Millis {
        let share = share_of(self.until.since(now), self.endpoints);
        self.endpoints = self.endpoints.saturating_sub(1);
        share
    }

    /// An endpoint did not take the actor.
    pub const fn heard(&mut self, said: EndpointSaid) {
        if matches!(said, EndpointSaid::MayHaveTaken) {
            self.may_have_arrived = true;
        }
    }

    /// No endpoint took the actor: what becomes of its home record.
    pub const fn over(&self) -> AfterAttempt {
        match self.made {
            Some(made) if !self.may_have_arrived => AfterAttempt::TakeBack(made),
            _ => AfterAttempt::Stays,
        }
    }
}

/// The share that the first of `count` has of the time that is left.
pub fn share_of(left: Millis, count: usize) -> Millis {
    Millis(left.0 / count.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MADE: HomeStamp = HomeStamp(7);

    #[test]
    fn a_home_is_taken_back_if_nothing_was_sent() {
        let mut attempt = PlacingAttempt::new(Some(MADE), Millis(100), 2);
        attempt.heard(EndpointSaid::NeverAsked);
        attempt.heard(EndpointSaid::NeverAsked);
        assert_eq!(attempt.over(), AfterAttempt::TakeBack(MADE));
    }

    #[test]
    fn a_home_is_taken_back_if_everybody_refused() {
        let mut attempt = PlacingAttempt::new(Some(MADE), Millis(100), 2);
        attempt.heard(EndpointSaid::NotTaken);
        attempt.heard(EndpointSaid::NeverAsked);
        assert_eq!(attempt.over(), AfterAttempt::TakeBack(MADE));
        attempt.heard(EndpointSaid::MayHaveTaken);
        attempt.heard(EndpointSaid::NotTaken);
        assert_eq!(attempt.over(), AfterAttempt::Stays, "one that refuses does not speak for the other");
    }

    #[test]
    fn a_home_stays_if_anything_may_have_arrived() {
        let mut attempt = PlacingAttempt::new(Some(MADE), Millis(100), 2);
        attempt.heard(EndpointSaid::MayHaveTaken);
        attempt.heard(EndpointSaid::NeverAsked);
        assert_eq!(attempt.over(), AfterAttempt::Stays);
    }

    #[test]
    fn a_home_that_stood_before_is_not_taken_back() {
        let mut attempt = PlacingAttempt::new(None, Millis(100), 1);
        attempt.heard(EndpointSaid::NeverAsked);
        assert_eq!(attempt.over(), AfterAttempt::Stays);
    }

    #[test]
    fn each_endpoint_gets_its_share_of_what_is_left() {
        let mut attempt = PlacingAttempt::new(None, Millis(100), 2);
        assert_eq!(attempt.next_share(Millis(0)), Millis(50));
        assert_eq!(attempt.next_share(Millis(10)), Millis(90), "the first was quick");
        assert_eq!(attempt.next_share(Millis(200)), Millis(0));
    }

    proptest! {
        #[test]
        fn only_what_was_made_here_and_never_sent_is_taken_back(
            made: Option<u64>,
            arrived in proptest::collection::vec(any::<bool>(), 0..6),
        ) {
            let mut attempt = PlacingAttempt::new(made.map(HomeStamp), Millis(1), arrived.len());
            for arrived in &arrived {
                let said = if *arrived { EndpointSaid::MayHaveTaken } else { EndpointSaid::NeverAsked };
                attempt.heard(said);
            }
            let taken_back = attempt.over() != AfterAttempt::Stays;
            prop_assert_eq!(taken_back, made.is_some() && !arrived.contains(&true));
        }
    }
}
