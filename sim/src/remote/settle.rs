//! The end of a run: nothing is wrong any more, and everything must become well and quiet.

use std::sync::Arc;
use std::time::Duration;

use super::island::{Quick, ask};
use super::plan::{NODES, Plan, TELL_TTL};
use super::truth::{More, Truth};
use crate::clock::TrueClock;
use crate::common::{ActorNumber, Ground, is_quiet, reach, stop_all};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// Looks at everything that must hold once nothing is wrong any more.
pub(crate) async fn settle(plan: &Plan, world: &World, truth: &Arc<Truth>) {
    let ledger = truth.ledger();
    for index in 0..NODES {
        for kind in 0..NODES {
            reach_kind(world, truth, index, kind).await;
        }
    }
    let tells = TELL_TTL.to_duration() + Duration::from_millis(plan.silence);
    TrueClock::sleep(tells + Duration::from_millis(plan.idle_after * 3 + 4_000)).await;
    if ledger.judge().violated() {
        return;
    }
    for env in (0..NODES).filter_map(|index| world.env(index)) {
        if env.switch().meters().counter("archipelago_messages_returned_total") > 0 {
            sometimes!("message returned and resent");
        }
    }
    (0..NODES).for_each(|index| is_quiet(world, ledger, index));
    truth.look_back(plan.calm);
    connections_are_few(plan, world, truth);
    stop_all(world, ledger, NODES).await;
}

/// A fresh ask of node `index` to an actor of `kind` must succeed soon.
async fn reach_kind(world: &World, truth: &Arc<Truth>, index: usize, kind: usize) {
    let to = ActorNumber { kind, key: 0 };
    let until = world.now() + HEAL_LIMIT;
    reach(
        world,
        truth.ledger(),
        (index, to),
        until,
        |node, ticket, options| {
            let call = ask(node, to, Quick { ticket, pad: Vec::new() }, options);
            async move {
                let answer = call.await;
                truth.answered(ticket, &answer);
                answer.err()
            }
        },
        |_| More::default(),
    )
    .await;
}

/// One connection per pair of arbiters, and nothing under way on them but what nodes always tell each other.
fn connections_are_few(plan: &Plan, world: &World, truth: &Truth) {
    let most: usize = (0..NODES)
        .flat_map(|a| (a + 1..NODES).map(move |b| (a, b)))
        .map(|(a, b)| 1 + usize::from(plan.arbiters[a]) * usize::from(plan.arbiters[b]))
        .sum();
    let (connections, bytes) = world.network_load();
    truth.ledger().check(Invariant::NothingOutlivesItsNode, connections <= most, || {
        format!("{connections} connections stand where {most} are of use")
    });
    truth.ledger().check(Invariant::BuffersAreBounded, bytes <= CHATTER, || {
        format!("all is quiet, but {bytes} bytes are under way")
    });
}

/// How long it may take until a node reaches a kind again.
const HEAL_LIMIT: Duration = Duration::from_secs(8);

/// The most bytes about membership that are under way at any moment.
const CHATTER: usize = 8 << 10;
