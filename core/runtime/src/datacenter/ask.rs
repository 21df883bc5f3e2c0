//! Asking nodes of other datacenters, and finding the owner of a shard there.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{DataCenterId, DataCenterState, MapEntry};
use archipelago_protocol::identity::NodeAddress;
use archipelago_protocol::link::Hint;
use archipelago_protocol::time::Millis;

use crate::env::within;
use crate::node::NodeShared;
use crate::placement::{Found, meet};
use crate::remote::{Owner, Shard, Subject, Unanswered, WhereIs, Whereabouts, ask_where};

/// Asks one endpoint of another datacenter. Dropping the future cancels the question on the wire.
///
/// # Errors
///
/// What it answers, or why it could not be asked within `limit`.
pub(super) async fn ask_endpoint(
    node: &Arc<NodeShared>,
    datacenter: &DataCenterId,
    endpoint: &NodeAddress,
    question: &WhereIs,
    limit: Millis,
) -> Result<Whereabouts, Unanswered> {
    let until = node.env().now() + limit;
    let no_route = |reason: String| Unanswered::NotSent(CallError::NoRoute { reason: reason.into() });
    let met = within(node.env(), limit, node.remoting().meet(endpoint.clone())).await;
    let peer = met.ok_or(Unanswered::NotSent(CallError::Timeout { started: false }))?.map_err(no_route)?;
    if peer.datacenter() != datacenter.as_str() {
        return Err(no_route(format!("{endpoint} belongs to {:?} now", peer.datacenter())));
    }
    let left = until.since(node.env().now());
    let answer = within(node.env(), left, ask_where(node, peer, question, left)).await;
    answer.unwrap_or(Err(Unanswered::Silent(CallError::Timeout { started: false })))
}

/// Asks the endpoints of a datacenter, one after the other, until one answers.
///
/// # Errors
///
/// What the last one answered, or why it could not be asked by `until`.
pub(super) async fn ask_any(
    node: &Arc<NodeShared>,
    entry: &MapEntry,
    question: &WhereIs,
    until: Millis,
) -> Result<Whereabouts, CallError> {
    let endpoints = entry.info.endpoints();
    let first = usize::try_from(node.env().random() % endpoints.len().max(1) as u64).unwrap_or(0);
    let mut last = unreachable(entry.id().as_str());
    for endpoint in endpoints.iter().cycle().skip(first).take(endpoints.len().min(ASKED)) {
        let limit = until.since(node.env().now()).min(ASK_WITHIN);
        if limit == Millis::ZERO {
            break;
        }
        match ask_endpoint(node, entry.id(), endpoint, question, limit).await {
            Ok(answer) => return Ok(answer),
            Err(error) => {
                tracing::debug!(datacenter = %entry.id(), %endpoint, %error, "an endpoint did not answer");
                last = error.into();
            }
        }
    }
    Err(last)
}

/// Whether something may be placed in a datacenter, which one that shuts down does not want.
pub(super) fn may_place(entry: &MapEntry) -> bool {
    entry.standing == DataCenterState::Active
}

/// Finds out who serves a shard of another datacenter, and makes sure that we know the node and its arbiters.
pub(crate) async fn seek_abroad(node: &Arc<NodeShared>, shard: Shard) -> Found {
    let Some(datacenter) = node.datacenters().datacenter(shard.island) else { return Found::NotYet };
    let map = node.datacenters().newest();
    let Some(entry) = map.get(&datacenter).filter(|entry| entry.may_be_asked()) else {
        return Found::Gone(unreachable(datacenter.as_str()));
    };
    let Some(kind) = node.kinds().get(shard.kind as usize) else { return Found::NotYet };
    let subject = Subject::Shard { kind: kind.name().to_owned(), number: shard.number };
    let question = WhereIs { subject, place: may_place(entry), live: false, relayed: false };
    let until = node.env().now() + node.settings().discovery.timeout;
    match ask_any(node, entry, &question, until).await {
        Ok(Whereabouts::Shard(place)) => match place.owner {
            Some(owner) => reached(node, &owner).await.map_or(Found::NotYet, Found::At),
            None => Found::Gone(unreachable(datacenter.as_str())),
        },
        Ok(_) => Found::Gone(CallError::NoRoute {
            reason: format!("datacenter {datacenter} does not know the kind, or has divided it anew").into(),
        }),
        Err(error) => {
            tracing::debug!(%datacenter, %error, "a shard of another datacenter was not found yet");
            Found::NotYet
        }
    }
}

/// Gets to know the owner of a shard in another datacenter.
pub(super) async fn reached(node: &Arc<NodeShared>, owner: &Owner) -> Option<Hint> {
    if node.remoting().book().get(owner.node).is_some_and(|peer| peer.serves()) {
        return Some(owner.hint());
    }
    meet(node, owner.node, owner.address.clone()).await.map(|_| owner.hint())
}

/// The error of something in a datacenter that cannot be asked.
pub(super) fn unreachable(silent: &str) -> CallError {
    CallError::Unreachable { silent: silent.into() }
}

/// The datacenters, for people.
pub(super) fn names_of<'a>(datacenters: impl IntoIterator<Item = &'a DataCenterId>) -> String {
    let names: Vec<&str> = datacenters.into_iter().map(DataCenterId::as_str).collect();
    names.join(", ")
}

/// How many endpoints are asked one after the other.
const ASKED: usize = 3;

/// How long one of them may take.
const ASK_WITHIN: Millis = Millis(2_000);
