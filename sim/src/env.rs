//! The environment of a simulated node: virtual time, seeded randomness, tasks under a switch.
#![expect(clippy::disallowed_methods, reason = "this is the simulator's one place that spawns")]

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use archipelago_backend_conformance::Rng;
use archipelago_protocol::contract::Transport;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::{
    ArbiterMain, ArbiterRole, COARSE_LAG, Environment, EnvironmentError, Look, Oddity, incarnation,
};
use futures_core::future::{BoxFuture, LocalBoxFuture};
use futures_util::future::select;
use tokio::sync::Notify;

use crate::clock::{SkewedClock, TrueClock};
use crate::sometimes;
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
    behind: AtomicU64,
    transport: Option<Arc<dyn Transport>>,
    aborted: AtomicBool,
    /// How many times in a thousand something odd happens, and the chances of that.
    odd_per_mille: u32,
    odds: Mutex<Rng>,
    /// How far the wall clock was set forward.
    wall_ahead: AtomicU64,
}

impl SimEnvironment {
    /// An environment whose clock gains `ppm` microseconds per true second; everything else comes from `seed`.
    pub(crate) fn new(truth: TrueClock, ppm: i32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let switch = Switch::new(Rng::new(rng.bits()));
        let odds = Mutex::new(Rng::new(rng.bits()));
        let clock = Arc::new(SkewedClock::new(truth, ppm));
        let (resumed_at, behind) = (Mutex::default(), AtomicU64::new(0));
        let aborted = AtomicBool::new(false);
        let (rng, wall_ahead) = (Mutex::new(rng), AtomicU64::new(0));
        let (transport, odd_per_mille) = (None, 0);
        Self { clock, rng, switch, resumed_at, behind, transport, aborted, odd_per_mille, odds, wall_ahead }
    }

    /// The same where odd things happen so many times in a thousand.
    pub(crate) const fn with_oddities(mut self, per_mille: u32) -> Self {
        self.odd_per_mille = per_mille;
        self
    }

    /// Sets the wall clock forward.
    pub(crate) fn set_wall_forward(&self, length: Millis) {
        self.wall_ahead.fetch_add(length.0, Ordering::Relaxed);
    }

    /// The same with a network.
    pub(crate) fn with_transport(mut self, transport: Option<Arc<dyn Transport>>) -> Self {
        self.transport = transport;
        self
    }

    /// Lets a paused node go on. If it was the whole machine that stood still, its coarse clock did for `stood_still`.
    pub(crate) fn resume(&self, stood_still: Millis) {
        *self.resumed_at.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.now();
        self.behind.store(stood_still.0, Ordering::Relaxed);
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
        self.behind.store(0, Ordering::Relaxed);
        self.clock.now()
    }

    /// As coarse as it may be.
    fn coarse(&self) -> Millis {
        let tick = COARSE_LAG.0 - 1;
        Millis(self.clock.now().0 / tick * tick) - Millis(self.behind.load(Ordering::Relaxed))
    }

    fn nanos(&self) -> u64 {
        self.clock.nanos()
    }

    /// Some day in 2026, and then as the node's clock goes.
    fn wall_millis(&self) -> u64 {
        WALL_ZERO + self.clock.now().0 + self.wall_ahead.load(Ordering::Relaxed)
    }

    fn random(&self) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).bits()
    }

    fn oddly(&self, what: Oddity) -> bool {
        // Few shards move, compared with what else may be odd.
        let times = if what == Oddity::SlowParcel { 10 } else { 1 };
        let odd = self.odd_per_mille > 0
            && self.odds.lock().unwrap_or_else(PoisonError::into_inner).chance(self.odd_per_mille * times);
        if odd {
            note(what);
        }
        odd
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

fn note(what: Oddity) {
    match what {
        Oddity::ClaimUnanswered => sometimes!("answer to a claim lost"),
        Oddity::BeatUnanswered => sometimes!("answer to a beat lost"),
        Oddity::SlowActivation => sometimes!("activation held up"),
        Oddity::SlowParcel => sometimes!("state held up on its way"),
        Oddity::WatchBreaks => sometimes!("watch broken"),
        _ => {}
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
