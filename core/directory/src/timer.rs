//! Time, as the runtime or the simulator gives it.

use std::future::Future;
use std::pin::Pin;

use archipelago_protocol::time::Millis;

/// A wait that a [`Timer`] measures.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The node's own monotonic clock, which also counts suspend, and waits measured by it.
pub trait Timer: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> Millis;

    /// Completes once `length` has passed.
    fn sleep(&self, length: Millis) -> Sleep;
}
