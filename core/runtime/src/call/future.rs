//! The future a caller waits on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use archipelago_protocol::call::CallError;
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;

/// How a call ends.
pub(crate) type Answer<R> = Result<R, CallError>;
/// The end of a call that its job holds. A caller who has gone shows as a closed sender.
pub(crate) type AnswerSender<R> = oneshot::Sender<Answer<R>>;

/// A way back for one answer.
pub(crate) fn answer_channel<R>() -> (AnswerSender<R>, oneshot::Receiver<Answer<R>>) {
    oneshot::channel()
}

/// A call under way. Dropping it cancels the call: a handler that has not started never will.
///
/// The message is on its way as soon as the call was made, whether or not it is awaited.
#[must_use = "a call that is not awaited is cancelled; use tell if no answer is wanted"]
pub struct Call<R>(State<R>);

enum State<R> {
    Failed(Box<CallError>),
    Waiting { answer: oneshot::Receiver<Answer<R>>, backstop: Option<BoxFuture<'static, ()>> },
    Over,
}

impl<R> Call<R> {
    /// A call that ended before it began.
    pub(crate) fn failed(error: CallError) -> Self {
        Self(State::Failed(Box::new(error)))
    }

    /// A call whose answer comes from an arbiter. A caller on another thread brings a `backstop`: it ends the call
    /// when the arbiter itself is stuck and cannot.
    pub(crate) const fn waiting(
        answer: oneshot::Receiver<Answer<R>>,
        backstop: Option<BoxFuture<'static, ()>>,
    ) -> Self {
        Self(State::Waiting { answer, backstop })
    }
}

impl<R> Future for Call<R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = match &mut self.0 {
            State::Waiting { answer, backstop } => match (Pin::new(answer).poll(cx), backstop) {
                // Without an answer the arbiter has died with the job.
                (Poll::Ready(answer), _) => answer.unwrap_or(Err(CallError::Stopped)),
                (Poll::Pending, None) => return Poll::Pending,
                (Poll::Pending, Some(backstop)) => {
                    ready!(backstop.as_mut().poll(cx));
                    Err(CallError::Timeout { started: true })
                }
            },
            State::Failed(error) => Err(CallError::clone(error)),
            State::Over => panic!("a call was polled after it had ended"),
        };
        self.0 = State::Over;
        Poll::Ready(ended)
    }
}

impl<R> Unpin for Call<R> {}

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
