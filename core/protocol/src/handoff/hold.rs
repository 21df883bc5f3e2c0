//! Jobs that wait at a node until it is known whether the shard is there.
//!
//! First in, first out. The bound is kept by whoever puts them in: [`Hold::fits`] says whether there is room.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::events::Job;
use super::limits::HandoffLimits;
use crate::route::LaneId;
use crate::time::Millis;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hold<J> {
    jobs: VecDeque<Job<J>>,
    bytes: usize,
    /// When the first of them ends.
    earliest: Millis,
}

impl<J> Hold<J> {
    pub(super) const fn new() -> Self {
        Self { jobs: VecDeque::new(), bytes: 0, earliest: Millis::MAX }
    }

    /// Whether one more job of so many bytes may wait here.
    pub(super) fn fits(&self, bytes: usize, limits: &HandoffLimits) -> bool {
        self.jobs.len() < limits.hold_jobs && self.bytes.saturating_add(bytes) <= limits.hold_bytes
    }

    pub(super) fn push(&mut self, job: Job<J>) {
        self.bytes = self.bytes.saturating_add(job.bytes);
        self.earliest = self.earliest.min(job.expires);
        self.jobs.push_back(job);
    }

    /// Takes the jobs that came by this very lane, in order.
    pub(super) fn take_lane(&mut self, lane: LaneId) -> Vec<Job<J>> {
        let (ours, rest): (VecDeque<_>, VecDeque<_>) =
            self.jobs.drain(..).partition(|job| job.lane == lane && !job.orphan);
        self.jobs = rest;
        self.count();
        ours.into()
    }

    pub(super) fn take_all(&mut self) -> Vec<Job<J>> {
        let all = core::mem::take(&mut self.jobs).into();
        self.count();
        all
    }

    /// The lane of these jobs is lost: they cannot be given back any more.
    pub(super) fn orphan(&mut self, lane: LaneId) {
        for job in self.jobs.iter_mut().filter(|job| job.lane == lane) {
            job.orphan = true;
        }
    }

    pub(super) const fn earliest(&self) -> Millis {
        self.earliest
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    fn count(&mut self) {
        self.bytes = self.jobs.iter().fold(0, |sum, job| sum.saturating_add(job.bytes));
        self.earliest = self.jobs.iter().map(|job| job.expires).min().unwrap_or(Millis::MAX);
    }
}
