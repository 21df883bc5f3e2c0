//! Ending a connection so that what was sent before arrives before.
//!
//! quinn's own close throws away what has not been sent. So a close here has two halves: from its first moment every
//! operation on this side answers with the reason ([`Closing`]); and [`farewell`] tells the other side, once it has
//! everything.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use archipelago_protocol::contract::{CloseReason, TransportError};
use futures_util::task::AtomicWaker;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::errors::close_code;

/// Whether this side has closed, why, and who must be woken by it.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    reason: OnceLock<CloseReason>,
    sleepers: Mutex<Vec<Weak<AtomicWaker>>>,
}

impl Closing {
    /// Sets the reason and wakes everybody; false if there was a reason before.
    pub(crate) fn begin(&self, reason: CloseReason) -> bool {
        let first = self.reason.set(reason).is_ok();
        if first {
            self.sleepers().iter().filter_map(Weak::upgrade).for_each(|sleeper| sleeper.wake());
        }
        first
    }

    /// The reason, if this side has closed.
    pub(crate) fn reason(&self) -> Option<&CloseReason> {
        self.reason.get()
    }

    /// A place where one task at a time waits; [`begin`](Self::begin) wakes it for as long as it exists.
    pub(crate) fn sleeper(&self) -> Arc<AtomicWaker> {
        let sleeper = Arc::new(AtomicWaker::new());
        let mut sleepers = self.sleepers();
        sleepers.retain(|sleeper| sleeper.strong_count() > 0);
        sleepers.push(Arc::downgrade(&sleeper));
        sleeper
    }

    /// Polls `operation`, unless this side has closed or closes while the operation is pending.
    pub(crate) fn poll_unless<T>(
        &self,
        cx: &mut Context<'_>,
        sleeper: &AtomicWaker,
        operation: impl FnOnce(&mut Context<'_>) -> Poll<Result<T, TransportError>>,
    ) -> Poll<Result<T, TransportError>> {
        if let Some(reason) = self.reason() {
            return Poll::Ready(Err(TransportError::Closed(reason.clone())));
        }
        let polled = operation(cx);
        if polled.is_pending() {
            sleeper.register(cx.waker());
            // It may have closed between the first look and the registration.
            if let Some(reason) = self.reason() {
                return Poll::Ready(Err(TransportError::Closed(reason.clone())));
            }
        }
        polled
    }

    fn sleepers(&self) -> std::sync::MutexGuard<'_, Vec<Weak<AtomicWaker>>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many connections are saying farewell, so that an endpoint can wait for them.
#[derive(Debug, Default)]
pub(crate) struct Farewells {
    under_way: watch::Sender<usize>,
}

impl Farewells {
    /// Counts one more, until what it returns is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> FarewellCounted {
        self.under_way.send_modify(|count| *count += 1);
        FarewellCounted(self.clone())
    }

    /// Waits until there are none.
    pub(crate) async fn done(&self) {
        // It fails only if the sender is gone, and that is `self`.
        let _ = self.under_way.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// One farewell that is under way.
#[derive(Debug)]
pub(crate) struct FarewellCounted(Arc<Farewells>);

impl Drop for FarewellCounted {
    fn drop(&mut self) {
        self.0.under_way.send_modify(|count| *count -= 1);
    }
}

/// Closes `connection` with `reason` as soon as the other side has the lane and all finished streams, or after `limit`.
pub(crate) async fn farewell(
    connection: quinn::Connection,
    lane: impl Future,
    mut streams: JoinSet<()>,
    limit: Duration,
    reason: CloseReason,
) {
    let arrived = async {
        lane.await;
        while streams.join_next().await.is_some() {}
    };
    if tokio::time::timeout(limit, arrived).await.is_err() {
        tracing::debug!(?limit, %reason, "connection closed before everything had arrived");
    }
    connection.close(close_code(&reason), reason.text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use archipelago_protocol::contract::CloseCode;

    use super::*;

    #[tokio::test]
    async fn a_close_wakes_what_is_pending() {
        let closing = Arc::new(Closing::default());
        let sleeper = closing.sleeper();
        let waiting = {
            let closing = closing.clone();
            tokio::spawn(async move {
                poll_fn(|cx| closing.poll_unless::<()>(cx, &sleeper, |_| Poll::Pending)).await
            })
        };
        tokio::task::yield_now().await;
        let reason = CloseReason::new(CloseCode::Stopping, "enough");
        assert!(closing.begin(reason.clone()));
        assert!(!closing.begin(CloseReason::new(CloseCode::Done, "again")));
        let error = waiting.await.unwrap().unwrap_err();
        assert!(matches!(error, TransportError::Closed(told) if told == reason));
    }

    #[test]
    fn sleepers_that_are_gone_are_forgotten() {
        let closing = Closing::default();
        for _ in 0..100 {
            drop(closing.sleeper());
        }
        let _kept = closing.sleeper();
        assert_eq!(closing.sleepers().len(), 1);
    }
}
