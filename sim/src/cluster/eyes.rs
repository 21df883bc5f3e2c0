//! What can be seen of a node from outside while it runs: its events, and what must hold at any moment.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use archipelago::{Event, Node, Notice};
use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberEvent;

use super::truth::Truth;
use crate::clock::TrueClock;
use crate::common::{Ground, Home};
use crate::invariants::Invariant;
use crate::sometimes;
use crate::world::World;

/// Makes a new life of a node known, and listens to its events.
pub(crate) fn meet(world: &World, truth: &Arc<Truth>, index: usize, node: &Node) {
    let Some(env) = world.env(index) else { return };
    truth.ledger().life(&Home { index, env }, node.id());
    let (mut events, truth) = (node.events().subscribe(), Arc::clone(truth));
    world.spawn(async move {
        let mut suspected = BTreeSet::new();
        while let Some(notice) = events.next().await {
            match notice {
                Notice::Event(Event::Membership(event)) => note_suspects(&mut suspected, &event),
                Notice::Event(Event::SessionLost { .. }) => truth.check_session(index, false),
                _ => {}
            }
        }
    });
}

fn note_suspects(suspected: &mut BTreeSet<NodeId>, event: &MemberEvent) {
    match event {
        MemberEvent::Unreachable(member) => {
            suspected.insert(member.info.id);
        }
        MemberEvent::ReachableAgain(member) if suspected.remove(&member.info.id) => {
            sometimes!("node suspected and cleared");
        }
        _ => {}
    }
}

/// Looks at what must hold at any moment, every now and then.
pub(crate) async fn watch(nodes: usize, world: World, truth: Arc<Truth>) {
    loop {
        TrueClock::sleep(Duration::from_millis(97)).await;
        let revived = world.beats().revived();
        truth.ledger().check(Invariant::EndedNeverComesBack, revived.is_none(), || {
            format!("the session of {revived:?} was written to after its end")
        });
        if world.beats().revoked() > 0 {
            sometimes!("session revoked");
        }
        if world.beats().ended_by_others() > 0 {
            sometimes!("session ended by a monitor");
        }
        if world.late_writes_applied() > 0 {
            sometimes!("late write applied to a cluster");
        }
        for env in (0..nodes).filter_map(|index| world.env(index)) {
            let meters = env.switch().meters();
            if meters.labelled("archipelago_placements_total", ("decision", "raced")) > 0 {
                sometimes!("race for a shard lost");
            }
            if meters.counter("archipelago_shard_orders_total") > 0 {
                sometimes!("coordinator ordered a move");
            }
            if meters.counter("archipelago_records_given_up_total") > 0 {
                sometimes!("single actor given up");
            }
            let given_up = |why| meters.labelled("archipelago_placement_cache_given_up_total", ("why", why));
            if given_up("full") + given_up("idle") > 0 {
                sometimes!("known place given up");
            }
            if given_up("changed") > 0 {
                sometimes!("known place followed to its change");
            }
            let doubles = meters.counter("archipelago_duplicate_activations_total");
            truth.ledger().check(Invariant::AtMostOneActivation, doubles == 0, || {
                format!("a node has noticed {doubles} activations that must not be")
            });
        }
    }
}
