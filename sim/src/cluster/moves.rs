//! Orders to move shards, given by fate.

use std::time::Duration;

use archipelago::handoff::HandOffOutcome;
use archipelago_protocol::identity::NodeId;

use super::counter::{kind_name, shard_of};
use super::fate::Fate;
use super::plan::KINDS;
use crate::clock::TrueClock;
use crate::common::ActorNumber;
use crate::sometimes;
use crate::world::World;

impl Fate {
    /// Has the shards of some counters moved to one node, by the word of another. By chance the target or the owner crashes
    /// meanwhile, if nodes crash in this run.
    pub(super) async fn move_shards(&mut self, a: usize, b: usize) {
        let Some(target) = self.hand.world.node(b).map(|node| node.id()) else { return };
        let moving: Vec<_> = (0..1 + self.hand.rng.below(4))
            .map(|_| {
                // Single actors do not move.
                let kinds = if self.plan.singles { KINDS - 1 } else { KINDS };
                let (kind, key) = (self.hand.rng.index(kinds), self.hand.rng.below(self.plan.keys));
                let insists = self.hand.rng.chance(500);
                insist((self.hand.world.clone(), a), ActorNumber { kind, key }, target, insists)
            })
            .collect();
        let all = futures_util::future::join_all(moving);
        if !self.plan.crashes || !self.hand.rng.chance(150) {
            return drop(all.await);
        }
        let victim = if self.hand.rng.chance(500) { a } else { b };
        let soon = Duration::from_millis(self.hand.rng.below(12));
        let crash = async {
            TrueClock::sleep(soon).await;
            self.crash(victim).await;
        };
        let (moved, ()) = futures_util::future::join(all, crash).await;
        if moved.contains(&None) {
            if victim == a {
                sometimes!("node crashed while a shard of it moved");
            } else {
                sometimes!("target crashed while a shard came");
            }
        }
    }
}

/// Orders one move, and by chance again and again at once if it comes to nothing.
async fn insist(
    (world, by): (World, usize),
    counter: ActorNumber,
    to: NodeId,
    again: bool,
) -> Option<HandOffOutcome> {
    let mut outcome = move_one(world.clone(), by, counter, to).await;
    for _ in 0..if again { INSISTS } else { 0 } {
        if !matches!(outcome, Some(HandOffOutcome::Stays(_))) {
            break;
        }
        sometimes!("shard stayed and was ordered again");
        outcome = move_one(world.clone(), by, counter, to).await;
    }
    outcome
}

/// Orders one move; what became of it, if that was said.
async fn move_one(world: World, by: usize, counter: ActorNumber, to: NodeId) -> Option<HandOffOutcome> {
    let node = world.node(by)?;
    let outcome = node.move_shard(kind_name(counter.kind), shard_of(&node, counter), to).await.ok();
    match outcome {
        Some(HandOffOutcome::Moved(_)) => {
            world.record("moved", by as u64, counter.key);
            sometimes!("shard moved under load");
        }
        Some(HandOffOutcome::Stays(_)) => sometimes!("shard stayed"),
        Some(HandOffOutcome::Refused(_)) => sometimes!("order refused"),
        _ => {}
    }
    outcome
}

/// How often a move that comes to nothing is ordered again.
const INSISTS: usize = 4;
