//! The one door to everything that is not computation: time, timers, randomness, spawning, arbiters, the network.
//!
//! All code of a node reaches the world through an [`Environment`]. [`HostEnvironment`] is the real one; the
//! simulator brings its own, and with it virtual time, seeded randomness, crashes and pauses.

mod aside;
mod host;
mod incarnation;
mod limit;
mod oddity;
mod shown;
mod signals;
mod stay;
mod timer;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use archipelago_protocol::contract::Transport;
use archipelago_protocol::time::Millis;
use futures_core::future::{BoxFuture, LocalBoxFuture};

pub use crate::arbiter::from_outside;
pub use host::{HostEnvironment, Threads};
pub use incarnation::{ArbiterMain, incarnation};
pub(crate) use limit::within;
pub use oddity::Oddity;
pub use shown::Follower;
pub(crate) use shown::Shown;
pub(crate) use signals::told_to_end;
pub(crate) use stay::{Departure, Stay};
pub use timer::EnvironmentTimer;

/// Time, timers, randomness, spawning, arbiters and the network.
///
/// # Every implementation
///
/// - *one_clock*: `now`, `coarse` and `nanos` read one monotonic clock, the same on all threads, which counts suspend.
/// - *sleeps_long_enough*: `sleep(d)` is not ready before `now` has grown by `d`.
/// - *dies_whole*: dropping the future of an arbiter drops every task spawned on it.
/// - *guards_apart*: what `stand_guard` looks at, it looks at in time even if every arbiter is blocked. If the whole process
///   stands still, so does it.
pub trait Environment: Send + Sync + 'static {
    /// The time on the node's own clock.
    fn now(&self) -> Millis;

    /// The time, cheaper to ask for: never ahead of [`now`](Self::now), and behind it by less than [`COARSE_LAG`]
    /// (by the length of a suspend until `now` is asked next).
    fn coarse(&self) -> Millis {
        self.now()
    }

    /// The same clock in nanoseconds, for measuring.
    fn nanos(&self) -> u64;

    /// Milliseconds since 1970, for people. All that is decided by it: one that runs ahead makes a node doubt its own clock.
    fn wall_millis(&self) -> u64;

    /// 64 random bits.
    fn random(&self) -> u64;

    /// Whether something rare happens here, once. Never where nodes serve; a simulator may have it happen by chance.
    fn oddly(&self, _: Oddity) -> bool {
        false
    }

    /// Waits for a length of time.
    fn sleep(&self, length: Millis) -> BoxFuture<'static, ()>;

    /// Runs a task beside the present one, on the present arbiter of the node.
    fn spawn(&self, task: LocalBoxFuture<'static, ()>);

    /// Runs heavy computation where it keeps no arbiter from its work; ready when it is done.
    fn offload(&self, work: Box<dyn FnOnce() + Send>) -> BoxFuture<'static, ()>;

    /// The network; `None` for a node that talks to no other.
    fn transport(&self) -> Option<Arc<dyn Transport>> {
        None
    }

    /// Starts an arbiter that runs `main` inside an [`incarnation`].
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] if there is no runtime to start it on; nothing was started.
    fn start_arbiter(&self, role: ArbiterRole, main: ArbiterMain) -> Result<(), EnvironmentError>;

    /// Looks again and again, where nothing that runs on an arbiter can hold it up: `look` says when to look next, or
    /// nothing to end it. Waking the waker makes it look at once.
    ///
    /// # Errors
    ///
    /// [`EnvironmentError`] if there is no place to look from.
    fn stand_guard(&self, look: Look) -> Result<Waker, EnvironmentError>;

    /// Ends the process at once, without unwinding, and says why. It may return only where nothing of the node that calls
    /// it runs afterwards.
    fn abort(&self, reason: &str);
}

/// One look: when to look next, on the clock of the node; `None` for never again.
pub type Look = Box<dyn FnMut() -> Option<Millis> + Send>;

/// How far [`Environment::coarse`] may be behind.
pub const COARSE_LAG: Millis = Millis(10);

/// What an arbiter is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArbiterRole {
    /// Sessions, stores, everything that must not wait behind user code.
    Control,
    /// Activations and the calls to them; data arbiters are numbered from 0.
    Data(u16),
    /// Outlives the others: starts them anew after the node has lost its session. It needs no thread of its own, and must
    /// not run on one of theirs.
    Keeper,
}

impl fmt::Display for ArbiterRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Data(n) => write!(f, "data-{n}"),
            Self::Keeper => f.write_str("keeper"),
        }
    }
}

/// The environment could not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There is no actix system on this thread. Start the node inside `#[actix::main]` or a `System`.
    #[error("no actix system runs on this thread: start the node inside #[actix::main] or actix::System")]
    NoSystem,
    /// The operating system gives no thread. Raise its limits.
    #[error("no thread could be started: {reason}")]
    NoThread {
        /// What the operating system says.
        reason: String,
    },
}
