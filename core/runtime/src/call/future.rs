//! The future a caller waits on.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use archipelago_protocol::call::CallError;
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;

use super::near::{Delivery, Look, NearAnswer, NearEnd, NearSender, boxed, keep_box};
use crate::named::NamedAnswer;

/// How a call ends.
pub(crate) type Answer<R> = Result<R, CallError>;

/// The end of a call that its job holds. A caller who has gone shows as a closed sender.
pub(crate) enum AnswerSender<R> {
    /// To a caller on this thread.
    Near(NearSender),
    /// To a caller on any thread.
    Far(oneshot::Sender<Answer<R>>),
}

/// A way back for one answer, to a caller on any thread.
pub(crate) fn answer_channel<R>() -> (AnswerSender<R>, oneshot::Receiver<Answer<R>>) {
    let (sender, answer) = oneshot::channel();
    (AnswerSender::Far(sender), answer)
}

impl<R: Send + 'static> AnswerSender<R> {
    /// Ends the call; a caller who has gone meanwhile is no error.
    pub(crate) fn send(self, answer: Answer<R>) {
        match (self, answer) {
            (Self::Far(caller), answer) => drop(caller.send(answer)),
            (Self::Near(caller), Err(error)) => caller.send(Delivery::Failed(error)),
            (Self::Near(caller), reply) => caller.send(Delivery::Boxed(boxed(reply))),
        }
    }
}

impl<R> AnswerSender<R> {
    /// True if nobody waits for the answer any more.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Near(caller) => caller.is_closed(),
            Self::Far(caller) => caller.is_closed(),
        }
    }
}

/// A call under way. Dropping it cancels the call: a handler that has not started never will.
///
/// The message is on its way as soon as the call was made, whether or not it is awaited.
#[must_use = "a call that is not awaited is cancelled; use tell if no answer is wanted"]
pub struct Call<R>(State<R>);

/// At most one word each, so that a call is returned in registers.
enum State<R> {
    Failed(Box<CallError>),
    Near(NearAnswer),
    Far(oneshot::Receiver<Answer<R>>),
    /// With a backstop.
    Guarded(Box<Guarded<R>>),
    /// To a named actor of this node.
    Named(Box<NamedAnswer<R>>),
    /// Made near, and then moved to another thread.
    Moved(oneshot::Receiver<Delivery>),
    Over,
}

struct Guarded<R> {
    answer: oneshot::Receiver<Answer<R>>,
    backstop: BoxFuture<'static, ()>,
}

impl<R> Call<R> {
    /// A call that ended before it began.
    pub(crate) fn failed(error: CallError) -> Self {
        Self(State::Failed(Box::new(error)))
    }

    /// A call to an actor on this thread.
    pub(crate) const fn near(answer: NearAnswer) -> Self {
        Self(State::Near(answer))
    }

    /// A call to a named actor of this node.
    pub(crate) fn named(answer: NamedAnswer<R>) -> Self {
        Self(State::Named(Box::new(answer)))
    }

    /// A call whose answer comes from an arbiter. A caller on another thread brings a `backstop`: it ends the call
    /// when the arbiter itself is stuck and cannot.
    pub(crate) fn waiting(
        answer: oneshot::Receiver<Answer<R>>,
        backstop: Option<BoxFuture<'static, ()>>,
    ) -> Self {
        Self(match backstop {
            Some(backstop) => State::Guarded(Box::new(Guarded { answer, backstop })),
            None => State::Far(answer),
        })
    }
}

impl<R: 'static> Call<R> {
    /// Ends a near call whose answer did not come in its job, or goes on with it on another thread.
    fn poll_near_end(&mut self, cx: &mut Context<'_>) -> Poll<Answer<R>> {
        let State::Near(near) = &mut self.0 else { return self.poll_far(cx) };
        match near.end() {
            NearEnd::Here(delivery) => {
                self.0 = State::Over;
                return Poll::Ready(delivery.open());
            }
            NearEnd::Moved(delivery) => self.0 = State::Moved(delivery),
            NearEnd::Before => self.0 = State::Over,
        }
        self.poll_far(cx)
    }

    /// Waits for an answer that is on its way, wherever it comes from.
    #[cold]
    fn poll_far(&mut self, cx: &mut Context<'_>) -> Poll<Answer<R>> {
        let ended = match &mut self.0 {
            State::Far(answer) => ready!(poll_answer(answer, cx)),
            State::Guarded(guarded) => match poll_answer(&mut guarded.answer, cx) {
                Poll::Ready(answer) => answer,
                Poll::Pending => {
                    ready!(guarded.backstop.as_mut().poll(cx));
                    Err(CallError::Timeout { started: true })
                }
            },
            State::Named(answer) => ready!(answer.poll(cx)),
            // Without a delivery the thread has ended.
            State::Moved(delivery) => {
                ready!(Pin::new(delivery).poll(cx)).map_or(Err(CallError::Stopped), Delivery::open)
            }
            State::Failed(error) => Err(CallError::clone(error)),
            State::Near(_) | State::Over => panic!("a call was polled after it had ended"),
        };
        self.0 = State::Over;
        Poll::Ready(ended)
    }
}

impl<R: 'static> Future for Call<R> {
    type Output = Result<R, CallError>;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let State::Near(near) = &mut self.0 else { return self.poll_far(cx) };
        match near.look(cx) {
            Look::Pending => Poll::Pending,
            Look::Replied(mut job) => {
                // Filled in place: an answer that is copied right after it was written stalls the processor.
                let mut ended = Poll::Ready(Err(CallError::NoReply));
                if let Poll::Ready(answer) = &mut ended {
                    job.body.collect(answer);
                }
                ended
            }
            Look::Boxed(mut boxed) => {
                let mut ended = Poll::Ready(Err(CallError::NoReply));
                if let (Poll::Ready(answer), Some(held)) = (&mut ended, boxed.downcast_mut::<Answer<R>>()) {
                    std::mem::swap(answer, held);
                    keep_box(boxed);
                }
                ended
            }
            Look::Otherwise => self.poll_near_end(cx),
        }
    }
}

fn poll_answer<R>(answer: &mut oneshot::Receiver<Answer<R>>, cx: &mut Context<'_>) -> Poll<Answer<R>> {
    // Without an answer the arbiter has died with the job.
    Pin::new(answer).poll(cx).map(|answer| answer.unwrap_or(Err(CallError::Stopped)))
}

impl<R> Unpin for Call<R> {}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.0 {
            State::Failed(_) => "failed",
            State::Near(near) if near.is_used_up() => "over",
            State::Over => "over",
            _ => "waiting",
        };
        f.debug_tuple("Call").field(&state).finish()
    }
}
