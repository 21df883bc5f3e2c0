//! Draining a datacenter, and what its last node does when it stops.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::time::Millis;

use super::controller::{Want, duty};
use super::waiting::Wanted;
use super::words::{Answer, Word, say};
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::{Node, NodeShared};
use crate::placement::address_of;

impl Node {
    /// Drains this node's datacenter: from now on nothing is placed in it from outside; what lives there goes on. Stopping
    /// its nodes then ends it. There is no way back but to stop and start anew.
    ///
    /// # Errors
    ///
    /// [`CallError::NotServing`] if nobody speaks for the datacenter now, or why that node could not be asked.
    pub async fn drain_datacenter(&self) -> Result<(), CallError> {
        let node = self.shared();
        let limit = limit(node);
        let found = within(node.env(), limit, node.directory().lookup(&duty())).await;
        let found = found.ok_or_else(|| not_serving("the directory does not answer"))?;
        let record = found.map_err(|error| not_serving(&error.to_string()))?;
        let owner = record.ok_or_else(|| not_serving("nobody speaks for the datacenter"))?.placement.node;
        let drained = if owner == node.id() {
            ask_own(node, Wanted::Draining).await
        } else {
            let nowhere = || not_serving(&format!("nobody says where node {owner} is"));
            let address = address_of(node, owner).await.ok_or_else(nowhere)?;
            say(node, address, Some(owner), &Word::Drain, limit).await? == Answer::Draining(true)
        };
        if drained { Ok(()) } else { Err(not_serving("the datacenter could not be drained")) }
    }
}

/// A node begins to stop. The last one drains the datacenter; any other leaves it as it is.
pub(crate) async fn leaving(node: &Arc<NodeShared>) {
    if is_last(node) {
        ask_own(node, Wanted::Draining).await;
    }
}

/// A node has finished its work. The last one disables the datacenter.
pub(crate) async fn left(node: &Arc<NodeShared>) {
    if is_last(node) && !ask_own(node, Wanted::Inactive).await {
        tracing::info!(node = %node.id(), "the record of the datacenter is left to its lease");
    }
}

async fn ask_own(node: &Arc<NodeShared>, wanted: Wanted) -> bool {
    let Some(controller) = node.controller() else { return false };
    let asked = within(node.env(), limit(node), controller.send(Want(wanted))).await;
    matches!(asked, Some(Ok(true)))
}

/// Whether nobody stays when this node has gone.
fn is_last(node: &NodeShared) -> bool {
    let view = node.members().view();
    let mut others = view.members.values().filter(|member| member.info.id != node.id());
    node.controller().is_some() && others.all(|member| member.status >= MemberStatus::Leaving)
}

/// A claim, a registration and a change of state.
pub(super) fn limit(node: &NodeShared) -> Millis {
    Millis(node.settings().datacenter.controller.request_timeout.0.saturating_mul(2))
}
