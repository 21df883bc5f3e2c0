//! How much a node has accepted from one lane and not ended: a message has its share until its handler is through.
//!
//! [`Window`] decides when the reader of the lane stops, so that a sender that is faster than the actors fills its own
//! buffers and not our memory.
//!
//! Invariant: with nothing held the reader reads. It does wait for handlers, and so for whatever these wait for: an answer that
//! would come over the same lane comes late, or not in time.

/// How much may be held before the reader stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WindowSettings {
    /// Bytes of accepted asks and tells.
    pub bytes: usize,
    /// How many of them.
    pub jobs: usize,
}

impl WindowSettings {
    /// Whether the reader stops: more is held than may be.
    pub const fn is_exceeded(&self, bytes: usize, jobs: usize) -> bool {
        bytes > self.bytes || jobs > self.jobs
    }

    /// Whether a reader that has stopped goes on: half of both is free.
    pub const fn is_half_free(&self, bytes: usize, jobs: usize) -> bool {
        bytes <= self.bytes / 2 && jobs <= self.jobs / 2
    }
}

/// What is held of one lane: asks and tells that were accepted and have not started.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    settings: WindowSettings,
    bytes: usize,
    jobs: usize,
    is_full: bool,
}

impl Window {
    /// Nothing is held.
    pub const fn new(settings: WindowSettings) -> Self {
        Self { settings, bytes: 0, jobs: 0, is_full: false }
    }

    /// A job of `len` bytes was accepted. What has been read is always accepted; only the next read waits.
    pub const fn admit(&mut self, len: usize) {
        self.bytes += len;
        self.jobs += 1;
        if self.settings.is_exceeded(self.bytes, self.jobs) {
            self.is_full = true;
        }
    }

    /// An accepted job of `len` bytes was started, returned or dropped.
    pub const fn release(&mut self, len: usize) {
        debug_assert!(
            self.jobs > 0 && self.bytes >= len,
            "every job is released once, with the length it came with"
        );
        self.bytes = self.bytes.saturating_sub(len);
        self.jobs = self.jobs.saturating_sub(1);
        if self.settings.is_half_free(self.bytes, self.jobs) {
            self.is_full = false;
        }
    }

    /// Whether to read on: not from the moment that more than the bounds is held until half of both is free.
    pub const fn may_read(&self) -> bool {
        !self.is_full
    }

    /// How many bytes are held.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many jobs are held.
    pub const fn jobs(&self) -> usize {
        self.jobs
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn window(bytes: usize, jobs: usize) -> Window {
        Window::new(WindowSettings { bytes, jobs })
    }

    /// Proves: R123
    #[test]
    fn the_reader_stops_above_the_bytes_and_goes_on_at_half() {
        let mut window = window(100, 1_000);
        window.admit(50);
        window.admit(50);
        assert!(window.may_read(), "the bound itself is allowed");
        window.admit(1);
        assert!(!window.may_read());
        window.release(50);
        assert!(!window.may_read(), "51 bytes are more than half");
        window.release(1);
        assert!(window.may_read());
    }

    #[test]
    fn the_reader_stops_above_the_jobs_and_goes_on_at_half() {
        let mut window = window(1_000, 3);
        (0..4).for_each(|_| window.admit(0));
        assert!(!window.may_read());
        window.release(0);
        window.release(0);
        assert!(!window.may_read(), "half of three is one");
        window.release(0);
        assert!(window.may_read());
    }

    #[test]
    fn both_must_be_at_half_before_the_reader_goes_on() {
        let mut window = window(10, 2);
        window.admit(11);
        window.admit(0);
        window.admit(0);
        window.release(0);
        window.release(0);
        assert!(!window.may_read(), "one job is half, eleven bytes are not");
        window.release(11);
        assert!(window.may_read());
    }

    proptest! {
        #[test]
        fn a_reader_with_nothing_held_reads(
            bytes in 0_usize..100,
            jobs in 0_usize..8,
            steps in prop::collection::vec(prop::option::of(0_usize..60), 0..60),
        ) {
            let mut window = window(bytes, jobs);
            let mut held = Vec::new();
            for step in steps {
                match step {
                    Some(len) => {
                        window.admit(len);
                        held.push(len);
                    }
                    None => held.pop().into_iter().for_each(|len| window.release(len)),
                }
                let sum: usize = held.iter().sum();
                prop_assert_eq!((window.bytes(), window.jobs()), (sum, held.len()));
                prop_assert!(!window.may_read() || sum <= bytes && held.len() <= jobs);
                prop_assert!(window.may_read() || sum > bytes / 2 || held.len() > jobs / 2);
            }
        }
    }
}
