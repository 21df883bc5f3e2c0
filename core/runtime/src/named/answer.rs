//! What a caller of a named actor waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use archipelago_protocol::call::CallError;
use futures_core::future::BoxFuture;
use tokio::sync::oneshot;

use super::Ticket;
use crate::call::Answer;

/// How the handler of a named actor went.
#[derive(Debug)]
pub(crate) enum Begun<R> {
    /// It has ended, or never began.
    Ended(Answer<R>),
    /// It runs on, and its reply comes later.
    Later(oneshot::Receiver<R>),
}

/// The end of a call to a named actor of this node that its caller holds.
pub(crate) struct NamedAnswer<R> {
    stage: Stage<R>,
    /// Ends the call at its deadline.
    alarm: BoxFuture<'static, ()>,
    ticket: Arc<Ticket>,
}

enum Stage<R> {
    Begins(oneshot::Receiver<Begun<R>>),
    Runs(oneshot::Receiver<R>),
}

impl<R> NamedAnswer<R> {
    pub(crate) fn new(
        begins: oneshot::Receiver<Begun<R>>,
        alarm: BoxFuture<'static, ()>,
        ticket: Arc<Ticket>,
    ) -> Self {
        Self { stage: Stage::Begins(begins), alarm, ticket }
    }

    /// Waits for the reply, to the deadline at most.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Answer<R>> {
        if let Poll::Ready(answer) = self.poll_reply(cx) {
            return Poll::Ready(answer);
        }
        ready!(self.alarm.as_mut().poll(cx));
        Poll::Ready(Err(CallError::Timeout { started: !self.ticket.cancel() }))
    }

    fn poll_reply(&mut self, cx: &mut Context<'_>) -> Poll<Answer<R>> {
        loop {
            match &mut self.stage {
                Stage::Begins(begins) => match ready!(Pin::new(begins).poll(cx)) {
                    Ok(Begun::Ended(answer)) => return Poll::Ready(answer),
                    Ok(Begun::Later(reply)) => self.stage = Stage::Runs(reply),
                    Err(_) => return Poll::Ready(Err(CallError::NoReply)),
                },
                Stage::Runs(reply) => {
                    return Pin::new(reply).poll(cx).map(|reply| reply.map_err(|_| CallError::NoReply));
                }
            }
        }
    }
}

impl<R> Begun<R> {
    /// The reply, when it has come.
    pub(crate) async fn answer(begins: oneshot::Receiver<Self>) -> Answer<R> {
        match begins.await {
            Ok(Self::Ended(answer)) => answer,
            Ok(Self::Later(reply)) => reply.await.map_err(|_| CallError::NoReply),
            Err(_) => Err(CallError::NoReply),
        }
    }
}
