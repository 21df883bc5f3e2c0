//! The manager of one range-partitioned kind: who should own which partition, and when its table may change.
//!
//! [`RangeManager`] decides the next table: a first one for a kind that has none, owners for partitions whose node has gone,
//! an even spread over the nodes that host the kind, and the splits, merges and assignments that somebody asks for. It does
//! no I/O: [`ManagerAction`]s tell its shell what to seal, save, load and ask for. Each holder of the role has one per kind.
//!
//! A split or a merge takes two steps. The first table names the old partitions as parents of the new ones; once their owners
//! have retired them, a second table drops the parents. Only then may the new ones be divided again.
//!
//! Invariants: nothing is decided from a table that was not sealed or written under the manager's own epoch, and nothing before
//! the manager was told who is there; at most one write
//! is under way; whoever asked for a change hears that it is done only after a table that has it was read or written. Two
//! managers are harmless: every write names the version it replaces, and the later epoch wins.

mod changes;
mod events;
mod spread;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

pub use changes::{ChangeOutcome, ChangeRefusal, RangeChange, RequestId};
pub use events::{ManagerAction, ManagerEvent, ManagerLimits, RangeHost, SaveFailure};

use self::changes::{Asked, Plan};
use crate::contract::{Epoch, SavedTable};
use crate::identity::{ActorKey, NodeId, PartitionName};
use crate::time::Millis;

/// The machine of one kind under one epoch of the manager's role.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeManager {
    epoch: Epoch,
    limits: ManagerLimits,
    stage: Stage,
    /// The table as it stands, once that is certain.
    saved: Option<SavedTable>,
    hosts: BTreeMap<NodeId, RangeHost>,
    /// Whether it was told who is there. Before that nobody is known to have gone.
    informed: bool,
    /// Where a first table divides the keys.
    cuts: BTreeSet<ActorKey>,
    requests: VecDeque<Asked>,
    /// Parents that are believed to be retired; the store has the last word.
    retired: BTreeSet<PartitionName>,
    /// How many partitions it has named.
    named: u64,
    /// When to look again.
    due: Option<Millis>,
}

/// What the manager waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// To take office: the answer to a seal.
    Sealing,
    /// For something to do.
    Idle,
    /// The answer to a save.
    Saving(Plan),
    /// What became of a save that nobody answered.
    Loading(Plan),
    /// To try again: the store did not take the last request.
    Pausing(Retry),
    /// Nothing: another manager has taken over.
    Over(Epoch),
}

/// What is tried again after a pause.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Retry {
    Seal,
    Load(Plan),
    Decide,
}

impl RangeManager {
    /// A manager that takes office: the first thing it does is to seal the table.
    pub fn take_office(epoch: Epoch, limits: ManagerLimits) -> (Self, Vec<ManagerAction>) {
        let manager = Self {
            epoch,
            limits,
            stage: Stage::Sealing,
            saved: None,
            hosts: BTreeMap::new(),
            informed: false,
            cuts: BTreeSet::new(),
            requests: VecDeque::new(),
            retired: BTreeSet::new(),
            named: 0,
            due: None,
        };
        (manager, vec![ManagerAction::Seal])
    }

    /// Divides the keys at these if the kind has no table yet; otherwise it begins as one partition.
    #[must_use]
    pub fn first_cut_at(mut self, cuts: impl IntoIterator<Item = ActorKey>) -> Self {
        self.cuts = cuts.into_iter().take(crate::ranges::RangeTable::MAX_PARTITIONS - 1).collect();
        self
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: ManagerEvent) -> Vec<ManagerAction> {
        let mut actions = match event {
            ManagerEvent::Sealed(answer) => self.on_sealed(now, answer),
            ManagerEvent::Saved(answer) => self.on_saved(now, answer),
            ManagerEvent::Loaded(answer) => self.on_loaded(now, answer),
            ManagerEvent::Hosts(hosts) => {
                (self.hosts, self.informed) = (hosts, true);
                Vec::new()
            }
            ManagerEvent::Asked { id, change, until } => self.on_asked(id, change, until),
            ManagerEvent::Retired(partition) => {
                self.retired.insert(partition);
                Vec::new()
            }
            ManagerEvent::WokeUp => self.on_woke_up(now),
        };
        actions.extend(self.let_go_of_the_late(now));
        actions.extend(self.decide(now));
        actions.extend(self.wake(now));
        actions
    }

    /// The table as it stands, as far as that is certain.
    pub const fn saved(&self) -> Option<&SavedTable> {
        self.saved.as_ref()
    }

    /// The epoch of the manager that has taken over; `None` while this one is in office.
    pub const fn is_over(&self) -> Option<Epoch> {
        match self.stage {
            Stage::Over(by) => Some(by),
            _ => None,
        }
    }

    // ---- answers of the store ----

    fn on_sealed(&mut self, now: Millis, answer: Result<SavedTable, SaveFailure>) -> Vec<ManagerAction> {
        if self.stage != Stage::Sealing {
            return Vec::new();
        }
        match answer {
            Ok(saved) => {
                self.stage = Stage::Idle;
                let parents = parents_in(&saved);
                self.saved = Some(saved);
                parents
                    .into_iter()
                    .map(|partition| ManagerAction::Retire { partition, owner: None })
                    .collect()
            }
            Err(SaveFailure::Superseded { by }) => self.step_down(by),
            // Whatever else went wrong: a seal may be repeated.
            Err(_) => self.pause(now, Retry::Seal),
        }
    }

    fn on_saved(&mut self, now: Millis, answer: Result<SavedTable, SaveFailure>) -> Vec<ManagerAction> {
        let Stage::Saving(plan) = core::mem::replace(&mut self.stage, Stage::Idle) else { return Vec::new() };
        match answer {
            Ok(saved) => self.in_force(plan, saved),
            Err(SaveFailure::Superseded { by }) => self.step_down(by),
            Err(SaveFailure::Conflict { current: Some(current) }) => self.look_at(plan, *current),
            Err(SaveFailure::Conflict { current: None } | SaveFailure::Unknown) => {
                self.stage = Stage::Loading(plan);
                vec![ManagerAction::Load]
            }
            Err(SaveFailure::NotRetired { partition }) => {
                self.retired.remove(&partition);
                let owner = self.saved.as_ref().and_then(|saved| owner_in(saved, &partition));
                let mut actions = vec![ManagerAction::Retire { partition, owner }];
                actions.extend(self.pause(now, Retry::Decide));
                actions
            }
            Err(SaveFailure::Unavailable) => self.pause(now, Retry::Decide),
            Err(SaveFailure::Invalid) => {
                let mut actions = self.refuse(&plan, ChangeRefusal::TooLarge);
                actions.extend(self.pause(now, Retry::Decide));
                actions
            }
        }
    }

    fn on_loaded(
        &mut self,
        now: Millis,
        answer: Result<Option<SavedTable>, SaveFailure>,
    ) -> Vec<ManagerAction> {
        let Stage::Loading(plan) = core::mem::replace(&mut self.stage, Stage::Idle) else {
            return Vec::new();
        };
        match answer {
            Ok(Some(current)) => self.look_at(plan, current),
            // A table that was sealed is never deleted: the store has lost it, or has not answered.
            Ok(None) | Err(_) => self.pause(now, Retry::Load(plan)),
        }
    }

    /// Something stands in the place of what was to be replaced: our own write whose answer was lost, or that of another.
    fn look_at(&mut self, plan: Plan, current: SavedTable) -> Vec<ManagerAction> {
        if !self.epoch.may_replace(current.epoch) {
            return self.step_down(current.epoch);
        }
        if current.epoch != self.epoch {
            // The seal is not there any more: the store went back in time. Begin anew.
            (self.stage, self.saved) = (Stage::Sealing, None);
            return vec![ManagerAction::Seal];
        }
        if plan.is_in(&current) {
            return self.in_force(plan, current);
        }
        (self.stage, self.saved) = (Stage::Idle, Some(current));
        Vec::new()
    }

    /// A table is saved: whoever asked for it hears it, and owners are asked to follow.
    fn in_force(&mut self, plan: Plan, saved: SavedTable) -> Vec<ManagerAction> {
        let mut actions = Vec::new();
        if let Some(id) = plan.request
            && let Some(place) = self.requests.iter().position(|asked| asked.id == id)
        {
            self.requests.remove(place);
            actions.push(ManagerAction::Answer { id, outcome: ChangeOutcome::Done(saved.version) });
        }
        let before = self.saved.replace(saved);
        let parents = self.saved.as_ref().map(parents_in).unwrap_or_default();
        self.retired.retain(|partition| parents.contains(partition));
        if let Some(before) = &before {
            actions.extend(self.asked_of_owners(before));
        }
        actions
    }

    /// What owners have to do about the present table, given the one before.
    fn asked_of_owners(&self, before: &SavedTable) -> Vec<ManagerAction> {
        let (Some(old), Some(new)) =
            (&before.table, self.saved.as_ref().and_then(|saved| saved.table.as_ref()))
        else {
            return Vec::new();
        };
        let mut actions = Vec::new();
        for entry in old.entries() {
            let (partition, from) = (entry.partition.clone(), entry.owner.node);
            match new.partition(&partition) {
                None => actions.push(ManagerAction::Retire { partition, owner: Some(from) }),
                Some(now) if now.owner.node != from && self.hosts.contains_key(&from) => {
                    actions.push(ManagerAction::HandOver { partition, from, to: now.owner.node });
                }
                Some(_) => {}
            }
        }
        actions
    }

    fn step_down(&mut self, by: Epoch) -> Vec<ManagerAction> {
        (self.stage, self.saved) = (Stage::Over(by), None);
        let outcome = ChangeOutcome::SteppedDown { by };
        let answers = self
            .requests
            .drain(..)
            .map(|asked| ManagerAction::Answer { id: asked.id, outcome: outcome.clone() });
        answers.chain([ManagerAction::StepDown { by }]).collect()
    }

    // ---- requests ----

    fn on_asked(&mut self, id: RequestId, change: RangeChange, until: Millis) -> Vec<ManagerAction> {
        let outcome = match self.stage {
            Stage::Over(by) => Some(ChangeOutcome::SteppedDown { by }),
            _ if self.requests.len() >= self.limits.requests => {
                Some(ChangeOutcome::Refused(ChangeRefusal::TooMany))
            }
            _ => None,
        };
        match outcome {
            Some(outcome) => vec![ManagerAction::Answer { id, outcome }],
            None => {
                self.requests.push_back(Asked { id, change, until, names: None });
                Vec::new()
            }
        }
    }

    /// Ends the requests whose time is over. One whose write is under way may be in force already.
    fn let_go_of_the_late(&mut self, now: Millis) -> Vec<ManagerAction> {
        let under_way = match &self.stage {
            Stage::Saving(plan) | Stage::Loading(plan) | Stage::Pausing(Retry::Load(plan)) => plan.request,
            _ => None,
        };
        let mut actions = Vec::new();
        self.requests.retain(|asked| {
            let late = asked.until <= now;
            if late {
                // A name that was given out may still come into force with a write that is late.
                let sent = under_way == Some(asked.id) || asked.names.is_some();
                let outcome = if sent { ChangeOutcome::Unknown } else { ChangeOutcome::NotYet };
                actions.push(ManagerAction::Answer { id: asked.id, outcome });
            }
            !late
        });
        actions
    }

    fn refuse(&mut self, plan: &Plan, why: ChangeRefusal) -> Vec<ManagerAction> {
        let place = plan.request.and_then(|id| self.requests.iter().position(|asked| asked.id == id));
        let asked = place.and_then(|place| self.requests.remove(place));
        let answer =
            asked.map(|asked| ManagerAction::Answer { id: asked.id, outcome: ChangeOutcome::Refused(why) });
        answer.into_iter().collect()
    }

    // ---- decisions ----

    /// What to write next, if nothing is under way.
    fn decide(&mut self, now: Millis) -> Vec<ManagerAction> {
        let mut actions = Vec::new();
        while self.stage == Stage::Idle && self.informed {
            let Some(saved) = &self.saved else { break };
            let expected = saved.clone();
            let Some(plan) = self.next_plan(&expected, &mut actions) else { break };
            actions.push(ManagerAction::Save { table: plan.table.clone(), expected });
            self.stage = Stage::Saving(plan);
        }
        if self.stage == Stage::Idle && self.has_open_ends() {
            self.due = Some(self.due.unwrap_or(now + self.limits.retry));
        }
        actions
    }

    /// The next table, and whoever asked for it. Requests that make no sense are answered on the way.
    fn next_plan(&mut self, saved: &SavedTable, actions: &mut Vec<ManagerAction>) -> Option<Plan> {
        let Some(table) = &saved.table else { return self.first_table() };
        // First of all, because it is who inherits from the gone that has parents retired which they have left behind.
        if let Some(table) = spread::inherited(table, &self.hosts) {
            return Some(Plan { table, request: None });
        }
        if let Some(table) = changes::without_retired_parents(table, &self.retired) {
            return Some(Plan { table, request: None });
        }
        while let Some(place) = self.next_request(table) {
            match self.plan_for(place, table) {
                Ok(plan) => return Some(plan),
                Err(outcome) => {
                    let asked = self.requests.remove(place)?;
                    actions.push(ManagerAction::Answer { id: asked.id, outcome: outcome.at(saved) });
                }
            }
        }
        let table = spread::balanced(table, &self.hosts, self.limits.moves)?;
        Some(Plan { table, request: None })
    }

    /// Whether something is left that only time, or others, can settle.
    fn has_open_ends(&self) -> bool {
        let waits = |saved: &SavedTable| !parents_in(saved).is_empty();
        !self.requests.is_empty() || self.saved.as_ref().is_some_and(waits)
    }

    // ---- time ----

    fn pause(&mut self, now: Millis, then: Retry) -> Vec<ManagerAction> {
        self.stage = Stage::Pausing(then);
        self.due = Some(now + self.limits.retry);
        Vec::new()
    }

    fn on_woke_up(&mut self, now: Millis) -> Vec<ManagerAction> {
        if self.due.is_none_or(|due| now < due) {
            return Vec::new();
        }
        self.due = None;
        match core::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Pausing(Retry::Seal) => {
                self.stage = Stage::Sealing;
                vec![ManagerAction::Seal]
            }
            Stage::Pausing(Retry::Load(plan)) => {
                self.stage = Stage::Loading(plan);
                vec![ManagerAction::Load]
            }
            Stage::Pausing(Retry::Decide) => Vec::new(),
            Stage::Idle => self.ask_again(),
            other => {
                self.stage = other;
                Vec::new()
            }
        }
    }

    /// Asks once more for what has not been retired: its owner may not have heard, or may be another by now.
    fn ask_again(&self) -> Vec<ManagerAction> {
        let parents = self.saved.as_ref().map(parents_in).unwrap_or_default();
        let open = parents.into_iter().filter(|partition| !self.retired.contains(partition));
        open.map(|partition| ManagerAction::Retire { partition, owner: None }).collect()
    }

    fn wake(&self, now: Millis) -> Option<ManagerAction> {
        let request = self.requests.iter().map(|asked| asked.until).min();
        let at = self.due.into_iter().chain(request).min()?;
        Some(ManagerAction::WakeAt(at.max(now)))
    }
}

fn parents_in(saved: &SavedTable) -> BTreeSet<PartitionName> {
    let entries = saved.table.as_ref().map_or(&[][..], |table| table.entries());
    entries.iter().flat_map(|entry| entry.parents.iter().cloned()).collect()
}

fn owner_in(saved: &SavedTable, partition: &PartitionName) -> Option<NodeId> {
    saved.table.as_ref()?.partition(partition).map(|entry| entry.owner.node)
}

#[cfg(test)]
mod tests;
