//! Virtual time, and a node's own view of it.
//!
//! There is one true clock, tokio's paused one: it moves only when nothing is left to do. Each node reads it
//! through a [`SkewedClock`], which runs a little faster or slower.
#![expect(clippy::disallowed_methods, reason = "the simulator's environment is where time comes from")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archipelago_protocol::time::Millis;
use tokio::time::Instant;

/// True time since the simulation began.
#[derive(Clone, Copy, Debug)]
pub struct TrueClock {
    zero: Instant,
}

impl TrueClock {
    /// A clock that shows zero now. Only inside a simulation's runtime.
    pub(crate) fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// How much time has passed.
    pub fn elapsed(&self) -> Duration {
        self.zero.elapsed()
    }

    /// Waits in true time.
    pub(crate) async fn sleep(length: Duration) {
        tokio::time::sleep(length).await;
    }
}

/// A clock whose rate is off by some parts per million.
#[derive(Debug)]
pub(crate) struct SkewedClock {
    truth: TrueClock,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    /// What true time and own time were when the rate was set.
    truth: u64,
    own: u64,
    ppm: i32,
}

impl SkewedClock {
    /// A clock that gains `ppm` microseconds every true second.
    pub(crate) fn new(truth: TrueClock, ppm: i32) -> Self {
        let state = State { truth: 0, own: ZERO_NANOS, ppm };
        Self { truth, state: Mutex::new(state) }
    }

    /// Changes the rate. Own time does not jump; waits that have begun keep their length in true time.
    pub(crate) fn set_rate(&self, ppm: i32) {
        let (truth, own) = (self.true_nanos(), self.nanos());
        *self.lock() = State { truth, own, ppm };
    }

    pub(crate) fn nanos(&self) -> u64 {
        let state = *self.lock();
        let passed = self.true_nanos() - state.truth;
        if state.ppm == 0 {
            return state.own + passed;
        }
        let own = i128::from(passed) * (MILLION + i128::from(state.ppm)) / MILLION;
        state.own + u64::try_from(own).unwrap_or(u64::MAX)
    }

    pub(crate) fn now(&self) -> Millis {
        Millis(self.nanos() / NANOS_PER_MILLI)
    }

    /// How long to wait in true time for own time to grow by `length`, rounded up.
    pub(crate) fn true_length(&self, length: Millis) -> Duration {
        let own = i128::from(length.0) * i128::from(NANOS_PER_MILLI);
        let rate = MILLION + i128::from(self.lock().ppm);
        let nanos = (own * MILLION + rate - 1) / rate;
        // Beyond a few hundred years tokio's timers, and this program's patience, end.
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4).min(u64::MAX / 4))
    }

    fn true_nanos(&self) -> u64 {
        let elapsed = self.truth.elapsed();
        elapsed.as_secs() * NANOS_PER_SECOND + u64::from(elapsed.subsec_nanos())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const MILLION: i128 = 1_000_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// Where own clocks begin: not at zero, so that zero is in the past.
const ZERO_NANOS: u64 = 1_000_000_000_000;
