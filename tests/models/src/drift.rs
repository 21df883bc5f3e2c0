//! Clocks that run too fast or too slow, both ways and changing all the time, against the real margins (P9).
//!
//! The holder counts from when it sent a beat, the observer from when it received it; at the same instant, which is the
//! worst case. In every step of true time each clock goes right, slow or fast.

use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug)]
struct Drift {
    /// How far the rate of a clock is off, in thousandths.
    off: u64,
    broken: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// The observer waits for T and no longer.
    WaitsForT,
    /// The holder stops after T, not before.
    StopsAfterT,
}

/// What the clocks of holder and observer show since the beat.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Clocks {
    holder: u64,
    observer: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    holder: Rate,
    observer: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rate {
    Slow,
    Right,
    Fast,
}

impl Drift {
    fn advance(&self, rate: Rate) -> u64 {
        let off = STEP * self.off / 1_000;
        match rate {
            Rate::Slow => STEP - off,
            Rate::Right => STEP,
            Rate::Fast => STEP + off,
        }
    }

    fn holder_has_stopped(&self, clocks: &Clocks) -> bool {
        let fence = times::fence_at(Millis::ZERO, TTL);
        Millis(clocks.holder) >= if self.broken == Some(Mutant::StopsAfterT) { TTL } else { fence }
    }

    fn observer_may_end(&self, clocks: &Clocks) -> bool {
        let wait = times::observer_wait(TTL);
        Millis(clocks.observer) >= if self.broken == Some(Mutant::WaitsForT) { TTL } else { wait }
    }
}

impl Model for Drift {
    type State = Clocks;
    type Action = Step;

    fn init_states(&self) -> Vec<Clocks> {
        vec![Clocks { holder: 0, observer: 0 }]
    }

    fn actions(&self, clocks: &Clocks, actions: &mut Vec<Step>) {
        if self.observer_may_end(clocks) && self.holder_has_stopped(clocks) {
            return;
        }
        for holder in [Rate::Slow, Rate::Right, Rate::Fast] {
            actions.extend([Rate::Slow, Rate::Right, Rate::Fast].map(|observer| Step { holder, observer }));
        }
    }

    fn next_state(&self, last: &Clocks, step: Step) -> Option<Clocks> {
        let (holder, observer) = (self.advance(step.holder), self.advance(step.observer));
        Some(Clocks { holder: last.holder + holder, observer: last.observer + observer })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("ended_means_stopped", |model: &Self, clocks: &Clocks| {
                !model.observer_may_end(clocks) || model.holder_has_stopped(clocks)
            }),
            Property::sometimes("an observer may end", |model, clocks: &Clocks| {
                model.observer_may_end(clocks)
            }),
        ]
    }
}

/// Long, so that the grace does not hide a margin that is too small.
const TTL: Millis = Millis(59_000);
/// One step of true time, in milliseconds.
const STEP: u64 = 2_000;

mod tests {
    use super::*;
    use crate::check::{explore, hunt};

    #[test]
    fn clocks_within_the_margin_never_end_a_holder_that_runs() {
        for off in [0, 10, 20] {
            explore(Drift { off, broken: None }).assert_clean();
        }
    }

    #[test]
    fn mutant_31_clocks_beyond_the_margin_are_noticed() {
        for off in [40, 50, 100, 200] {
            hunt(Drift { off, broken: None }).assert_broken("ended_means_stopped");
        }
    }

    #[test]
    fn mutant_31_a_margin_on_one_side_is_not_enough() {
        for broken in [Mutant::WaitsForT, Mutant::StopsAfterT] {
            hunt(Drift { off: 20, broken: Some(broken) }).assert_broken("ended_means_stopped");
        }
    }
}
