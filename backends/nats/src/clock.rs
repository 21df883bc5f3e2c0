//! Time as this backend needs it: deadlines of requests, and spans that also count suspend.
#![expect(clippy::disallowed_methods, reason = "a real server on a real network is waited for in real time")]

use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

/// When something must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    pub(crate) fn after(length: Duration) -> Self {
        Self(Instant::now() + length)
    }

    /// What `future` comes to; `None` if the deadline comes first.
    pub(crate) async fn limit<F: Future>(self, future: F) -> Option<F::Output> {
        tokio::time::timeout_at(self.0, future).await.ok()
    }

    /// Completes at the deadline, or after `length` if that is sooner.
    pub(crate) async fn pause(self, length: Duration) {
        tokio::time::sleep_until(self.0.min(Instant::now() + length)).await;
    }

    pub(crate) fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }
}

/// A point in time on a clock that also counts suspend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    pub(crate) fn now() -> Self {
        let time = clock_gettime(CLOCK);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        Self(Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default()))
    }

    pub(crate) fn elapsed(self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

/// The wall time in microseconds since 1970: greater than the number of writes any stream can have seen by now.
pub(crate) fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;
