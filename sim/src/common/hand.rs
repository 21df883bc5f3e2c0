//! The hand of fate: what it does to nodes, to the ways between them and to their store.

use std::sync::Arc;
use std::time::Duration;

use archipelago::Node;
use archipelago_backend_conformance::{Faults, Rng};
use archipelago_memory::{DialAnswer, Link};
use archipelago_protocol::time::Millis;

use super::ledger::Ground;
use super::span::Home;
use crate::clock::TrueClock;
use crate::invariants::Invariant;
use crate::world::World;

/// What fate works with.
pub(crate) struct Hand<T> {
    pub(crate) nodes: usize,
    pub(crate) world: World,
    pub(crate) truth: Arc<T>,
    pub(crate) rng: Rng,
}

/// How a store misbehaves besides being away altogether.
#[derive(Clone, Copy)]
pub(crate) struct StoreTrouble {
    /// Reads may be old, and watches break.
    pub(crate) reads: bool,
    /// For how long at least, and how much longer.
    pub(crate) length: (u64, u64),
}

/// The blows that take part in a run.
pub(crate) fn switched_on<B: Copy>(all: &[(bool, B)]) -> Vec<B> {
    all.iter().filter(|(on, _)| *on).map(|(_, blow)| *blow).collect()
}

impl<T: Ground> Hand<T> {
    /// Waits, and chooses the next blow and two nodes that it meets; `None` at the end, or when there is nothing to do.
    pub(crate) async fn next_blow<B: Copy>(
        &mut self,
        blows: &[B],
        (least, more): (u64, u64),
        end: Duration,
    ) -> Option<(B, usize, usize)> {
        if blows.is_empty() || self.world.now() >= end || self.truth.ledger().judge().violated() {
            return None;
        }
        TrueClock::sleep(Duration::from_millis(least + self.rng.below(more))).await;
        let (a, b) = self.pair();
        Some((blows[self.rng.index(blows.len())], a, b))
    }

    fn pair(&mut self) -> (usize, usize) {
        if self.nodes == 1 {
            return (0, 0);
        }
        let a = self.rng.index(self.nodes);
        (a, (a + 1 + self.rng.index(self.nodes - 1)) % self.nodes)
    }

    // ---- ways ----

    /// Shorter than `silence` so many times in a thousand, or longer by less than `more`.
    pub(crate) fn spell(&mut self, silence: u64, shorter: u32, more: u64) -> Duration {
        let millis =
            if self.rng.chance(shorter) { self.rng.below(silence) } else { silence + self.rng.below(more) };
        Duration::from_millis(millis)
    }

    /// Nothing passes between two nodes, or only in one direction.
    pub(crate) fn cut(&self, a: usize, b: usize, both: bool) {
        if both {
            self.world.partition(a, b);
        } else {
            self.world.partition_one_way(a, b);
        }
    }

    /// The way from one node to another becomes slow, and loses and repeats what passes.
    pub(crate) fn slow(&mut self, a: usize, b: usize) {
        let link = Link {
            latency: Millis(1 + self.rng.below(120)),
            jitter: Millis(self.rng.below(60)),
            loss_per_mille: u32::try_from(self.rng.below(150)).unwrap_or(0),
            duplicate_per_mille: 200,
        };
        self.world.slow_link(a, b, link);
    }

    /// Lets the way between two nodes be as it is for so long; so many times in a thousand fate goes on meanwhile.
    pub(crate) async fn for_a_while(&mut self, a: usize, b: usize, length: Duration, beside: u32) {
        let world = self.world.clone();
        let heal = async move {
            TrueClock::sleep(length).await;
            world.heal(a, b);
        };
        if self.rng.chance(beside) {
            self.world.spawn(heal);
        } else {
            heal.await;
        }
    }

    /// Whoever dials a node gets no answer, or a refusal, for so long.
    pub(crate) async fn spoil_dials(&mut self, a: usize, length: impl FnOnce(&mut Self) -> Duration) {
        let answer = [DialAnswer::Unavailable, DialAnswer::Hang][self.rng.index(2)];
        self.world.answer_dials(a, answer);
        self.world.reset_connections(a);
        let length = length(self);
        TrueClock::sleep(length).await;
        self.world.answer_dials(a, DialAnswer::Normal);
    }

    /// Ends everything that is wrong with the store and the ways.
    pub(crate) fn heal_everything(&self) {
        self.world.store_faults(Faults::default());
        for a in 0..self.nodes {
            self.world.answer_dials(a, DialAnswer::Normal);
            for b in a + 1..self.nodes {
                self.world.heal(a, b);
            }
        }
    }

    // ---- the store ----

    /// The store fails for a while: altogether, or a little in every way.
    pub(crate) async fn spoil_store(&mut self, trouble: StoreTrouble) {
        let faults = match self.rng.below(2) {
            0 => Faults { unavailable: 1_000, ..Faults::default() },
            _ => self.some_faults(trouble.reads),
        };
        self.with_store(faults, trouble.length).await;
    }

    /// A little of everything that can go wrong with a store.
    pub(crate) fn some_faults(&mut self, reads: bool) -> Faults {
        let (stale, watch_break) = if reads { (200, 100) } else { (0, 0) };
        let max_delay = Millis(self.rng.below(900));
        Faults { unavailable: 100, lost_reply: 300, late: 400, stale, watch_break, max_delay }
    }

    /// The store is as `faults` say for a while.
    pub(crate) async fn with_store(&mut self, faults: Faults, (least, more): (u64, u64)) {
        self.world.store_faults(faults);
        TrueClock::sleep(Duration::from_millis(least + self.rng.below(more))).await;
        self.world.store_faults(Faults::default());
    }

    // ---- nodes ----

    /// The present life of a node, which is made known with it.
    pub(crate) fn life(&self, index: usize) -> Option<u64> {
        let (node, env) = (self.world.node(index)?, self.world.env(index)?);
        Some(self.truth.ledger().life(&Home { index, env }, node.id()))
    }

    /// Holds a node still, and waits until it runs again.
    pub(crate) async fn pause(&self, index: usize, length: Duration) {
        self.world.pause(index, length);
        // A little longer, so that what follows meets a node that runs.
        TrueClock::sleep(length + Duration::from_millis(1)).await;
    }

    /// Kills a node. Nothing of it may live on.
    pub(crate) async fn crash(&self, index: usize) {
        let Some(life) = self.life(index) else { return };
        self.world.crash(index).await;
        self.is_gone(index, life);
    }

    /// Nothing of a life of a node may be left.
    pub(crate) fn is_gone(&self, index: usize, life: u64) {
        let ledger = self.truth.ledger();
        let left = ledger.alive_in(life);
        ledger.check(Invariant::NothingOutlivesItsNode, left == (0, 0), || {
            format!("node {index} is gone, and {} activations and {} handlers live on", left.0, left.1)
        });
    }

    /// Gets a node that can serve no longer out of the way, as the plan of its operators has it.
    pub(crate) async fn remove(&mut self, index: usize) {
        if self.rng.chance(500) {
            self.world.crash(index).await;
        } else {
            drop(self.world.stop(index).await);
        }
    }

    /// Starts a node anew, `at_once` or after its last session has ended, as often as it takes.
    pub(crate) async fn restart(&self, index: usize, at_once: bool) -> Node {
        loop {
            let started = if at_once {
                self.world.restart_at_once(index).await
            } else {
                self.world.restart(index).await
            };
            match started {
                Ok(node) => return node,
                Err(_) => TrueClock::sleep(Duration::from_millis(300)).await,
            }
        }
    }
}
