//! The state of a data arbiter, on its own thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use archipelago_protocol::activation::DeactivateReason;
use archipelago_protocol::call::{CallError, CallTable, Ended, Queue, Start};
use archipelago_protocol::identity::{ActorId, CorrelationId};
use archipelago_protocol::time::Millis;

use crate::call::{CallCell, CallScope, Waiter};
use crate::catalog::{AnyKind, JobHead, KindCatalog};
use crate::message::VirtualActor;
use crate::meters::ArbiterMeters;
use crate::node::NodeShared;

/// Activations, pending calls and their bookkeeping on one data arbiter.
pub(crate) struct ArbiterLocal {
    node: Arc<NodeShared>,
    kinds: Box<[Box<dyn AnyKind>]>,
    calls: RefCell<CallTable<Arc<dyn Waiter>>>,
    next_token: Cell<u64>,
    /// Jobs accepted and not ended, over all kinds.
    open_jobs: Cell<usize>,
    main: RefCell<Option<Waker>>,
    draining: Cell<bool>,
    closed: Cell<bool>,
    meters: ArbiterMeters,
}

impl ArbiterLocal {
    pub(crate) fn new(node: Arc<NodeShared>, index: u16) -> Self {
        let kinds = node.kinds().iter().map(|kind| kind.spec().catalog(kind)).collect();
        let first_token = node.env().random();
        Self {
            kinds,
            calls: RefCell::new(CallTable::new(index, node.settings().pending_calls)),
            next_token: Cell::new(first_token),
            open_jobs: Cell::new(0),
            main: RefCell::new(None),
            draining: Cell::new(false),
            closed: Cell::new(false),
            meters: ArbiterMeters::new(index),
            node,
        }
    }

    // ---- calls ----

    /// Registers a call before its job is queued.
    pub(crate) fn open_call<R: Send + 'static>(
        &self,
        deadline: Millis,
        cell: &Arc<CallCell<R>>,
    ) -> Result<CorrelationId, CallError> {
        let waiter: Arc<dyn Waiter> = Arc::clone(cell) as Arc<dyn Waiter>;
        let mut calls = self.calls.borrow_mut();
        let sooner = calls.next_sweep().is_none_or(|at| deadline < at);
        let id = calls
            .open(deadline, waiter)
            .map_err(|full| CallError::Overloaded { queue: Queue::PendingCalls, bound: full.bound as u64 })?;
        drop(calls);
        cell.registered(id);
        if sooner {
            self.wake_main();
        }
        Ok(id)
    }

    /// Whether the job of this call may start; marks it as started.
    pub(crate) fn start_call(&self, call: CorrelationId) -> bool {
        self.calls.borrow_mut().start(call) == Start::Go
    }

    /// Ends a call with its reply; false if the reply is late.
    pub(crate) fn complete_call(&self, call: CorrelationId) -> bool {
        let in_time = self.calls.borrow_mut().complete(call).is_some();
        if !in_time {
            self.meters.late_replies.increment(1);
        }
        in_time
    }

    /// Ends a call with an error, if it has not ended before.
    pub(crate) fn fail_call(&self, call: CorrelationId, error: CallError) {
        let ended = self.calls.borrow_mut().end(call);
        if let Some(ended) = ended {
            ended.waiter.fail(error);
        }
    }

    /// True if the call has not ended.
    pub(crate) fn is_pending(&self, call: CorrelationId) -> bool {
        self.calls.borrow().is_pending(call)
    }

    /// Takes back a call whose job was not queued; its caller is told otherwise.
    pub(crate) fn forget_call(&self, call: CorrelationId) {
        self.calls.borrow_mut().end(call);
    }

    /// Forgets a call that nobody waits for.
    pub(crate) fn cancel(&self, call: CorrelationId) {
        if self.calls.borrow_mut().end(call).is_some() {
            self.meters.cancelled_calls.increment(1);
        }
    }

    /// Ends the calls whose deadline has come.
    pub(super) fn sweep_calls(&self, now: Millis) {
        let ended = self.calls.borrow_mut().sweep(now);
        for Ended { waiter, started, .. } in ended {
            self.meters.timeouts.increment(1);
            waiter.fail(CallError::Timeout { started });
        }
    }

    // ---- jobs ----

    /// Refuses work that may not enter now: the node drains and this does not belong to work under way, or the
    /// node's session is not live.
    pub(crate) fn admit(&self, scope: Option<&Arc<CallScope>>) -> Result<(), CallError> {
        if self.closed.get() {
            return Err(not_serving("it has stopped"));
        }
        if self.draining.get() && scope.is_none() {
            return Err(not_serving("it is stopping"));
        }
        if !self.node.gate().may_start(self.now()) {
            return Err(not_serving("its session is not live"));
        }
        Ok(())
    }

    /// Tells whoever waits for a job that it will never start; a tell becomes a dead letter.
    pub(crate) fn refuse(&self, actor: &ActorId, head: &JobHead, message: &'static str, error: CallError) {
        match head.call {
            Some(call) => self.fail_call(call, error),
            None => self.node.dead_letter(actor.to_string(), message, &error),
        }
    }

    pub(crate) fn job_accepted(&self) {
        self.open_jobs.set(self.open_jobs.get() + 1);
    }

    pub(crate) fn job_over(&self) {
        self.open_jobs.set(self.open_jobs.get().saturating_sub(1));
        if self.draining.get() {
            self.wake_main();
        }
    }

    /// A number for one running job, unlike any other.
    pub(crate) fn new_token(&self) -> u64 {
        let token = self.next_token.get();
        self.next_token.set(token.wrapping_add(0x9e37_79b9_7f4a_7c15));
        token
    }

    /// The deadline of a job as its calls inherit it.
    pub(crate) fn deadline_of(head: &JobHead) -> Option<Millis> {
        (head.deadline < Millis::MAX).then_some(head.deadline)
    }

    // ---- the main task ----

    pub(super) fn set_main(&self, waker: &Waker) {
        let mut main = self.main.borrow_mut();
        if !main.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *main = Some(waker.clone());
        }
    }

    /// Wakes the arbiter's main task: there is something for it to do.
    pub(crate) fn wake_main(&self) {
        if let Some(main) = &*self.main.borrow() {
            main.wake_by_ref();
        }
    }

    /// Carries out what the kinds have noted down; true if there was something.
    pub(super) fn work(self: &Rc<Self>) -> bool {
        self.kinds.iter().fold(false, |any, kind| kind.work(self) | any)
    }

    /// Asks idle actors to leave.
    pub(super) fn sweep_idle(&self, now: Millis) {
        for kind in &self.kinds {
            kind.sweep_idle(now);
        }
    }

    /// Shows how much is under way.
    pub(super) fn measure(&self) {
        self.meters.open_jobs.set(self.open_jobs.get() as f64);
        self.meters.pending_calls.set(self.calls.borrow().len() as f64);
    }

    /// When the next call or actor may have to be looked at.
    pub(super) fn next_wake(&self) -> Option<Millis> {
        let calls = self.calls.borrow().next_sweep();
        let idle = self.kinds.iter().filter_map(|kind| kind.next_idle()).min();
        calls.into_iter().chain(idle).min()
    }

    // ---- the end ----

    pub(super) fn start_draining(&self) {
        self.draining.set(true);
    }

    /// Lets nothing in any more, ends what waits and every call.
    pub(super) fn close(&self) {
        self.closed.set(true);
        for kind in &self.kinds {
            kind.refuse_all(self, &not_serving("it has stopped"));
        }
        let ended = self.calls.borrow_mut().drain();
        for Ended { waiter, started, .. } in ended {
            waiter.fail(if started { CallError::Stopped } else { not_serving("it has stopped") });
        }
    }

    /// Asks every actor to leave once nothing is left to do.
    pub(super) fn leave_all(&self) {
        for kind in &self.kinds {
            kind.leave_all(DeactivateReason::NodeStopping);
        }
    }

    pub(crate) fn open_jobs(&self) -> usize {
        self.open_jobs.get()
    }

    pub(crate) fn active_actors(&self) -> usize {
        self.kinds.iter().map(|kind| kind.active()).sum()
    }

    // ---- getters ----

    pub(crate) fn kind<A: VirtualActor>(&self, index: u32) -> Option<&KindCatalog<A>> {
        self.any_kind(index)?.as_any().downcast_ref()
    }

    pub(crate) fn any_kind(&self, index: u32) -> Option<&dyn AnyKind> {
        self.kinds.get(index as usize).map(|kind| &**kind)
    }

    pub(crate) fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }

    pub(crate) fn now(&self) -> Millis {
        self.node.env().now()
    }
}

/// The error of work that was refused before it started.
pub(crate) fn not_serving(reason: &str) -> CallError {
    CallError::NotServing { reason: reason.to_owned() }
}
