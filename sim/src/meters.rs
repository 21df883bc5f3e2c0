//! What a simulated node counts through the `metrics` facade: ground truth about its inside.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

/// The counters and gauges of one life of a node, by name; those of equal name are told apart by their labels.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    cells: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
}

impl Meters {
    /// The sum of all gauges of this name.
    pub(crate) fn gauge(&self, name: &str) -> f64 {
        self.of(name).map(f64::from_bits).sum()
    }

    /// The sum of all counters of this name.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.of(name).sum()
    }

    /// The sum of all counters of this name that have this label.
    pub(crate) fn labelled(&self, name: &str, label: &str) -> u64 {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = |key: &&String| {
            let labels = key.strip_prefix(name).and_then(|rest| rest.strip_prefix('|'));
            labels.is_some_and(|labels| labels.split(',').any(|one| one == label))
        };
        let found = cells.keys().filter(wanted).map(|key| cells[key].load(Ordering::Relaxed));
        found.sum()
    }

    fn of(&self, name: &str) -> impl Iterator<Item = u64> {
        let cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let prefix = format!("{name}|");
        let found: Vec<u64> = cells
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix))
            .map(|(_, cell)| cell.load(Ordering::Relaxed))
            .collect();
        found.into_iter()
    }

    fn cell(&self, key: &Key) -> Arc<AtomicU64> {
        let labels: Vec<String> =
            key.labels().map(|label| format!("{}={}", label.key(), label.value())).collect();
        let name = format!("{}|{}", key.name(), labels.join(","));
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cells.entry(name).or_default())
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
