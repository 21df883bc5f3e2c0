//! Until when the node may start work for its actors, and until when it may answer for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::task::Waker;

use archipelago_protocol::time::Millis;

use crate::env::COARSE_LAG;
use crate::mutants::{Mutant, broken};

/// The session's two deadlines, readable from every arbiter. Both are in the past until a session is confirmed.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    serve_until: AtomicU64,
    fence_at: AtomicU64,
    /// By when nothing may run any more. Unlike `fence_at` it stays when the gate is shut before its time.
    over_by: AtomicU64,
    /// Whether it is shut for ever. Held while the deadlines change: nothing opens a gate that somebody shuts meanwhile.
    is_shut: Mutex<bool>,
    guard: OnceLock<Waker>,
}

impl Gate {
    /// Moves the deadlines, unless the gate is shut: the answer to a beat may come after the node has given up.
    pub(crate) fn set(&self, serve_until: Millis, fence_at: Millis) {
        let is_shut = self.is_shut.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_shut {
            self.note(serve_until, fence_at);
        }
    }

    fn note(&self, serve_until: Millis, fence_at: Millis) {
        self.serve_until.store(serve_until.0, Ordering::Release);
        if fence_at > Millis::ZERO {
            self.over_by.store(fence_at.0, Ordering::Release);
        }
        self.fence_at.store(fence_at.0, Ordering::Release);
    }

    /// Shuts the gate for ever; everything has to end by `over_by`.
    pub(crate) fn shut(&self, over_by: Millis) {
        let mut is_shut = self.is_shut.lock().unwrap_or_else(PoisonError::into_inner);
        *is_shut = true;
        self.note(Millis::ZERO, Millis::ZERO);
        self.over_by.store(over_by.0, Ordering::Release);
        drop(is_shut);
        self.wake_guard();
    }

    /// By when nothing may run any more.
    pub(crate) fn over_by(&self) -> Millis {
        Millis(self.over_by.load(Ordering::Acquire))
    }

    pub(super) fn guarded_by(&self, guard: Waker) {
        // There is one per life.
        let _ = self.guard.set(guard);
        self.wake_guard();
    }

    /// Makes whoever watches the fence look.
    pub(crate) fn wake_guard(&self) {
        if let Some(guard) = self.guard.get() {
            guard.wake_by_ref();
        }
    }

    /// How long jobs may still start.
    pub(crate) fn remaining(&self, now: Millis) -> Millis {
        self.serve_until().since(now)
    }

    /// Until when jobs may start.
    #[inline]
    pub(crate) fn serve_until(&self) -> Millis {
        Millis(self.serve_until.load(Ordering::Acquire))
    }

    /// Whether a job may start, by the coarse clock: its lag is taken off the time to serve.
    #[inline]
    pub(crate) fn may_start(&self, coarse: Millis) -> bool {
        coarse + COARSE_LAG < self.serve_until() || broken(Mutant::NoGate)
    }

    /// Whether a reply may leave at `now`, a time read after the work was done.
    #[inline]
    pub(crate) fn may_answer(&self, now: Millis) -> bool {
        now.0 < self.fence_at.load(Ordering::Acquire) || broken(Mutant::NoGate)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_gate_that_was_shut_is_opened_by_no_later_answer() {
        let gate = Gate::default();
        gate.set(Millis(5_000), Millis(6_000));
        assert!(gate.may_start(Millis(1_000)) && gate.may_answer(Millis(1_000)));
        gate.shut(Millis(6_000));
        gate.set(Millis(7_000), Millis(8_000));
        assert!(!gate.may_start(Millis(1_000)) && !gate.may_answer(Millis(1_000)));
        assert_eq!(gate.over_by(), Millis(6_000));
    }

    #[test]
    fn whichever_thread_comes_first_the_gate_ends_shut() {
        for _ in 0..2_000 {
            let (gate, both) = (Gate::default(), Barrier::new(2));
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    both.wait();
                    gate.set(Millis(7_000), Millis(8_000));
                });
                both.wait();
                gate.shut(Millis(6_000));
            });
            assert!(!gate.may_start(Millis(1_000)) && !gate.may_answer(Millis(1_000)));
            assert_eq!(gate.over_by(), Millis(6_000));
        }
    }
}
