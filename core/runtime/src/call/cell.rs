//! Where the answer of one call is put and picked up.
//!
//! The caller's future, the job and the table of pending calls share one cell. The table decides who may put
//! the answer in; the cell only carries it across, also between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::CorrelationId;

/// The shared end of a call whose reply is an `R`.
pub(crate) struct CallCell<R> {
    inner: Mutex<Inner<R>>,
}

/// What the table of pending calls needs of a cell, whatever its reply is.
pub(crate) trait Waiter: Send + Sync {
    /// Ends the call without a reply.
    fn fail(&self, error: CallError);
}

struct Inner<R> {
    answer: Option<Result<R, CallError>>,
    waker: Option<Waker>,
    call: Option<CorrelationId>,
    abandoned: bool,
}

impl<R> CallCell<R> {
    pub(crate) const fn new() -> Self {
        Self { inner: Mutex::new(Inner { answer: None, waker: None, call: None, abandoned: false }) }
    }

    /// Puts the answer in and wakes the caller.
    pub(crate) fn finish(&self, answer: Result<R, CallError>) {
        let waker = {
            let mut inner = self.lock();
            inner.answer = Some(answer);
            inner.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Takes the answer out, or asks to be woken.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Result<R, CallError>> {
        let mut inner = self.lock();
        if let Some(answer) = inner.answer.take() {
            return Poll::Ready(answer);
        }
        match &mut inner.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Notes under which id the arbiter keeps the call.
    pub(crate) fn registered(&self, call: CorrelationId) {
        self.lock().call = Some(call);
    }

    /// Notes that nobody waits any more; answers with the id to cancel, if there is one.
    pub(crate) fn abandon(&self) -> Option<CorrelationId> {
        let mut inner = self.lock();
        inner.abandoned = true;
        inner.call
    }

    /// True if nobody waits any more.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// A panic of user code cannot happen while the lock is held, so a poisoned lock holds sound data.
    fn lock(&self) -> MutexGuard<'_, Inner<R>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Send> Waiter for CallCell<R> {
    fn fail(&self, error: CallError) {
        self.finish(Err(error));
    }
}
