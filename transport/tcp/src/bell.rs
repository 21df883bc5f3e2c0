//! Who is woken when the socket can be read or written again.
//!
//! A socket of tokio remembers one task per direction, but several may wait for it. So a bell is registered there,
//! and the bell knows the tasks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Rings when the socket can be read. Wakes the one task that leads: the reader of the lane if it waits, otherwise
/// the driver. Whoever is woken reads for everybody and wakes those whose data has come.
#[derive(Debug, Default)]
pub(crate) struct ReadBell {
    leader: Slot,
    driver: Slot,
}

impl ReadBell {
    /// The lane's reader waits from now on.
    pub(crate) fn lead(&self, waker: &Waker) {
        self.leader.set(waker);
    }

    /// The lane's reader does not wait any more.
    pub(crate) fn step_down(&self) {
        self.leader.take();
    }

    /// Wakes the lane's reader, if it waits.
    pub(crate) fn wake_leader(&self) {
        if let Some(waker) = self.leader.take() {
            waker.wake();
        }
    }

    pub(crate) fn set_driver(&self, waker: &Waker) {
        self.driver.set(waker);
    }

    pub(crate) fn wake_driver(&self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }
}

impl Wake for ReadBell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match self.leader.take() {
            Some(waker) => waker.wake(),
            None => self.wake_driver(),
        }
    }
}

/// Rings when the socket can be written. Wakes everybody who waits for room, in the order in which they came, and the
/// driver, who writes what somebody left behind.
#[derive(Debug, Default)]
pub(crate) struct WriteBell {
    waiting: Waiters,
    driver: Slot,
}

impl WriteBell {
    pub(crate) fn wait(&self, waker: &Waker) {
        self.waiting.add(waker);
    }

    pub(crate) fn wake_waiting(&self) {
        self.waiting.wake_all();
    }

    pub(crate) fn set_driver(&self, waker: &Waker) {
        self.driver.set(waker);
    }
}

impl Wake for WriteBell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.waiting.wake_all();
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }
}

/// Tasks that wait for the same thing.
#[derive(Debug, Default)]
pub(crate) struct Waiters(Mutex<Vec<Waker>>);

impl Waiters {
    pub(crate) fn add(&self, waker: &Waker) {
        let mut waiting = unpoisoned(&self.0);
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    pub(crate) fn wake_all(&self) {
        let waiting = std::mem::take(&mut *unpoisoned(&self.0));
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[derive(Debug, Default)]
struct Slot(Mutex<Option<Waker>>);

impl Slot {
    fn set(&self, waker: &Waker) {
        let mut slot = unpoisoned(&self.0);
        match &mut *slot {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
    }

    fn take(&self) -> Option<Waker> {
        unpoisoned(&self.0).take()
    }
}

/// Locks; a panic of another holder has broken nothing here, since every change is a single step.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn counted() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), Waker::from(count))
    }

    #[test]
    fn the_leader_is_woken_once_and_then_the_driver() {
        let (bell, (lane, lane_waker), (driver, driver_waker)) =
            (Arc::new(ReadBell::default()), counted(), counted());
        bell.lead(&lane_waker);
        bell.set_driver(&driver_waker);
        bell.wake_by_ref();
        assert_eq!((lane.0.load(Ordering::Relaxed), driver.0.load(Ordering::Relaxed)), (1, 0));
        bell.wake_by_ref();
        assert_eq!((lane.0.load(Ordering::Relaxed), driver.0.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn everybody_who_waits_to_write_is_woken_once() {
        let (bell, (one, one_waker), (two, two_waker)) =
            (Arc::new(WriteBell::default()), counted(), counted());
        bell.wait(&one_waker);
        bell.wait(&one_waker);
        bell.wait(&two_waker);
        bell.wake_by_ref();
        bell.wake_by_ref();
        assert_eq!((one.0.load(Ordering::Relaxed), two.0.load(Ordering::Relaxed)), (1, 1));
    }
}
