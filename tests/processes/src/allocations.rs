//! How often this process has asked for memory.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// The system's allocator, with a count.
pub type CountingAllocator = StatsAlloc<System>;

/// A program that is to be counted makes this its global allocator.
pub static ALLOCATOR: &CountingAllocator = &INSTRUMENTED_SYSTEM;

/// How often memory was asked for since the process began; 0 if nobody counts.
pub fn allocated() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.allocations + stats.reallocations) as u64
}
