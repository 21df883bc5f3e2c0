//! What happens to the nodes, the ways between them and their store while the clients send.

use std::sync::Arc;
use std::time::Duration;

use archipelago_backend_conformance::{Faults, Rng};
use archipelago_protocol::time::Millis;

use super::eyes::meet;
use super::plan::{Plan, TTL};
use super::span::Home;
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// The hand of fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) world: World,
    pub(crate) truth: Arc<Truth>,
    pub(crate) rng: Rng,
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
}

impl Fate {
    /// Deals blows until `end`.
    pub(crate) async fn run(mut self, end: Duration) -> Self {
        let blows = self.blows();
        while !blows.is_empty() && self.world.now() < end && !self.truth.judge().violated() {
            TrueClock::sleep(Duration::from_millis(100 + self.rng.below(3_000))).await;
            let (a, b) = self.pair();
            match blows[self.rng.index(blows.len())] {
                Blow::Leave if self.rng.chance(250) => self.leave(&[a, b]).await,
                Blow::Leave => self.leave(&[a]).await,
                Blow::Crash => self.crash(a).await,
                Blow::Pause => self.pause(a).await,
                Blow::Partition => self.cut(a, b, true).await,
                Blow::OneWay => self.cut(a, b, false).await,
                Blow::Reset => self.world.reset_connections(a),
                Blow::Store => self.spoil_store().await,
            }
            self.mend().await;
        }
        self
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.world.store_faults(Faults::default());
        for a in 0..self.plan.nodes {
            for b in a + 1..self.plan.nodes {
                self.world.heal(a, b);
            }
        }
        self.down_until.fill(Duration::ZERO);
        self.mend().await;
        // A session may have been beyond help already when the store came back.
        TrueClock::sleep(TTL.to_duration()).await;
        self.mend().await;
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        let all = [
            (plan.leaves, Blow::Leave),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.partitions, Blow::Partition),
            (plan.one_way, Blow::OneWay),
            (plan.resets, Blow::Reset),
            (plan.store_faults, Blow::Store),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, blow)| blow).collect()
    }

    fn pair(&mut self) -> (usize, usize) {
        let count = self.plan.nodes;
        let a = self.rng.index(count);
        (a, (a + 1 + self.rng.index(count - 1)) % count)
    }

    /// Some nodes leave at once, in good order, and stay away for a while. Somebody must stay to take over.
    async fn leave(&mut self, nodes: &[usize]) {
        let up = (0..self.plan.nodes).filter(|index| self.world.node(*index).is_some()).count();
        let nodes = &nodes[..nodes.len().min(up.saturating_sub(1))];
        let leaving = nodes.iter().map(|index| self.leave_one(*index));
        futures_util::future::join_all(leaving.collect::<Vec<_>>()).await;
        for index in nodes {
            self.stays_down(*index);
        }
    }

    async fn leave_one(&self, index: usize) {
        let (Some(node), Some(env)) = (self.world.node(index), self.world.env(index)) else { return };
        let life = self.truth.life(&Home { index, env: Arc::clone(&env) }, node.id());
        self.truth.leaves(life);
        let returned = || env.switch().meters().counter("archipelago_messages_returned_total");
        let before = returned();
        let stopped = self.world.stop(index).await;
        if self.plan.calm {
            self.truth.check(Invariant::CatalogIsConsistent, stopped.is_ok(), || {
                format!("nothing is wrong, but node {index} left with {stopped:?}")
            });
        }
        if stopped.is_ok() {
            sometimes!("node left under load");
        }
        if returned() > before {
            sometimes!("message returned by a leaving node");
        }
        self.is_gone(index, life);
    }

    async fn crash(&mut self, index: usize) {
        let (Some(node), Some(env)) = (self.world.node(index), self.world.env(index)) else { return };
        let life = self.truth.life(&Home { index, env }, node.id());
        self.truth.crashes(life);
        self.world.crash(index).await;
        self.is_gone(index, life);
        self.stays_down(index);
    }

    fn is_gone(&self, index: usize, life: u64) {
        let left = self.truth.alive_in(life);
        self.truth.check(Invariant::NothingOutlivesItsNode, left == (0, 0), || {
            format!("node {index} is gone, and {} activations and {} handlers live on", left.0, left.1)
        });
    }

    /// Back before its old session has ended, or after.
    fn stays_down(&mut self, index: usize) {
        let millis = if self.rng.chance(500) { self.rng.below(1_500) } else { 3_000 + self.rng.below(5_000) };
        self.down_until[index] = self.world.now() + Duration::from_millis(millis);
    }

    /// Shorter than the session, or longer.
    async fn pause(&mut self, index: usize) {
        let Some(node) = self.world.node(index) else { return };
        if self.rng.chance(250) {
            return self.replace(index).await;
        }
        let length = Duration::from_millis(self.rng.below(7_000));
        self.world.pause(index, length);
        // A little longer, so that what follows meets a node that runs.
        TrueClock::sleep(length + Duration::from_millis(1)).await;
        if node.serving_for() == Millis::ZERO {
            sometimes!("node woke up after its session");
        }
    }

    /// Another life of a node begins while the last one stands still; that one wakes up later, without a network.
    async fn replace(&mut self, index: usize) {
        let (Some(node), Some(env)) = (self.world.node(index), self.world.env(index)) else { return };
        let length = Duration::from_millis(9_000 + self.rng.below(4_000));
        self.world.pause(index, length);
        self.truth.crashes(self.truth.life_of(node.id()));
        TrueClock::sleep(Duration::from_millis(self.rng.below(6_000))).await;
        self.restart(index).await;
        self.world.spawn(async move {
            TrueClock::sleep(length + ZOMBIE_LIVES).await;
            env.switch().crash();
        });
    }

    async fn cut(&mut self, a: usize, b: usize, both: bool) {
        if both {
            self.world.partition(a, b);
        } else {
            self.world.partition_one_way(a, b);
        }
        let (length, world) = (self.spell(), self.world.clone());
        let heal = async move {
            TrueClock::sleep(length).await;
            world.heal(a, b);
        };
        if self.rng.chance(500) {
            self.world.spawn(heal);
        } else {
            heal.await;
        }
    }

    /// Shorter than the silence that ends a connection, or long enough for others to act upon it.
    fn spell(&mut self) -> Duration {
        let silence = self.plan.silence;
        let millis =
            if self.rng.chance(400) { self.rng.below(silence) } else { silence + self.rng.below(9_000) };
        Duration::from_millis(millis)
    }

    async fn spoil_store(&mut self) {
        let faults = match self.rng.below(2) {
            0 => Faults { unavailable: 1_000, ..Faults::default() },
            _ => Faults {
                unavailable: 100,
                lost_reply: 300,
                late: 400,
                stale: 200,
                watch_break: 100,
                max_delay: Millis(self.rng.below(900)),
            },
        };
        self.world.store_faults(faults);
        TrueClock::sleep(Duration::from_millis(300 + self.rng.below(3_500))).await;
        self.world.store_faults(Faults::default());
    }

    /// Gets nodes that can serve no longer out of the way, and those up again whose time has come.
    async fn mend(&mut self) {
        for index in 0..self.plan.nodes {
            if let Some(node) = self.world.node(index) {
                if node.serving_for() > Millis::ZERO {
                    continue;
                }
                sometimes!("session lost under load");
                self.truth.crashes(self.truth.life_of(node.id()));
                if self.rng.chance(500) {
                    self.world.crash(index).await;
                } else {
                    drop(self.world.stop(index).await);
                }
            }
            if self.world.now() >= self.down_until[index] {
                self.restart(index).await;
            }
        }
    }

    async fn restart(&self, index: usize) {
        loop {
            match self.world.restart_at_once(index).await {
                Ok(node) => return meet(&self.world, &self.truth, index, &node),
                Err(_) => TrueClock::sleep(Duration::from_millis(300)).await,
            }
        }
    }
}

/// How long after its awakening somebody ends a life that was replaced.
const ZOMBIE_LIVES: Duration = Duration::from_secs(2);
