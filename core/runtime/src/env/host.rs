//! The real environment: the machine's clocks, tokio's timers, actix's arbiters.
#![expect(clippy::disallowed_methods, reason = "this is the one place that reaches the world")]

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use archipelago_protocol::contract::Transport;
use archipelago_protocol::time::Millis;
use futures_core::future::{BoxFuture, LocalBoxFuture};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;

use super::aside::Aside;
use super::{ArbiterMain, ArbiterRole, Environment, EnvironmentError, Look, incarnation};

/// Where the arbiters of a node run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// Each on a thread of its own.
    Own,
    /// All on the arbiter that starts the node: no crossing of threads, nothing runs in parallel.
    Current,
}

/// The environment of a node on a real machine.
pub struct HostEnvironment {
    threads: Threads,
    seed: RandomState,
    drawn: AtomicU64,
    /// How far the suspend-aware clock is ahead of the other, in nanoseconds.
    slept: AtomicU64,
    aside: Aside,
    transport: Option<Arc<dyn Transport>>,
}

impl HostEnvironment {
    /// An environment whose arbiters run as `threads` says.
    pub fn new(threads: Threads) -> Self {
        let (drawn, slept) = (AtomicU64::new(0), AtomicU64::new(0));
        let (seed, aside) = (RandomState::new(), Aside::new());
        let env = Self { threads, seed, drawn, slept, aside, transport: None };
        env.now();
        env
    }

    /// The same with a network.
    #[must_use]
    pub fn with_transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }
}

impl Environment for HostEnvironment {
    fn now(&self) -> Millis {
        let now = self.nanos();
        self.slept.store(now.saturating_sub(read(ClockId::Monotonic)), Ordering::Relaxed);
        Millis(now / 1_000_000)
    }

    /// The kernel's tick, moved by what the machine has slept: a third of the price of an exact clock.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn coarse(&self) -> Millis {
        Millis((read(ClockId::MonotonicCoarse) + self.slept.load(Ordering::Relaxed)) / 1_000_000)
    }

    fn nanos(&self) -> u64 {
        read(SUSPEND_AWARE)
    }

    fn wall_millis(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis::from_duration(since).0
    }

    /// Keyed hashing of a counter with the process's random key: unpredictable enough for ids and jitter.
    fn random(&self) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.drawn.fetch_add(1, Ordering::Relaxed));
        hasher.write_u64(self.nanos());
        hasher.finish()
    }

    fn sleep(&self, length: Millis) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }

    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        tokio::task::spawn_local(task);
    }

    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()> {
        // A panic lets go of `done` as well.
        let (done, is_done) = oneshot::channel();
        let work = Box::new(move || {
            work();
            let _ = done.send(());
        });
        if let Err(work) = self.aside.run(work) {
            drop(tokio::task::spawn_blocking(work));
        }
        Box::pin(async move { drop(is_done.await) })
    }

    fn transport(&self) -> Option<Arc<dyn Transport>> {
        self.transport.clone()
    }

    fn start_arbiter(&self, role: ArbiterRole, main: ArbiterMain) -> Result<(), EnvironmentError> {
        if actix_rt::System::try_current().is_none() {
            return Err(EnvironmentError::NoSystem);
        }
        match (self.threads, role) {
            (Threads::Current, _) => {
                actix_rt::spawn(incarnation(main));
            }
            // The thread that starts the node may end before the node does; the system's own stays.
            (Threads::Own, ArbiterRole::Keeper) => {
                let started = actix_rt::System::current().arbiter().spawn_fn(move || {
                    actix_rt::spawn(incarnation(main));
                });
                tracing::debug!(%role, started, "arbiter started");
            }
            (Threads::Own, ArbiterRole::Control | ArbiterRole::Data(_)) => {
                let arbiter = actix_rt::Arbiter::new();
                let started = arbiter.spawn_fn(move || {
                    actix_rt::spawn(async move {
                        incarnation(main).await;
                        actix_rt::Arbiter::current().stop();
                    });
                });
                tracing::debug!(%role, started, "arbiter started");
            }
        }
        Ok(())
    }

    fn stand_guard(&self, mut look: Look) -> Result<Waker, EnvironmentError> {
        let guard = move || {
            while let Some(at) = look() {
                std::thread::park_timeout(at.since(Millis(read(SUSPEND_AWARE) / 1_000_000)).to_duration());
            }
        };
        let started = std::thread::Builder::new().name("archipelago-fence".to_owned()).spawn(guard);
        let guard = started.map_err(|error| EnvironmentError::NoThread { reason: error.to_string() })?;
        Ok(Waker::from(Arc::new(Unpark(guard.thread().clone()))))
    }

    /// The last words are said by a thread that nobody waits for long: whoever blocks may hold what they are written to.
    fn abort(&self, reason: &str) {
        let (reason, (said, is_said)) = (reason.to_owned(), mpsc::channel());
        let speak = move || {
            tracing::error!(reason, "the process is aborted");
            let _ = writeln!(std::io::stderr(), "archipelago: the process is aborted: {reason}");
            let _ = said.send(());
        };
        if std::thread::Builder::new().spawn(speak).is_ok() {
            let _ = is_said.recv_timeout(LAST_WORDS);
        }
        std::process::abort();
    }
}

/// Wakes a thread that is parked.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// How long the process lives on to say why it ends.
const LAST_WORDS: Duration = Duration::from_millis(50);

impl fmt::Debug for HostEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let transport = self.transport.as_ref().map(|transport| transport.name());
        f.debug_struct("HostEnvironment")
            .field("threads", &self.threads)
            .field("transport", &transport)
            .finish()
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// A lease must run out while the machine sleeps, so the clock has to count suspend.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SUSPEND_AWARE: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SUSPEND_AWARE: ClockId = ClockId::Monotonic;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ() {
        let env = HostEnvironment::new(Threads::Current);
        let drawn: std::collections::BTreeSet<u64> = (0..1000).map(|_| env.random()).collect();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn the_coarse_clock_is_behind_by_less_than_its_lag_and_never_ahead() {
        let env = HostEnvironment::new(Threads::Current);
        for _ in 0..100_000 {
            let (before, coarse, after) = (env.now(), env.coarse(), env.now());
            assert!(coarse <= after, "{coarse} is ahead of {after}");
            assert!(before.since(coarse) < super::super::COARSE_LAG, "{coarse} is far behind {before}");
        }
    }

    #[test]
    fn without_an_actix_system_there_is_a_worded_error() {
        let env = HostEnvironment::new(Threads::Current);
        let refused = env.start_arbiter(ArbiterRole::Control, ArbiterMain::new(|| Box::pin(async {})));
        assert_eq!(refused, Err(EnvironmentError::NoSystem));
    }
}
