//! What happened in a run, as one number and as the last few lines.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

/// Every recorded step goes into the hash; the last ones are kept for people.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    steps: u64,
    last: VecDeque<Step>,
}

/// One step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    at: Duration,
    what: &'static str,
    a: u64,
    b: u64,
}

impl Trace {
    pub(crate) const fn new() -> Self {
        Self { hash: OFFSET, steps: 0, last: VecDeque::new() }
    }

    pub(crate) fn record(&mut self, at: Duration, what: &'static str, a: u64, b: u64) {
        let nanos = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        for word in [nanos, a, b] {
            self.mix(word);
        }
        for byte in what.bytes() {
            self.mix(u64::from(byte));
        }
        self.steps += 1;
        self.last.push_back(Step { at, what, a, b });
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
    }

    pub(crate) const fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) const fn steps(&self) -> u64 {
        self.steps
    }

    /// The last steps, one per line.
    pub(crate) fn tail(&self) -> Vec<String> {
        self.last.iter().map(ToString::to_string).collect()
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(PRIME).rotate_left(23);
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>12.6}s {} {} {}", self.at.as_secs_f64(), self.what, self.a, self.b)
    }
}

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x9e37_79b9_7f4a_7c15;
const KEPT: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_tells_orders_and_values_apart() {
        let hash = |steps: &[(&'static str, u64)]| {
            let mut trace = Trace::new();
            steps.iter().for_each(|(what, a)| trace.record(Duration::ZERO, what, *a, 0));
            trace.hash()
        };
        let runs = [
            hash(&[("a", 1), ("b", 2)]),
            hash(&[("b", 2), ("a", 1)]),
            hash(&[("a", 1), ("b", 3)]),
            hash(&[]),
        ];
        let distinct: std::collections::BTreeSet<u64> = runs.into_iter().collect();
        assert_eq!(distinct.len(), runs.len());
    }
}
