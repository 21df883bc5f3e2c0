//! How long handlers take, found out by looking at one message of [`EVERY`].
//!
//! An exact clock read twice costs a good part of what a message within an arbiter does, so most messages are not measured.
//! Which ones are follows from their tokens: they grow by an odd number, so that one of [`EVERY`] in a row is a multiple of it.
//! No more than run at a time are remembered.

use std::cell::RefCell;

/// When the handlers began that are measured.
#[derive(Default)]
pub(crate) struct Timing {
    /// Tokens, each with the nanoseconds at which its handler began.
    began: RefCell<Vec<(u64, u64)>>,
}

impl Timing {
    /// Whether the message with this token is measured.
    #[inline]
    pub(crate) const fn measures(token: u64) -> bool {
        token.is_multiple_of(EVERY)
    }

    /// Its handler begins.
    #[cold]
    pub(crate) fn begin(&self, token: u64, nanos: u64) {
        self.began.borrow_mut().push((token, nanos));
    }

    /// Its handler has ended, or its reply has come; answers how many seconds that took.
    #[cold]
    pub(crate) fn end(&self, token: u64, nanos: u64) -> Option<f64> {
        let mut began = self.began.borrow_mut();
        let at = began.iter().position(|(own, _)| *own == token)?;
        let (_, since) = began.swap_remove(at);
        Some(nanos.saturating_sub(since) as f64 / 1e9)
    }
}

/// One message of so many is measured.
const EVERY: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_handlers_are_measured_each_for_itself() {
        let timing = Timing::default();
        timing.begin(64, 1_000_000_000);
        timing.begin(128, 2_000_000_000);
        assert_eq!(timing.end(64, 4_500_000_000), Some(3.5));
        assert_eq!(timing.end(64, 5_000_000_000), None, "it has ended");
        assert_eq!(timing.end(128, 2_000_000_000), Some(0.0));
        assert!(timing.began.borrow().is_empty(), "nothing is remembered of what has ended");
    }

    #[test]
    fn one_message_of_sixty_four_is_measured() {
        let tokens = (0_u64..640).map(|n| 7_u64.wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        assert_eq!(tokens.filter(|token| Timing::measures(*token)).count(), 10);
    }
}
