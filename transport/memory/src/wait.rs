//! How a party waits: a waker in the network's books, and a timer of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;

use crate::state::State;
use crate::timer::Timer;

/// The network, as everything that belongs to it holds it.
pub(crate) struct Shared {
    pub(crate) timer: Arc<dyn Timer>,
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(state: State, timer: Arc<dyn Timer>) -> Arc<Self> {
        Arc::new(Self { timer, state: Mutex::new(state) })
    }

    /// Brings the network up to date and does something with it.
    ///
    /// Tasks are woken afterwards, outside the lock: a waker may be the last to hold a task, and the task an end of a
    /// connection.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut State, Millis) -> T) -> T {
        let now = self.timer.now();
        let (value, wakers) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.settle(now);
            let value = act(&mut state, now);
            (value, std::mem::take(&mut state.to_wake))
        };
        wakers.into_iter().for_each(Waker::wake);
        value
    }
}

/// What a look at the network shows: an answer, or when to look again at the latest.
pub(crate) enum Look<T> {
    Ready(T),
    Until(Millis),
}

/// The timer of one who waits.
#[derive(Default)]
pub(crate) struct Wait {
    sleep: Option<(Millis, BoxFuture<'static, ()>)>,
}

impl Wait {
    /// Looks until there is an answer or nothing more to see for now.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
        mut look: impl FnMut(&mut State, Millis, &Waker) -> Look<T>,
    ) -> Poll<T> {
        loop {
            match shared.with(|state, now| look(state, now, cx.waker())) {
                Look::Ready(value) => {
                    self.sleep = None;
                    return Poll::Ready(value);
                }
                Look::Until(at) => {
                    if self.arm(cx, shared, at).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Ready when `at` has come.
    fn arm(&mut self, cx: &mut Context<'_>, shared: &Shared, at: Millis) -> Poll<()> {
        if at == Millis::MAX {
            self.sleep = None;
            return Poll::Pending;
        }
        let stale = self.sleep.as_ref().is_none_or(|(armed, _)| *armed != at);
        if stale {
            let length = at.since(shared.timer.now());
            self.sleep = Some((at, shared.timer.sleep(length)));
        }
        let Some((_, sleep)) = &mut self.sleep else { return Poll::Pending };
        let over = sleep.as_mut().poll(cx);
        if over.is_ready() {
            self.sleep = None;
        }
        over
    }
}

/// The wakers of those who wait for the same.
#[derive(Default)]
pub(crate) struct Waiters(Vec<Waker>);

impl Waiters {
    pub(crate) fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    pub(crate) fn wake(&mut self, to_wake: &mut Vec<Waker>) {
        to_wake.append(&mut self.0);
    }
}
