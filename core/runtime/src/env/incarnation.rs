//! One life of one arbiter of a node: a task set that dies as a whole.

use std::any::Any;
use std::fmt;

use futures_core::future::LocalBoxFuture;
use tokio::task::LocalSet;

/// What an arbiter of a node runs: called on the arbiter, its future is polled there until it ends.
pub struct ArbiterMain {
    main: Box<dyn FnOnce() -> LocalBoxFuture<'static, ()> + Send>,
    /// Whether its tasks are its own, or those of the thread it runs on.
    own_tasks: bool,
    /// Dropped after the last of its tasks.
    held: Vec<Box<dyn Any + Send>>,
}

impl ArbiterMain {
    /// Runs `main` with tasks of its own, which end with it.
    pub fn new(main: impl FnOnce() -> LocalBoxFuture<'static, ()> + Send + 'static) -> Self {
        Self { main: Box::new(main), own_tasks: true, held: Vec::new() }
    }

    /// Runs `main` among the tasks of its thread: what it spawns outlives it.
    pub(crate) fn among_others(main: impl FnOnce() -> LocalBoxFuture<'static, ()> + Send + 'static) -> Self {
        Self { main: Box::new(main), own_tasks: false, held: Vec::new() }
    }

    /// Holds `what` until the last of its tasks is gone.
    pub(crate) fn holding(mut self, what: impl Any + Send) -> Self {
        self.held.push(Box::new(what));
        self
    }
}

/// Runs `main` in a task set of its own. When `main` ends, or when this future is dropped, every task that was
/// spawned inside goes with it: detached handler futures too. Not polling it pauses all of them.
pub fn incarnation(main: ArbiterMain) -> LocalBoxFuture<'static, ()> {
    let ArbiterMain { main, own_tasks, held } = main;
    Box::pin(async move {
        // Declared first and so dropped last: after every task.
        let _held = held;
        if own_tasks {
            let tasks = LocalSet::new();
            tasks.run_until(main()).await;
        } else {
            main().await;
        }
    })
}

impl fmt::Debug for ArbiterMain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArbiterMain").field("own_tasks", &self.own_tasks).finish_non_exhaustive()
    }
}
