//! Which arbiters live on the present thread.
//!
//! Refs are `Send`, the state of an arbiter is not: a ref used on its actor's own arbiter finds that state
//! here, without a lock; elsewhere it finds nothing and takes the queue.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::ArbiterLocal;
use crate::node::NodeShared;

/// The place of an arbiter: the number of its thread and its slot there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    thread: u64,
    slot: usize,
}

struct Thread {
    /// 0 until an arbiter comes.
    number: Cell<u64>,
    arbiters: RefCell<Vec<Option<Rc<ArbiterLocal>>>>,
    outside: Cell<bool>,
}

/// Threads are numbered in the order in which arbiters come to them.
static THREADS: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static THREAD: Thread = const {
        Thread { number: Cell::new(0), arbiters: RefCell::new(Vec::new()), outside: Cell::new(false) }
    };
}

/// Runs `work` as if on a thread without arbiters: what it sends takes the queue, as from a web server's worker.
/// For the simulator, which has only one thread.
pub fn from_outside<T>(work: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            THREAD.with(|thread| thread.outside.set(self.0));
        }
    }
    let _back = Back(THREAD.with(|thread| thread.outside.replace(true)));
    work()
}

/// The arbiter if it lives on this thread; `None` if it lives elsewhere or is gone.
#[inline]
pub(crate) fn local(node: &NodeShared, arbiter: u16) -> Option<Rc<ArbiterLocal>> {
    let place = node.arbiter(arbiter).place()?;
    let found = THREAD.try_with(|thread| thread.at(place)).ok().flatten()?;
    // A later arbiter may have taken the place of one that has ended.
    std::ptr::eq(Arc::as_ptr(found.node()), node).then_some(found)
}

/// An arbiter's stay on this thread; it ends when this is dropped.
pub(super) struct Residence(Place);

impl Residence {
    pub(super) fn take(local: &Rc<ArbiterLocal>) -> Self {
        THREAD.with(|thread| {
            if thread.number.get() == 0 {
                thread.number.set(THREADS.fetch_add(1, Ordering::Relaxed));
            }
            let mut arbiters = thread.arbiters.borrow_mut();
            let slot = arbiters.iter().position(Option::is_none).unwrap_or(arbiters.len());
            if slot == arbiters.len() {
                arbiters.push(None);
            }
            arbiters[slot] = Some(Rc::clone(local));
            Self(Place { thread: thread.number.get(), slot })
        })
    }

    pub(super) const fn place(&self) -> Place {
        self.0
    }
}

impl Drop for Residence {
    fn drop(&mut self) {
        let gone = THREAD
            .try_with(|thread| thread.arbiters.borrow_mut().get_mut(self.0.slot).and_then(Option::take));
        drop(gone);
    }
}

impl Thread {
    #[inline]
    fn at(&self, place: Place) -> Option<Rc<ArbiterLocal>> {
        if place.thread != self.number.get() || self.outside.get() {
            return None;
        }
        self.arbiters.borrow().get(place.slot)?.clone()
    }
}
