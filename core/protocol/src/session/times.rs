//! The lengths of time of the session protocol, all from the T in the record.
//!
//! The holder rounds against itself and the observer against itself, so that rounding can only widen the gap
//! between "has stopped" and "may be ended".

use crate::time::Millis;

/// T where a backend names none.
pub const DEFAULT_TTL: Millis = Millis(6_000);
/// The shortest T that a configuration may ask for.
pub const MIN_TTL: Millis = Millis(3_000);
/// What an observer waits beyond the drift of clocks.
pub const GRACE: Millis = Millis(300);
/// How long an ended lease is kept for readers that still need the evidence.
pub const KEEP_ENDED: Millis = Millis(3_600_000);

/// When nothing may leave the node any more: T(1−ε) after the confirmed beat was *sent*.
pub fn fence_at(sent_at: Millis, ttl: Millis) -> Millis {
    sent_at + ttl - drift(ttl)
}

/// When the node takes nothing new and stops its activations: the stop budget before [`fence_at`].
pub fn serve_until(sent_at: Millis, ttl: Millis) -> Millis {
    fence_at(sent_at, ttl) - stop_budget(ttl)
}

/// The time a node has between "take nothing new" and "nothing leaves": T/10.
pub const fn stop_budget(ttl: Millis) -> Millis {
    Millis(ttl.0.div_ceil(10))
}

/// W, how long an observer waits after it *received* a version before it may end it: T(1+ε) + grace.
pub fn observer_wait(ttl: Millis) -> Millis {
    ttl + drift(ttl) + GRACE
}

/// How often a holder beats: T/3.
pub const fn beat_period(ttl: Millis) -> Millis {
    Millis(ttl.0 / 3)
}

/// How long one attempt is waited for before it counts as unanswered; shorter than the beat period.
pub const fn attempt_timeout(ttl: Millis) -> Millis {
    Millis(ttl.0 / 4)
}

/// How soon an attempt that failed is followed by the next.
pub const fn retry_delay(ttl: Millis) -> Millis {
    Millis(ttl.0 / 12)
}

/// How far the wall clock may run ahead of the node's own before the node doubts its own: T/4.
pub const fn clock_tolerance(ttl: Millis) -> Millis {
    Millis(ttl.0 / 4)
}

/// How often the two clocks are compared: T/6.
pub const fn clock_look(ttl: Millis) -> Millis {
    Millis(ttl.0 / 6)
}

/// The engine's own time to live on a live lease: several T, so that it never decides anything while nodes live.
pub const fn engine_ttl(ttl: Millis) -> Millis {
    Millis(ttl.0.saturating_mul(6))
}

const fn drift(ttl: Millis) -> Millis {
    Millis(ttl.0.saturating_mul(EPSILON_PERCENT).div_ceil(100))
}

/// ε: how far a clock's rate may be off, in percent.
const EPSILON_PERCENT: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn six_seconds_give_the_documented_times() {
        let (sent, ttl) = (Millis(10_000), DEFAULT_TTL);
        assert_eq!(fence_at(sent, ttl), Millis(15_880));
        assert_eq!(serve_until(sent, ttl), Millis(15_280));
        assert_eq!(observer_wait(ttl), Millis(6_420));
    }

    proptest! {
        /// The margin is real: with both clocks off by ε in the bad direction the holder is fenced before the
        /// observer, who received the beat at the instant it was sent, may end it.
        #[test]
        fn a_slow_holder_is_fenced_before_a_fast_observer_ends_it(ttl in 300_u64..600_000, sent in 0_u64..1_000_000) {
            let (ttl, sent) = (Millis(ttl), Millis(sent));
            let holder_true = (fence_at(sent, ttl) - sent).0 as f64 / 0.98;
            let observer_true = observer_wait(ttl).0 as f64 / 1.02;
            prop_assert!(holder_true < observer_true, "{holder_true} {observer_true}");
        }
    }
}
