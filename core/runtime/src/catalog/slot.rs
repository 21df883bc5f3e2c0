//! The place of one actor on this arbiter: its life, the messages that wait for it, and what it left undone.
//!
//! The slot outlives the activations in it: messages that arrive while one goes wait here for the next.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use actix::ResponseFuture;
use archipelago_protocol::activation::Life;
use archipelago_protocol::call::{CallError, Queue};
use archipelago_protocol::identity::{ActorId, CorrelationId};
use archipelago_protocol::time::Millis;
use futures_util::Stream;
use futures_util::stream::FuturesUnordered;

use super::job::{JobHead, Queued};
use super::tokens::Tokens;
use crate::arbiter::{ArbiterLocal, Expire};
use crate::message::VirtualActor;
use crate::mutants::{Mutant, broken};
use crate::state::StateKeeper;

/// The place of one actor.
pub(super) struct Slot<A: VirtualActor> {
    pub(super) id: ActorId,
    pub(super) hash: u64,
    pub(super) inner: RefCell<Inner<A>>,
}

/// The changing part of a slot. Never borrowed while user code runs or a waker is called.
pub(super) struct Inner<A: VirtualActor> {
    pub(super) life: Life,
    pub(super) queue: VecDeque<Queued<A>>,
    /// The sleeping inbox.
    pub(super) inbox: Option<Waker>,
    /// The jobs that run now: a call that one of them waits for must not wait for it.
    pub(super) tokens: Tokens,
    /// The job whose reply is awaited; in the usual case there is at most one. Boxed, because an idle actor has none.
    running: Option<Box<Running<A>>>,
    /// The others, if messages overlap.
    overlapping: Option<Box<FuturesUnordered<Running<A>>>>,
    /// The future of `on_deactivate`; the next activation waits for it.
    pub(super) farewell: Option<ResponseFuture<()>>,
    /// It has an entry in the idle queue, which lasts over several lives.
    pub(super) watched: bool,
    /// It has an entry in the queue of those that may have to make room, which lasts, too.
    pub(super) ranked: bool,
    /// It was asked to leave because its shard moves: its state goes along.
    pub(super) moves: bool,
    /// The stored state of the activation, if the actor is persistent.
    pub(super) state: Option<Arc<StateKeeper>>,
}

/// A job whose handler has returned and whose reply comes later.
pub(super) struct Running<A: VirtualActor> {
    pub(super) token: u64,
    pub(super) job: Option<Queued<A>>,
}

impl<A: VirtualActor> Slot<A> {
    pub(super) fn new(id: ActorId, hash: u64, now: Millis) -> Self {
        let inner = Inner {
            life: Life::new(now),
            queue: VecDeque::new(),
            inbox: None,
            tokens: Tokens::default(),
            running: None,
            overlapping: None,
            farewell: None,
            watched: false,
            ranked: false,
            moves: false,
            state: None,
        };
        Self { id, hash, inner: RefCell::new(inner) }
    }

    /// Whether a job may be queued: it must not wait for itself, and there must be room.
    pub(super) fn check(&self, head: &JobHead, bound: usize, on: &ArbiterLocal) -> Result<(), CallError> {
        let mut inner = self.inner.borrow_mut();
        inner.check_cycle(head, on.node().settings().interleaved)?;
        if inner.queue.len() < bound {
            return Ok(());
        }
        let abandoned = inner.take_abandoned(bound, on);
        // What came from another node is bounded by the window of its lane.
        let full = !head.asks && !head.remote && inner.queue.len() >= bound;
        drop(inner);
        for job in abandoned {
            on.forget(job);
        }
        if full {
            let bound = u32::try_from(bound).unwrap_or(u32::MAX);
            return Err(CallError::Overloaded { queue: Queue::Inbox, bound });
        }
        Ok(())
    }

    /// Puts a job at the end of the queue.
    pub(super) fn push(&self, job: Queued<A>, on: &ArbiterLocal) {
        let mut inner = self.inner.borrow_mut();
        if inner.queue.capacity() == 0 {
            // Most of a million idle actors have had one message at a time.
            inner.queue.reserve_exact(1);
        }
        if broken(Mutant::InboxForgetsOrder) {
            inner.queue.push_front(job);
        } else {
            inner.queue.push_back(job);
        }
        let inbox = inner.inbox.take();
        drop(inner);
        on.job_accepted();
        if let Some(inbox) = inbox {
            inbox.wake();
        }
    }

    /// Makes the inbox look at its slot again.
    pub(super) fn wake(&self) {
        let inbox = self.inner.borrow_mut().inbox.take();
        if let Some(inbox) = inbox {
            inbox.wake();
        }
    }

    /// The next job that has ended, with its token; `None` while none has, or none runs.
    pub(super) fn poll_running(&self, cx: &mut Context<'_>) -> Option<(u64, Queued<A>)> {
        let mut inner = self.inner.borrow_mut();
        let Inner { running, overlapping, .. } = &mut *inner;
        if let Some(job) = running
            && let Poll::Ready(ended) = Pin::new(job).poll(cx)
        {
            *running = None;
            return ended;
        }
        match Pin::new(&mut **overlapping.as_mut()?).poll_next(cx) {
            Poll::Ready(Some(ended)) => ended,
            Poll::Ready(None) => {
                *overlapping = None;
                None
            }
            Poll::Pending => None,
        }
    }

    /// Keeps a job whose reply comes later.
    pub(super) fn keep_running(&self, job: Running<A>) {
        let mut inner = self.inner.borrow_mut();
        if inner.running.is_none() {
            inner.running = Some(Box::new(job));
        } else {
            inner.overlapping.get_or_insert_default().push(job);
        }
    }
}

impl<A: VirtualActor> Expire for Slot<A> {
    fn expire(&self, call: CorrelationId, started: bool, on: &ArbiterLocal) {
        let error = CallError::Timeout { started };
        let mut inner = self.inner.borrow_mut();
        if started {
            if let Some(job) = inner.running_job(call) {
                // The id belongs to another call soon; the reply of this one is late from now on.
                if !broken(Mutant::LateReplyCompletes) {
                    job.head.call = None;
                }
                job.body.fail(error, on);
            }
            return;
        }
        // The oldest are the first to expire, so this looks at few.
        let waiting = inner.queue.iter().position(|job| job.head.call == Some(call));
        let job = waiting.and_then(|at| inner.queue.remove(at));
        drop(inner);
        if let Some(mut job) = job {
            job.body.fail(error, on);
            on.job_over();
            // What stood behind it may be allowed to start now.
            self.wake();
        }
    }
}

impl<A: VirtualActor> Inner<A> {
    /// A call that waits for a job of this actor, and would have to wait behind it, could only hang.
    fn check_cycle(&self, head: &JobHead, most: u32) -> Result<(), CallError> {
        let Some(scope) = &head.scope else { return Ok(()) };
        let waits_for_us = head.asks && self.tokens.any(|token| scope.chain.contains(token));
        let starts = || self.queue.is_empty() && self.life.may_start(head.flags, A::INTERLEAVE, most);
        if waits_for_us && !starts() {
            return Err(CallError::CallCycle);
        }
        Ok(())
    }

    /// Takes out the jobs whose callers have gone, now and then when the queue is long. A tell is refused when
    /// the inbox is full; an ask waits within its deadline, bounded by the table of pending calls.
    fn take_abandoned(&mut self, bound: usize, on: &ArbiterLocal) -> Vec<Queued<A>> {
        let waiting = self.queue.len();
        if waiting != bound && !waiting.is_power_of_two() {
            return Vec::new();
        }
        let (abandoned, kept): (VecDeque<_>, _) =
            self.queue.drain(..).partition(|job| job.body.is_abandoned(on));
        self.queue = kept;
        abandoned.into()
    }

    fn running_job(&mut self, call: CorrelationId) -> Option<&mut Queued<A>> {
        let overlapping = self.overlapping.iter_mut().flat_map(|many| many.iter_mut());
        let running = self.running.iter_mut().map(|running| &mut **running).chain(overlapping);
        running.filter_map(|running| running.job.as_mut()).find(|job| job.head.call == Some(call))
    }
}

impl<A: VirtualActor> Future for Running<A> {
    type Output = Option<(u64, Queued<A>)>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(job) = &mut this.job {
            std::task::ready!(job.body.poll_reply(cx));
        }
        Poll::Ready(this.job.take().map(|job| (this.token, job)))
    }
}

impl<A: VirtualActor> Unpin for Running<A> {}
