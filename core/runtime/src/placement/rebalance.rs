//! A rebalance that somebody demands: the way to the node that looks after shards, and back. What is done about it the
//! [`ShardCoordinator`](super::coordinator::ShardCoordinator) there decides.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::{HandoffFrame, KindBalance};
use archipelago_protocol::identity::{Kind, NodeId};
use archipelago_protocol::time::Millis;
use tokio::sync::oneshot;

use super::coordinator::{Demand, duty};
use super::moving::tell_about_move;
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::{Node, NodeShared};

/// A rebalance that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rebalance {
    /// The node that looks after shards.
    pub coordinator: NodeId,
    /// What there is to do, by kind.
    pub kinds: Vec<KindBalance>,
}

impl Node {
    /// Has the shards of `kind`, or of all kinds, balanced now, also if `sharding.rebalance` says that nobody does it unasked.
    /// The node that looks after shards is asked, whichever it is. It begins at most
    /// [`CoordinatorLimits::per_demand`](archipelago_protocol::handoff::CoordinatorLimits::per_demand) moves of each kind, some of
    /// them when others have ended; the answer says how much there is to do, and to ask again does more of it.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownKind`] if there is no such kind, [`CallError::NotServing`] if nobody looks after shards, or the error of
    /// the way there.
    pub async fn rebalance_shards(&self, kind: Option<&str>) -> Result<Rebalance, CallError> {
        let node = self.shared();
        let unknown = || CallError::UnknownKind { kind: kind.unwrap_or_default().into() };
        let named = kind.map(Kind::new).transpose().map_err(|_| unknown())?;
        let found = within(node.env(), ASK_WITHIN, node.directory().lookup(&duty())).await;
        let found = found.ok_or(CallError::Timeout { started: false })?;
        let record = found.map_err(|error| not_serving(&error.to_string()))?;
        let nobody = || not_serving("nobody looks after shards now");
        let coordinator = record.ok_or_else(nobody)?.placement.node;
        let kinds = balances(node, coordinator, named.clone()).await?;
        let known = named.is_none_or(|kind| node.kind_index(&kind).is_some());
        if kinds.is_empty() && !known { Err(unknown()) } else { Ok(Rebalance { coordinator, kinds }) }
    }
}

async fn balances(
    node: &Arc<NodeShared>,
    coordinator: NodeId,
    kind: Option<Kind>,
) -> Result<Vec<KindBalance>, CallError> {
    if coordinator == node.id() {
        return node.begin_rebalance(kind).await;
    }
    match tell_about_move(node, coordinator, &HandoffFrame::Rebalance { kind }, ASK_WITHIN).await? {
        Some(HandoffFrame::Rebalancing { kinds }) => Ok(kinds),
        _ => Err(not_serving("whoever looks after shards does not understand")),
    }
}

impl NodeShared {
    /// Begins a rebalance, if this node looks after shards.
    pub(super) async fn begin_rebalance(&self, kind: Option<Kind>) -> Result<Vec<KindBalance>, CallError> {
        let does_not = || not_serving("this node does not look after shards");
        let (answer, answered) = oneshot::channel();
        let demand = Demand { kind, answer };
        let coordinator = self.coordinator().ok_or_else(does_not)?;
        coordinator.try_send(demand).map_err(|_| not_serving("too much is asked"))?;
        answered.await.map_err(|_| does_not())
    }
}

/// How long finding the node and asking it may take, each.
const ASK_WITHIN: Millis = Millis(2_000);
