//! What a simulated node counts through the `metrics` facade: ground truth about its inside.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The counters and gauges of one life of a node, by name, and then by name and labels.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    cells: Mutex<BTreeMap<String, BTreeMap<Key, Arc<AtomicU64>>>>,
}

impl Meters {
    /// The sum of all gauges of this name.
    pub(crate) fn gauge(&self, name: &str) -> f64 {
        self.sum(name, |_| true, f64::from_bits)
    }

    /// The sum of all counters of this name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.sum(name, |_| true, |count| count)
    }

    /// The sum of all counters of this name that have this label.
    pub(crate) fn labelled(&self, name: &str, label: (&str, &str)) -> u64 {
        let labelled = |key: &Key| key.labels().any(|one| (one.key(), one.value()) == label);
        self.sum(name, labelled, |count| count)
    }

    fn sum<T: Sum>(&self, name: &str, wanted: impl Fn(&Key) -> bool, value: impl Fn(u64) -> T) -> T {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let named = cells.get(name).into_iter().flatten();
        named.filter(|(key, _)| wanted(key)).map(|(_, cell)| value(cell.load(Ordering::Relaxed))).sum()
    }

    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        match cells.get(key.name()).and_then(|named| named.get(key)) {
            Some(cell) => Arc::clone(cell),
            None => {
                let named = cells.entry(key.name().to_owned()).or_default();
                Arc::clone(named.entry(key.clone()).or_default())
            }
        }
    }
}

impl Recorder for Meters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
