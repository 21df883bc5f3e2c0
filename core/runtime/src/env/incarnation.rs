//! One life of one arbiter of a node: a task set that dies as a whole.

use futures_core::future::LocalBoxFuture;
use tokio::task::LocalSet;

use super::ArbiterMain;

/// Runs `main` in a task set of its own. When `main` ends, or when this future is dropped, every task that was
/// spawned inside goes with it: detached handler futures too. Not polling it pauses all of them.
pub fn incarnation(main: ArbiterMain) -> LocalBoxFuture<'static, ()> {
    Box::pin(async move {
        let tasks = LocalSet::new();
        tasks.run_until(main()).await;
    })
}
