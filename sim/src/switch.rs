//! The hand on a node's tasks: lets them run, holds them back, or drops them.
//!
//! Every arbiter of a simulated node is one [`Gated`] future. While its [`Switch`] is paused it is not polled,
//! and so nothing inside runs; when the switch is thrown for a crash it is dropped, and everything inside with
//! it. Now and then it lets other tasks go first, because tokio and actix are strictly first come, first served.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use archipelago_backend_conformance::Rng;
use archipelago_runtime::env::ArbiterRole;
use futures_core::future::LocalBoxFuture;

use crate::meters::Meters;

/// Controls all tasks of one life of a node.
pub(crate) struct Switch {
    state: Mutex<State>,
    meters: Meters,
}

struct State {
    mode: Mode,
    rng: Rng,
    next_gate: u64,
    /// The gates that have not ended, with the wakers of those that were held back.
    gates: BTreeMap<u64, Option<Waker>>,
    /// The arbiters whose threads are blocked.
    blocked: BTreeSet<ArbiterRole>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Running,
    Paused,
    Crashed,
}

impl Switch {
    pub(crate) fn new(rng: Rng) -> Arc<Self> {
        let state = State {
            mode: Mode::Running,
            rng,
            next_gate: 0,
            gates: BTreeMap::new(),
            blocked: BTreeSet::new(),
        };
        Arc::new(Self { state: Mutex::new(state), meters: Meters::default() })
    }

    /// Puts the task of an arbiter under this switch.
    pub(crate) fn gate(self: &Arc<Self>, role: ArbiterRole, task: LocalBoxFuture<'static, ()>) -> Gated {
        self.put(Some(role), task)
    }

    /// Puts a task under this switch that no blocked arbiter holds up, and that lets nobody go first.
    pub(crate) fn gate_apart(self: &Arc<Self>, task: LocalBoxFuture<'static, ()>) -> Gated {
        self.put(None, task)
    }

    fn put(self: &Arc<Self>, role: Option<ArbiterRole>, task: LocalBoxFuture<'static, ()>) -> Gated {
        let mut state = self.lock();
        state.next_gate += 1;
        let id = state.next_gate;
        state.gates.insert(id, None);
        drop(state);
        Gated { id, role, task: Some(task), switch: Arc::clone(self), yields: 0 }
    }

    /// Holds everything back until [`resume`](Self::resume).
    pub(crate) fn pause(&self) {
        self.set(Mode::Running, Mode::Paused);
    }

    /// Lets everything run again.
    pub(crate) fn resume(&self) {
        self.set(Mode::Paused, Mode::Running);
    }

    /// Blocks the thread of an arbiter, as a handler may that does not return, or lets it go on.
    pub(crate) fn block(&self, role: ArbiterRole, blocked: bool) {
        let mut state = self.lock();
        if blocked {
            state.blocked.insert(role);
        } else {
            state.blocked.remove(&role);
        }
        state.wake_all();
    }

    /// Drops everything, each task when its turn comes.
    pub(crate) fn crash(&self) {
        let mut state = self.lock();
        state.mode = Mode::Crashed;
        state.wake_all();
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.lock().mode == Mode::Paused
    }

    /// True if every task has ended or was dropped.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().gates.is_empty()
    }

    /// What the tasks have counted.
    pub(crate) const fn meters(&self) -> &Meters {
        &self.meters
    }

    fn set(&self, from: Mode, to: Mode) {
        let mut state = self.lock();
        if state.mode == from {
            state.mode = to;
            state.wake_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_all(&mut self) {
        self.gates.values_mut().filter_map(Option::take).for_each(Waker::wake);
    }
}

/// A task that runs only while its switch says so.
pub(crate) struct Gated {
    id: u64,
    /// Whose it is; none for what belongs to no arbiter.
    role: Option<ArbiterRole>,
    task: Option<LocalBoxFuture<'static, ()>>,
    switch: Arc<Switch>,
    yields: u64,
}

impl Gated {
    /// True if other tasks go first this time.
    fn stands_back(&mut self) -> bool {
        if self.role.is_none() {
            return false;
        }
        if self.yields == 0 {
            let mut state = self.switch.lock();
            if state.rng.chance(JITTER_PER_MILLE) {
                self.yields = 1 + state.rng.below(MOST_YIELDS);
            }
        } else {
            self.yields -= 1;
        }
        self.yields > 0
    }
}

impl Future for Gated {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let id = self.id;
        let (mode, blocked) = {
            let mut state = self.switch.lock();
            // A crash must reach a gate that sleeps as well as one that was held back.
            let waker = state.gates.entry(id).or_default();
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                *waker = Some(cx.waker().clone());
            }
            (state.mode, self.role.is_some_and(|role| state.blocked.contains(&role)))
        };
        match mode {
            Mode::Crashed => self.task = None,
            Mode::Paused => return Poll::Pending,
            Mode::Running if blocked => return Poll::Pending,
            Mode::Running if self.stands_back() => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Mode::Running => {}
        }
        let this = &mut *self;
        let Some(task) = &mut this.task else { return Poll::Ready(()) };
        let over = metrics::with_local_recorder(&this.switch.meters, || task.as_mut().poll(cx));
        if over.is_ready() {
            this.task = None;
        }
        over
    }
}

impl Drop for Gated {
    fn drop(&mut self) {
        self.task = None;
        self.switch.lock().gates.remove(&self.id);
    }
}

/// How often a task stands back when it could run.
const JITTER_PER_MILLE: u32 = 60;
/// For how many rounds at most.
const MOST_YIELDS: u64 = 4;
