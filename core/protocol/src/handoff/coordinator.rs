//! What the coordinator of a kind does about each of its shards. It only asks; it writes nothing.
//!
//! [`Coordinator`] has soft state: it may be lost at any time and another may begin anew, even while the first still runs,
//! because owners move their shards themselves and claims are compare-and-swap. It asks owners to hand shards over as its
//! [`AllocateShards`] says, within limits, and nodes to claim what nobody owns. Sending is left to the shell.
//!
//! Invariants: at most one question per shard is open; no node is asked to take a shard that is no target; nobody is asked to
//! claim what has an owner.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use self::loads::{Loads, share_of};
use self::room::Room;
use super::allocate::{AllocateShards, Allocations, Host, ShardMove, targets};
use super::limits::pause;
use crate::identity::{Generation, NodeId};
use crate::link::Hint;
use crate::time::Millis;

mod loads;
mod room;

/// How much a coordinator asks for, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoordinatorLimits {
    /// How many shards one node hands over at a time.
    pub per_source: usize,
    /// How many shards one node takes at a time.
    pub per_target: usize,
    /// How many moves one round begins, some of them when others have ended.
    pub per_round: usize,
    /// How many moves a rebalance that somebody demands begins beside those of the rounds.
    pub per_demand: usize,
    /// How long it waits before its first rebalance, so that the orders of an earlier coordinator run out.
    pub settle_in: Millis,
    /// The distance between two rounds.
    pub round: Millis,
    /// How long an order may take.
    pub ask: Millis,
    /// The first and the longest pause after an order that came to nothing.
    pub backoff: (Millis, Millis),
    /// How long a node may take to claim before the next is asked.
    pub place: Millis,
}

impl Default for CoordinatorLimits {
    fn default() -> Self {
        Self {
            per_source: 8,
            per_target: 4,
            per_round: 32,
            per_demand: 32,
            settle_in: Millis(5_000),
            round: Millis(1_000),
            ask: Millis(5_000),
            backoff: (Millis(10_000), Millis(300_000)),
            place: Millis(2_000),
        }
    }
}

/// The coordinator of the shards of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Coordinator {
    limits: CoordinatorLimits,
    hosts: BTreeMap<NodeId, Host>,
    shards: BTreeMap<u32, Shard>,
    /// What has moved since the hosts were measured.
    loads: Loads,
    /// When the next round begins; not before the first one is a shard moved.
    round_at: Millis,
    /// How many moves this round may still begin.
    left: usize,
    /// How many moves that were demanded may still begin.
    demanded: usize,
    /// Whether the orders of an earlier coordinator have run out.
    settled: bool,
}

/// How much there is to do for a balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Imbalance {
    /// How many shards are being moved by order.
    pub under_way: usize,
    /// How many more have to move.
    pub remaining: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Shard {
    /// The record, and whether its owner's session has ended.
    record: Option<(Hint, bool)>,
    /// Who owned it last, if it has no record any more: it may have given it up, or its records were removed after its end.
    left_by: Option<NodeId>,
    state: ShardState,
    /// How much load counts as going along, while an order is open.
    share: u64,
    /// How many orders in a row came to nothing.
    failures: u32,
}

/// How things stand with one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardState {
    /// Nothing is open.
    Steady,
    /// Its owner was asked to hand it over.
    Asked {
        /// The generation that is to move.
        generation: Generation,
        /// To whom.
        to: NodeId,
        /// How long an answer is waited for.
        until: Millis,
    },
    /// A node was asked to claim it.
    Placing {
        /// The node.
        node: NodeId,
        /// When the next one is asked.
        until: Millis,
    },
    /// An order came to nothing; no other until then.
    Backoff {
        /// Until when.
        until: Millis,
    },
}

/// What reaches the coordinator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorEvent {
    /// The nodes that host the kind, all of them.
    Hosts(BTreeMap<NodeId, Host>),
    /// The record of a shard, as the store shows it; `ended`: its owner's session has.
    Record {
        /// The shard.
        shard: u32,
        /// The record; none if there is none.
        record: Option<Hint>,
        /// Whether the owner's session has ended.
        ended: bool,
    },
    /// Somebody has messages for a shard (`GetShardLocation`).
    Wanted(u32),
    /// The owner says what became of an order.
    Done {
        /// The shard.
        shard: u32,
        /// The generation of the order.
        generation: Generation,
        /// Whose it is now, if it has gone. The record says so as well, and may come later.
        moved: Option<Hint>,
    },
    /// Somebody wants the shards balanced now, whether or not rounds do it. Orders of an earlier coordinator run out first.
    Rebalance,
    /// Time has passed.
    WokeUp,
}

/// What the shell does about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorAction {
    /// Ask the owner to hand the shard over.
    HandOff {
        /// The shard.
        shard: u32,
        /// Its owner.
        owner: NodeId,
        /// The generation that is to move.
        generation: Generation,
        /// To whom.
        to: NodeId,
    },
    /// Ask a node to claim the shard.
    Allocate {
        /// The shard.
        shard: u32,
        /// Whom to ask.
        node: NodeId,
        /// The generation of the record that stands; none if there is no record.
        expect: Option<Generation>,
    },
    /// Wake the machine at this time.
    WakeAt(Millis),
}

impl Coordinator {
    /// A coordinator that takes office now and knows nothing yet.
    pub fn new(now: Millis, limits: CoordinatorLimits) -> Self {
        let round_at = now + limits.settle_in;
        let (hosts, shards, loads) = (BTreeMap::new(), BTreeMap::new(), Loads::default());
        Self { limits, hosts, shards, loads, round_at, left: 0, demanded: 0, settled: false }
    }

    /// Takes one event at time `now` and returns what to do about it, in order.
    pub fn handle(
        &mut self,
        now: Millis,
        event: CoordinatorEvent,
        strategy: &dyn AllocateShards,
    ) -> Vec<CoordinatorAction> {
        let mut out = Vec::new();
        match event {
            CoordinatorEvent::Hosts(hosts) => self.on_hosts(now, hosts, strategy, &mut out),
            CoordinatorEvent::Record { shard, record, ended } => {
                if self.on_record(now, shard, record.map(|hint| (hint, ended)), strategy, &mut out) {
                    self.rebalance(now, strategy, &mut out);
                }
            }
            CoordinatorEvent::Wanted(shard) => self.place(now, shard, strategy, &mut out),
            CoordinatorEvent::Done { shard, generation, moved } => {
                self.on_done(now, (shard, generation), moved, strategy, &mut out);
                self.rebalance(now, strategy, &mut out);
            }
            CoordinatorEvent::Rebalance => {
                self.demanded = self.limits.per_demand;
                self.rebalance(now, strategy, &mut out);
            }
            CoordinatorEvent::WokeUp => self.on_woke_up(now, strategy, &mut out),
        }
        out.extend(self.due().map(CoordinatorAction::WakeAt));
        out
    }

    /// How things stand with a shard.
    pub fn state(&self, shard: u32) -> ShardState {
        self.shards.get(&shard).map_or(ShardState::Steady, |shard| shard.state)
    }

    /// How far the shards are from where `strategy` wants them.
    pub fn imbalance(&self, strategy: &dyn AllocateShards) -> Imbalance {
        let asked = |shard: &&Shard| matches!(shard.state, ShardState::Asked { .. });
        let remaining = strategy.rebalance(&self.allocations(), self.shards.len()).len();
        Imbalance { under_way: self.shards.values().filter(asked).count(), remaining }
    }

    /// Who has come may take the orphans that nobody could take before.
    fn on_hosts(
        &mut self,
        now: Millis,
        hosts: BTreeMap<NodeId, Host>,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) {
        self.loads.measured(&self.hosts, &hosts);
        self.hosts = hosts;
        if targets(&self.hosts).is_empty() {
            return;
        }
        let orphans = self.shards.iter().filter(|(_, shard)| shard.is_orphan(&self.hosts));
        for number in orphans.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.place(now, number, strategy, out);
        }
    }

    /// An owner that died with its shard leaves an orphan, which is placed at once, also if others have removed its record; a
    /// shard that nobody has asked for, or that its owner has given up, is not. An owner that turns out to be there after all
    /// keeps it. Answers whether anything is new.
    fn on_record(
        &mut self,
        now: Millis,
        number: u32,
        record: Option<(Hint, bool)>,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) -> bool {
        let generation = |record: Option<(Hint, bool)>| record.map(|(hint, _)| hint.generation);
        let before = *self.shards.entry(number).or_insert(Shard::NEW);
        if record.is_some() && generation(record) < generation(before.record) {
            // What the owner said was quicker than the watch.
            return false;
        }
        self.note_where_it_went(&before, record);
        let shard = self.shards.entry(number).or_insert(before);
        if generation(record) > generation(shard.record) {
            shard.state = ShardState::Steady;
            shard.failures = 0;
        }
        let left_by = shard.record.map(|(hint, _)| hint.owner).or(shard.left_by);
        shard.left_by = left_by.filter(|_| record.is_none());
        shard.record = record;
        if shard.is_owned() && matches!(shard.state, ShardState::Placing { .. }) {
            shard.state = ShardState::Steady;
        }
        let changed = *shard != before;
        if record.is_some_and(|(_, ended)| ended) || shard.is_orphan(&self.hosts) {
            self.place(now, number, strategy, out);
        }
        changed
    }

    /// What went along with a shard counts where it is now, until that node is measured anew.
    fn note_where_it_went(&mut self, before: &Shard, record: Option<(Hint, bool)>) {
        let (Some((hint, false)), was) = (record, before.owner()) else { return };
        let was_ordered = matches!(before.state, ShardState::Asked { .. } | ShardState::Placing { .. });
        if was == Some(hint.owner) || (was.is_none() && !was_ordered) {
            return;
        }
        let share = if was_ordered { before.share } else { share_of(was, &self.allocations()) };
        self.loads.moved(was, hint.owner, share);
    }

    /// Asks a node to claim a shard that nobody owns. If there is none to ask, nothing is open: the next that comes is asked.
    fn place(
        &mut self,
        now: Millis,
        number: u32,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) {
        let shard = *self.shards.entry(number).or_insert(Shard::NEW);
        let asked_before = match shard.state {
            _ if shard.is_owned() => return,
            ShardState::Placing { until, .. } if now < until => return,
            ShardState::Placing { node, .. } => Some(node),
            _ => None,
        };
        let now_owned = self.allocations();
        let share = if asked_before.is_some() { shard.share } else { share_of(None, &now_owned) };
        let node = Self::next_place(&now_owned, strategy, asked_before);
        let placing = |node| ShardState::Placing { node, until: now + self.limits.place };
        let state = node.map_or(ShardState::Steady, placing);
        self.shards.insert(number, Shard { state, share, ..shard });
        let Some(node) = node else { return };
        let expect = shard.record.map(|(hint, _)| hint.generation);
        out.push(CoordinatorAction::Allocate { shard: number, node, expect });
    }

    /// The strategy's choice; if that one was asked in vain, the next target after it.
    fn next_place(
        allocations: &Allocations,
        strategy: &dyn AllocateShards,
        in_vain: Option<NodeId>,
    ) -> Option<NodeId> {
        let Some(in_vain) = in_vain else { return strategy.allocate(allocations) };
        let targets = allocations.targets();
        targets.iter().find(|node| **node > in_vain).or(targets.first()).copied()
    }

    /// What the owner says of a shard that has gone is as good as its record; nobody asks it once more meanwhile.
    fn on_done(
        &mut self,
        now: Millis,
        (number, generation): (u32, Generation),
        moved: Option<Hint>,
        strategy: &dyn AllocateShards,
        out: &mut Vec<CoordinatorAction>,
    ) {
        let Some(shard) = self.shards.get_mut(&number) else { return };
        let is_known =
            |hint: &Hint| shard.record.is_some_and(|(known, _)| known.generation >= hint.generation);
        if let Some(hint) = moved.filter(|hint| !is_known(hint)) {
            let ended = !self.hosts.contains_key(&hint.owner);
            self.on_record(now, number, Some((hint, ended)), strategy, out);
        } else if matches!(shard.state, ShardState::Asked { generation: asked, .. } if asked == generation) {
            shard.end(now, moved.is_some(), &self.limits);
        }
    }

    fn on_woke_up(&mut self, now: Millis, strategy: &dyn AllocateShards, out: &mut Vec<CoordinatorAction>) {
        for number in self.shards.keys().copied().collect::<Vec<_>>() {
            let Some(shard) = self.shards.get_mut(&number) else { continue };
            match shard.state {
                ShardState::Asked { until, .. } if until <= now => shard.end(now, false, &self.limits),
                ShardState::Backoff { until } if until <= now => shard.state = ShardState::Steady,
                ShardState::Placing { until, .. } if until <= now => self.place(now, number, strategy, out),
                _ => {}
            }
        }
        if self.round_at <= now {
            self.settled = true;
            self.round_at = now + self.limits.round;
            self.left = self.limits.per_round;
            self.rebalance(now, strategy, out);
        }
    }

    /// Begins as many moves as this round, what was demanded and the nodes have room for.
    fn rebalance(&mut self, now: Millis, strategy: &dyn AllocateShards, out: &mut Vec<CoordinatorAction>) {
        let mut room = self.room();
        if self.allowance() == 0 || room.is_full() {
            return;
        }
        // The plan may begin with shards of which no order can be given now.
        let unsteady = self.shards.values().filter(|shard| shard.state != ShardState::Steady).count();
        let most = (self.limits.per_target * room.targets() + unsteady).min(self.shards.len());
        let allocations = self.allocations();
        let plan = strategy.rebalance(&allocations, most);
        if plan.is_empty() {
            // What was demanded is there; what becomes uneven later is another matter.
            self.demanded = 0;
        }
        for step in plan {
            let share = share_of(Some(step.from), &allocations);
            if self.allowance() > 0 && room.has_for(&step) && self.order(now, step, share, out) {
                room.take(&step);
                self.count_one();
            }
        }
    }

    /// How many moves may begin now.
    const fn allowance(&self) -> usize {
        if self.settled { self.left.saturating_add(self.demanded) } else { 0 }
    }

    /// A move has begun: one of the round's, if it has any left.
    const fn count_one(&mut self) {
        if self.left > 0 {
            self.left -= 1;
        } else {
            self.demanded = self.demanded.saturating_sub(1);
        }
    }

    /// Asks for a move, if nothing is open about the shard and it still is where the plan takes it to be.
    fn order(&mut self, now: Millis, step: ShardMove, share: u64, out: &mut Vec<CoordinatorAction>) -> bool {
        let ShardMove { shard: number, from, to } = step;
        let Some(shard) = self.shards.get_mut(&number) else { return false };
        let (Some((hint, false)), ShardState::Steady) = (shard.record, shard.state) else { return false };
        if hint.owner != from {
            return false;
        }
        let generation = hint.generation;
        shard.state = ShardState::Asked { generation, to, until: now + self.limits.ask };
        shard.share = share;
        out.push(CoordinatorAction::HandOff { shard: number, owner: from, generation, to });
        true
    }

    /// What may still be asked of each node, beside the orders that are open.
    fn room(&self) -> Room {
        let mut room = Room::new(targets(&self.hosts), self.limits.per_source, self.limits.per_target);
        for (number, shard) in &self.shards {
            if let (ShardState::Asked { to, .. }, Some((hint, _))) = (shard.state, shard.record) {
                room.take(&ShardMove { shard: *number, from: hint.owner, to });
            }
        }
        room
    }

    /// Shards that were ordered to move count where they go, and so does the load that goes along.
    fn allocations(&self) -> Allocations {
        let owner = |shard: &Shard| match (shard.state, shard.record) {
            (ShardState::Asked { to, .. }, _) | (ShardState::Placing { node: to, .. }, _) => Some(to),
            (_, Some((hint, false))) => Some(hint.owner),
            _ => None,
        };
        let owners =
            self.shards.iter().filter_map(|(number, shard)| Some((*number, owner(shard)?))).collect();
        let open = self.shards.values().filter_map(|shard| match shard.state {
            ShardState::Asked { to, .. } | ShardState::Placing { node: to, .. } => {
                Some((shard.owner(), to, shard.share))
            }
            ShardState::Steady | ShardState::Backoff { .. } => None,
        });
        Allocations { hosts: self.loads.put_right(&self.hosts, open), owners }
    }

    fn due(&self) -> Option<Millis> {
        let waits = self.shards.values().filter_map(|shard| match shard.state {
            ShardState::Steady => None,
            ShardState::Asked { until, .. }
            | ShardState::Placing { until, .. }
            | ShardState::Backoff { until } => Some(until),
        });
        waits.chain([self.round_at]).min()
    }
}

impl Shard {
    const NEW: Self = Self { record: None, left_by: None, state: ShardState::Steady, share: 0, failures: 0 };

    /// Its owner, unless that one's session has ended.
    fn owner(&self) -> Option<NodeId> {
        self.record.filter(|(_, ended)| !ended).map(|(hint, _)| hint.owner)
    }

    fn is_owned(&self) -> bool {
        self.owner().is_some()
    }

    /// Its owner has ended, with or without its record, and nobody was asked to take it.
    fn is_orphan(&self, hosts: &BTreeMap<NodeId, Host>) -> bool {
        let ended = match self.record {
            Some((_, ended)) => ended,
            None => self.left_by.is_some_and(|owner| !hosts.contains_key(&owner)),
        };
        ended && self.state == ShardState::Steady
    }

    /// An order has ended; if it came to nothing, the next one waits longer each time.
    fn end(&mut self, now: Millis, moved: bool, limits: &CoordinatorLimits) {
        if moved {
            self.state = ShardState::Steady;
        } else {
            self.state = ShardState::Backoff { until: now + pause(limits.backoff, self.failures) };
            self.failures = self.failures.saturating_add(1);
        }
    }
}

#[cfg(test)]
mod tests;
