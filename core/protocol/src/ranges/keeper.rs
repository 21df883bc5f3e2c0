//! The partitions of one kind at one node: which it claims, serves, empties and gives up, as the table says.
//!
//! [`RangeKeeper`] follows the tables. What a table gives to this node is claimed, with the parents that the table names;
//! what it gives to another is emptied and released; what it names no more has been divided or merged, and is emptied and
//! retired. Actors, the directory and timers are the shell's.
//!
//! Invariants: actors of a partition are granted only between [`KeeperAction::Serve`] and [`KeeperAction::Empty`], and a
//! partition is given up only after [`KeeperEvent::Emptied`] (STOP-FIRST); after a write that may still be applied the
//! partition is claimed again before anything else is believed about it; one request per partition is under way. A claim
//! that was not answered may be applied while the session lives, so its partition is never forgotten before it is retired: it is
//! claimed now and then, and given up (MY-RECORDS). Otherwise it could come here unseen, and nobody else could have it.

mod events;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

pub use events::{KeeperAction, KeeperEvent, KeeperLimits, LetGoOutcome, PartitionClaim};

use super::{KeyRange, KnownTable};
use crate::contract::TableVersion;
use crate::identity::{Generation, NodeId, PartitionName};
use crate::time::Millis;

/// The machine of one kind at one node.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RangeKeeper {
    me: NodeId,
    limits: KeeperLimits,
    version: TableVersion,
    /// The names in the newest table, and whether each is for this node.
    named: BTreeMap<PartitionName, bool>,
    parts: BTreeMap<PartitionName, Part>,
    /// The node leaves: it keeps nothing.
    leaves: bool,
    /// The session is over: nothing is written any more.
    over: bool,
}

/// A partition that this node has to do with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Part {
    range: KeyRange,
    parents: Vec<PartitionName>,
    state: State,
    /// How many times in a row a request came to nothing.
    failures: u32,
    /// A claim was not answered: it may still be applied.
    strays: bool,
}

/// Where a partition stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// The answer to a claim is awaited.
    Claiming,
    /// A claim is made again at this time. If it is in doubt, the record may name us already.
    Waiting { again_at: Millis, in_doubt: bool },
    /// Its actors run here. It is not emptied before `not_before`: that has just been tried in vain.
    Serving { generation: Generation, not_before: Millis },
    /// Its actors end, by this time or not at all.
    Emptying { generation: Generation, until: Millis },
    /// Nothing runs; the answer to the write is awaited.
    Writing { generation: Generation },
    /// Nothing runs; the write is made again at this time.
    Closed { generation: Generation, again_at: Millis },
}

/// What the table wants of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Keep,
    Release,
    Retire,
}

impl RangeKeeper {
    /// The keeper of node `me`, which has nothing.
    pub const fn new(me: NodeId, limits: KeeperLimits) -> Self {
        Self {
            me,
            limits,
            version: TableVersion(0),
            named: BTreeMap::new(),
            parts: BTreeMap::new(),
            leaves: false,
            over: false,
        }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(&mut self, now: Millis, event: KeeperEvent) -> Vec<KeeperAction> {
        let mut out = Vec::new();
        if self.over {
            return out;
        }
        match event {
            KeeperEvent::Table(known) => self.on_table(&known),
            KeeperEvent::Claimed { partition, outcome } => {
                self.on_claimed(now, &partition, outcome, &mut out)
            }
            KeeperEvent::Emptied(partition) => self.on_emptied(&partition, &mut out),
            KeeperEvent::LetGo { partition, outcome } => self.on_let_go(now, &partition, outcome, &mut out),
            KeeperEvent::Leave => self.leaves = true,
            KeeperEvent::WokeUp => {}
        }
        self.follow(now, &mut out);
        out.extend(self.due().map(|at| KeeperAction::WakeAt(at.max(now))));
        out
    }

    /// The partitions that are served, with their generations.
    pub fn served(&self) -> impl Iterator<Item = (&PartitionName, Generation)> {
        self.parts.iter().filter_map(|(name, part)| match part.state {
            State::Serving { generation, .. } => Some((name, generation)),
            _ => None,
        })
    }

    /// Whether nothing is owned here, nor may be.
    pub fn has_nothing(&self) -> bool {
        self.parts.is_empty()
    }

    // ---- events ----

    fn on_table(&mut self, known: &KnownTable) {
        if known.version <= self.version {
            return;
        }
        self.version = known.version;
        self.named = BTreeMap::new();
        for entry in known.table.entries() {
            let ours = entry.owner.node == self.me;
            self.named.insert(entry.partition.clone(), ours);
            if let Some(part) = self.parts.get_mut(&entry.partition) {
                // Parents are dropped once they have been retired, and never come back.
                part.parents.clone_from(&entry.parents);
            } else if ours {
                let state = State::Waiting { again_at: Millis::ZERO, in_doubt: false };
                let (range, parents) = (entry.range.clone(), entry.parents.clone());
                let part = Part { range, parents, state, failures: 0, strays: false };
                self.parts.insert(entry.partition.clone(), part);
            }
        }
    }

    fn on_claimed(
        &mut self,
        now: Millis,
        name: &PartitionName,
        outcome: PartitionClaim,
        out: &mut Vec<KeeperAction>,
    ) {
        let fate = self.fate(name);
        let limits = self.limits;
        let Some(part) = self.parts.get_mut(name).filter(|part| part.state == State::Claiming) else {
            return;
        };
        match outcome {
            PartitionClaim::Placed(generation) => {
                part.failures = 0;
                if fate == Fate::Keep {
                    part.serve(name, generation, out);
                } else {
                    part.write(name, generation, fate, out);
                }
            }
            PartitionClaim::Retired => drop(self.parts.remove(name)),
            PartitionClaim::SessionLost => self.over = true,
            PartitionClaim::Taken | PartitionClaim::NotRetired if fate != Fate::Keep => {
                self.drop_or_look_later(now, name);
            }
            PartitionClaim::Taken | PartitionClaim::NotRetired => part.wait(now, part.strays, &limits),
            PartitionClaim::Unanswered => {
                part.strays = true;
                part.wait(now, true, &limits);
            }
        }
    }

    fn on_emptied(&mut self, name: &PartitionName, out: &mut Vec<KeeperAction>) {
        let fate = self.fate(name);
        let Some(part) = self.parts.get_mut(name) else { return };
        let State::Emptying { generation, .. } = part.state else { return };
        if fate == Fate::Keep {
            part.serve(name, generation, out);
        } else {
            part.write(name, generation, fate, out);
        }
    }

    fn on_let_go(
        &mut self,
        now: Millis,
        name: &PartitionName,
        outcome: LetGoOutcome,
        out: &mut Vec<KeeperAction>,
    ) {
        let limits = self.limits;
        let Some(part) = self.parts.get_mut(name) else { return };
        let State::Writing { generation } = part.state else { return };
        match outcome {
            LetGoOutcome::Done => {
                out.push(KeeperAction::Forget(name.clone()));
                self.drop_or_look_later(now, name);
                self.hurry_children(now, name);
            }
            LetGoOutcome::Unapplied => {
                let again_at = now + limits.pause(part.failures);
                part.failures = part.failures.saturating_add(1);
                part.state = State::Closed { generation, again_at };
            }
            LetGoOutcome::Unknown => {
                // The generation is dead; whether the record still names us, only a claim tells.
                out.push(KeeperAction::Forget(name.clone()));
                part.wait(now, true, &limits);
            }
        }
    }

    /// The partition is not ours: now, and for ever unless a claim of it is still on its way.
    fn drop_or_look_later(&mut self, now: Millis, name: &PartitionName) {
        let again_at = now + self.limits.stray;
        match self.parts.get_mut(name) {
            Some(part) if part.strays => part.state = State::Waiting { again_at, in_doubt: true },
            _ => drop(self.parts.remove(name)),
        }
    }

    /// What was made of a partition that is given up can be claimed now.
    fn hurry_children(&mut self, now: Millis, parent: &PartitionName) {
        for part in self.parts.values_mut().filter(|part| part.parents.contains(parent)) {
            if let State::Waiting { in_doubt, .. } = part.state {
                part.state = State::Waiting { again_at: now, in_doubt };
                part.failures = 0;
            }
        }
    }

    // ---- what the table wants ----

    /// Goes on with everything that has come to its time.
    fn follow(&mut self, now: Millis, out: &mut Vec<KeeperAction>) {
        let names: BTreeSet<PartitionName> = self.parts.keys().cloned().collect();
        for name in names {
            let (fate, limits) = (self.fate(&name), self.limits);
            let Some(part) = self.parts.get_mut(&name) else { continue };
            match part.state {
                // Nothing was ever ours, and nothing is wanted.
                State::Waiting { in_doubt: false, .. } if fate != Fate::Keep => {
                    self.parts.remove(&name);
                }
                State::Waiting { again_at, .. } if again_at <= now => {
                    part.state = State::Claiming;
                    let parents = part.parents.clone();
                    out.push(KeeperAction::Claim { partition: name, parents });
                }
                State::Serving { generation, not_before } if fate != Fate::Keep && not_before <= now => {
                    part.state = State::Emptying { generation, until: now + limits.empty };
                    out.push(KeeperAction::Empty { partition: name, range: part.range.clone() });
                }
                State::Emptying { generation, .. } if fate == Fate::Keep => {
                    part.serve(&name, generation, out);
                }
                State::Emptying { generation, until } if until <= now => {
                    part.serve(&name, generation, out);
                    part.state = State::Serving { generation, not_before: now + limits.rest };
                }
                State::Closed { generation, .. } if fate == Fate::Keep => part.serve(&name, generation, out),
                State::Closed { generation, again_at } if again_at <= now => {
                    part.write(&name, generation, fate, out);
                }
                _ => {}
            }
        }
    }

    fn fate(&self, name: &PartitionName) -> Fate {
        match self.named.get(name) {
            Some(true) if !self.leaves => Fate::Keep,
            Some(_) => Fate::Release,
            None => Fate::Retire,
        }
    }

    fn due(&self) -> Option<Millis> {
        let due = |(name, part): (&PartitionName, &Part)| match part.state {
            State::Waiting { again_at, .. } | State::Closed { again_at, .. } => Some(again_at),
            State::Emptying { until, .. } => Some(until),
            State::Serving { not_before, .. } if self.fate(name) != Fate::Keep => Some(not_before),
            _ => None,
        };
        self.parts.iter().filter_map(due).min()
    }
}

impl Part {
    fn serve(&mut self, name: &PartitionName, generation: Generation, out: &mut Vec<KeeperAction>) {
        self.state = State::Serving { generation, not_before: Millis::ZERO };
        let (partition, range) = (name.clone(), self.range.clone());
        out.push(KeeperAction::Serve { partition, range, generation });
    }

    fn write(
        &mut self,
        name: &PartitionName,
        generation: Generation,
        fate: Fate,
        out: &mut Vec<KeeperAction>,
    ) {
        self.state = State::Writing { generation };
        let (partition, retire) = (name.clone(), fate == Fate::Retire);
        out.push(KeeperAction::LetGo { partition, generation, retire });
    }

    fn wait(&mut self, now: Millis, in_doubt: bool, limits: &KeeperLimits) {
        self.state = State::Waiting { again_at: now + limits.pause(self.failures), in_doubt };
        self.failures = self.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
