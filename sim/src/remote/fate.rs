//! What happens to the nodes and the ways between them while the clients send.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Event, Node, Notice};
use archipelago_backend_conformance::{Faults, Rng};
use archipelago_memory::{DialAnswer, Link};
use archipelago_protocol::time::Millis;

use super::plan::{NODES, Plan};
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
}

#[derive(Clone, Copy)]
enum Blow {
    Partition,
    OneWay,
    SlowLink,
    Reset,
    Kill,
    Dials,
    Crash,
    Pause,
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
                Blow::Partition => self.cut(a, b, true).await,
                Blow::OneWay => self.cut(a, b, false).await,
                Blow::SlowLink => self.slow(a, b).await,
                Blow::Reset => self.world.reset_connections(a),
                Blow::Kill => self.world.kill_connections_after(a, b, self.rng.below(3_000)),
                Blow::Dials => self.spoil_dials(a).await,
                Blow::Crash if self.rng.chance(300) => self.crash_both(a, b).await,
                Blow::Crash => self.crash(a).await,
                Blow::Pause => self.pause(a).await,
                Blow::Store => self.spoil_store().await,
            }
            self.mend().await;
        }
        self
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.world.store_faults(Faults::default());
        for a in 0..NODES {
            self.world.answer_dials(a, DialAnswer::Normal);
            for b in a + 1..NODES {
                self.world.heal(a, b);
            }
        }
        for index in 0..NODES {
            self.wait_for_return(index).await;
        }
        self.mend().await;
    }

    /// A node that comes back by itself must do so soon.
    async fn wait_for_return(&self, index: usize) {
        let (Some(node), true) = (self.world.node(index), self.plan.rejoins) else { return };
        let begun = self.world.now();
        while node.serving_for() == Millis::ZERO && self.world.now() - begun < RETURN_LIMIT {
            TrueClock::sleep(Duration::from_millis(100)).await;
        }
        self.truth.check(Invariant::HealsAfterFaults, node.serving_for() > Millis::ZERO, || {
            format!("node {index} has not come back after {RETURN_LIMIT:?}")
        });
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        let all = [
            (plan.partitions, Blow::Partition),
            (plan.one_way, Blow::OneWay),
            (plan.slow_links, Blow::SlowLink),
            (plan.resets, Blow::Reset),
            (plan.kills, Blow::Kill),
            (plan.dials, Blow::Dials),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.store_faults, Blow::Store),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, blow)| blow).collect()
    }

    fn pair(&mut self) -> (usize, usize) {
        let a = self.rng.index(NODES);
        (a, (a + 1 + self.rng.index(NODES - 1)) % NODES)
    }

    /// Shorter than the silence that ends a connection, or longer.
    fn spell(&mut self) -> Duration {
        let silence = self.plan.silence;
        let millis =
            if self.rng.chance(500) { self.rng.below(silence) } else { silence + self.rng.below(3_000) };
        Duration::from_millis(millis)
    }

    async fn cut(&mut self, a: usize, b: usize, both: bool) {
        if both {
            self.world.partition(a, b);
        } else {
            self.world.partition_one_way(a, b);
        }
        self.for_a_while(a, b).await;
    }

    async fn slow(&mut self, a: usize, b: usize) {
        let link = Link {
            latency: Millis(1 + self.rng.below(120)),
            jitter: Millis(self.rng.below(60)),
            loss_per_mille: u32::try_from(self.rng.below(150)).unwrap_or(0),
            duplicate_per_mille: 200,
        };
        self.world.slow_link(a, b, link);
        self.for_a_while(a, b).await;
    }

    /// Lets the way between two nodes be as it is for a while; sometimes fate goes on meanwhile.
    async fn for_a_while(&mut self, a: usize, b: usize) {
        let (length, world) = (self.spell(), self.world.clone());
        let heal = async move {
            TrueClock::sleep(length).await;
            world.heal(a, b);
        };
        if self.rng.chance(400) {
            self.world.spawn(heal);
        } else {
            heal.await;
        }
    }

    async fn spoil_dials(&mut self, a: usize) {
        let answer = [DialAnswer::Unavailable, DialAnswer::Hang][self.rng.index(2)];
        self.world.answer_dials(a, answer);
        self.world.reset_connections(a);
        let length = self.spell();
        TrueClock::sleep(length).await;
        self.world.answer_dials(a, DialAnswer::Normal);
    }

    async fn crash(&mut self, a: usize) {
        let (Some(node), Some(env)) = (self.world.node(a), self.world.env(a)) else { return };
        sometimes!("node crashed under remote traffic");
        let life = self.truth.life(&Home { index: a, env }, node.id());
        self.world.crash(a).await;
        let left = self.truth.alive_in(life);
        self.truth.check(Invariant::NothingOutlivesItsNode, left == (0, 0), || {
            format!("node {a} has crashed, and {} activations and {} handlers live on", left.0, left.1)
        });
        let length = Duration::from_millis(self.rng.below(1_000));
        TrueClock::sleep(length).await;
    }

    /// Two at once; the second is up again first, and takes what it can get.
    async fn crash_both(&mut self, a: usize, b: usize) {
        self.crash(a).await;
        self.crash(b).await;
        TrueClock::sleep(SESSIONS_END).await;
        self.restart(b).await;
    }

    async fn pause(&mut self, a: usize) {
        let length = Duration::from_millis(self.rng.below(4_500));
        self.world.pause(a, length);
        // A little longer, so that what follows meets a node that runs.
        TrueClock::sleep(length + Duration::from_millis(1)).await;
    }

    async fn spoil_store(&mut self) {
        let faults = match self.rng.below(2) {
            0 => Faults { unavailable: 1_000, ..Faults::default() },
            _ => Faults {
                unavailable: 100,
                lost_reply: 300,
                late: 400,
                max_delay: Millis(self.rng.below(900)),
                ..Faults::default()
            },
        };
        self.world.store_faults(faults);
        TrueClock::sleep(Duration::from_millis(300 + self.rng.below(3_500))).await;
        self.world.store_faults(Faults::default());
    }

    /// Gets nodes that can serve no longer out of the way, and new ones up.
    async fn mend(&mut self) {
        for index in 0..NODES {
            if let Some(node) = self.world.node(index) {
                if node.serving_for() > Millis::ZERO {
                    continue;
                }
                sometimes!("session lost under remote traffic");
                if self.plan.rejoins && self.rng.chance(700) {
                    continue;
                }
                if self.rng.chance(500) {
                    self.world.crash(index).await;
                } else {
                    drop(self.world.stop(index).await);
                }
            }
            self.restart(index).await;
        }
    }

    async fn restart(&self, index: usize) {
        loop {
            match self.world.restart(index).await {
                Ok(node) => return meet(&self.world, &self.truth, index, &node),
                Err(_) => TrueClock::sleep(Duration::from_millis(300)).await,
            }
        }
    }
}

/// Makes a new life of a node known, and listens to its events.
pub(crate) fn meet(world: &World, truth: &Arc<Truth>, index: usize, node: &Node) {
    let Some(env) = world.env(index) else { return };
    truth.life(&Home { index, env }, node.id());
    let mut events = node.events().subscribe();
    world.spawn(async move {
        while let Some(notice) = events.next().await {
            match notice {
                Notice::Event(Event::RemoteDeadLetter(_)) => sometimes!("remote dead letter"),
                Notice::Event(Event::Rejoined { .. }) => sometimes!("node rejoined under remote traffic"),
                _ => {}
            }
        }
    });
}

/// After this time the session of a crashed node has ended.
const SESSIONS_END: Duration = Duration::from_secs(7);

/// Within this time a node that has lost its session is back: the longest pause between two attempts, and the attempts.
const RETURN_LIMIT: Duration = Duration::from_secs(60);
