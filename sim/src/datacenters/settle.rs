//! The end of a run: nothing is wrong any more, and everybody must reach everybody.

use std::sync::Arc;
use std::time::Duration;

use archipelago_protocol::session::times;

use super::dweller::{Greet, ask};
use super::plan::Plan;
use super::truth::{From, Truth};
use crate::common::{ActorNumber, Ground, TTL, reach, stop_all};
use crate::world::World;

/// Looks at everything that must hold once nothing is wrong any more.
pub(crate) async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    let until = world.now() + times::observer_wait(TTL).to_duration() + HEAL_LIMIT;
    for kind in 0..plan.kinds() {
        for key in 0..plan.keys {
            // Its own datacenter first: nobody else brings a sought actor to life.
            let own = plan.place_of(key);
            let mut order: Vec<usize> = (0..plan.nodes()).collect();
            order.sort_by_key(|index| plan.island_of(*index) != own);
            for index in order {
                reach_one(world, truth, index, ActorNumber { kind, key }, until).await;
            }
        }
    }
    if !truth.ledger().judge().violated() {
        stop_all(world, truth.ledger(), plan.nodes()).await;
    }
}

/// A fresh ask of node `index` to an actor must succeed soon.
async fn reach_one(world: &World, truth: &Arc<Truth>, index: usize, to: ActorNumber, until: Duration) {
    reach(
        world,
        truth.ledger(),
        (index, to),
        until,
        |node, ticket, options| {
            let call = ask(node, to, Greet { ticket, millis: 0 }, options);
            async move {
                let answer = call.await;
                truth.answered(ticket, &answer);
                answer.err()
            }
        },
        |_| From { index },
    )
    .await;
}

/// How long after the last session that may be in the way has ended every actor must answer: datacenters that were silent are left
/// alone for a while.
const HEAL_LIMIT: Duration = Duration::from_secs(12);
