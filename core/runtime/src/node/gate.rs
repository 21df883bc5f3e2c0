//! Until when the node may start work for its actors, and until when it may answer for it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
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
    guard: OnceLock<Waker>,
}

impl Gate {
    pub(crate) fn set(&self, serve_until: Millis, fence_at: Millis) {
        self.serve_until.store(serve_until.0, Ordering::Release);
        if fence_at > Millis::ZERO {
            self.over_by.store(fence_at.0, Ordering::Release);
        }
        self.fence_at.store(fence_at.0, Ordering::Release);
    }

    /// Shuts the gate for ever; everything has to end by `over_by`.
    pub(crate) fn shut(&self, over_by: Millis) {
        self.set(Millis::ZERO, Millis::ZERO);
        self.over_by.store(over_by.0, Ordering::Release);
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
