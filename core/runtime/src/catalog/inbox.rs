//! The way into an activation: a future inside the actor's own context that takes jobs from its slot.
//!
//! The inbox starts a job only when the activation's [`Life`](archipelago_protocol::activation::Life) allows
//! it, keeps the replies that come later, and lets the actor go when it is time. What it has not started stays
//! in the slot: neither a panic nor a stop can lose it.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};

use actix::fut::ActorFuture;
use actix::{ActorContext, ActorState, AsyncContext, Context};
use archipelago_protocol::activation::{ActivationState, DeactivateReason};
use archipelago_protocol::call::CallError;
use archipelago_protocol::message::MessageFlags;
use archipelago_protocol::time::Millis;
use futures_util::Stream;
use futures_util::stream::FuturesUnordered;

use super::job::{Awaited, Ran};
use super::slot::{Inner, Queued, Slot};
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::call::{Entered, enter};
use crate::message::VirtualActor;

/// The inbox of one activation.
pub(super) struct Inbox<A: VirtualActor> {
    slot: Rc<Slot<A>>,
    on: Rc<ArbiterLocal>,
    kind: u32,
    /// The job whose handler is on the stack.
    on_stack: Option<(u64, MessageFlags)>,
    /// The job whose reply is awaited; in the usual case there is at most one.
    running: Option<Running>,
    /// The others, if messages overlap.
    overlapping: Option<Box<FuturesUnordered<Running>>>,
}

/// A job whose handler has returned and whose reply comes later.
pub(super) struct Running {
    token: u64,
    flags: MessageFlags,
    reply: Box<dyn Awaited>,
    on: Rc<ArbiterLocal>,
}

impl Future for Running {
    type Output = (u64, MessageFlags);

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.reply.poll(cx, &this.on).map(|()| (this.token, this.flags))
    }
}

impl<A: VirtualActor> Inbox<A> {
    pub(super) const fn new(slot: Rc<Slot<A>>, on: Rc<ArbiterLocal>, kind: u32) -> Self {
        Self { slot, on, kind, on_stack: None, running: None, overlapping: None }
    }

    /// Takes note of the replies that have come.
    fn poll_replies(&mut self, cx: &mut TaskContext<'_>) {
        if let Some(running) = &mut self.running
            && let Poll::Ready(job) = Pin::new(running).poll(cx)
        {
            self.running = None;
            self.job_ended(job);
        }
        while let Some(overlapping) = &mut self.overlapping {
            match Pin::new(&mut **overlapping).poll_next(cx) {
                Poll::Ready(Some(job)) => self.job_ended(job),
                Poll::Ready(None) => self.overlapping = None,
                Poll::Pending => break,
            }
        }
    }

    /// Starts what may start; true if the budget ran out before the work did.
    fn start_jobs(&mut self, actor: &mut A, ctx: &mut Context<A>, cx: &mut TaskContext<'_>) -> bool {
        let mut now = self.on.now();
        for _ in 0..BUDGET {
            if ctx.waiting() {
                return false;
            }
            let Some((token, job)) = self.next_job(now) else { return false };
            self.run(token, job, actor, ctx, cx);
            now = self.on.now();
        }
        true
    }

    /// The next job that may start, marked as started; those that may not start any more are refused.
    fn next_job(&self, now: Millis) -> Option<(u64, Queued<A>)> {
        loop {
            let mut inner = self.slot.inner.borrow_mut();
            let flags = inner.queue.front()?.head.flags;
            if !inner.life.may_start(flags, Inner::<A>::rule()) {
                return None;
            }
            let job = inner.queue.pop_front()?;
            drop(inner);
            match self.may_start(&job, now) {
                Ok(()) => {
                    let token = self.on.new_token();
                    let mut inner = self.slot.inner.borrow_mut();
                    inner.life.job_started(now, flags);
                    inner.tokens.push(token);
                    return Some((token, job));
                }
                Err(refusal) => self.refuse(job, refusal),
            }
        }
    }

    /// `Err(None)`: nobody waits for it any more.
    fn may_start(&self, job: &Queued<A>, now: Millis) -> Result<(), Option<CallError>> {
        if !self.on.node().gate().may_start(now) {
            return Err(Some(not_serving("its session is not live")));
        }
        if job.head.deadline <= now {
            return Err(Some(CallError::Timeout { started: false }));
        }
        if let Some(call) = job.head.call {
            if job.body.is_abandoned() {
                self.on.cancel(call);
                return Err(None);
            }
            if !self.on.start_call(call) {
                return Err(None);
            }
        }
        Ok(())
    }

    fn refuse(&self, job: Queued<A>, error: Option<CallError>) {
        if let Some(error) = error {
            self.on.refuse(&self.slot.id, &job.head, job.body.name(), error);
        }
        self.on.job_over();
    }

    fn run(
        &mut self,
        token: u64,
        job: Queued<A>,
        actor: &mut A,
        ctx: &mut Context<A>,
        cx: &mut TaskContext<'_>,
    ) {
        let Queued { head, body } = job;
        self.on_stack = Some((token, head.flags));
        let span = tracing::debug_span!("handle", actor = %self.slot.id, message = body.name());
        let deadline = ArbiterLocal::deadline_of(&head);
        let entered = Entered::new(Rc::clone(&self.on), token, deadline, head.scope.clone());
        let ran = span.in_scope(|| enter(entered, || body.run(&head, actor, ctx, &self.on)));
        self.on_stack = None;
        match ran {
            Ran::Done => self.job_ended((token, head.flags)),
            Ran::Awaiting(reply) => {
                self.keep(Running { token, flags: head.flags, reply, on: Rc::clone(&self.on) });
                self.poll_replies(cx);
            }
        }
    }

    fn keep(&mut self, running: Running) {
        if self.running.is_none() {
            self.running = Some(running);
        } else {
            self.overlapping.get_or_insert_default().push(running);
        }
    }

    fn job_ended(&self, (token, flags): (u64, MessageFlags)) {
        let now = self.on.now();
        let mut inner = self.slot.inner.borrow_mut();
        inner.life.job_ended(now, flags);
        inner.tokens.retain(|running| *running != token);
        drop(inner);
        self.on.job_over();
    }

    /// Lets the actor go if it is time; true if it went.
    fn leave(&mut self, actor: &mut A, ctx: &mut Context<A>) -> bool {
        let stopped = ctx.state() != ActorState::Running;
        let mut inner = self.slot.inner.borrow_mut();
        if stopped {
            inner.life.leave(DeactivateReason::StoppedItself);
        }
        let Some(reason) = inner.life.may_leave().or(inner.life.leaving().filter(|_| stopped)) else {
            return false;
        };
        // With detached handlers still running the step is made when they have ended.
        let _ = inner.life.advance(ActivationState::Deactivating);
        drop(inner);
        if A::HOOKS {
            let farewell = actor.on_deactivate(reason);
            self.slot.inner.borrow_mut().aftermath.get_or_insert_default().farewell = Some(farewell);
        }
        ctx.terminate();
        true
    }
}

impl<A: VirtualActor> ActorFuture<A> for Inbox<A> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, actor: &mut A, ctx: &mut Context<A>, cx: &mut TaskContext<'_>) -> Poll<()> {
        // After a panic actix polls its context once more while it is dropped: start nothing then.
        if std::thread::panicking() {
            return Poll::Pending;
        }
        let this = self.get_mut();
        this.poll_replies(cx);
        let more = this.start_jobs(actor, ctx, cx);
        if this.leave(actor, ctx) {
            return Poll::Ready(());
        }
        if more {
            cx.waker().wake_by_ref();
        }
        this.slot.inner.borrow_mut().inbox = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<A: VirtualActor> Drop for Inbox<A> {
    fn drop(&mut self) {
        if let Some(job) = self.on_stack.take() {
            self.job_ended(job);
        }
        let panicked = std::thread::panicking();
        let mut inner = self.slot.inner.borrow_mut();
        inner.inbox = None;
        inner.life.leave(if panicked { DeactivateReason::Panicked } else { DeactivateReason::StoppedItself });
        let lingering =
            self.running.take().into_iter().chain(self.overlapping.take().into_iter().flat_map(|o| *o));
        let mut lingering = lingering.peekable();
        if lingering.peek().is_some() {
            inner.aftermath.get_or_insert_default().lingering.extend(lingering);
        }
        drop(inner);
        if let Some(kind) = self.on.kind::<A>(self.kind) {
            kind.ended(Rc::clone(&self.slot), &self.on);
        }
    }
}

/// How many jobs are started before other actors get their turn.
const BUDGET: usize = 64;
