//! Notices that the whole machine was stopped in a way that the node's own clock did not count.
//!
//! A virtual machine that is paused, moved or restored from a snapshot goes on with a clock that stood still: the node would
//! serve by a lease that others have long seen run out. The wall clock is set right soon after. So a wall clock that ran ahead
//! of the node's own is reason for doubt: the shell says so with [`HolderEvent::ClockJumped`](super::HolderEvent), and the
//! holder serves nothing until a beat sent afterwards is confirmed. Somebody who sets the wall clock forward costs the node
//! that one beat; one that goes backwards proves nothing and is followed.

use super::times;
use crate::time::Millis;

/// Compares the wall clock with the node's own, from one look to the next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClockWatch {
    tolerance: Millis,
    last: Option<Look>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Look {
    own: Millis,
    wall: Millis,
}

impl ClockWatch {
    /// For a session with this time to live.
    pub const fn new(ttl: Millis) -> Self {
        Self { tolerance: times::clock_tolerance(ttl), last: None }
    }

    /// Takes what both clocks say now; true if the wall clock ran ahead by more than is tolerated since the last look.
    pub fn has_jumped(&mut self, own: Millis, wall: Millis) -> bool {
        let Some(last) = self.last.replace(Look { own, wall }) else { return false };
        let (own_passed, wall_passed) = (own.since(last.own), wall.since(last.wall));
        wall_passed > own_passed + self.tolerance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Millis = Millis(6_000);

    fn looks(clocks: &[(u64, u64)]) -> alloc::vec::Vec<bool> {
        let mut watch = ClockWatch::new(TTL);
        clocks.iter().map(|(own, wall)| watch.has_jumped(Millis(*own), Millis(*wall))).collect()
    }

    #[test]
    fn a_wall_clock_that_runs_ahead_by_more_than_a_quarter_of_the_session_is_noticed_once() {
        assert_eq!(looks(&[(100, 5_000), (600, 7_001), (1_100, 7_501)]), [false, true, false]);
        assert_eq!(looks(&[(100, 5_000), (600, 7_000)]), [false, false], "that much is tolerated");
    }

    #[test]
    fn a_wall_clock_that_goes_backwards_or_a_suspend_that_both_count_is_no_jump() {
        assert_eq!(looks(&[(100, 5_000), (600, 1_000), (1_100, 1_500)]), [false, false, false]);
        assert_eq!(looks(&[(100, 5_000), (90_100, 95_000)]), [false, false]);
    }
}
