//! Until when the node may start work for its actors, and until when it may answer for it.

use std::sync::atomic::{AtomicU64, Ordering};

use archipelago_protocol::time::Millis;

use crate::env::COARSE_LAG;
use crate::mutants::{Mutant, broken};

/// The session's two deadlines, readable from every arbiter. Both are in the past until a session is confirmed.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    serve_until: AtomicU64,
    fence_at: AtomicU64,
}

impl Gate {
    pub(crate) fn set(&self, serve_until: Millis, fence_at: Millis) {
        self.serve_until.store(serve_until.0, Ordering::Release);
        self.fence_at.store(fence_at.0, Ordering::Release);
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
