//! How much memory a decoder takes, measured on its own thread.
//!
//! [`Counting`] has to be the global allocator of the program; without it everything counts as free. What another thread
//! allocates or frees is not seen here.
#![expect(
    unsafe_code,
    reason = "an allocator cannot be written without; all it does besides counting is forward"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which also counts what the thread holds.
#[derive(Debug)]
pub struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract; counting neither
// allocates nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may exist for a moment.
        note(size as isize);
        note(-(layout.size() as isize));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(place, layout, size) }
    }
}

fn note(change: isize) {
    // A thread that ends has no counter any more, and nothing is measured there.
    let _ = HELD.try_with(|held| {
        held.set(held.get().wrapping_add(change));
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

/// Runs `work` and says how many bytes the thread held at most beyond what it held before. Not to be nested.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    PEAK.set(before);
    let done = work();
    (done, usize::try_from(PEAK.get().wrapping_sub(before)).unwrap_or(0))
}

/// Runs `work`, which has read `input` bytes and may hold `times` as much, and `beyond`.
///
/// # Panics
///
/// If it held more.
pub fn within<T>(input: usize, (times, beyond): (usize, usize), work: impl FnOnce() -> T) -> T {
    let (done, peak) = peak_of(work);
    let limit = input * times + beyond;
    assert!(peak <= limit, "{peak} bytes were held to read {input}, at most {limit} are allowed");
    done
}
