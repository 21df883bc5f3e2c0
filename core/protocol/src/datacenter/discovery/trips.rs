//! How long a datacenter takes to answer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::time::Millis;

/// The last round trips to one datacenter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Trips(VecDeque<Millis>);

impl Trips {
    pub(super) fn note(&mut self, trip: Millis) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        self.0.push_back(trip);
    }

    /// What all but one of twenty take at most; none as long as too few are known.
    pub(super) fn p95(&self) -> Option<Millis> {
        (self.0.len() >= ENOUGH).then(|| self.at(95))
    }

    /// What half of them take at most; none before the first.
    pub(super) fn median(&self) -> Option<Millis> {
        (!self.0.is_empty()).then(|| self.at(50))
    }

    fn at(&self, percent: usize) -> Millis {
        let mut sorted: Vec<Millis> = self.0.iter().copied().collect();
        sorted.sort_unstable();
        sorted[(sorted.len() - 1) * percent / 100]
    }
}

const KEPT: usize = 64;
const ENOUGH: usize = 8;
