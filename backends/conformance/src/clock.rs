//! Timers for tests: one that somebody moves, and one that never waits.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use archipelago_directory::{Sleep, Timer};
use archipelago_protocol::time::Millis;

/// A clock that stands still until it is moved.
#[derive(Clone, Debug, Default)]
pub struct ManualTimer {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    now: Millis,
    next_sleeper: u64,
    sleepers: BTreeMap<u64, Waker>,
}

impl ManualTimer {
    /// Moves the clock on by `length` and wakes all who sleep on it.
    pub fn advance(&self, length: Millis) {
        let mut state = self.lock();
        state.now = state.now + length;
        let sleepers = std::mem::take(&mut state.sleepers);
        drop(state);
        sleepers.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Timer for ManualTimer {
    fn now(&self) -> Millis {
        self.lock().now
    }

    fn sleep(&self, length: Millis) -> Sleep {
        let mut state = self.lock();
        state.next_sleeper += 1;
        let (id, until) = (state.next_sleeper, state.now + length);
        drop(state);
        Box::pin(ManualSleep { timer: self.clone(), id, until })
    }
}

struct ManualSleep {
    timer: ManualTimer,
    id: u64,
    until: Millis,
}

impl Future for ManualSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.timer.lock();
        if state.now >= self.until {
            return Poll::Ready(());
        }
        state.sleepers.insert(self.id, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualSleep {
    fn drop(&mut self) {
        self.timer.lock().sleepers.remove(&self.id);
    }
}

/// A timer on which every wait is over at once; for stores that never make anybody wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImmediateTimer;

impl Timer for ImmediateTimer {
    fn now(&self) -> Millis {
        Millis::ZERO
    }

    fn sleep(&self, _length: Millis) -> Sleep {
        Box::pin(std::future::ready(()))
    }
}
