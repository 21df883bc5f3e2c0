//! What happens to the nodes, the ways between them and their store while the clients send.

use std::time::Duration;

use archipelago_protocol::time::Millis;

use super::eyes::meet;
use super::plan::Plan;
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{Ground, Hand, StoreTrouble, TTL, switched_on};
use crate::invariants::Invariant;
use crate::sometimes;

/// Fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) hand: Hand<Truth>,
    /// Until when each node stays down, if it is.
    pub(crate) down_until: Vec<Duration>,
}

#[derive(Clone, Copy)]
enum Blow {
    Leave,
    Crash,
    Pause,
    Partition,
    OneWay,
    Reset,
    Store,
    Move,
}

impl Fate {
    /// Deals blows until `end`.
    pub(crate) async fn run(mut self, end: Duration) -> Self {
        let blows = self.blows();
        while let Some((blow, a, b)) = self.hand.next_blow(&blows, (100, 3_000), end).await {
            self.deal(blow, a, b).await;
            self.mend().await;
        }
        self
    }

    async fn deal(&mut self, blow: Blow, a: usize, b: usize) {
        match blow {
            Blow::Leave if self.hand.rng.chance(250) => self.leave(&[a, b]).await,
            Blow::Leave => self.leave(&[a]).await,
            Blow::Crash => self.crash(a).await,
            Blow::Pause => self.pause(a).await,
            Blow::Partition | Blow::OneWay => {
                self.hand.cut(a, b, matches!(blow, Blow::Partition));
                // Shorter than the silence that ends a connection, or long enough for others to act upon it.
                let length = self.hand.spell(self.plan.silence, 400, 9_000);
                self.hand.for_a_while(a, b, length, 500).await;
            }
            Blow::Reset => self.hand.world.reset_connections(a),
            Blow::Store => {
                self.hand.spoil_store(StoreTrouble { reads: true, length: (300, 3_500) }).await;
            }
            Blow::Move => self.move_shards(a, b).await,
        }
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.hand.heal_everything();
        self.down_until.fill(Duration::ZERO);
        self.mend().await;
        // A session may have been beyond help already when the store came back.
        TrueClock::sleep(TTL.to_duration()).await;
        self.mend().await;
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        let moves = (0..plan.moves).map(|_| Blow::Move);
        let others = switched_on(&[
            (plan.leaves, Blow::Leave),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.partitions, Blow::Partition),
            (plan.one_way, Blow::OneWay),
            (plan.resets, Blow::Reset),
            (plan.store_faults, Blow::Store),
        ]);
        others.into_iter().chain(moves).collect()
    }

    /// Some nodes leave at once, in good order, and stay away for a while. Somebody must stay to take over.
    async fn leave(&mut self, nodes: &[usize]) {
        let up = (0..self.plan.nodes).filter(|index| self.hand.world.node(*index).is_some()).count();
        let nodes = &nodes[..nodes.len().min(up.saturating_sub(1))];
        let leaving = nodes.iter().map(|index| self.leave_one(*index));
        futures_util::future::join_all(leaving.collect::<Vec<_>>()).await;
        for index in nodes {
            self.stays_down(*index);
        }
    }

    async fn leave_one(&self, index: usize) {
        let (Some(life), Some(env)) = (self.hand.life(index), self.hand.world.env(index)) else { return };
        self.hand.truth.leaves(life);
        let returned = || env.switch().meters().counter("archipelago_messages_returned_total");
        let before = returned();
        let stopped = self.hand.world.stop(index).await;
        if self.plan.calm {
            self.hand.truth.ledger().check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
                format!("nothing is wrong, but node {index} left with {stopped:?}")
            });
        }
        if stopped.is_ok() {
            sometimes!("node left under load");
        }
        if returned() > before {
            sometimes!("message returned by a leaving node");
        }
        self.hand.is_gone(index, life);
    }

    pub(super) async fn crash(&mut self, index: usize) {
        let Some(life) = self.hand.life(index) else { return };
        self.hand.truth.crashes(life);
        self.hand.crash(index).await;
        self.stays_down(index);
    }

    /// Back before its old session has ended, or after.
    fn stays_down(&mut self, index: usize) {
        let millis = if self.hand.rng.chance(500) {
            self.hand.rng.below(1_500)
        } else {
            3_000 + self.hand.rng.below(5_000)
        };
        self.down_until[index] = self.hand.world.now() + Duration::from_millis(millis);
    }

    /// Shorter than the session, or longer.
    async fn pause(&mut self, index: usize) {
        let Some(node) = self.hand.world.node(index) else { return };
        if self.hand.rng.chance(250) {
            return self.replace(index).await;
        }
        let length = Duration::from_millis(self.hand.rng.below(7_000));
        self.hand.pause(index, length).await;
        if node.serving_for() == Millis::ZERO {
            sometimes!("node woke up after its session");
        }
    }

    /// Another life of a node begins while the last one stands still; that one wakes up later, without a network.
    async fn replace(&mut self, index: usize) {
        let (Some(life), Some(env)) = (self.hand.life(index), self.hand.world.env(index)) else { return };
        let length = Duration::from_millis(9_000 + self.hand.rng.below(4_000));
        self.hand.world.pause(index, length);
        self.hand.truth.crashes(life);
        TrueClock::sleep(Duration::from_millis(self.hand.rng.below(6_000))).await;
        self.restart(index).await;
        self.hand.world.spawn(async move {
            TrueClock::sleep(length + ZOMBIE_LIVES).await;
            env.switch().crash();
        });
    }

    /// Gets nodes that can serve no longer out of the way, and those up again whose time has come.
    async fn mend(&mut self) {
        for index in 0..self.plan.nodes {
            if let Some(node) = self.hand.world.node(index) {
                if node.serving_for() > Millis::ZERO {
                    continue;
                }
                sometimes!("session lost under load");
                self.hand.truth.crashes(self.hand.truth.ledger().lives().number(node.id()));
                self.hand.remove(index).await;
            }
            if self.hand.world.now() >= self.down_until[index] {
                self.restart(index).await;
            }
        }
    }

    async fn restart(&self, index: usize) {
        let node = self.hand.restart(index, true).await;
        meet(&self.hand.world, &self.hand.truth, index, &node);
    }
}

/// How long after its awakening somebody ends a life that was replaced.
const ZOMBIE_LIVES: Duration = Duration::from_secs(2);
