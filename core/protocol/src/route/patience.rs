//! How long messages wait for a lost connection before they look for another way.

use crate::time::Millis;

/// The patience of one lane with its peer: the peer may be gone, and its actors may live elsewhere by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Patience {
    /// Since when the lane is known to be without a connection, or when its messages last looked for another way.
    since: Option<Millis>,
}

impl Patience {
    /// How long it lasts.
    pub const LIMIT: Millis = Millis(1_000);

    /// Looks at the lane; true if what waits in it should look for its way again. Also who comes when the connection has
    /// been gone for long need not wait as long again.
    pub fn is_over(&mut self, now: Millis, connected: bool, waits: bool) -> bool {
        if connected {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let over = waits && now.since(since) >= Self::LIMIT;
        if over {
            self.since = Some(now);
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const WAITS: bool = true;

    fn look(patience: &mut Patience, now: u64, connected: bool, waits: bool) -> bool {
        patience.is_over(Millis(now), connected, waits)
    }

    #[test]
    fn what_waits_looks_again_after_a_second_and_every_second() {
        let mut patience = Patience::default();
        let looks: Vec<u64> =
            (0..=3_500).step_by(10).filter(|now| look(&mut patience, *now, false, WAITS)).collect();
        assert_eq!(looks, [1_000, 2_000, 3_000]);
    }

    #[test]
    fn who_comes_late_need_not_wait_as_long_again() {
        let mut patience = Patience::default();
        assert!(!look(&mut patience, 0, false, WAITS));
        assert!(!look(&mut patience, 900, false, !WAITS), "it has given up");
        assert!(look(&mut patience, 5_000, false, WAITS), "the next one finds the connection long gone");
        assert!(!look(&mut patience, 5_500, false, WAITS));
    }

    #[test]
    fn a_connection_ends_the_wait() {
        let mut patience = Patience::default();
        assert!(!look(&mut patience, 0, false, WAITS));
        assert!(!look(&mut patience, 999, true, WAITS));
        assert!(!look(&mut patience, 1_500, false, WAITS));
        assert!(look(&mut patience, 2_500, false, WAITS));
    }
}
