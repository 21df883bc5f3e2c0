//! What a call that has left its thread wants done there.
//!
//! This is the rare way: a call is nearly always awaited where it was made. A thread with arbiters can be reached, and
//! their main tasks run the errands; once the last arbiter has left, whoever asks learns that it has stopped.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tokio::sync::oneshot;

use super::Delivery;
use super::table::{HERE, Table};

/// Something to do about the entry in one place of a thread's table.
pub(super) enum Errand {
    /// Send the answer on.
    Forward(u32, oneshot::Sender<Delivery>),
    /// Nobody waits any more.
    Cancel(u32),
}

/// The errands of one thread. At most two per call, so the calls' own bound holds for them.
#[derive(Default)]
struct Desk {
    any: AtomicBool,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    errands: Vec<Errand>,
    /// The main tasks that run errands here; without any, none is taken.
    attendants: BTreeMap<u64, Waker>,
}

/// The desks of all threads that have arbiters.
static DESKS: Mutex<BTreeMap<u32, Arc<Desk>>> = Mutex::new(BTreeMap::new());

/// Asks for the answer of a call that was made on another thread.
pub(super) fn forward(thread: u32, place: u32) -> oneshot::Receiver<Delivery> {
    let (sender, answer) = oneshot::channel();
    // An errand that cannot be run is dropped, and shows as a closed channel.
    post(thread, Errand::Forward(place, sender));
    answer
}

/// Cancels a call that was made on another thread.
pub(super) fn cancel(thread: u32, place: u32) {
    post(thread, Errand::Cancel(place));
}

fn post(thread: u32, errand: Errand) {
    let Some(desk) = lock(&DESKS).get(&thread).cloned() else { return };
    let mut open = lock(&desk.open);
    if open.attendants.is_empty() {
        return;
    }
    open.errands.push(errand);
    desk.any.store(true, Ordering::Release);
    let attendants: Vec<Waker> = open.attendants.values().cloned().collect();
    drop(open);
    attendants.into_iter().for_each(Waker::wake);
}

/// One main task's duty to run the errands of its thread; it ends when this is dropped.
pub(crate) struct Attendance {
    desk: Arc<Desk>,
    thread: u32,
    number: u64,
}

impl Attendance {
    /// Attends to the present thread; whoever posts an errand wakes `main`.
    pub(crate) fn begin(main: &Waker) -> Self {
        let thread = HERE.with(Table::number);
        let desk = Arc::clone(lock(&DESKS).entry(thread).or_default());
        let mut open = lock(&desk.open);
        let number = open.attendants.last_key_value().map_or(0, |(last, _)| last + 1);
        open.attendants.insert(number, main.clone());
        drop(open);
        Self { desk, thread, number }
    }

    /// Notes that the main task is woken by another waker now.
    pub(crate) fn set_main(&self, main: &Waker) {
        let old = lock(&self.desk.open).attendants.insert(self.number, main.clone());
        drop(old);
    }

    /// Runs what has been asked for.
    pub(crate) fn run(&self) {
        if !self.desk.any.load(Ordering::Acquire) {
            return;
        }
        let mut open = lock(&self.desk.open);
        self.desk.any.store(false, Ordering::Release);
        let errands = std::mem::take(&mut open.errands);
        drop(open);
        for errand in errands {
            // A thread that ends has no callers left.
            let _ = HERE.try_with(|here| here.run(errand));
        }
    }
}

impl Drop for Attendance {
    fn drop(&mut self) {
        let mut desks = lock(&DESKS);
        let mut open = lock(&self.desk.open);
        let main = open.attendants.remove(&self.number);
        if open.attendants.is_empty() {
            desks.remove(&self.thread);
        }
        drop((open, desks));
        drop(main);
        self.run();
    }
}

/// Nothing panics under these locks, and what they guard is whole at every step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
