//! The one place of this crate that knows the clock: real, or tokio's paused one.
#![expect(clippy::disallowed_methods, reason = "these tests time real transports")]

use std::time::Duration;

use futures_core::future::LocalBoxFuture;
use tokio::time::Instant;

/// Waits for `future`, but not longer than `limit`.
///
/// # Panics
///
/// If it takes longer; the message says that of `what`.
pub async fn within<T>(limit: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(limit, future).await {
        Ok(value) => value,
        Err(_) => panic!("not within {limit:?}: {what}"),
    }
}

/// True if `future` does not complete within `time`.
pub async fn stays_pending<T>(time: Duration, future: impl Future<Output = T>) -> bool {
    tokio::time::timeout(time, future).await.is_err()
}

/// The value of `future` if it comes in time.
pub(crate) async fn in_time<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, future).await.ok()
}

pub(crate) async fn sleep(length: Duration) {
    tokio::time::sleep(length).await;
}

pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Runs beside the rule until the handle is dropped.
pub(crate) fn spawn(task: LocalBoxFuture<'static, ()>) -> Task {
    Task(tokio::task::spawn_local(task))
}

/// A task that ends with its handle.
pub(crate) struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
