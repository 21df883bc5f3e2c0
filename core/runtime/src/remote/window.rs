//! The window of a connection as all threads see it: what [`Window`](archipelago_protocol::link::Window) decides, without a
//! lock. One atomic step takes a share and one gives it back; the rest happens when the window shuts or opens.
//!
//! Invariant: with nothing held the reader reads. The tests walk through every order in which the steps of several threads can
//! follow each other.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use archipelago_protocol::link::WindowSettings;

/// How much of one connection is held.
pub(super) struct SharedWindow<C = Atomics> {
    settings: WindowSettings,
    cells: C,
}

/// What the threads share. Each method is one step that nothing comes in between of, and all threads see the steps in the same
/// order.
pub(super) trait Cells {
    /// Adds to what is held; answers with the sum.
    fn add(&self, share: u64) -> u64;
    /// Takes from what is held; answers with the rest.
    fn take(&self, share: u64) -> u64;
    /// What is held: how many jobs, above [`BYTES`] bits that say how many bytes.
    fn held(&self) -> u64;
    /// The window is shut.
    fn shut(&self);
    /// The window is open; true if it was shut.
    fn open(&self) -> bool;
    /// Whether it is shut.
    fn is_shut(&self) -> bool;
}

/// The cells of a connection.
#[derive(Default)]
pub(super) struct Atomics {
    held: AtomicU64,
    is_shut: AtomicBool,
}

impl SharedWindow {
    /// Nothing is held.
    pub(super) fn new(settings: WindowSettings) -> Self {
        Self::over(Atomics::default(), settings)
    }
}

impl<C: Cells> SharedWindow<C> {
    fn over(cells: C, settings: WindowSettings) -> Self {
        let WindowSettings { bytes, jobs } = settings;
        // What one read brings beyond the bounds must fit, too.
        let settings = WindowSettings { bytes: bytes.min(MOST_BYTES), jobs: jobs.min(MOST_JOBS) };
        Self { settings, cells }
    }

    /// A job of `len` bytes was accepted.
    #[inline]
    pub(super) fn admit(&self, len: u32) {
        let held = self.cells.add(share(len));
        if self.is_exceeded(held) {
            self.shut();
        }
    }

    /// An accepted job of `len` bytes has ended; true if the reader may go on because of that.
    #[inline]
    pub(super) fn release(&self, len: u32) -> bool {
        let held = self.cells.take(share(len));
        self.cells.is_shut() && self.open_if_half_free(held)
    }

    /// Whether to read on.
    #[inline]
    pub(super) fn may_read(&self) -> bool {
        !self.cells.is_shut()
    }

    /// Whoever ends the last job may have looked before the window was shut, so here is looked once more.
    #[cold]
    fn shut(&self) {
        self.cells.shut();
        self.open_if_half_free(self.cells.held());
    }

    fn open_if_half_free(&self, held: u64) -> bool {
        let (bytes, jobs) = parts(held);
        self.settings.is_half_free(bytes, jobs) && self.cells.open()
    }

    #[inline]
    fn is_exceeded(&self, held: u64) -> bool {
        let (bytes, jobs) = parts(held);
        self.settings.is_exceeded(bytes, jobs)
    }
}

impl Cells for Atomics {
    #[inline]
    fn add(&self, share: u64) -> u64 {
        self.held.fetch_add(share, Ordering::SeqCst) + share
    }

    #[inline]
    fn take(&self, share: u64) -> u64 {
        self.held.fetch_sub(share, Ordering::SeqCst) - share
    }

    fn held(&self) -> u64 {
        self.held.load(Ordering::SeqCst)
    }

    fn shut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
    }

    fn open(&self) -> bool {
        self.is_shut.swap(false, Ordering::SeqCst)
    }

    #[inline]
    fn is_shut(&self) -> bool {
        self.is_shut.load(Ordering::SeqCst)
    }
}

/// One job of so many bytes.
#[inline]
const fn share(len: u32) -> u64 {
    (1 << BYTES) + len as u64
}

#[inline]
const fn parts(held: u64) -> (usize, usize) {
    ((held & ((1 << BYTES) - 1)) as usize, (held >> BYTES) as usize)
}

const BYTES: u32 = 40;
const MOST_BYTES: usize = 1 << 38;
const MOST_JOBS: usize = 1 << 22;

#[cfg(test)]
mod interleavings;
#[cfg(test)]
mod tests;
