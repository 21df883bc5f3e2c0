//! Stopping a node: finish the work, let the actors go, give back what it owned.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use archipelago_protocol::identity::{OwnedKey, Placement};
use archipelago_protocol::time::Millis;
use futures_util::future::{Either, join_all, select};
use tokio::sync::oneshot;

use super::{Node, NodeShared, StopError};
use crate::arbiter::{Drained, Entry};
use crate::events::Event;
use crate::session;

impl Node {
    /// Takes no new work, finishes what is under way within the budget, deactivates every actor with its hook
    /// run, and gives the node's session back.
    ///
    /// # Errors
    ///
    /// [`StopError::Unfinished`] counts what the budget was too short for; the node has stopped all the same.
    pub async fn stop(&self) -> Result<(), StopError> {
        let node = &self.shared;
        if node.stopping.swap(true, Ordering::AcqRel) {
            return Err(StopError::Twice);
        }
        node.events().publish(Event::NodeStopping { node: node.id() });
        let until = node.env().now() + node.settings().stop_budget;
        let drained = join_all((0..node.arbiters.len()).map(|index| drain(node, index, until))).await;
        let rest = drained.into_iter().fold(Drained::default(), |sum, one| Drained {
            jobs: sum.jobs + one.jobs,
            actors: sum.actors + one.actors,
        });
        release_kinds(node).await;
        session::close(node).await;
        tracing::info!(node = %node.id(), jobs = rest.jobs, actors = rest.actors, "node stopped");
        if rest == Drained::default() {
            return Ok(());
        }
        Err(StopError::Unfinished { jobs: rest.jobs, actors: rest.actors })
    }
}

/// Drains one arbiter. One that does not even answer, because a handler blocks it, counts as unfinished.
async fn drain(node: &Arc<NodeShared>, index: usize, until: Millis) -> Drained {
    let index = u16::try_from(index).unwrap_or(u16::MAX);
    let (done, report) = oneshot::channel();
    let entry = Entry::Drain { until, done };
    let stuck = Drained { jobs: 1, actors: 1 };
    let patience = node.env().sleep(until.since(node.env().now()) + STUCK_AFTER);
    let asked = async {
        // Waits for room: a full way in is no reason not to stop.
        node.arbiter(index).ingress().send(entry).await.ok()?;
        report.await.ok()
    };
    match select(std::pin::pin!(asked), patience).await {
        // An arbiter that is gone has nothing left.
        Either::Left((report, _)) => report.unwrap_or_default(),
        Either::Right(_) => stuck,
    }
}

/// Gives the kinds back, so that others need not wait for the session to end. Closing the session does it too.
async fn release_kinds(node: &Arc<NodeShared>) {
    for kind in node.kinds().iter().filter(|kind| kind.elsewhere().is_none()) {
        let key = OwnedKey::shard(kind.kind().clone(), 0);
        let placement = Placement { key, node: node.id(), generation: kind.generation() };
        if let Err(error) = node.directory().release(&placement).await {
            tracing::debug!(kind = kind.name(), %error, "release unanswered");
        }
    }
}

/// How long after its deadline an arbiter may still report.
const STUCK_AFTER: Millis = Millis(1_000);
