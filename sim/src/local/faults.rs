//! What happens to the node while the clients send: stops, crashes, pauses, a store that misbehaves.

use std::sync::Arc;
use std::time::Duration;

use archipelago::{Event, Node, Notice};
use archipelago_backend_conformance::Faults;
use archipelago_protocol::time::Millis;

use super::plan::Plan;
use super::subject::{Quick, Subject, Then, key_of, key_text};
use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{Ground, Hand, Home, Reported, switched_on};
use crate::sometimes;
use crate::world::World;

/// Fate in one run.
pub(crate) struct Fate {
    pub(crate) plan: Plan,
    pub(crate) hand: Hand<Truth>,
}

#[derive(Clone, Copy)]
enum Blow {
    Stop,
    Crash,
    Pause,
    Zombie,
    Store,
}

impl Fate {
    /// Deals blows until `end`; then the node is up, and the store is well.
    pub(crate) async fn run(mut self, end: Duration) {
        let blows = self.blows();
        while let Some((blow, ..)) = self.hand.next_blow(&blows, (500, 9_000), end).await {
            match blow {
                Blow::Stop => self.stop().await,
                Blow::Crash => self.crash().await,
                Blow::Pause => self.pause().await,
                Blow::Zombie => self.zombie().await,
                Blow::Store => self.spoil_store().await,
            }
            self.mend().await;
        }
    }

    fn blows(&self) -> Vec<Blow> {
        let Plan { node_stops, crashes, pauses, zombies, store_faults, .. } = self.plan;
        switched_on(&[
            (node_stops, Blow::Stop),
            (crashes, Blow::Crash),
            (pauses, Blow::Pause),
            (zombies, Blow::Zombie),
            (store_faults, Blow::Store),
        ])
    }

    async fn stop(&self) {
        sometimes!("node stopped under traffic");
        // What the budget was too short for is counted in the error; nothing is lost by it.
        drop(self.hand.world.stop(0).await);
    }

    async fn crash(&self) {
        sometimes!("node crashed");
        self.hand.crash(0).await;
    }

    /// A pause that the session outlives, mostly.
    async fn pause(&mut self) {
        sometimes!("node paused");
        let length = Duration::from_millis(self.hand.rng.below(3_200));
        self.hand.pause(0, length).await;
    }

    /// A pause that others use to take over.
    async fn zombie(&mut self) {
        let Some(old) = self.hand.world.node(0) else { return };
        let length = Duration::from_millis(5_000 + self.hand.rng.below(6_000));
        let wakes_at = self.hand.world.now() + length;
        self.hand.world.pause(0, length);
        self.restart().await;
        TrueClock::sleep(wakes_at.saturating_sub(self.hand.world.now()) + Duration::from_millis(1)).await;
        sometimes!("zombie woke up");
        self.prod(&old);
    }

    /// Sends to a node that must refuse.
    fn prod(&self, zombie: &Node) {
        let ticket = self.hand.truth.sending(0, None, true);
        let told = zombie.actor::<Subject>(key_text(0)).tell(Quick { ticket, then: Then::Nothing });
        if told.is_err() {
            sometimes!("zombie refused work");
            self.hand.truth.reported(ticket, Reported::NotStarted);
        } else {
            self.hand.truth.reported(ticket, Reported::Accepted);
        }
    }

    /// The store fails for a while: a little, or altogether.
    async fn spoil_store(&mut self) {
        let faults = match self.hand.rng.below(3) {
            0 => Faults { unavailable: 1_000, ..Faults::default() },
            1 => Faults { lost_reply: 1_000, max_delay: Millis(50), ..Faults::default() },
            _ => self.hand.some_faults(false),
        };
        self.hand.with_store(faults, (500, 6_000)).await;
        if self.hand.world.late_writes_applied() > 0 {
            sometimes!("late write applied");
        }
    }

    /// Gets a node that can serve no longer out of the way, and a new one up.
    async fn mend(&self) {
        if let Some(node) = self.hand.world.node(0) {
            if node.serving_for() > Millis::ZERO {
                return;
            }
            sometimes!("session lost");
            drop(self.hand.world.stop(0).await);
        }
        self.restart().await;
    }

    async fn restart(&self) {
        let node = self.hand.restart(0, false).await;
        meet(&self.hand.world, &self.hand.truth, &node);
    }
}

/// Makes a new life of the node known, and listens to its dead letters.
pub(crate) fn meet(world: &World, truth: &Arc<Truth>, node: &Node) {
    let Some(env) = world.env(0) else { return };
    truth.ledger().life(&Home { index: 0, env }, node.id());
    let (mut events, truth) = (node.events().subscribe(), Arc::clone(truth));
    world.spawn(async move {
        while let Some(notice) = events.next().await {
            if let Notice::Event(Event::DeadLetter(letter)) = notice {
                let key = letter.target.rsplit('/').next().map_or(u64::MAX, key_of);
                truth.dead_letter(key);
            }
        }
    });
}
