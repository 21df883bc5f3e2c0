//! Where the network's time comes from.
#![expect(clippy::disallowed_methods, reason = "the timer on tokio's clock is where that clock is read")]

use archipelago_protocol::time::Millis;
use futures_core::future::BoxFuture;
use tokio::time::Instant;

/// A clock and its waits.
///
/// # Every implementation
///
/// - *one_clock*: `now` is monotonic, and the same for everybody in the network.
/// - *sleeps_long_enough*: `sleep(d)` is not ready before `now` has grown by `d`.
pub trait Timer: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Millis;

    /// Completes once `length` has passed.
    fn sleep(&self, length: Millis) -> BoxFuture<'static, ()>;
}

/// Tokio's clock, real or paused.
#[derive(Clone, Copy, Debug)]
pub struct TokioTimer {
    zero: Instant,
}

impl TokioTimer {
    /// A timer that shows zero now.
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }
}

impl Timer for TokioTimer {
    fn now(&self) -> Millis {
        Millis(u64::try_from(self.zero.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep(&self, length: Millis) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }
}
