//! The controller of a datacenter: writes its record, and reads those of the others.
//!
//! Every node has a [`Controller`]; the one on the leader claims the duty and does something. It registers the datacenter,
//! beats, follows the other datacenters by watch and by poll, and shows how they stand to the nodes of its own. It decides
//! what to write next from what it last saw of its record and from what is wished: serve, drain, or be disabled. It does no
//! I/O and reads no clock.
//!
//! Two that think they have the duty are harmless: each write names the version that it replaces and bears the epoch of its
//! writer, so the earlier one is refused, and steps down.
//!
//! Invariant: a record that is active stays so across a change of leaders; only a wish to drain or to be disabled changes it.

mod events;
mod office;
mod settings;

pub use events::{ControllerAction, ControllerEvent, ControllerReport, WriteAnswer};
pub(super) use settings::jittered;
pub use settings::{ControllerSettings, EMBEDDED_LEASE, JITTER_PERCENT};

use alloc::vec::Vec;

use self::office::Office;
use self::settings::backoff;
use super::{
    DataCenterInfo, DataCenterLiveness, DataCenterRecord, DataCenterState, LivenessEvent, MapEntry, Snapshot,
};
use crate::contract::{DataCenterEvent, Epoch, Revision};
use crate::time::Millis;

/// The machine of a datacenter's controller, on one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Controller {
    settings: ControllerSettings,
    info: DataCenterInfo,
    wish: Wish,
    claiming: bool,
    /// Not before this, after another leader was found in office.
    claim_at: Millis,
    office: Option<Office>,
    liveness: DataCenterLiveness,
    /// What was shown last, and how often something else was.
    shown: Vec<MapEntry>,
    number: u64,
}

/// What the datacenter is to become.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Wish {
    Serve,
    Drain,
    Disable,
}

type Actions = Vec<ControllerAction>;

impl Controller {
    /// A controller without a duty, of the datacenter that `info` describes.
    pub const fn new(info: DataCenterInfo, settings: ControllerSettings) -> Self {
        let liveness = DataCenterLiveness::new(settings.max_staleness);
        Self {
            settings,
            info,
            wish: Wish::Serve,
            claiming: false,
            claim_at: Millis::ZERO,
            office: None,
            liveness,
            shown: Vec::new(),
            number: 0,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order. `random` scatters intervals.
    pub fn handle(&mut self, now: Millis, random: u64, event: ControllerEvent) -> Actions {
        let mut actions = Vec::new();
        match event {
            ControllerEvent::Woke => {}
            ControllerEvent::Leads(leads) => self.on_leads(now, leads, &mut actions),
            ControllerEvent::Duty(granted) => self.on_duty(now, granted, &mut actions),
            ControllerEvent::Written { epoch, answer } => {
                self.on_written(now, random, epoch, answer, &mut actions);
            }
            ControllerEvent::Listed { epoch, listing } => {
                self.on_listed(now, random, epoch, listing, &mut actions);
            }
            ControllerEvent::Watched(event) => self.on_watched(now, event, &mut actions),
            ControllerEvent::WatchBroken => self.on_watch_broken(now),
            ControllerEvent::Describe(info) => self.on_described(now, info),
            ControllerEvent::Drain => self.on_wish(now, Wish::Drain, &mut actions),
            ControllerEvent::Disable => self.on_wish(now, Wish::Disable, &mut actions),
        }
        self.act(now, &mut actions);
        actions
    }

    /// Whether this node has the duty.
    pub const fn is_in_office(&self) -> bool {
        self.office.is_some()
    }

    /// Whether the datacenter takes no new placements, or soon will not.
    pub fn is_draining(&self) -> bool {
        self.wish != Wish::Serve
    }

    /// The record of this datacenter, as its own leader saw it last; `None` on other nodes.
    pub fn record(&self) -> Option<&DataCenterRecord> {
        self.office.as_ref().and_then(|office| office.seen.as_ref())
    }

    /// How the datacenters stand, to be shown to all nodes of this one; `None` without the duty, or before the control plane
    /// has answered once.
    pub fn snapshot(&self, now: Millis) -> Option<Snapshot> {
        let epoch = self.office.as_ref()?.epoch;
        let age = now.since(self.liveness.answered_at()?);
        let (number, draining) = (self.number, self.is_draining());
        Some(Snapshot { epoch, number, age, draining, entries: self.shown.clone() })
    }

    // ---- the duty ----

    fn on_leads(&mut self, now: Millis, leads: bool, actions: &mut Actions) {
        if leads {
            self.claim(now, actions);
        }
    }

    fn claim(&mut self, now: Millis, actions: &mut Actions) {
        if self.office.is_none() && !self.claiming && now >= self.claim_at {
            self.claiming = true;
            actions.push(ControllerAction::ClaimDuty);
        }
    }

    fn on_duty(&mut self, now: Millis, granted: Option<Epoch>, actions: &mut Actions) {
        self.claiming = false;
        let Some(epoch) = granted.filter(|_| self.office.is_none()) else { return };
        self.office = Some(Office::new(epoch, now));
        // What an earlier term of office has counted is out of date.
        self.liveness = DataCenterLiveness::new(self.settings.max_staleness);
        (self.shown, self.number) = (Vec::new(), 0);
        actions.push(ControllerAction::Report(ControllerReport::Taken(epoch)));
    }

    fn step_down(&mut self, now: Millis, by: Epoch, actions: &mut Actions) {
        self.office = None;
        self.claim_at = now + self.settings.leader_check;
        actions.push(ControllerAction::StopWatching);
        actions.push(ControllerAction::ReleaseDuty);
        actions.push(ControllerAction::Report(ControllerReport::Superseded(by)));
    }

    // ---- its own record ----

    fn on_described(&mut self, now: Millis, info: DataCenterInfo) {
        if self.info == info {
            return;
        }
        self.info = info;
        if let Some(office) = &mut self.office {
            office.write.hurry(now);
        }
    }

    /// A wish is never taken back while this node lives.
    fn on_wish(&mut self, now: Millis, wish: Wish, actions: &mut Actions) {
        if wish <= self.wish {
            return;
        }
        self.wish = wish;
        match &mut self.office {
            Some(office) => office.write.hurry(now),
            // Whoever disables the datacenter is its last node, and has to see to it itself.
            None if wish == Wish::Disable => self.claim(now, actions),
            None => {}
        }
    }

    fn on_written(
        &mut self,
        now: Millis,
        random: u64,
        epoch: Epoch,
        answer: WriteAnswer,
        actions: &mut Actions,
    ) {
        let Some(office) = self.office.as_mut().filter(|office| office.epoch == epoch) else { return };
        office.write.pending = false;
        // Half a lease: else the end of a long outage would find everybody's lease ended before its next beat.
        let longest = self.settings.max_backoff.min(Millis(self.settings.lease_ttl.0 / 2));
        match answer {
            WriteAnswer::Done(record) => return self.on_done(now, random, *record, actions),
            // What was not answered has been applied after all.
            WriteAnswer::Conflict(Some(current)) if current.epoch == epoch => {
                office.seen = Some(*current);
                office.write.due = now;
                return;
            }
            WriteAnswer::Superseded(by) => return self.step_down(now, by, actions),
            WriteAnswer::Conflict(_) | WriteAnswer::Refused => office.seen = None,
            WriteAnswer::Unanswered => {
                actions.push(ControllerAction::Report(ControllerReport::WriteFailed));
            }
        }
        office.write.failed(now, longest);
    }

    fn on_done(&mut self, now: Millis, random: u64, record: DataCenterRecord, actions: &mut Actions) {
        let Some(office) = &mut self.office else { return };
        let (state, settled) = (record.state, self.wish.is_met_by(record.state) && record.info == self.info);
        let before = office.seen.replace(record).map(|before| before.state);
        office.write.succeeded();
        office.write.due = if settled { now + jittered(self.settings.heartbeat, random) } else { now };
        if before != Some(state) {
            // The others of this datacenter should know at once.
            office.list.hurry(now);
            actions.push(ControllerAction::Report(ControllerReport::State(state)));
        }
    }

    // ---- those of the others ----

    fn on_listed(
        &mut self,
        now: Millis,
        random: u64,
        epoch: Epoch,
        listing: Option<(Revision, Vec<DataCenterRecord>)>,
        actions: &mut Actions,
    ) {
        let refresh = self.refresh();
        let Some(office) = self.office.as_mut().filter(|office| office.epoch == epoch) else { return };
        office.list.pending = false;
        match listing {
            Some((revision, records)) => {
                office.list.succeeded();
                office.list.due = now + jittered(refresh, random);
                let event = if office.watch_lives {
                    LivenessEvent::Listed { revision, records }
                } else {
                    LivenessEvent::Replaced { revision, records }
                };
                self.liveness.handle(now, event);
            }
            None => {
                office.list.failed(now, self.settings.max_backoff);
                self.liveness.handle(now, LivenessEvent::Unanswered);
                actions.push(ControllerAction::Report(ControllerReport::ListFailed));
            }
        }
        self.note_changes();
        actions.push(ControllerAction::Show);
    }

    fn on_watched(&mut self, now: Millis, event: DataCenterEvent, actions: &mut Actions) {
        let Some(office) = &mut self.office else { return };
        office.watch.succeeded();
        office.watch_lives = true;
        self.liveness.handle(
            now,
            match event {
                DataCenterEvent::Snapshot { revision, records } => {
                    LivenessEvent::Listed { revision, records }
                }
                DataCenterEvent::Put { revision, record } => LivenessEvent::Put { revision, record },
                DataCenterEvent::Gone { revision, id } => LivenessEvent::Gone { revision, id },
            },
        );
        if self.note_changes() {
            actions.push(ControllerAction::Show);
        }
    }

    fn on_watch_broken(&mut self, now: Millis) {
        if let Some(office) = &mut self.office {
            (office.watch.pending, office.watch_lives) = (false, false);
            office.watch.failed(now, self.settings.max_backoff);
        }
    }

    /// Whether the datacenters stand otherwise than shown.
    fn note_changes(&mut self) -> bool {
        let known = self.liveness.known();
        let entry =
            |(record, standing): (&DataCenterRecord, _)| MapEntry { info: record.info.clone(), standing };
        let entries: Vec<MapEntry> = known.map(entry).collect();
        let changed = entries != self.shown;
        if changed {
            (self.shown, self.number) = (entries, self.number + 1);
        }
        changed
    }

    /// Answers that are further apart than half a lease end no lease.
    fn refresh(&self) -> Millis {
        let lease = self.liveness.shortest_lease().unwrap_or(self.settings.lease_ttl);
        self.settings.refresh.min(Millis(lease.0 / 3))
    }

    // ---- what is due ----

    fn act(&mut self, now: Millis, actions: &mut Actions) {
        let list_by = self.foreseen();
        let Some(office) = &mut self.office else { return };
        office.list.due = office.list.due.min(list_by);
        if office.write.is_due(now) {
            office.write.begin();
            match office.next_write(self.wish, &self.info) {
                Some(write) => actions.push(write),
                None => office.write.rest(),
            }
        }
        if office.list.is_due(now) {
            office.list.begin();
            actions.push(ControllerAction::List { epoch: office.epoch });
        }
        if self.settings.watch && office.watch.is_due(now) {
            office.watch.begin();
            actions.push(ControllerAction::Watch);
        }
        let watch = if self.settings.watch { office.watch.next() } else { Millis::MAX };
        let next = office.write.next().min(office.list.next()).min(watch);
        if next != Millis::MAX {
            actions.push(ControllerAction::WakeAt(next));
        }
    }

    /// When a listing would find a lease ended, if that comes before the next one.
    fn foreseen(&self) -> Millis {
        let end = self.liveness.next_end().zip(self.liveness.answered_at());
        end.map_or(Millis::MAX, |(end, answered_at)| end.max(answered_at + LEAST_PAUSE))
    }
}

impl Wish {
    const fn is_met_by(self, state: DataCenterState) -> bool {
        match self {
            Self::Serve => matches!(state, DataCenterState::Active),
            Self::Drain => matches!(state, DataCenterState::Draining),
            Self::Disable => matches!(state, DataCenterState::Inactive),
        }
    }
}

/// Between two listings, however soon a lease may end.
const LEAST_PAUSE: Millis = Millis(250);

#[cfg(test)]
mod tests;
