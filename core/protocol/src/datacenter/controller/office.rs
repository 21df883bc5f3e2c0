//! What a controller keeps while it has the duty.

use alloc::boxed::Box;

use super::{ControllerAction, Wish, backoff};
use crate::contract::Epoch;
use crate::datacenter::{DataCenterInfo, DataCenterRecord, DataCenterState};
use crate::time::Millis;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Office {
    pub(super) epoch: Epoch,
    /// The record as this leader wrote it last; none before it has registered.
    pub(super) seen: Option<DataCenterRecord>,
    pub(super) write: Slot,
    pub(super) list: Slot,
    pub(super) watch: Slot,
    /// The watch has told something and has not broken since.
    pub(super) watch_lives: bool,
}

impl Office {
    pub(super) const fn new(epoch: Epoch, now: Millis) -> Self {
        let (write, list, watch) = (Slot::due_at(now), Slot::due_at(now), Slot::due_at(now));
        Self { epoch, seen: None, write, list, watch, watch_lives: false }
    }

    /// What brings the record nearer to the wish, or keeps it there; `None` if there is nothing left to do.
    pub(super) fn next_write(&self, wish: Wish, info: &DataCenterInfo) -> Option<ControllerAction> {
        use DataCenterState::{Active, Draining, Inactive, Registered};
        // Nothing is relied on before it bears this leader's epoch (SEAL).
        let Some(seen) = self.seen.as_ref().filter(|seen| seen.epoch == self.epoch) else {
            return Some(self.register(info));
        };
        match (wish, seen.state) {
            (Wish::Drain | Wish::Disable, Inactive) => None,
            (Wish::Serve, Inactive) => Some(self.register(info)),
            // An earlier life of the datacenter was shut down and did not come to its end.
            (Wish::Serve, Draining) | (Wish::Disable, Registered | Active | Draining) => {
                Some(self.set(seen, Inactive))
            }
            (Wish::Drain, Active) => Some(self.set(seen, Draining)),
            _ if seen.info != *info => Some(self.register(info)),
            (Wish::Serve, Registered | Active) | (Wish::Drain, Registered | Draining) => {
                Some(ControllerAction::Heartbeat { seen: Box::new(seen.clone()), epoch: self.epoch })
            }
        }
    }

    fn register(&self, info: &DataCenterInfo) -> ControllerAction {
        ControllerAction::Register { info: Box::new(info.clone()), epoch: self.epoch }
    }

    fn set(&self, seen: &DataCenterRecord, state: DataCenterState) -> ControllerAction {
        ControllerAction::SetState { seen: Box::new(seen.clone()), state, epoch: self.epoch }
    }
}

/// One kind of request: one at a time, and when the next is due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Slot {
    pub(super) pending: bool,
    pub(super) due: Millis,
    failures: u32,
}

impl Slot {
    const fn due_at(due: Millis) -> Self {
        Self { pending: false, due, failures: 0 }
    }

    pub(super) fn is_due(&self, now: Millis) -> bool {
        !self.pending && now >= self.due
    }

    /// One is under way; the next is due at once if it does not say otherwise.
    pub(super) const fn begin(&mut self) {
        self.pending = true;
    }

    /// Nothing is to be done until somebody is in a hurry.
    pub(super) const fn rest(&mut self) {
        (self.pending, self.due) = (false, Millis::MAX);
    }

    pub(super) fn hurry(&mut self, now: Millis) {
        // After a failure the pause is kept: whoever does not answer is not asked more often.
        if self.failures == 0 {
            self.due = self.due.min(now);
        }
    }

    pub(super) const fn succeeded(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failed(&mut self, now: Millis, longest: Millis) {
        self.failures = self.failures.saturating_add(1);
        self.due = now + backoff(self.failures, longest);
    }

    /// When there is something to do; never while one is under way.
    pub(super) const fn next(&self) -> Millis {
        if self.pending { Millis::MAX } else { self.due }
    }
}
