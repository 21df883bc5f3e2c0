//! The future a caller waits on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use archipelago_protocol::call::CallError;
use futures_core::future::BoxFuture;

use super::CallCell;
use crate::arbiter;
use crate::node::NodeShared;

/// A call under way. Dropping it cancels the call: a handler that has not started never will.
///
/// The message is on its way as soon as the call was made, whether or not it is awaited.
#[must_use = "a call that is not awaited is cancelled; use tell if no answer is wanted"]
pub struct Call<R>(State<R>);

enum State<R> {
    Failed(CallError),
    Waiting { cell: Arc<CallCell<R>>, home: Home, backstop: Option<BoxFuture<'static, ()>> },
    Over,
}

/// The arbiter that keeps the call.
pub(crate) struct Home {
    pub(crate) node: Arc<NodeShared>,
    pub(crate) arbiter: u16,
}

impl<R> Call<R> {
    /// A call that ended before it began.
    pub(crate) const fn failed(error: CallError) -> Self {
        Self(State::Failed(error))
    }

    /// A call kept by the arbiter `home`. A caller on another thread brings a `backstop`: it ends the call when
    /// the arbiter itself is stuck and cannot.
    pub(crate) const fn waiting(
        cell: Arc<CallCell<R>>,
        home: Home,
        backstop: Option<BoxFuture<'static, ()>>,
    ) -> Self {
        Self(State::Waiting { cell, home, backstop })
    }
}

impl<R> Future for Call<R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = match &mut self.0 {
            State::Waiting { cell, backstop, .. } => match (cell.poll(cx), backstop) {
                (Poll::Ready(answer), _) => answer,
                (Poll::Pending, None) => return Poll::Pending,
                (Poll::Pending, Some(backstop)) => {
                    ready!(backstop.as_mut().poll(cx));
                    cell.abandon();
                    Err(CallError::Timeout { started: true })
                }
            },
            State::Failed(error) => Err(error.clone()),
            State::Over => panic!("a call was polled after it had ended"),
        };
        self.0 = State::Over;
        Poll::Ready(answer)
    }
}

impl<R> Unpin for Call<R> {}

impl<R> Drop for Call<R> {
    fn drop(&mut self) {
        if let State::Waiting { cell, home, .. } = &self.0
            && let Some(call) = cell.abandon()
        {
            arbiter::with_local(&home.node, home.arbiter, |local| local.cancel(call));
        }
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Failed(_) => "failed",
            State::Waiting { .. } => "waiting",
            State::Over => "over",
        };
        f.debug_tuple("Call").field(&state).finish()
    }
}
