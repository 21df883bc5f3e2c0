//! The window of a connection as all threads see it: what [`Window`](archipelago_protocol::link::Window) decides, without a
//! lock. One atomic step takes a share and one gives it back; the rest happens when the window shuts or opens.
//!
//! Invariant: with nothing held the reader reads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use archipelago_protocol::link::WindowSettings;

/// How much of one connection is held.
pub(super) struct SharedWindow {
    settings: WindowSettings,
    /// How many jobs, above [`BYTES`] bits that say how many bytes.
    held: AtomicU64,
    is_full: AtomicBool,
}

impl SharedWindow {
    /// Nothing is held.
    pub(super) fn new(settings: WindowSettings) -> Self {
        let WindowSettings { bytes, jobs } = settings;
        // What one read brings beyond the bounds must fit, too.
        let settings = WindowSettings { bytes: bytes.min(MOST_BYTES), jobs: jobs.min(MOST_JOBS) };
        Self { settings, held: AtomicU64::new(0), is_full: AtomicBool::new(false) }
    }

    /// A job of `len` bytes was accepted.
    #[inline]
    pub(super) fn admit(&self, len: u32) {
        let held = self.held.fetch_add(share(len), Ordering::SeqCst) + share(len);
        if self.is_exceeded(held) {
            self.shut();
        }
    }

    /// An accepted job of `len` bytes has ended; true if the reader may go on because of that.
    #[inline]
    pub(super) fn release(&self, len: u32) -> bool {
        let held = self.held.fetch_sub(share(len), Ordering::SeqCst) - share(len);
        self.is_full.load(Ordering::SeqCst) && self.open_if_half_free(held)
    }

    /// Whether to read on.
    #[inline]
    pub(super) fn may_read(&self) -> bool {
        !self.is_full.load(Ordering::SeqCst)
    }

    /// Whoever ends the last job may have looked before the window was shut, so here is looked once more.
    #[cold]
    fn shut(&self) {
        self.is_full.store(true, Ordering::SeqCst);
        self.open_if_half_free(self.held.load(Ordering::SeqCst));
    }

    fn open_if_half_free(&self, held: u64) -> bool {
        let (bytes, jobs) = parts(held);
        self.settings.is_half_free(bytes, jobs) && self.is_full.swap(false, Ordering::SeqCst)
    }

    #[inline]
    fn is_exceeded(&self, held: u64) -> bool {
        let (bytes, jobs) = parts(held);
        self.settings.is_exceeded(bytes, jobs)
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
mod tests {
    use archipelago_protocol::link::Window;

    use super::*;

    #[test]
    fn it_decides_as_the_window_does() {
        for (bytes, jobs) in [(100, 1_000), (1_000, 3), (10, 2), (0, 0), (usize::MAX, usize::MAX)] {
            let settings = WindowSettings { bytes, jobs };
            let (shared, mut window) = (SharedWindow::new(settings), Window::new(settings));
            let (mut held, mut state) = (Vec::new(), 7_u64);
            for _ in 0..2_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let len = (state >> 40) as u32 % 60;
                if state >> 63 == 0 {
                    shared.admit(len);
                    window.admit(len as usize);
                    held.push(len);
                } else if let Some(len) = held.pop() {
                    let was_shut = !window.may_read();
                    window.release(len as usize);
                    assert_eq!(shared.release(len), was_shut && window.may_read());
                }
                assert_eq!(shared.may_read(), window.may_read(), "{settings:?}");
            }
        }
    }

    #[test]
    fn it_is_open_when_all_threads_have_given_their_shares_back() {
        let window = SharedWindow::new(WindowSettings { bytes: 1_000, jobs: 4 });
        for _ in 0..200 {
            std::thread::scope(|scope| {
                (0..4).for_each(|_| {
                    scope.spawn(|| {
                        for _ in 0..20 {
                            window.admit(300);
                            window.release(300);
                        }
                    });
                });
            });
            assert!(window.may_read());
        }
    }
}
