//! When a peer has been silent for too long.
//!
//! A plain machine: it is told the time and whether anything has come, and says whether to ask or to give up.

use std::time::Duration;

/// Keeps watch over one connection. Times are counted from when it began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Silence {
    limit: Duration,
    heard_at: Duration,
    asked_at: Duration,
}

/// What to do about the silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Fine,
    /// Ask the peer for a sign of life.
    Ask,
    /// It is gone.
    Gone,
}

impl Silence {
    pub(crate) const fn new(limit: Duration) -> Self {
        Self { limit, heard_at: Duration::ZERO, asked_at: Duration::ZERO }
    }

    /// How often [`handle`](Self::handle) wants to be called.
    pub(crate) fn tick(&self) -> Duration {
        (self.limit / 20).clamp(Duration::from_millis(5), Duration::from_millis(100))
    }

    /// Looks at the time; `heard` says whether anything has come since the last call.
    pub(crate) fn handle(&mut self, now: Duration, heard: bool) -> Verdict {
        if heard {
            self.heard_at = now;
            self.asked_at = now;
            return Verdict::Fine;
        }
        // What was heard may have come a tick before it was noticed, and the next call is a tick away.
        if now.saturating_sub(self.heard_at) + self.tick() * 2 >= self.limit {
            return Verdict::Gone;
        }
        if now.saturating_sub(self.asked_at) >= self.limit / 3 {
            self.asked_at = now;
            return Verdict::Ask;
        }
        Verdict::Fine
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    /// Ticks until the verdict is not `Fine`, and says when that was.
    fn next(silence: &mut Silence, now: &mut Duration) -> Verdict {
        loop {
            *now += silence.tick();
            match silence.handle(*now, false) {
                Verdict::Fine => {}
                verdict => return verdict,
            }
        }
    }

    #[test]
    fn a_silent_peer_is_asked_twice_and_given_up_within_the_limit() {
        let (mut silence, mut now) = (Silence::new(LIMIT), Duration::ZERO);
        assert_eq!(next(&mut silence, &mut now), Verdict::Ask);
        assert_eq!(next(&mut silence, &mut now), Verdict::Ask);
        assert_eq!(next(&mut silence, &mut now), Verdict::Gone);
        assert!(now <= LIMIT && now > LIMIT / 2, "{now:?}");
    }

    #[test]
    fn a_peer_that_answers_is_kept() {
        let (mut silence, mut now) = (Silence::new(LIMIT), Duration::ZERO);
        for _ in 0..100 {
            assert_eq!(next(&mut silence, &mut now), Verdict::Ask);
            assert_eq!(silence.handle(now, true), Verdict::Fine);
        }
    }
}
