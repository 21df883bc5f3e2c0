//! What happens to datacenters, their nodes and the ways between them while the clients send.

use std::sync::Arc;
use std::time::Duration;

use archipelago::Node;
use archipelago::handoff::HandOffOutcome;
use archipelago_backend_conformance::Faults;
use archipelago_protocol::time::Millis;

use super::dweller::{name_of, shard_of};
use super::homes::Registers;
use super::plan::Plan;
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Ground, Hand, Home, TTL, switched_on};
use crate::sometimes;
use crate::world::World;

/// Fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) hand: Hand<Truth>,
    pub(crate) registers: Registers,
}

#[derive(Clone, Copy)]
enum Blow {
    /// All ways between two datacenters.
    CutOff,
    /// One way between two nodes of different datacenters.
    CutOne,
    Inner,
    SlowLink,
    Reset,
    Move,
    Crash,
    Pause,
    Store,
}

impl Fate {
    /// Deals blows until `end`.
    pub(crate) async fn run(mut self, end: Duration) -> Self {
        let blows = self.blows();
        while let Some((blow, a, b)) = self.hand.next_blow(&blows, (100, 2_000), end).await {
            self.deal(blow, a, b).await;
            self.mend().await;
        }
        self
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        switched_on(&[
            (plan.cuts, Blow::CutOff),
            (plan.cuts, Blow::CutOne),
            (plan.inner_cuts, Blow::Inner),
            (plan.slow_links, Blow::SlowLink),
            (plan.resets, Blow::Reset),
            (plan.moves, Blow::Move),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.store_faults, Blow::Store),
        ])
    }

    async fn deal(&mut self, blow: Blow, a: usize, b: usize) {
        let abroad = self.plan.island_of(a) != self.plan.island_of(b);
        match blow {
            Blow::CutOff if abroad => self.cut_off(a, b).await,
            Blow::CutOne if abroad => {
                let both = self.hand.rng.chance(500);
                self.hand.cut(a, b, both);
                self.heal_later((a, b), 4_000, 300).await;
            }
            Blow::Inner if !abroad => {
                self.hand.cut(a, b, true);
                self.heal_later((a, b), 1_000, 0).await;
            }
            Blow::SlowLink if abroad => {
                self.hand.slow(a, b);
                self.heal_later((a, b), 3_000, 500).await;
            }
            Blow::Reset => self.hand.world.reset_connections(a),
            Blow::Move if !abroad => self.move_shard(a, b).await,
            Blow::Crash => self.crash(a).await,
            Blow::Pause => {
                let length = Duration::from_millis(self.hand.rng.below(4_500));
                self.hand.pause(a, length).await;
            }
            Blow::Store => self.spoil_stores().await,
            _ => {}
        }
    }

    /// Nothing passes between the datacenters of two nodes.
    async fn cut_off(&mut self, a: usize, b: usize) {
        sometimes!("datacenter cut off under load");
        let here = self.plan.members(self.plan.island_of(a));
        let there = self.plan.members(self.plan.island_of(b));
        let ways: Vec<_> = here.flat_map(|one| there.clone().map(move |other| (one, other))).collect();
        ways.iter().for_each(|(one, other)| self.hand.world.partition(*one, *other));
        let length = self.spell(9_000);
        TrueClock::sleep(length).await;
        ways.iter().for_each(|(one, other)| self.hand.world.heal(*one, *other));
    }

    async fn heal_later(&mut self, (a, b): (usize, usize), most: u64, beside: u32) {
        let length = self.spell(most);
        self.hand.for_a_while(a, b, length, beside).await;
    }

    fn spell(&mut self, most: u64) -> Duration {
        Duration::from_millis(100 + self.hand.rng.below(most))
    }

    /// Has the shard of an actor moved to another node of its datacenter, and does not wait for it.
    async fn move_shard(&mut self, a: usize, b: usize) {
        let actor = ActorNumber {
            kind: self.hand.rng.index(self.plan.kinds()),
            key: self.hand.rng.below(self.plan.keys),
        };
        let (Some(node), Some(to)) = (self.hand.world.node(a), self.hand.world.node(b)) else { return };
        let (shard, to) = (shard_of(&node, actor), to.id());
        let moved = node.move_shard(name_of(actor.kind), shard, to).await;
        if matches!(moved, Ok(HandOffOutcome::Moved(_))) {
            sometimes!("shard moved in a datacenter");
        }
    }

    async fn crash(&mut self, a: usize) {
        if self.hand.world.node(a).is_some() {
            sometimes!("node of a datacenter crashed");
            self.hand.crash(a).await;
            let length = self.spell(1_000);
            TrueClock::sleep(length).await;
        }
    }

    /// The stores of all datacenters fail; by chance only home records cannot be read.
    async fn spoil_stores(&mut self) {
        sometimes!("home records out of reach");
        self.registers.are_away(true);
        if self.hand.rng.chance(500) {
            let faults = match self.hand.rng.below(2) {
                0 => Faults { unavailable: 1_000, ..Faults::default() },
                _ => self.hand.some_faults(true),
            };
            self.hand.with_store(faults, (300, 3_500)).await;
        } else {
            let length = self.spell(4_000);
            TrueClock::sleep(length).await;
        }
        self.registers.are_away(false);
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.registers.are_away(false);
        self.hand.heal_everything();
        TrueClock::sleep(TTL.to_duration()).await;
        self.mend().await;
    }

    /// Gets nodes that can serve no longer out of the way, and new ones up.
    async fn mend(&mut self) {
        for index in 0..self.plan.nodes() {
            if let Some(node) = self.hand.world.node(index) {
                if node.serving_for() > Millis::ZERO {
                    continue;
                }
                self.hand.remove(index).await;
            }
            let node = self.hand.restart(index, true).await;
            meet(&self.hand.world, &self.hand.truth, index, &node);
        }
    }
}

/// Makes a new life of a node known.
pub(crate) fn meet(world: &World, truth: &Arc<Truth>, index: usize, node: &Node) {
    if let Some(env) = world.env(index) {
        truth.ledger().life(&Home { index, env }, node.id());
    }
}
