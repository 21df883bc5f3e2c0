//! Heavy work off the arbiters, on threads that the arbiters go before.
//!
//! To encode, decode and let go of a large message keeps a processor busy for tens of milliseconds. As an equal of the
//! arbiters it would take their turns where there are few processors: small messages would wait for it. So it runs with
//! less priority, on threads of its own: a thread cannot take its priority back, so those that the application shares
//! are left alone.
//!
//! Bound: as many threads as there are processors, which end when they have had nothing to do for a while. What waits for them
//! is bounded by whoever hands it in: per lane four messages and four replies to be encoded, as many messages to be decoded as
//! its window for large ones lets in, and replies to calls that this node has made.
#![expect(clippy::disallowed_methods, reason = "part of the one place that reaches the world")]

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is done aside.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The threads for heavy work.
pub(super) struct Aside {
    shared: Arc<Shared>,
    most: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Work>,
    threads: usize,
    idle: usize,
}

impl Aside {
    /// As many threads as there are processors, none of them started yet.
    pub(super) fn new() -> Self {
        let most = std::thread::available_parallelism().map_or(1, usize::from);
        Self { shared: Arc::default(), most }
    }

    /// Does `work` soon.
    ///
    /// # Errors
    ///
    /// There is no thread for it and none can be started: the work is given back.
    pub(super) fn run(&self, work: Work) -> Result<(), Work> {
        let mut state = self.shared.lock();
        state.waiting.push_back(work);
        if state.idle < state.waiting.len() && state.threads < self.most {
            let shared = Arc::clone(&self.shared);
            match std::thread::Builder::new().name(NAME.to_owned()).spawn(move || shared.serve()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    tracing::warn!(%error, "no thread for large messages");
                    return state.waiting.pop_back().map_or(Ok(()), Err);
                }
                Err(_) => {}
            }
        }
        drop(state);
        self.shared.more.notify_one();
        Ok(())
    }
}

impl Shared {
    fn serve(&self) {
        step_back();
        while let Some(work) = self.next() {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                tracing::error!("work off the arbiter panicked");
            }
        }
    }

    /// The next work; none when there was nothing to do for a while. The thread has left then.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if let Some(work) = state.waiting.pop_front() {
                return Some(work);
            }
            state.idle += 1;
            let (woken, waited) =
                self.more.wait_timeout(state, LINGER).unwrap_or_else(PoisonError::into_inner);
            state = woken;
            state.idle -= 1;
            if waited.timed_out() && state.waiting.is_empty() {
                state.threads -= 1;
                return None;
            }
        }
    }

    /// Nothing that is done under the lock leaves it half done.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets other threads go before this one. Elsewhere than on Linux the priority is that of the process, which stays as it is.
fn step_back() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = rustix::process::setpriority_process(None, NICENESS) {
        tracing::debug!(%error, "large messages are handled at the arbiters' priority");
    }
}

const NAME: &str = "archipelago-large";
/// A ninth of an arbiter's share while both want a processor, and all of it otherwise. Measured with `archipelago-bench-remote
/// strain`: without it the slowest hundredth of small calls took three times as long beside a large message; 19 gave no more.
#[cfg(any(target_os = "linux", target_os = "android"))]
const NICENESS: i32 = 10;
/// How long a thread waits for more before it ends.
const LINGER: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn work_is_done_on_few_threads_though_some_of_it_panics() {
        let aside = Aside::new();
        let (done, seen) = mpsc::channel();
        for number in 0..100 {
            let done = done.clone();
            let work = move || {
                assert!(number % 3 > 0, "this one panics");
                done.send((number, std::thread::current().id())).unwrap();
            };
            assert!(aside.run(Box::new(work)).is_ok());
        }
        let mut numbers = Vec::new();
        let mut threads = std::collections::HashSet::new();
        for _ in 0..66 {
            let (number, thread) = seen.recv_timeout(SOON).unwrap();
            numbers.push(number);
            threads.insert(thread);
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..100).filter(|number| number % 3 > 0).collect::<Vec<_>>());
        assert!(threads.len() <= aside.most, "{} threads", threads.len());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_threads_step_back_and_whoever_hands_in_does_not() {
        let niceness = || rustix::process::getpriority_process(None).unwrap();
        let before = niceness();
        let (said, heard) = mpsc::channel();
        assert!(Aside::new().run(Box::new(move || said.send(niceness()).unwrap())).is_ok());
        assert!(heard.recv_timeout(SOON).unwrap() >= NICENESS);
        assert_eq!(niceness(), before);
    }
}
