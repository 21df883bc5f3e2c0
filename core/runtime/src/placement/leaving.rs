//! A node that leaves hands its shards over first, so that its actors are elsewhere before it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_protocol::contract::PlacementScope;
use archipelago_protocol::handoff::{
    Allocations, HandOffOutcome, Host, ShardMove, ShardName, StayReason, version_of,
};
use archipelago_protocol::identity::{Generation, Kind, NodeId, OwnedKey};
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use futures_util::stream;

use super::singles::give_everything_up;
use crate::env::within;
use crate::node::NodeShared;
use crate::ranges;

/// Hands over what the node serves, a few shards at a time, as its strategy says, until `until` at most. What stays is
/// finished here and becomes free with the session.
pub(crate) async fn hand_everything_over(node: &Arc<NodeShared>, until: Millis) {
    if node.remoting().transport().is_none() {
        return;
    }
    let left = until.since(node.env().now());
    let all = async {
        hand_shards_over(node).await;
        give_everything_up(node, until).await;
        ranges::leave(node, until).await;
    };
    if within(node.env(), left, all).await.is_none() {
        tracing::info!(node = %node.id(), "not every shard could be handed over in time");
    }
}

/// Hands its shards over. What was meant for a node that took none goes to others, and what came while others were handed
/// over goes as well: there is a new plan until nothing is left, or a plan changed nothing.
async fn hand_shards_over(node: &Arc<NodeShared>) {
    let unwilling = Mutex::new(BTreeSet::new());
    loop {
        let known = lock(&unwilling).clone();
        let mut moves = Vec::new();
        for kind in node.kinds().iter().filter(|kind| kind.is_hosted() && kind.layout().shards().is_some()) {
            moves.extend(planned(node, kind.kind(), &known).await);
        }
        let all = moves.len();
        let moved = stream::iter(moves)
            .map(|planned| hand_one_over(node, planned, &unwilling))
            .buffer_unordered(AT_A_TIME)
            .filter(|moved| std::future::ready(*moved));
        let moved = moved.count().await;
        tracing::info!(node = %node.id(), moved, of = all, "a node that leaves has handed its shards over");
        if all == 0 || (moved == 0 && *lock(&unwilling) == known) {
            return;
        }
    }
}

/// Hands one shard over, unless its target has not taken another.
async fn hand_one_over(
    node: &Arc<NodeShared>,
    (shard, generation, step): (ShardName, Generation, ShardMove),
    unwilling: &Mutex<BTreeSet<NodeId>>,
) -> bool {
    if lock(unwilling).contains(&step.to) {
        return false;
    }
    let outcome = node.hand_off(&shard, generation, step.to).await;
    if let Ok(HandOffOutcome::Stays(StayReason::Declined | StayReason::OfferUnanswered)) = outcome {
        lock(unwilling).insert(step.to);
    }
    matches!(outcome, Ok(HandOffOutcome::Moved(_)))
}

/// Which shards of a kind go where; none if nobody can take them.
async fn planned(
    node: &Arc<NodeShared>,
    kind: &Kind,
    unwilling: &BTreeSet<NodeId>,
) -> Vec<(ShardName, Generation, ShardMove)> {
    let mut hosts = node.shard_hosts(kind);
    let me = Host { status: MemberStatus::Leaving, version: version_of(""), load: 0, measured: 0 };
    hosts.entry(node.id()).or_insert(me).status = MemberStatus::Leaving;
    let mut allocations = Allocations { hosts, ..Allocations::default() };
    if allocations.targets().is_empty() {
        return Vec::new();
    }
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let listing = node.directory().placements(PlacementScope::Kind(kind.clone()));
    let Some(Ok(listing)) = within(node.env(), limit, listing).await else { return Vec::new() };
    let mut generations = BTreeMap::new();
    for record in listing.records {
        if let OwnedKey::Shard { shard, .. } = record.placement.key {
            allocations.owners.insert(shard, record.placement.node);
            generations.insert(shard, record.placement.generation);
        }
    }
    let strategy = node.settings().sharding.strategy_of(kind.as_str());
    let ours = allocations.away_from(node.id(), unwilling, strategy).into_iter();
    let named = |step: ShardMove| {
        let name = ShardName { kind: kind.clone(), number: step.shard };
        Some((name, *generations.get(&step.shard)?, step))
    };
    ours.filter_map(named).collect()
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many shards go at the same time.
const AT_A_TIME: usize = 8;
