//! Whether the machine was there while a test measured.
//!
//! Tests of fail-over judge seconds. A virtual machine that its host takes the processors from stands still without knowing it:
//! sessions of three seconds run out, and that is how it should be. A failure says nothing then, and the test is tried again. On
//! a machine that was there, every failure is one.

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures_util::FutureExt;

use crate::figure;

/// Runs a scenario. If it fails, and much of the machine was taken away meanwhile, it is run again, twice at most.
pub async fn on_own_machine(mut scenario: impl AsyncFnMut()) {
    for attempt in 1.. {
        let before = Processors::now();
        let Err(failure) = AssertUnwindSafe(scenario()).catch_unwind().await else { return };
        let stolen = Processors::now().stolen_percent_since(before);
        if counts(attempt, stolen) {
            resume_unwind(failure);
        }
        figure("tried again, since so much of the machine was taken away (percent)", stolen.to_string());
    }
}

/// What was taken away from the machine since something began.
#[derive(Clone, Copy, Debug)]
pub struct MachineWatch(Processors);

impl MachineWatch {
    /// From now on.
    pub fn begin() -> Self {
        Self(Processors::now())
    }

    /// Whether the machine was there all the time, so that what took long took long by itself.
    pub fn was_own(self) -> bool {
        Processors::now().stolen_percent_since(self.0) < TOO_MUCH
    }
}

/// Whether a failure is one, of this attempt and with so many percent of the machine taken away meanwhile.
const fn counts(attempt: u32, stolen: u64) -> bool {
    attempt >= ATTEMPTS || stolen < TOO_MUCH
}

/// How often a scenario is tried.
const ATTEMPTS: u32 = 3;

/// How many percent of the processors' time may be taken away without an excuse.
const TOO_MUCH: u64 = 5;

/// What the processors of this machine have done so far, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Processors {
    all: u64,
    stolen: u64,
}

impl Processors {
    /// Nothing, where the kernel does not say.
    fn now() -> Self {
        std::fs::read_to_string("/proc/stat").map(|text| Self::read(&text)).unwrap_or_default()
    }

    /// The first line: user, nice, system, idle, wait, two sorts of interrupts, stolen; what guests had is in there already.
    fn read(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let ticks: Vec<u64> =
            line.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
        Self { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or_default() }
    }

    fn stolen_percent_since(self, before: Self) -> u64 {
        let all = self.all.saturating_sub(before.all);
        (self.stolen.saturating_sub(before.stolen) * 100).checked_div(all).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_away_is_a_share_of_all_time() {
        let before = Processors::read("cpu  100 0 50 800 0 0 0 50 7 0\ncpu0 1 2 3");
        assert_eq!(before, Processors { all: 1_000, stolen: 50 });
        let after = Processors::read("cpu  150 0 60 820 0 0 0 170 7 0\n");
        assert_eq!(after.stolen_percent_since(before), 60);
        assert_eq!(after.stolen_percent_since(after), 0);
        assert_eq!(Processors::read("").stolen_percent_since(before), 0);
    }

    #[test]
    fn a_failure_counts_where_the_machine_was_there_and_at_the_last_attempt_anywhere() {
        assert!(counts(1, 0) && counts(1, TOO_MUCH - 1));
        assert!(!counts(1, TOO_MUCH) && !counts(ATTEMPTS - 1, 100));
        assert!(counts(ATTEMPTS, 100));
    }

    #[actix::test]
    #[should_panic(expected = "too slow")]
    async fn a_scenario_that_always_fails_fails() {
        on_own_machine(async || panic!("too slow")).await;
    }
}
