//! How an arbiter ends: its work first, then its actors, then itself.

use crate::time::Millis;

/// The end of one arbiter, from the request to stop on.
///
/// Work that one arbiter has finished may still send to another, so none lets its actors go before all are
/// quiet. Shortly before the time is up they go all the same, so that one hanging job does not cost every other
/// actor its farewell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Drain {
    until: Millis,
    leave_at: Millis,
    all_quiet: bool,
    asked_at: Option<Millis>,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DrainStep {
    /// Nothing yet.
    Wait,
    /// Ask every actor to leave.
    Leave,
    /// End, whatever is left.
    End,
}

impl Drain {
    /// A drain that begins at `now` and ends at `until`; farewells may take `farewell`.
    pub fn new(now: Millis, until: Millis, farewell: Millis) -> Self {
        let half = Millis(until.since(now).0 / 2);
        Self { until, leave_at: until - farewell.min(half), all_quiet: false, asked_at: None }
    }

    /// Notes that no arbiter of the node has work left.
    pub fn all_quiet(&mut self) {
        self.all_quiet = true;
    }

    /// One look at what is left.
    pub fn look(&mut self, now: Millis, jobs: usize, actors: usize) -> DrainStep {
        if now >= self.until || (self.all_quiet && jobs == 0 && actors == 0) {
            return DrainStep::End;
        }
        let time_to_leave = (self.all_quiet && jobs == 0) || now >= self.leave_at;
        // Actors that came to life after the last request are asked by the next.
        let asked_lately = self.asked_at.is_some_and(|at| now < at + ASK_AGAIN);
        if !time_to_leave || asked_lately || actors == 0 {
            return DrainStep::Wait;
        }
        self.asked_at = Some(now);
        DrainStep::Leave
    }

    /// When to look again if nothing happens.
    pub fn next_look(&self, now: Millis) -> Millis {
        let again = self.asked_at.map_or(self.leave_at, |at| at + ASK_AGAIN);
        if again > now { again.min(self.until) } else { self.until }
    }
}

/// How often actors are asked to leave.
const ASK_AGAIN: Millis = Millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn drain() -> Drain {
        Drain::new(Millis(0), Millis(1_000), Millis(300))
    }

    #[test]
    fn actors_stay_until_every_arbiter_is_quiet() {
        let mut drain = drain();
        assert_eq!(drain.look(Millis(10), 0, 5), DrainStep::Wait, "another arbiter may still send");
        drain.all_quiet();
        assert_eq!(drain.look(Millis(20), 1, 5), DrainStep::Wait);
        assert_eq!(drain.look(Millis(30), 0, 5), DrainStep::Leave);
        assert_eq!(drain.look(Millis(40), 0, 5), DrainStep::Wait, "asked already");
        assert_eq!(drain.look(Millis(130), 0, 1), DrainStep::Leave, "late-comers are asked too");
        assert_eq!(drain.look(Millis(140), 0, 0), DrainStep::End);
    }

    #[test]
    fn a_hanging_job_does_not_cost_the_others_their_farewell() {
        let mut drain = drain();
        assert_eq!(drain.look(Millis(699), 1, 5), DrainStep::Wait);
        assert_eq!(drain.next_look(Millis(699)), Millis(700));
        assert_eq!(drain.look(Millis(700), 1, 5), DrainStep::Leave);
        assert_eq!(drain.look(Millis(1_000), 1, 1), DrainStep::End);
    }

    #[test]
    fn farewells_get_half_of_a_short_budget_at_most() {
        let mut drain = Drain::new(Millis(0), Millis(100), Millis(10_000));
        assert_eq!(drain.look(Millis(49), 1, 1), DrainStep::Wait);
        assert_eq!(drain.look(Millis(50), 1, 1), DrainStep::Leave);
    }

    #[test]
    fn the_next_look_is_never_in_the_past() {
        let mut drain = drain();
        for now in (0..1_000).step_by(37) {
            drain.look(Millis(now), 1, 1);
            assert!(drain.next_look(Millis(now)) > Millis(now));
        }
    }
}
