//! What is measured.

use std::time::Duration;

use hdrhistogram::Histogram;

/// How fast round trips were.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawFigures {
    /// Round trips per second.
    pub ask_per_second: f64,
    /// Half of them took at most this long, in microseconds.
    pub p50_micros: f64,
    /// 99 of 100 took at most this long, in microseconds.
    pub p99_micros: f64,
}

/// Collects round trips.
pub(crate) struct Collector {
    nanos: Histogram<u64>,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self { nanos: Histogram::new_with_max(LONGEST, 3).expect("the bounds are valid") }
    }

    pub(crate) fn add(&mut self, took: Duration, count: u64) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.saturating_record_n(nanos, count);
    }

    pub(crate) fn figures(&self, took: Duration) -> RawFigures {
        let micros = |quantile| self.nanos.value_at_quantile(quantile) as f64 / 1_000.0;
        RawFigures {
            ask_per_second: self.nanos.len() as f64 / took.as_secs_f64(),
            p50_micros: micros(0.5),
            p99_micros: micros(0.99),
        }
    }
}

/// One minute, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_what_was_added() {
        let mut collector = Collector::new();
        collector.add(Duration::from_micros(20), 98);
        collector.add(Duration::from_micros(500), 2);
        let figures = collector.figures(Duration::from_secs(1));
        assert!((figures.p50_micros - 20.0).abs() < 0.1, "{figures:?}");
        assert!((figures.p99_micros - 500.0).abs() < 1.0, "{figures:?}");
        assert!((figures.ask_per_second - 100.0).abs() < 0.1, "{figures:?}");
    }
}
