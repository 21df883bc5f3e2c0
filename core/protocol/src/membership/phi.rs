//! How suspicious the silence of one node is, given how its heartbeats came before.
//!
//! [`PhiAccrual`] keeps the last intervals between heartbeats. Phi is −log₁₀ of the probability that a heartbeat comes
//! later than now, if intervals are distributed normally: at 8 one suspicion in 10⁸ would be wrong. It keeps whole
//! milliseconds and computes with fractions on the fly, so it can be compared, hashed and replayed.

use alloc::collections::VecDeque;

use super::normal_tail::{minus_log10_of_tail, sqrt};
use crate::time::Millis;

/// The numbers of the detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PhiSettings {
    /// From which phi on a node is suspected, in thousandths.
    pub threshold_permille: u32,
    /// How many intervals are remembered.
    pub max_sample_size: usize,
    /// Intervals never count as more regular than this.
    pub min_std_deviation: Millis,
    /// How long a pause beyond the mean is fine.
    pub acceptable_heartbeat_pause: Millis,
    /// What the first interval is taken to be.
    pub first_heartbeat_estimate: Millis,
}

impl Default for PhiSettings {
    fn default() -> Self {
        Self {
            threshold_permille: 8_000,
            max_sample_size: 200,
            min_std_deviation: Millis(100),
            acceptable_heartbeat_pause: Millis(0),
            first_heartbeat_estimate: Millis(1_000),
        }
    }
}

/// The detector for one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PhiAccrual {
    settings: PhiSettings,
    /// The last intervals, the oldest first.
    intervals: VecDeque<u32>,
    sum: u64,
    sum_of_squares: u128,
    last_heartbeat: Option<Millis>,
    last_life: Millis,
}

impl PhiAccrual {
    /// A detector for a node that is expected to answer from `now` on. A node that never does is suspected too.
    pub fn new(now: Millis, settings: PhiSettings) -> Self {
        let mut detector = Self {
            settings,
            intervals: VecDeque::new(),
            sum: 0,
            sum_of_squares: 0,
            last_heartbeat: None,
            last_life: now,
        };
        // Two samples around the estimate: its mean, and a generous deviation of a quarter.
        let estimate = settings.first_heartbeat_estimate;
        let deviation = Millis(estimate.0 / 4);
        detector.sample(estimate - deviation);
        detector.sample(estimate + deviation);
        detector
    }

    /// A heartbeat came. The silence of a node that was suspected is no sample of how it beats.
    pub fn heartbeat(&mut self, now: Millis) {
        if let Some(last) = self.last_heartbeat.filter(|_| self.is_available(now, Millis::ZERO)) {
            self.sample(now.since(last));
        }
        self.last_heartbeat = Some(now);
        self.alive(now);
    }

    /// Something else came: it proves life, and says nothing about intervals.
    pub fn alive(&mut self, now: Millis) {
        self.last_life = self.last_life.max(now);
    }

    /// How suspicious the silence is at `now`; `excused` is taken off it.
    pub fn phi(&self, now: Millis, excused: Millis) -> f64 {
        let silence =
            now.since(self.last_life).since(excused).since(self.settings.acceptable_heartbeat_pause);
        let deviation = self.std_deviation().max(float(self.settings.min_std_deviation.0)).max(1.0);
        minus_log10_of_tail((float(silence.0) - self.mean()) / deviation)
    }

    /// Whether the node is not suspected.
    pub fn is_available(&self, now: Millis, excused: Millis) -> bool {
        self.phi(now, excused) < f64::from(self.settings.threshold_permille) / 1_000.0
    }

    /// When the node was last heard of, or the watch began.
    pub const fn last_life(&self) -> Millis {
        self.last_life
    }

    fn mean(&self) -> f64 {
        float(self.sum) / float(self.intervals.len().max(1) as u64)
    }

    fn std_deviation(&self) -> f64 {
        let count = self.intervals.len().max(1) as u128;
        // n·Σx² − (Σx)² in whole numbers: exact, and never below zero.
        let scaled =
            (count * self.sum_of_squares).saturating_sub(u128::from(self.sum) * u128::from(self.sum));
        sqrt(scaled as f64) / count as f64
    }

    fn sample(&mut self, interval: Millis) {
        let interval = u32::try_from(interval.0).unwrap_or(u32::MAX);
        self.intervals.push_back(interval);
        self.sum += u64::from(interval);
        self.sum_of_squares += u128::from(interval) * u128::from(interval);
        while self.intervals.len() > self.settings.max_sample_size.max(1) {
            let Some(oldest) = self.intervals.pop_front() else { return };
            self.sum -= u64::from(oldest);
            self.sum_of_squares -= u128::from(oldest) * u128::from(oldest);
        }
    }
}

fn float(whole: u64) -> f64 {
    whole as f64
}

#[cfg(test)]
mod tests;
