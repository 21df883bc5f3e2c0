//! The way into an activation: a future inside the actor's own context that takes jobs from its slot.
//!
//! The inbox starts a job only when the activation's [`Life`](archipelago_protocol::activation::Life) allows
//! it, sees to the replies that come later, and lets the actor go when it is time. What it has not started, and
//! what still runs, stays in the slot: neither a panic nor a stop can lose it.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};

use actix::fut::ActorFuture;
use actix::{ActorContext, ActorState, AsyncContext, Context, ResponseFuture};
use archipelago_protocol::activation::{ActivationState, DeactivateReason, Interleave};
use archipelago_protocol::call::CallError;
use archipelago_protocol::time::Millis;
use futures_util::future::{OptionFuture, join};
use tracing::level_filters::LevelFilter;

use super::job::{Queued, Ran};
use super::kind::KindCatalog;
use super::slot::{Running, Slot};
use super::tally::Tallies;
use crate::arbiter::{ArbiterLocal, not_serving};
use crate::call::{Entered, begin, enter};
use crate::message::VirtualActor;
use crate::mutants::{Mutant, broken};

/// The inbox of one activation.
pub(super) struct Inbox<A: VirtualActor> {
    slot: Rc<Slot<A>>,
    on: Rc<ArbiterLocal>,
    kind: u32,
    /// The job whose handler is on the stack.
    on_stack: Option<(u64, Queued<A>)>,
}

impl<A: VirtualActor> Inbox<A> {
    pub(super) const fn new(slot: Rc<Slot<A>>, on: Rc<ArbiterLocal>, kind: u32) -> Self {
        Self { slot, on, kind, on_stack: None }
    }

    /// Takes note of the replies that have come.
    fn poll_replies(&self, cx: &mut TaskContext<'_>) {
        while let Some((token, job)) = self.slot.poll_running(cx) {
            self.job_ended(token, job, self.on.coarse(), self.on.kind::<A>(self.kind));
        }
    }

    /// Starts what may start; true if the budget ran out before the work did.
    fn start_jobs(&mut self, actor: &mut A, ctx: &mut Context<A>, cx: &mut TaskContext<'_>) -> bool {
        let on = Rc::clone(&self.on);
        // Looked up once for all jobs of this turn.
        let kind = on.kind::<A>(self.kind);
        let mut now = on.coarse();
        for _ in 0..BUDGET {
            if ctx.waiting() || !self.take_job(now) {
                return false;
            }
            let ran = self.run(actor, ctx, kind.map(KindCatalog::tallies));
            // One reading ends this job and begins the next.
            now = on.coarse();
            match (ran, self.on_stack.take()) {
                (Ran::Done, Some((token, job))) => self.job_ended(token, job, now, kind),
                (Ran::Awaiting, Some((token, job))) => {
                    self.slot.keep_running(Running { token, job: Some(job) });
                    self.poll_replies(cx);
                }
                (_, None) => {}
            }
        }
        true
    }

    /// Puts the next job that may start on the stack, marked as started; false if there is none. Those that may not
    /// start any more are refused.
    fn take_job(&mut self, now: Millis) -> bool {
        loop {
            let mut inner = self.slot.inner.borrow_mut();
            let Some(flags) = inner.queue.front().map(|job| job.head.flags) else { return false };
            let rule = if broken(Mutant::InterleavesAlways) { Interleave::Always } else { A::INTERLEAVE };
            if !inner.life.may_start(flags, rule, self.on.node().settings().interleaved) {
                return false;
            }
            let Some(job) = inner.queue.pop_front() else { return false };
            if job.head.asks && job.body.is_abandoned(&self.on) && !broken(Mutant::StartsEndedCalls) {
                drop(inner);
                self.on.forget(job);
                continue;
            }
            match self.may_start(&job, now) {
                Ok(()) => {
                    let token = self.on.new_token();
                    inner.life.job_started(now, flags);
                    self.on.job_started(token);
                    inner.tokens.push(token);
                    drop(inner);
                    self.on_stack = Some((token, job));
                    return true;
                }
                Err(refusal) => {
                    drop(inner);
                    self.on.refuse(&self.slot.id, job, refusal);
                }
            }
        }
    }

    fn may_start(&self, job: &Queued<A>, now: Millis) -> Result<(), CallError> {
        if !self.on.node().gate().may_start(now) {
            return Err(not_serving("its session is not live"));
        }
        if job.head.deadline <= now && !broken(Mutant::StartsEndedCalls) {
            return Err(CallError::Timeout { started: false });
        }
        let Some(call) = job.head.call else { return Ok(()) };
        if self.on.start_call(call) { Ok(()) } else { Err(CallError::Timeout { started: false }) }
    }

    /// Calls the handler. The job stays with the inbox meanwhile, so that a panic does not lose its caller.
    fn run(&mut self, actor: &mut A, ctx: &mut Context<A>, tallies: Option<&Tallies>) -> Ran {
        let Some((token, job)) = &mut self.on_stack else { return Ran::Done };
        begin(*token, job.head.deadline, &job.head.scope);
        if LevelFilter::current() < LevelFilter::DEBUG {
            // Nobody would see the span.
            return job.body.run(actor, ctx, tallies);
        }
        let node = self.on.node();
        let (actor_id, message) = (&self.slot.id, job.body.name());
        let span = tracing::debug_span!("handle", node = %node.id(), actor = %actor_id, message);
        node.adopt_trace(&span, job.head.scope.as_deref());
        span.in_scope(|| job.body.run(actor, ctx, tallies))
    }

    #[inline]
    fn job_ended(&self, token: u64, job: Queued<A>, now: Millis, kind: Option<&KindCatalog<A>>) {
        let mut inner = self.slot.inner.borrow_mut();
        inner.life.job_ended(now, job.head.flags);
        inner.tokens.remove(token);
        drop(inner);
        let seconds = self.on.job_ended(token);
        if let Some(kind) = kind {
            kind.handled(&job, seconds);
            kind.hold_reply(job, &self.on);
        }
    }

    fn flush_replies(&self) {
        if let Some(kind) = self.on.kind::<A>(self.kind) {
            kind.flush_replies(&self.on);
        }
    }

    /// Lets the actor go if it is time.
    fn leave(&self, actor: &mut A, ctx: &mut Context<A>) {
        let stopped = ctx.state() != ActorState::Running;
        let mut inner = self.slot.inner.borrow_mut();
        if stopped {
            inner.life.leave(DeactivateReason::StoppedItself);
        }
        let Some(reason) = inner.life.may_leave().or(inner.life.leaving().filter(|_| stopped)) else {
            return;
        };
        // With detached handlers still running the step is made when they have ended.
        let _ = inner.life.advance(ActivationState::Deactivating);
        drop(inner);
        let farewell = A::HOOKS.then(|| {
            let hook = Entered::new(Rc::clone(&self.on), self.on.new_token(), Millis::MAX, None);
            enter(hook, || actor.on_deactivate(reason))
        });
        self.take_along(actor, reason);
        let farewell = self.with_last_save(actor, farewell);
        self.slot.inner.borrow_mut().farewell = farewell;
        ctx.terminate();
    }

    /// Takes what goes along of an actor that ends because its shard moves.
    fn take_along(&self, actor: &mut A, reason: DeactivateReason) {
        let for_a_move = matches!(reason, DeactivateReason::Moving | DeactivateReason::NodeStopping);
        if for_a_move
            && self.slot.inner.borrow().moves
            && let Some(kind) = self.on.kind::<A>(self.kind)
            && kind.takes_along()
        {
            kind.take_along(&self.slot, actor, &self.on);
        }
    }

    /// A broken rule: the state is taken while a handler runs.
    fn take_along_too_early(&self, actor: &mut A) {
        if broken(Mutant::ParcelBeforeQuiet)
            && let Some(kind) = self.on.kind::<A>(self.kind)
            && kind.shards().is_sealed(kind.shards().of(self.slot.hash))
        {
            kind.take_along(&self.slot, actor, &self.on);
        }
    }

    /// The farewell, and the last save of a persistent actor beside it: of the state as it is now.
    fn with_last_save(&self, actor: &A, farewell: Option<ResponseFuture<()>>) -> Option<ResponseFuture<()>> {
        let keeper = self.slot.inner.borrow().state.clone();
        match (keeper, A::PERSISTENCE) {
            (Some(keeper), Some(persistence)) => {
                let saved = keeper.save_last((persistence.take)(actor));
                Some(Box::pin(async move {
                    join(saved, OptionFuture::from(farewell)).await;
                }))
            }
            _ => farewell,
        }
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
        this.take_along_too_early(actor);
        this.poll_replies(cx);
        let nothing_yet = Entered::new(Rc::clone(&this.on), 0, Millis::MAX, None);
        let more = enter(nothing_yet, || this.start_jobs(actor, ctx, cx));
        if more {
            cx.waker().wake_by_ref();
        } else {
            // Before the replies leave: what they set off may send to this very actor.
            this.slot.inner.borrow_mut().inbox = Some(cx.waker().clone());
        }
        this.flush_replies();
        this.leave(actor, ctx);
        // Pending also after the end: only then does actix clear away the futures that the actor has cancelled.
        Poll::Pending
    }
}

impl<A: VirtualActor> Drop for Inbox<A> {
    fn drop(&mut self) {
        let panicked = std::thread::panicking();
        if let Some((token, mut job)) = self.on_stack.take() {
            if let Some(call) = job.head.call.take() {
                self.on.end_call(call);
            }
            job.body.fail(CallError::Panicked, &self.on);
            self.job_ended(token, job, self.on.coarse(), self.on.kind::<A>(self.kind));
        }
        self.flush_replies();
        let mut inner = self.slot.inner.borrow_mut();
        inner.inbox = None;
        if broken(Mutant::InboxDropsQueueOnStop) {
            inner.queue.drain(..).for_each(|_| self.on.job_over());
        }
        inner.life.leave(if panicked { DeactivateReason::Panicked } else { DeactivateReason::StoppedItself });
        drop(inner);
        if let Some(kind) = self.on.kind::<A>(self.kind) {
            kind.ended(Rc::clone(&self.slot), &self.on);
        }
    }
}

/// How many jobs are started before other actors get their turn.
const BUDGET: usize = 64;
