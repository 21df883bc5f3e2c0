//! Whether a datacenter that did not answer is asked again.

use super::flight::FlightId;
use crate::time::Millis;

/// The breaker of one datacenter. After the pause one search asks again; the others leave it alone until that is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) enum Breaker {
    /// It is asked.
    #[default]
    Closed,
    /// It is left alone until then.
    Open(Millis),
    /// This search finds out whether it answers again.
    Probing(FlightId),
}

impl Breaker {
    /// Whether a new search may ask.
    pub(super) fn admits(&mut self, now: Millis, flight: FlightId) -> bool {
        match *self {
            Self::Closed => true,
            Self::Open(until) if until <= now => {
                *self = Self::Probing(flight);
                true
            }
            Self::Open(_) | Self::Probing(_) => false,
        }
    }

    /// A search has ended without an answer from it that it had to wait for: nothing is known.
    pub(super) fn let_go(&mut self, now: Millis, flight: FlightId) {
        if *self == Self::Probing(flight) {
            *self = Self::Open(now);
        }
    }
}
