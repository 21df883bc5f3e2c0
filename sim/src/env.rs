//! The environment of a simulated node: virtual time, seeded randomness, tasks under a switch.
#![expect(clippy::disallowed_methods, reason = "this is the simulator's one place that spawns")]

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use archipelago_backend_conformance::Rng;
use archipelago_protocol::contract::Transport;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{
    ArbiterMain, ArbiterRole, COARSE_LAG, Environment, EnvironmentError, Look, incarnation,
};
use futures_core::future::{BoxFuture, LocalBoxFuture};
use futures_util::future::select;
use tokio::sync::Notify;

use crate::clock::{SkewedClock, TrueClock};
use crate::switch::Switch;

/// One life of a simulated node, as the node itself sees the world.
///
/// Only inside a [`Simulation`](crate::Simulation): it needs tokio's paused clock and one thread.
pub struct SimEnvironment {
    clock: Arc<SkewedClock>,
    rng: Mutex<Rng>,
    switch: Arc<Switch>,
    resumed_at: Mutex<Millis>,
    /// How far the coarse clock is behind because it stood still; until somebody asks for the exact time.
    behind: Mutex<Millis>,
    transport: Option<Arc<dyn Transport>>,
    aborted: AtomicBool,
}

impl SimEnvironment {
    /// An environment whose clock gains `ppm` microseconds per true second; everything else comes from `seed`.
    pub(crate) fn new(truth: TrueClock, ppm: i32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let switch = Switch::new(Rng::new(rng.bits()));
        let clock = Arc::new(SkewedClock::new(truth, ppm));
        let (resumed_at, behind) = (Mutex::default(), Mutex::default());
        let aborted = AtomicBool::new(false);
        Self { clock, rng: Mutex::new(rng), switch, resumed_at, behind, transport: None, aborted }
    }

    /// The same with a network.
    pub(crate) fn with_transport(mut self, transport: Option<Arc<dyn Transport>>) -> Self {
        self.transport = transport;
        self
    }

    /// Lets a paused node go on. If it was the whole machine that stood still, its coarse clock did for `stood_still`.
    pub(crate) fn resume(&self, stood_still: Millis) {
        *self.resumed_at.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now();
        *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = stood_still;
        self.switch.resume();
    }

    /// When the node was last let go on after a pause, on its own clock.
    pub(crate) fn resumed_at(&self) -> Millis {
        *self.resumed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the process has ended itself.
    pub(crate) fn has_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    pub(crate) fn clock(&self) -> &SkewedClock {
        &self.clock
    }

    pub(crate) const fn switch(&self) -> &Arc<Switch> {
        &self.switch
    }
}

impl Environment for SimEnvironment {
    fn now(&self) -> Millis {
        *self.behind.lock().unwrap_or_else(PoisonError::into_inner) = Millis::ZERO;
        self.clock.now()
    }

    /// As coarse as it may be.
    fn coarse(&self) -> Millis {
        let behind = *self.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let tick = COARSE_LAG.0 - 1;
        Millis(self.clock.now().0 / tick * tick) - behind
    }

    fn nanos(&self) -> u64 {
        self.clock.nanos()
    }

    /// Some day in 2026, and then as the node's clock goes.
    fn wall_millis(&self) -> u64 {
        WALL_ZERO + self.clock.now().0
    }

    fn random(&self) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    fn sleep(&self, length: Millis) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(self.clock.true_length(length)))
    }

    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        tokio::task::spawn_local(task);
    }

    /// At once: there is one thread.
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        Box::pin(async move { work() })
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.transport.clone()
    }

    fn start_arbiter(&self, role: ArbiterRole, main: ArbiterMain) -> Result<(), EnvironmentError> {
        if actix_rt::System::try_current().is_none() {
            return Err(EnvironmentError::NoSystem);
        }
        tokio::task::spawn_local(self.switch.gate(role, incarnation(main)));
        Ok(())
    }

    fn stand_guard(&self, mut look: Look) -> Result<Waker, EnvironmentError> {
        let (clock, bell) = (Arc::clone(&self.clock), Arc::new(Bell(Notify::new())));
        let rung = Arc::clone(&bell);
        let guard = self.switch.gate_apart(Box::pin(async move {
            while let Some(at) = look() {
                let sleep = tokio::time::sleep(clock.true_length(at.since(clock.now())));
                select(pin!(sleep), pin!(rung.0.notified())).await;
            }
        }));
        tokio::task::spawn_local(guard);
        Ok(Waker::from(bell))
    }

    /// A simulated process ends as one that crashes.
    fn abort(&self, reason: &str) {
        tracing::error!(reason, "a simulated process is aborted");
        self.aborted.store(true, Ordering::Relaxed);
        self.switch.crash();
    }
}

/// Wakes who stands guard.
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl fmt::Debug for SimEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimEnvironment").field("now", &self.clock.now()).finish_non_exhaustive()
    }
}

const WALL_ZERO: u64 = 1_780_000_000_000;
