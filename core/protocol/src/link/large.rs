//! The large messages of one connection, between their place on the lane and the stream that brings them.
//!
//! [`LargeArrivals`] brings the two together, whichever comes first. It decides when a large message is taken in, and
//! which one is still awaited; reading the streams and answering the sender is left to whoever owns the lane.
//!
//! Invariant: a large message is handed out at most once, never before its place, and never after its sender has given
//! it up. Places come with rising numbers, so what comes late without being awaited is known as such.

use alloc::collections::BTreeMap;

use crate::identity::CorrelationId;

/// Large messages that are announced, and those that came before they were; `T` is what a stream brought.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LargeArrivals<T> {
    /// Announced and not there yet, each with the call that waits.
    expected: BTreeMap<u64, Option<CorrelationId>>,
    /// There, and not announced yet.
    early: BTreeMap<u64, T>,
    /// The newest that was announced.
    newest: Option<u64>,
}

/// What to do with what a stream brought.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Came<T> {
    /// Its place was there already: take it in. With the call that waits; none for a tell.
    Due(Option<CorrelationId>, T),
    /// It is kept until its place comes.
    Early,
    /// Its sender has given it up, or it came twice: nobody wants it.
    Unwanted(T),
}

/// How a peer broke the rules of large messages. Its connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LargeFault {
    /// Too many are announced and do not come.
    #[error("too many large messages are announced")]
    TooManyAnnounced,
    /// Too many came before their place.
    #[error("too many large messages came before their place")]
    TooManyEarly,
}

impl<T> LargeArrivals<T> {
    /// Large messages that may be announced and not there yet.
    pub const MOST_ANNOUNCED: usize = 65_536;
    /// Large messages that may be there before they are announced.
    pub const MOST_EARLY: usize = 16;

    /// The place of a large message has come: what its stream brought, if that was here before.
    ///
    /// # Errors
    ///
    /// `TooManyAnnounced`; nothing changed.
    pub fn announced(&mut self, transfer: u64, call: Option<CorrelationId>) -> Result<Option<T>, LargeFault> {
        if self.expected.len() >= Self::MOST_ANNOUNCED {
            return Err(LargeFault::TooManyAnnounced);
        }
        self.newest = self.newest.max(Some(transfer));
        if let Some(early) = self.early.remove(&transfer) {
            return Ok(Some(early));
        }
        self.expected.insert(transfer, call);
        Ok(None)
    }

    /// The stream of a large message has brought it, or the reason why it is not read.
    ///
    /// # Errors
    ///
    /// `TooManyEarly`; nothing changed.
    pub fn came(&mut self, transfer: u64, brought: T) -> Result<Came<T>, LargeFault> {
        if let Some(call) = self.expected.remove(&transfer) {
            return Ok(Came::Due(call, brought));
        }
        if self.newest >= Some(transfer) {
            return Ok(Came::Unwanted(brought));
        }
        if self.early.len() >= Self::MOST_EARLY {
            return Err(LargeFault::TooManyEarly);
        }
        self.early.insert(transfer, brought);
        Ok(Came::Early)
    }

    /// The sender has given up a large message that it had announced.
    pub fn gone(&mut self, transfer: u64) {
        self.expected.remove(&transfer);
    }

    /// The large messages that are awaited.
    #[cfg(test)]
    fn awaited(&self) -> alloc::vec::Vec<u64> {
        self.expected.keys().copied().collect()
    }
}

impl<T> Default for LargeArrivals<T> {
    fn default() -> Self {
        Self { expected: BTreeMap::new(), early: BTreeMap::new(), newest: None }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    type Arrivals = LargeArrivals<&'static str>;

    fn call() -> CorrelationId {
        CorrelationId::new(1, 2, 3)
    }

    #[test]
    fn a_message_is_taken_in_when_both_its_place_and_its_stream_are_there() {
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.announced(1, Some(call())), Ok(None));
        assert_eq!(arrivals.came(1, "late"), Ok(Came::Due(Some(call()), "late")));
        assert_eq!(arrivals.came(2, "early"), Ok(Came::Early));
        assert_eq!(arrivals.announced(2, None), Ok(Some("early")));
        assert!(arrivals.awaited().is_empty());
    }

    #[test]
    fn what_was_given_up_is_not_awaited_and_not_taken_in() {
        let mut arrivals = Arrivals::default();
        arrivals.announced(1, None).unwrap();
        arrivals.announced(2, None).unwrap();
        arrivals.gone(1);
        assert_eq!(arrivals.awaited(), [2]);
        assert_eq!(arrivals.came(1, "on its way"), Ok(Came::Unwanted("on its way")));
    }

    #[test]
    fn a_peer_that_announces_or_sends_too_much_is_at_fault() {
        let mut arrivals = Arrivals::default();
        for transfer in 0..Arrivals::MOST_EARLY as u64 {
            assert_eq!(arrivals.came(transfer, "early"), Ok(Came::Early));
        }
        assert_eq!(arrivals.came(99, "one more"), Err(LargeFault::TooManyEarly));
        for transfer in 100..100 + Arrivals::MOST_ANNOUNCED as u64 {
            assert_eq!(arrivals.announced(transfer, None), Ok(None));
        }
        assert_eq!(arrivals.announced(u64::MAX, None), Err(LargeFault::TooManyAnnounced));
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Announce,
        Come(u64),
        GiveUp(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            Just(Step::Announce),
            (0_u64..12).prop_map(Step::Come),
            (0_u64..12).prop_map(Step::GiveUp)
        ]
    }

    proptest! {
        #[test]
        fn each_is_handed_out_once_and_awaited_until_it_came_or_was_given_up(
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let mut arrivals = LargeArrivals::<u64>::default();
            let (mut places, mut out, mut gone) = (0_u64, Vec::new(), BTreeSet::new());
            let mut came = BTreeMap::<u64, u64>::new();
            for step in steps {
                match step {
                    Step::Announce => {
                        out.extend(arrivals.announced(places, None).unwrap());
                        places += 1;
                    }
                    Step::Come(transfer) => {
                        *came.entry(transfer).or_default() += 1;
                        if let Came::Due(_, brought) = arrivals.came(transfer, transfer).unwrap() {
                            prop_assert!(!gone.contains(&brought), "given up");
                            out.push(brought);
                        }
                    }
                    // Only what was announced can be given up: the news takes the same lane.
                    Step::GiveUp(transfer) if transfer < places => {
                        arrivals.gone(transfer);
                        gone.insert(transfer);
                    }
                    Step::GiveUp(_) => {}
                }
                let unique: BTreeSet<_> = out.iter().copied().collect();
                prop_assert_eq!(unique.len(), out.len(), "handed out twice");
                prop_assert!(out.iter().all(|one| *one < places && came.contains_key(one)));
                let awaited = (0..places).filter(|one| !unique.contains(one) && !gone.contains(one));
                prop_assert_eq!(arrivals.awaited(), awaited.collect::<Vec<_>>());
            }
        }
    }
}
