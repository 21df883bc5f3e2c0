//! The state of a data arbiter, on its own thread.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use archipelago_protocol::activation::{Crowd, DeactivateReason};
use archipelago_protocol::call::{CallError, CallTable, Ended, Queue, Start};
use archipelago_protocol::identity::{ActorId, CorrelationId};
use archipelago_protocol::time::Millis;

use super::timing::Timing;
use crate::call::NearSender;
use crate::catalog::{AnyKind, Job, JobHead, KindCatalog, Queued, Reply};
use crate::datacenter::Abroad;
use crate::message::VirtualActor;
use crate::meters::ArbiterMeters;
use crate::mutants::{Mutant, broken};
use crate::named::NamedCalls;
use crate::node::NodeShared;
use crate::placement::Hosting;
use crate::remote::{Returns, Roads, Room, Routes, SeatLocal, Transfers};
use crate::watch::Watchers;

/// Activations, pending calls and their bookkeeping on one data arbiter.
pub(crate) struct ArbiterLocal {
    node: Arc<NodeShared>,
    kinds: Box<[Box<dyn AnyKind>]>,
    calls: RefCell<CallTable<Rc<dyn Expire>>>,
    next_token: Cell<u64>,
    /// Jobs accepted and not ended, over all kinds.
    open_jobs: Cell<usize>,
    /// Jobs started and not ended.
    running_jobs: Cell<usize>,
    /// Jobs accepted since the arbiter began.
    accepted: Cell<u64>,
    main: RefCell<Option<Waker>>,
    draining: Cell<bool>,
    closed: Cell<bool>,
    meters: ArbiterMeters,
    index: u16,
    seat: OnceCell<Rc<SeatLocal>>,
    routes: Routes,
    returns: Returns,
    transfers: Transfers,
    roads: Roads,
    hosting: Hosting,
    named_calls: NamedCalls,
    watchers: Watchers,
    abroad: Abroad,
    crowd: RefCell<Crowd>,
    timing: Timing,
}

impl ArbiterLocal {
    pub(crate) fn new(node: Arc<NodeShared>, index: u16) -> Self {
        let abroad = node.has_datacenters();
        let kinds = node.kinds().iter().map(|kind| kind.spec().catalog(kind, abroad)).collect();
        let first_token = node.env().random();
        let crowd = Crowd::new(node.settings().max_active, node.data_arbiters().len());
        let room = Room::of_one(&node.settings().remote, node.data_arbiters().len());
        Self {
            kinds,
            calls: RefCell::new(CallTable::new(index, node.settings().pending_calls)),
            next_token: Cell::new(first_token),
            open_jobs: Cell::new(0),
            running_jobs: Cell::new(0),
            accepted: Cell::new(0),
            main: RefCell::new(None),
            draining: Cell::new(false),
            closed: Cell::new(false),
            meters: ArbiterMeters::new(index),
            index,
            seat: OnceCell::new(),
            routes: Routes::new(node.settings().placement_cache.limits, room),
            returns: Returns::default(),
            transfers: Transfers::default(),
            roads: Roads::default(),
            hosting: Hosting::default(),
            named_calls: NamedCalls::default(),
            watchers: Watchers::default(),
            abroad: Abroad::new(node.settings()),
            crowd: RefCell::new(crowd),
            timing: Timing::default(),
            node,
        }
    }

    // ---- calls ----

    /// Registers a call before its job is queued; `job` is asked to end it when its deadline comes.
    #[inline]
    pub(crate) fn open_call(
        &self,
        deadline: Millis,
        job: Rc<dyn Expire>,
    ) -> Result<CorrelationId, CallError> {
        let mut calls = self.calls.borrow_mut();
        let sooner = calls.next_sweep().is_none_or(|at| deadline < at);
        let id = calls.open(deadline, job).map_err(|full| CallError::Overloaded {
            queue: Queue::PendingCalls,
            bound: u32::try_from(full.bound).unwrap_or(u32::MAX),
        })?;
        drop(calls);
        if sooner {
            self.wake_main();
        }
        Ok(id)
    }

    /// Whether the job of this call may start; marks it as started.
    #[inline]
    pub(crate) fn start_call(&self, call: CorrelationId) -> bool {
        self.calls.borrow_mut().start(call) == Start::Go
    }

    /// Ends a call before its deadline; false if it had ended before.
    #[inline]
    pub(crate) fn end_call(&self, call: CorrelationId) -> bool {
        self.calls.borrow_mut().end(call).is_some()
    }

    /// What a table without turns would do with a late reply.
    fn end_successor(&self, call: CorrelationId) {
        let of_turn = |n| CorrelationId::new(call.lane(), call.slot(), call.turn().wrapping_add(n));
        (1..=64).map(of_turn).find(|other| self.end_call(*other));
    }

    /// Ends the calls whose deadline has come.
    pub(super) fn sweep_calls(&self, now: Millis) {
        let ended = self.calls.borrow_mut().sweep(now);
        for Ended { id, waiter, started } in ended {
            self.meters.timeouts.increment(1);
            waiter.expire(id, started, self);
        }
    }

    // ---- replies ----

    /// Whether replies may leave: the clock is read after the work they come from, and past the fence nothing leaves.
    pub(crate) fn may_answer(&self) -> bool {
        self.node.gate().may_answer(self.now())
    }

    /// Lets the reply of a job out, if it may; a late one is counted. A near caller takes it out of the job: then this is the
    /// way there.
    #[inline]
    pub(crate) fn let_out(&self, job: &mut Job<dyn Reply>, may_answer: bool) -> Option<NearSender> {
        if let Some(call) = job.head.call
            && !self.end_call(call)
        {
            if broken(Mutant::LateReplyCompletes) {
                self.end_successor(call);
            }
            self.late_reply();
            return None;
        }
        if may_answer {
            return job.body.release(self);
        }
        job.body.fail(CallError::Stopped, self);
        None
    }

    /// A reply came after its call had ended.
    pub(crate) fn late_reply(&self) {
        self.meters.late_replies.increment(1);
    }

    // ---- jobs ----

    /// Refuses work that may not enter now: the node drains and this does not belong to work under way.
    #[inline]
    pub(crate) fn admit(&self, head: &JobHead) -> Result<(), CallError> {
        self.may_enter(head.inside)
    }

    /// As [`admit`](Self::admit), for work that is `inside` work under way or not.
    #[inline]
    pub(crate) fn may_enter(&self, inside: bool) -> Result<(), CallError> {
        if self.closed.get() {
            return Err(not_serving("it has stopped"));
        }
        if self.draining.get() && !inside {
            return Err(not_serving("it is stopping"));
        }
        Ok(())
    }

    /// Refuses a call that has no place in the table, before an actor is activated for it.
    pub(crate) fn admit_call(&self) -> Result<(), CallError> {
        if self.calls.borrow().is_full() {
            let bound = u32::try_from(self.node.settings().pending_calls).unwrap_or(u32::MAX);
            return Err(CallError::Overloaded { queue: Queue::PendingCalls, bound });
        }
        Ok(())
    }

    /// Tells whoever waits for a job that it will never start; a tell becomes a dead letter.
    #[expect(clippy::boxed_local, reason = "a job is passed by its box, whose contents are unsized")]
    pub(crate) fn refuse<A: VirtualActor>(&self, actor: &ActorId, mut job: Queued<A>, error: CallError) {
        match job.head.call {
            Some(call) => {
                self.end_call(call);
                job.body.fail(error, self);
            }
            None if job.head.asks => job.body.fail(error, self),
            None => self.node.dead_letter(actor.to_string(), job.body.name(), &error),
        }
        self.job_over();
    }

    /// Lets go of a job that nobody waits for.
    #[expect(clippy::boxed_local, reason = "a job is passed by its box, whose contents are unsized")]
    pub(crate) fn forget<A: VirtualActor>(&self, job: Queued<A>) {
        if let Some(call) = job.head.call {
            self.end_call(call);
        }
        self.meters.cancelled_calls.increment(1);
        self.job_over();
    }

    #[inline]
    pub(crate) fn job_accepted(&self) {
        self.open_jobs.set(self.open_jobs.get() + 1);
        self.accepted.set(self.accepted.get().wrapping_add(1));
    }

    #[inline]
    pub(crate) fn job_over(&self) {
        self.open_jobs.set(self.open_jobs.get().saturating_sub(1));
        if self.draining.get() {
            self.wake_main();
        }
    }

    #[inline]
    pub(crate) fn job_started(&self, token: u64) {
        self.running_jobs.set(self.running_jobs.get() + 1);
        if Timing::measures(token) {
            self.timing.begin(token, self.node.env().nanos());
        }
    }

    /// A job that was started is over; answers how many seconds it took, if that was measured.
    #[inline]
    pub(crate) fn job_ended(&self, token: u64) -> Option<f64> {
        self.running_jobs.set(self.running_jobs.get().saturating_sub(1));
        self.job_over();
        if Timing::measures(token) { self.timing.end(token, self.node.env().nanos()) } else { None }
    }

    /// A number for one running job, unlike any other.
    #[inline]
    pub(crate) fn new_token(&self) -> u64 {
        let token = self.next_token.get();
        self.next_token.set(token.wrapping_add(0x9e37_79b9_7f4a_7c15));
        token
    }

    // ---- the main task ----

    /// Notes by which waker the main task is woken; false if that is known.
    pub(super) fn set_main(&self, waker: &Waker) -> bool {
        let mut main = self.main.borrow_mut();
        let new = !main.as_ref().is_some_and(|known| known.will_wake(waker));
        if new {
            *main = Some(waker.clone());
        }
        new
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
    pub(super) fn measure(&self, ingress: usize) {
        self.meters.ingress.set(ingress as f64);
        self.meters.open_jobs.set(self.open_jobs.get() as f64);
        self.meters.running_jobs.set(self.running_jobs.get() as f64);
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

    /// Lets nothing in any more and refuses what waits; what runs dies with its tasks.
    pub(super) fn close(&self) {
        self.closed.set(true);
        for kind in &self.kinds {
            kind.close(self);
        }
        for parcel in self.routes.take_all() {
            parcel.refuse(not_serving("it has stopped"), self);
        }
        for parcel in self.abroad.take_all() {
            parcel.refuse(not_serving("it has stopped"), self);
        }
        self.close_roads(&not_serving("it has stopped"));
    }

    /// Asks every actor to leave once nothing is left to do.
    pub(super) fn leave_all(&self) {
        for kind in &self.kinds {
            kind.leave_all(DeactivateReason::NodeStopping);
        }
    }

    /// Whether the arbiter finishes what it has and takes nothing new.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    pub(crate) fn all_kinds(&self) -> impl Iterator<Item = &dyn AnyKind> {
        self.kinds.iter().map(|kind| &**kind)
    }

    /// What is still to be done: jobs, and messages of this node that wait until it is known where their actors live.
    pub(super) fn unfinished(&self) -> usize {
        let parked = if self.routes.is_busy() { self.routes.waiting() } else { 0 };
        self.open_jobs() + parked + self.abroad.waiting()
    }

    pub(crate) fn open_jobs(&self) -> usize {
        self.open_jobs.get()
    }

    /// Jobs that have not begun.
    pub(super) fn waiting_jobs(&self) -> usize {
        self.open_jobs.get().saturating_sub(self.running_jobs.get())
    }

    pub(super) fn accepted_jobs(&self) -> u64 {
        self.accepted.get()
    }

    /// True once nothing may run here any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.get()
    }

    pub(crate) fn active_actors(&self) -> usize {
        self.kinds.iter().map(|kind| kind.active()).sum()
    }

    pub(super) const fn crowd(&self) -> &RefCell<Crowd> {
        &self.crowd
    }

    pub(super) const fn meters(&self) -> &ArbiterMeters {
        &self.meters
    }

    // ---- other nodes ----

    /// The arbiter's side of the network is open.
    pub(super) fn take_seat(&self, seat: Rc<SeatLocal>) {
        // There is one per arbiter.
        let _ = self.seat.set(seat);
    }

    /// The arbiter's side of the network; `None` without a transport.
    pub(crate) fn seat(&self) -> Option<&Rc<SeatLocal>> {
        self.seat.get()
    }

    /// Where messages to actors of other nodes go.
    pub(crate) const fn routes(&self) -> &Routes {
        &self.routes
    }

    /// What was sent back to other nodes.
    pub(crate) const fn returns(&self) -> &Returns {
        &self.returns
    }

    /// The large messages under way.
    pub(crate) const fn transfers(&self) -> &Transfers {
        &self.transfers
    }

    /// The ways to named actors of other nodes.
    pub(crate) const fn roads(&self) -> &Roads {
        &self.roads
    }

    /// The shards that this node serves here.
    pub(crate) const fn hosting(&self) -> &Hosting {
        &self.hosting
    }

    /// The calls of other nodes to named actors of this one.
    pub(crate) const fn named_calls(&self) -> &NamedCalls {
        &self.named_calls
    }

    /// Which actors are known to live in other datacenters.
    pub(crate) const fn abroad(&self) -> &Abroad {
        &self.abroad
    }

    /// Who watches the actors here.
    pub(crate) const fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    pub(crate) const fn index(&self) -> u16 {
        self.index
    }

    // ---- getters ----

    #[inline]
    pub(crate) fn kind<A: VirtualActor>(&self, index: u32) -> Option<&KindCatalog<A>> {
        let kind: &dyn Any = self.any_kind(index)?;
        kind.downcast_ref()
    }

    #[inline]
    pub(crate) fn any_kind(&self, index: u32) -> Option<&dyn AnyKind> {
        self.kinds.get(index as usize).map(|kind| &**kind)
    }

    #[inline]
    pub(crate) fn node(&self) -> &Arc<NodeShared> {
        &self.node
    }

    pub(crate) fn now(&self) -> Millis {
        self.node.env().now()
    }

    /// Cheaper, and a few milliseconds behind at most.
    #[inline]
    pub(crate) fn coarse(&self) -> Millis {
        self.node.env().coarse()
    }
}

/// Where a pending call's job is, to be told when the deadline has come.
pub(crate) trait Expire {
    /// Ends the call `call`, which has just left the table.
    fn expire(&self, call: CorrelationId, started: bool, on: &ArbiterLocal);
}

/// The error of work that was refused before it started.
pub(crate) fn not_serving(reason: &str) -> CallError {
    CallError::NotServing { reason: reason.into() }
}
