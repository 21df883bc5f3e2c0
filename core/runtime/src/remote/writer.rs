//! Who writes for a lane, and when it has to be woken for it.
//!
//! To wake a task costs an atomic step even if it is awake, and a busy lane has something new to write hundreds of times
//! between two turns of its connection. So the connection is woken once, and not at all while it has its turn: at the
//! end of each it looks for what there is.
//!
//! Invariant: what came after the last look has woken the connection.

use std::cell::{Cell, RefCell};
use std::task::Waker;

/// The task that writes for a lane.
#[derive(Debug, Default)]
pub(super) struct Writer {
    task: RefCell<Option<Waker>>,
    /// It looks for what there is to write without being woken (again).
    will_look: Cell<bool>,
}

impl Writer {
    /// The connection has its turn and will look at the end of it; afterwards it is woken by `waker`.
    pub(super) fn begin_turn(&self, waker: &Waker) {
        self.will_look.set(true);
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *task = Some(waker.clone());
        }
    }

    /// The connection looks now, for the last time in this turn.
    pub(super) fn looks(&self) {
        self.will_look.set(false);
    }

    /// There is something to write.
    #[inline]
    pub(super) fn wake(&self) {
        if self.will_look.get() {
            return;
        }
        if let Some(task) = &*self.task.borrow() {
            self.will_look.set(true);
            task.wake_by_ref();
        }
    }

    /// The connection has ended.
    pub(super) fn gone(&self) {
        *self.task.borrow_mut() = None;
        self.will_look.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Bell(AtomicUsize);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Bell {
        fn rung(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_connection_is_woken_once_for_all_that_comes_between_two_looks() {
        let (writer, bell) = (Writer::default(), Arc::new(Bell::default()));
        let waker = Waker::from(Arc::clone(&bell));
        for turn in 1..=3 {
            writer.begin_turn(&waker);
            writer.wake();
            assert_eq!(bell.rung(), turn - 1, "it looks at the end of its turn anyway");
            writer.looks();
            (0..10).for_each(|_| writer.wake());
            assert_eq!(bell.rung(), turn, "after its last look it has to be woken");
        }
    }

    #[test]
    fn the_next_connection_is_woken_although_the_last_one_never_looked() {
        let (writer, old, new) = (Writer::default(), Arc::new(Bell::default()), Arc::new(Bell::default()));
        writer.begin_turn(&Waker::from(Arc::clone(&old)));
        writer.looks();
        writer.wake();
        writer.gone();
        writer.wake();
        writer.begin_turn(&Waker::from(Arc::clone(&new)));
        writer.looks();
        writer.wake();
        assert_eq!((old.rung(), new.rung()), (1, 1));
    }
}
