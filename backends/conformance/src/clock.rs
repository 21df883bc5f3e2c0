//! Timers for tests: one that somebody moves, and one that never waits.

use std::cell::Cell;
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

/// A timer on which every wait is over at once, and has taken its time: for stores that never make anybody wait.
///
/// Its clock is the thread's own and moves by what was slept on that thread, so that rules about time can be run without
/// waiting. A store behind a network needs a real timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImmediateTimer;

thread_local! {
    static SLEPT: Cell<Millis> = const { Cell::new(Millis::ZERO) };
}

impl Timer for ImmediateTimer {
    fn now(&self) -> Millis {
        SLEPT.get()
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(async move { SLEPT.set(SLEPT.get() + length) })
    }
}
