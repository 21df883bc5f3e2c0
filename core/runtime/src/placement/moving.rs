//! Orders to move shards, given and taken, and what nodes tell each other about a move.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::{HandOffOutcome, HandoffFrame, HostEvent, Part, RefuseReason, ShardName};
use archipelago_protocol::identity::{Generation, Kind, NodeId};
use archipelago_protocol::placement::KindLayout;
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use tokio::sync::oneshot;

use super::hosting::Order;
use super::seek::{address_of, meet, place_here};
use super::writes::session_of;
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::{Node, NodeShared};
use crate::remote::{Peer, Shard, ask_about_move};

impl Node {
    /// Has the owner of shard `number` of `kind` hand it over to node `to`, whichever node this is. The actors of the shard
    /// end with their hooks run and come to life again on the other node with their next message; no message is lost or
    /// overtaken, and callers notice nothing but a pause.
    ///
    /// # Errors
    ///
    /// [`CallError`] if there is no such kind or shard, nobody owns it, or its owner cannot be asked. An owner that was asked
    /// says what became of the order, which may be nothing: [`HandOffOutcome`].
    pub async fn move_shard(&self, kind: &str, number: u32, to: NodeId) -> Result<HandOffOutcome, CallError> {
        let (node, unknown) = (self.shared(), || CallError::UnknownKind { kind: kind.into() });
        let name = ShardName { kind: Kind::new(kind).map_err(|_| unknown())?, number };
        let shard = node.shard_named(&name)?;
        let key = node.shard_key(shard).ok_or_else(unknown)?;
        let found = within(node.env(), node.settings().call_timeout, node.directory().lookup(&key)).await;
        let record = found.and_then(Result::ok).flatten();
        let record = record.ok_or_else(|| not_serving(&format!("nobody is known to own {key}")))?;
        let (owner, generation) = (record.placement.node, record.placement.generation);
        order_move(node, owner, &name, generation, to).await
    }
}

/// Orders the owner of a shard to hand it over, and waits for what becomes of that.
pub(super) async fn order_move(
    node: &Arc<NodeShared>,
    owner: NodeId,
    shard: &ShardName,
    generation: Generation,
    to: NodeId,
) -> Result<HandOffOutcome, CallError> {
    if owner == node.id() {
        return node.hand_off(shard, generation, to).await;
    }
    let order = HandoffFrame::HandOff { shard: shard.clone(), generation, to };
    match tell_about_move(node, owner, &order, ASK_WITHIN).await? {
        Some(HandoffFrame::HandOffDone { outcome, .. }) => Ok(outcome),
        _ => Err(unexpected()),
    }
}

/// Says something about a move to another node; what it answers, if anything.
pub(super) async fn tell_about_move(
    node: &Arc<NodeShared>,
    to: NodeId,
    frame: &HandoffFrame,
    limit: Millis,
) -> Result<Option<HandoffFrame>, CallError> {
    let asked = async {
        let peer = peer_at(node, to).await?;
        tell_peer(node, peer, frame, limit).await
    };
    within(node.env(), limit, asked).await.ok_or(CallError::Timeout { started: true })?
}

/// The way to another node.
pub(super) async fn peer_at(node: &Arc<NodeShared>, to: NodeId) -> Result<Arc<Peer>, CallError> {
    let met = match address_of(node, to).await {
        Some(address) => meet(node, to, address).await,
        None => None,
    };
    met.ok_or_else(|| no_route(format!("node {to} could not be met")))
}

/// Says something about a move to a node that was met; what it answers, if anything.
pub(super) async fn tell_peer(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    frame: &HandoffFrame,
    limit: Millis,
) -> Result<Option<HandoffFrame>, CallError> {
    let payload = frame.encode().map_err(|error| no_route(error.to_string()))?;
    let answer = ask_about_move(node, peer, payload.into(), limit).await?;
    if answer.is_empty() {
        return Ok(None);
    }
    HandoffFrame::decode(&answer).map(Some).map_err(|error| no_route(error.to_string()))
}

fn no_route(reason: String) -> CallError {
    CallError::NoRoute { reason: reason.into() }
}

/// Answers what another node says about a move.
///
/// # Errors
///
/// It is no word that is answered, or concerns nothing that this node has.
pub(crate) async fn answer_handoff(
    node: &Arc<NodeShared>,
    from: NodeId,
    request: &[u8],
) -> Result<Bytes, CallError> {
    let malformed = |why: String| CallError::Codec { reason: why.into(), started: false };
    let frame = HandoffFrame::decode(request).map_err(|error| malformed(error.to_string()))?;
    let answer = match frame {
        HandoffFrame::HandOff { shard, generation, to } => {
            let outcome = node.hand_off(&shard, generation, to).await?;
            Some(HandoffFrame::HandOffDone { shard, generation, outcome })
        }
        HandoffFrame::Offer { shard, move_id, bytes, .. } => {
            Some(node.hear_offer(&shard, (from, move_id, bytes)).await)
        }
        HandoffFrame::Take { shard, generation } => {
            node.look_at_shard(&shard, generation)?;
            None
        }
        HandoffFrame::Parcel { move_id, part: number, of, bytes } => {
            node.take_parcel(from, move_id, Part { number, of, bytes }).await?
        }
        HandoffFrame::Allocate { shard, .. } => {
            let wanted = node.shard_named(&shard)?;
            let key = node.shard_key(wanted).ok_or_else(unexpected)?;
            let placed = place_here(node, wanted, &key).await;
            let owner = placed.map(|hint| (hint.owner, hint.generation));
            Some(HandoffFrame::AllocateDone { shard, owner })
        }
        HandoffFrame::Rebalance { kind } => {
            Some(HandoffFrame::Rebalancing { kinds: node.begin_rebalance(kind).await? })
        }
        _ => return Err(unexpected()),
    };
    let encoded = answer.map(|answer| answer.encode().map_err(|error| malformed(error.to_string())));
    Ok(encoded.transpose()?.unwrap_or_default().into())
}

impl NodeShared {
    /// Hands a shard over that this node serves.
    pub(super) async fn hand_off(
        &self,
        shard: &ShardName,
        generation: Generation,
        to: NodeId,
    ) -> Result<HandOffOutcome, CallError> {
        let shard = self.shard_named(shard)?;
        let (done, outcome) = oneshot::channel();
        let order = Order { to, done };
        // Always through the queue: what a move starts must belong to the arbiter's own tasks.
        self.enter_work(self.arbiter_of_shard(shard.number), move |on| {
            on.order_move(shard, generation, order);
        })?;
        // The arbiter has ended: the shard is not served any more.
        Ok(outcome.await.unwrap_or(HandOffOutcome::Refused(RefuseReason::NotServing)))
    }

    /// Whether a shard that is offered may come.
    async fn hear_offer(&self, shard: &ShardName, offer: (NodeId, u64, u64)) -> HandoffFrame {
        let (_, move_id, _) = offer;
        let hosted =
            |shard: &Shard| self.kinds().get(shard.kind as usize).is_some_and(|kind| kind.is_hosted());
        let wanted = self.shard_named(shard).ok().filter(|shard| hosted(shard) && !self.is_stopping());
        let Some(shard) = wanted else { return HandoffFrame::OfferNo { move_id } };
        let (answer, accepts) = oneshot::channel();
        let asked = self.enter_work(self.arbiter_of_shard(shard.number), move |on| {
            on.hear_offer(shard, offer, answer);
        });
        if asked.is_ok() && accepts.await.unwrap_or(false) {
            HandoffFrame::OfferOk { move_id, ttl: session_of(self).ttl }
        } else {
            HandoffFrame::OfferNo { move_id }
        }
    }

    /// Looks whether a shard is this node's now.
    fn look_at_shard(&self, shard: &ShardName, generation: Generation) -> Result<(), CallError> {
        let shard = self.shard_named(shard)?;
        self.enter_work(self.arbiter_of_shard(shard.number), move |on| {
            on.host(shard, HostEvent::GaveBack { generation, expires: Millis::MAX });
        })
    }

    /// The shard with this name, if it is one of a kind of this node's list.
    pub(super) fn shard_named(&self, ShardName { kind, number }: &ShardName) -> Result<Shard, CallError> {
        let index = self.kind_index(kind);
        let kind = index.ok_or_else(|| CallError::UnknownKind { kind: kind.as_str().into() })?;
        let number = u64::from(*number);
        let has = |layout: KindLayout| layout.shards().is_some() && layout.has(number);
        if !self.kinds().get(kind as usize).is_some_and(|kind| has(kind.layout())) {
            return Err(not_serving(&format!("the kind has no shard {number}")));
        }
        Ok(Shard::home(kind, number))
    }
}

fn unexpected() -> CallError {
    CallError::Codec { reason: "the word about a move has no answer here".into(), started: false }
}

/// How long an order may take: longer than everything that its owner waits for.
const ASK_WITHIN: Millis = Millis(5_000);
