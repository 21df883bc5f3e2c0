//! How much the processor has worked for somebody.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What this thread has used so far: with a runtime of one thread, all that a client does.
pub fn used_by_this_thread() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(used.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(used.tv_nsec).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_waiting_is_not() {
        let before = used_by_this_thread();
        std::thread::sleep(Duration::from_millis(50));
        let waited = used_by_this_thread() - before;
        assert!(waited < Duration::from_millis(25), "{waited:?}");
        while used_by_this_thread() - before < Duration::from_millis(30) {
            std::hint::black_box(before);
        }
    }
}
