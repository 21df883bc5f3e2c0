//! What happens to the nodes and the ways between them while the clients send.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Event, Node, Notice};
use archipelago_protocol::time::Millis;

use super::plan::{NODES, Plan};
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{Ground, Hand, Home, StoreTrouble, TTL, switched_on};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// Fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) hand: Hand<Truth>,
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
        while let Some((blow, a, b)) = self.hand.next_blow(&blows, (100, 3_000), end).await {
            self.deal(blow, a, b).await;
            self.mend().await;
        }
        self
    }

    async fn deal(&mut self, blow: Blow, a: usize, b: usize) {
        let silence = self.plan.silence;
        match blow {
            Blow::Partition | Blow::OneWay | Blow::SlowLink => {
                match blow {
                    Blow::SlowLink => self.hand.slow(a, b),
                    _ => self.hand.cut(a, b, matches!(blow, Blow::Partition)),
                }
                let length = self.hand.spell(silence, 500, 3_000);
                self.hand.for_a_while(a, b, length, 400).await;
            }
            Blow::Reset => self.hand.world.reset_connections(a),
            Blow::Kill => {
                let bytes = self.hand.rng.below(3_000);
                self.hand.world.kill_connections_after(a, b, bytes);
            }
            Blow::Dials => self.hand.spoil_dials(a, |hand| hand.spell(silence, 500, 3_000)).await,
            Blow::Crash if self.hand.rng.chance(300) => self.crash_both(a, b).await,
            Blow::Crash => self.crash(a).await,
            Blow::Pause => {
                let length = Duration::from_millis(self.hand.rng.below(4_500));
                self.hand.pause(a, length).await;
            }
            Blow::Store => {
                self.hand.spoil_store(StoreTrouble { reads: false, length: (300, 3_500) }).await;
            }
        }
    }

    /// Ends everything that is wrong: all ways are open, all nodes are up and serve.
    pub(crate) async fn make_well(&mut self) {
        self.hand.heal_everything();
        // A session may have been beyond help already when the store came back: it is lost after that.
        TrueClock::sleep(TTL.to_duration()).await;
        for index in 0..NODES {
            self.wait_for_return(index).await;
        }
        self.mend().await;
    }

    /// A node that comes back by itself must do so soon.
    async fn wait_for_return(&self, index: usize) {
        let (Some(node), true) = (self.hand.world.node(index), self.plan.rejoins) else { return };
        let begun = self.hand.world.now();
        while node.serving_for() == Millis::ZERO && self.hand.world.now() - begun < RETURN_LIMIT {
            TrueClock::sleep(Duration::from_millis(100)).await;
        }
        let returned = node.serving_for() > Millis::ZERO;
        self.hand.truth.ledger().check(Invariant::HealsAfterFaults, returned, || {
            format!("node {index} has not come back after {RETURN_LIMIT:?}")
        });
    }

    fn blows(&self) -> Vec<Blow> {
        let plan = &self.plan;
        switched_on(&[
            (plan.partitions, Blow::Partition),
            (plan.one_way, Blow::OneWay),
            (plan.slow_links, Blow::SlowLink),
            (plan.resets, Blow::Reset),
            (plan.kills, Blow::Kill),
            (plan.dials, Blow::Dials),
            (plan.crashes, Blow::Crash),
            (plan.pauses, Blow::Pause),
            (plan.store_faults, Blow::Store),
        ])
    }

    async fn crash(&mut self, a: usize) {
        if self.hand.world.node(a).is_none() {
            return;
        }
        sometimes!("node crashed under remote traffic");
        self.hand.crash(a).await;
        let length = Duration::from_millis(self.hand.rng.below(1_000));
        TrueClock::sleep(length).await;
    }

    /// Two at once; the second is up again first, and takes what it can get.
    async fn crash_both(&mut self, a: usize, b: usize) {
        self.crash(a).await;
        self.crash(b).await;
        TrueClock::sleep(SESSIONS_END).await;
        self.restart(b).await;
    }

    /// Gets nodes that can serve no longer out of the way, and new ones up.
    async fn mend(&mut self) {
        for index in 0..NODES {
            if let Some(node) = self.hand.world.node(index) {
                if node.serving_for() > Millis::ZERO {
                    continue;
                }
                sometimes!("session lost under remote traffic");
                if self.plan.rejoins && self.hand.rng.chance(700) {
                    continue;
                }
                self.hand.remove(index).await;
            }
            self.restart(index).await;
        }
    }

    async fn restart(&self, index: usize) {
        let node = self.hand.restart(index, false).await;
        meet(&self.hand.world, &self.hand.truth, index, &node);
    }
}

/// Makes a new life of a node known, and listens to its events.
pub(crate) fn meet(world: &World, truth: &Arc<Truth>, index: usize, node: &Node) {
    let Some(env) = world.env(index) else { return };
    truth.ledger().life(&Home { index, env }, node.id());
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
