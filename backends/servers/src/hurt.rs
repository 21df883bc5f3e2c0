//! A server that has a bad time: paused, killed and restarted again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::process::ServerProcess;

/// What is done to a server in one round, in this order, each after some time of calm.
#[derive(Clone, Copy, Debug)]
pub struct Blow {
    /// How long it is left alone first.
    pub calm: Duration,
    /// How long it is paused.
    pub paused: Duration,
    /// How it comes back.
    pub then: Then,
}

/// How a paused server comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It goes on as if nothing had been.
    Resume,
    /// It is killed in the middle of whatever it did, stays away for so long, and is restarted on its data.
    KillFor(Duration),
}

/// Some rounds of everything: short pauses and long ones, kills of a paused and of a running server.
///
/// `patience` is how long clients wait for an answer: some pauses are shorter, others longer.
pub fn blows(patience: Duration, rounds: u32) -> Vec<Blow> {
    let calm = |round: u32| Duration::from_millis(150 + u64::from(round * 97 % 350));
    let blow = |round: u32| {
        let (paused, then) = match round % 4 {
            0 => (patience / 3, Then::Resume),
            1 => (Duration::ZERO, Then::KillFor(Duration::from_millis(100))),
            2 => (patience * 3 / 2, Then::Resume),
            _ => (patience / 2, Then::KillFor(patience / 2)),
        };
        Blow { calm: calm(round), paused, then }
    };
    (0..rounds).map(blow).collect()
}

/// Deals the blows. The server serves in the end.
///
/// # Panics
///
/// If it does not come back within 30 s; then its log is shown.
pub fn hurt(server: &mut ServerProcess, blows: &[Blow]) {
    for blow in blows {
        std::thread::sleep(blow.calm);
        if !blow.paused.is_zero() {
            server.pause();
            std::thread::sleep(blow.paused);
        }
        match blow.then {
            Then::Resume => server.resume(),
            Then::KillFor(away) => {
                server.kill();
                std::thread::sleep(away);
                server.restart();
            }
        }
    }
}

/// Somebody who hurts a server beside the test.
pub struct Hurting<S> {
    over: Arc<AtomicBool>,
    thread: JoinHandle<S>,
}

impl<S: Send + 'static> Hurting<S> {
    /// Begins `work` on a thread of its own; it answers the server that it hurt.
    pub fn begin(work: impl FnOnce() -> S + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let at_the_end = AtTheEnd(Arc::clone(&over));
        let thread = std::thread::spawn(move || {
            let _at_the_end = at_the_end;
            work()
        });
        Self { over, thread }
    }

    /// True once nobody hurts it any more.
    pub fn over(&self) -> &AtomicBool {
        &self.over
    }

    /// Waits for the end; the server.
    ///
    /// # Panics
    ///
    /// If the work did.
    pub fn end(self) -> S {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Says so also if the work panics, so that nobody waits in vain.
struct AtTheEnd(Arc<AtomicBool>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
