//! The guard of a life: looks from outside of every arbiter whether anything runs past the fence. Every decision is
//! [`FenceWatch`]'s.
//!
//! A guard is needed for each part that could fail: data arbiters watch the clock themselves, but cannot while a handler
//! blocks them; the control arbiter beats and notices a loss, but may be blocked, too. The guard runs no code of users.

use std::sync::{Arc, Weak};

use archipelago_protocol::session::{FenceAction, FenceSight, FenceWatch};
use archipelago_protocol::time::Millis;
use metrics::counter;

use super::{NodeShared, StartError};
use crate::events::Event;

/// Watches the fence of `node` until nothing runs on its data arbiters.
pub(super) fn stand_guard(node: &Arc<NodeShared>) -> Result<(), StartError> {
    register_meters();
    let (mut watch, node_of) = (FenceWatch::new(node.settings().fence_on_stuck), Arc::downgrade(node));
    let guard = node.env().stand_guard(Box::new(move || look(&mut watch, &node_of)))?;
    node.gate().guarded_by(guard);
    Ok(())
}

fn look(watch: &mut FenceWatch, node: &Weak<NodeShared>) -> Option<Millis> {
    let node = node.upgrade()?;
    node.measure_session();
    let sight = FenceSight { fence_at: node.gate().over_by(), running: node.running_arbiters() };
    let mut next = None;
    for action in watch.look(node.env().now(), sight) {
        match action {
            FenceAction::AskToEnd => node.wake_arbiters(),
            FenceAction::Abort(arbiters) => {
                count_stuck(arbiters);
                node.env().abort(&format!(
                    "{arbiters} arbiters of node {} do not end after its session: a handler blocks its thread",
                    node.id()
                ));
            }
            FenceAction::Report(arbiters) => report(&node, arbiters),
            FenceAction::Freed => tracing::info!(node = %node.id(), "no arbiter is stuck any more"),
            FenceAction::LookAt(at) => next = Some(at),
        }
    }
    next
}

fn report(node: &NodeShared, arbiters: usize) {
    count_stuck(arbiters);
    tracing::error!(
        node = %node.id(),
        arbiters,
        "handlers block their threads past the end of the session: the node stays down until they return"
    );
    node.events().publish(Event::ArbitersStuck { node: node.id(), arbiters });
}

fn count_stuck(arbiters: usize) {
    counter!("archipelago_stuck_arbiters_total").increment(u64::try_from(arbiters).unwrap_or(u64::MAX));
}

/// What should never be counted is shown as zero from the start, so that it can be watched.
fn register_meters() {
    counter!("archipelago_stuck_arbiters_total").increment(0);
    counter!("archipelago_duplicate_activations_total").increment(0);
}
