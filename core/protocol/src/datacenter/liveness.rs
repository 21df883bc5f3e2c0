//! Which datacenters live: judged by how long a record has stood still while the control plane answered us.
//!
//! [`DataCenterLiveness`] adds up the time in which the same version of a record was shown by one answer after another.
//! Once that exceeds the lease in the record, with the margins of [`times`], the lease counts as ended, until a newer
//! version comes. While the control plane does not answer, nobody's time runs: an outage of any length ends no lease, the
//! records keep their last standing, and are called stale. It does no I/O and reads no clock.
//!
//! Invariant: a lease counts as ended only if its record stood still for the whole lease, in intervals at both ends of
//! which the control plane answered us.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::{DataCenterId, DataCenterRecord, DataCenterState, LifeEvent};
use crate::contract::Revision;
use crate::session::times;
use crate::time::Millis;

/// The machine that judges the leases of datacenters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataCenterLiveness {
    stale_after: Millis,
    known: BTreeMap<DataCenterId, Known>,
    /// When the last listing was answered.
    answered_at: Option<Millis>,
    /// Whether a request has failed since.
    interrupted: bool,
    /// The newest point in history that was told.
    revision: Revision,
}

/// What reaches the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LivenessEvent {
    /// The control plane answered with all its records. Handed in after the answer came.
    Listed {
        /// The point in history that the listing shows.
        revision: Revision,
        /// All records.
        records: Vec<DataCenterRecord>,
    },
    /// The same while no watch tells what came after: what is listed takes the place of all that was known, also if it
    /// seems older, as after the control plane was set up anew.
    Replaced {
        /// The point in history that the listing shows.
        revision: Revision,
        /// All records.
        records: Vec<DataCenterRecord>,
    },
    /// A watch told of one record.
    Put {
        /// The point in history of the change.
        revision: Revision,
        /// The record as it stands.
        record: DataCenterRecord,
    },
    /// A watch told that a record is gone.
    Gone {
        /// The point in history of the change.
        revision: Revision,
        /// Whose record.
        id: DataCenterId,
    },
    /// A request was not answered in time.
    Unanswered,
}

/// What the shell does about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LivenessAction {
    /// The record, or the standing, of this datacenter has changed: tell whoever routes by it.
    Changed(DataCenterId),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Known {
    record: DataCenterRecord,
    told_at: Revision,
    /// Up to when the time of this version has been counted.
    counted_to: Millis,
    /// How long this version has stood still while the control plane answered.
    stood: Millis,
    ended: bool,
}

impl DataCenterLiveness {
    /// A machine that knows of nobody; without an answer for longer than `stale_after` its view is stale.
    pub const fn new(stale_after: Millis) -> Self {
        Self {
            stale_after,
            known: BTreeMap::new(),
            answered_at: None,
            interrupted: false,
            revision: Revision(0),
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: LivenessEvent) -> Vec<LivenessAction> {
        match event {
            LivenessEvent::Listed { revision, records } => self.on_listed(now, revision, records),
            LivenessEvent::Replaced { revision, records } => {
                self.forget_newer_than(revision, &records);
                self.on_listed(now, revision, records)
            }
            LivenessEvent::Put { revision, record } => self.on_put(now, revision, record),
            LivenessEvent::Gone { revision, id } => self.on_gone(revision, id),
            LivenessEvent::Unanswered => {
                self.interrupted = true;
                Vec::new()
            }
        }
    }

    /// The records of the datacenters that are active and whose lease has not ended, in the order of their versions.
    pub fn active(&self) -> Vec<&DataCenterRecord> {
        let active = self.known.values().filter(|known| known.standing() == DataCenterState::Active);
        let mut records: Vec<&DataCenterRecord> = active.map(|known| &known.record).collect();
        records.sort_by(|a, b| (a.version, a.id()).cmp(&(b.version, b.id())));
        records
    }

    /// What the datacenter is ready for, the end of its lease taken into account; `None` if nobody knows it.
    pub fn standing(&self, id: &DataCenterId) -> Option<DataCenterState> {
        self.known.get(id).map(Known::standing)
    }

    /// Everybody that is known and where each stands, in the order of their ids.
    pub fn known(&self) -> impl Iterator<Item = (&DataCenterRecord, DataCenterState)> {
        self.known.values().map(|known| (&known.record, known.standing()))
    }

    /// When the control plane answered last; `None` if it never did.
    pub const fn answered_at(&self) -> Option<Millis> {
        self.answered_at
    }

    /// The shortest lease that still runs.
    pub fn shortest_lease(&self) -> Option<Millis> {
        self.running().map(|known| known.record.lease_ttl).min()
    }

    /// When the next lease would end if its record went on standing still: a listing is worth its while then. `None` while
    /// nobody's time runs.
    pub fn next_end(&self) -> Option<Millis> {
        let answered_at = self.answered_at.filter(|_| !self.interrupted)?;
        self.running().map(|known| known.ends_at(answered_at)).min()
    }

    fn running(&self) -> impl Iterator<Item = &Known> {
        self.known.values().filter(|known| known.standing() != DataCenterState::Inactive)
    }

    /// Whether the control plane has not answered for so long that the view may be out of date.
    pub fn is_stale(&self, now: Millis) -> bool {
        self.answered_at.is_none_or(|at| now.since(at) > self.stale_after)
    }

    fn on_listed(
        &mut self,
        now: Millis,
        revision: Revision,
        records: Vec<DataCenterRecord>,
    ) -> Vec<LivenessAction> {
        let since = self.answered_at.filter(|_| !self.interrupted);
        (self.answered_at, self.interrupted) = (Some(now), false);
        let mut changed = self.forget_missing(revision, &records);
        for record in records {
            match self.known.get_mut(record.id()) {
                Some(known) if record.version == known.record.version => {
                    let ended = known.stood_still(now, since);
                    changed.extend(ended.then(|| LivenessAction::Changed(record.id().clone())));
                }
                Some(known) if record.version < known.record.version => known.counted_to = now,
                // What was deleted after this listing was made is not brought back by it.
                None if revision < self.revision => {}
                _ => changed.extend(self.put(now, revision, record)),
            }
        }
        self.revision = self.revision.max(revision);
        changed
    }

    /// Makes room for records of another history, which counts anew.
    fn forget_newer_than(&mut self, revision: Revision, records: &[DataCenterRecord]) {
        self.revision = self.revision.min(revision);
        self.known.retain(|id, known| {
            known.told_at = known.told_at.min(revision);
            let listed = records.iter().find(|record| record.id() == id);
            listed.is_none_or(|listed| listed.version >= known.record.version)
        });
    }

    /// A listing is complete; only what was told after it was made may be missing from it.
    fn forget_missing(&mut self, revision: Revision, records: &[DataCenterRecord]) -> Vec<LivenessAction> {
        let missing = self.known.iter().filter(|(id, known)| {
            known.told_at <= revision && !records.iter().any(|record| record.id() == *id)
        });
        let missing: Vec<DataCenterId> = missing.map(|(id, _)| id.clone()).collect();
        missing.iter().for_each(|id| drop(self.known.remove(id)));
        missing.into_iter().map(LivenessAction::Changed).collect()
    }

    fn on_put(&mut self, now: Millis, revision: Revision, record: DataCenterRecord) -> Vec<LivenessAction> {
        self.revision = self.revision.max(revision);
        match self.known.get(record.id()) {
            Some(known) if record.version <= known.record.version => Vec::new(),
            _ => self.put(now, revision, record),
        }
    }

    fn put(&mut self, now: Millis, told_at: Revision, record: DataCenterRecord) -> Vec<LivenessAction> {
        let id = record.id().clone();
        let known = Known { record, told_at, counted_to: now, stood: Millis::ZERO, ended: false };
        self.known.insert(id.clone(), known);
        vec![LivenessAction::Changed(id)]
    }

    fn on_gone(&mut self, revision: Revision, id: DataCenterId) -> Vec<LivenessAction> {
        self.revision = self.revision.max(revision);
        let is_older = self.known.get(&id).is_some_and(|known| known.told_at <= revision);
        if !is_older {
            return Vec::new();
        }
        self.known.remove(&id);
        vec![LivenessAction::Changed(id)]
    }
}

impl Known {
    fn standing(&self) -> DataCenterState {
        let expired = self.ended.then(|| self.record.state.after(LifeEvent::Expire).ok()).flatten();
        expired.unwrap_or(self.record.state)
    }

    /// When the lease ends if nothing new comes and the control plane goes on answering.
    fn ends_at(&self, answered_at: Millis) -> Millis {
        let left = times::observer_wait(self.record.lease_ttl) - self.stood;
        answered_at.max(self.counted_to) + left
    }

    /// Counts the time between the last answer and this one; says whether the lease has ended by it.
    fn stood_still(&mut self, now: Millis, answered_at: Option<Millis>) -> bool {
        let ttl = self.record.lease_ttl;
        let since = answered_at.map(|at| at.max(self.counted_to));
        self.counted_to = now;
        // Nobody knows whether the control plane answered others in a gap this long: we may have been asleep.
        let counted = since.map(|since| now.since(since)).filter(|gap| *gap <= longest_gap(ttl));
        self.stood = self.stood + counted.unwrap_or(Millis::ZERO);
        let before = self.standing();
        self.ended |= self.stood >= times::observer_wait(ttl);
        self.standing() != before
    }
}

/// The longest time between two answers that is counted as one in which the control plane answered.
const fn longest_gap(ttl: Millis) -> Millis {
    Millis(ttl.0 / 2)
}

#[cfg(test)]
mod tests;
