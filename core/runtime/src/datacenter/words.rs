//! What nodes say to each other about datacenters: service requests over the control lane.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{DataCenterId, Snapshot};
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::message::Codec;
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::controller::{AskMap, Hear, Want};
use super::placing::take_in;
use super::waiting::Wanted;
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::NodeShared;
use crate::remote::{DATACENTERS, Peer, Spawned, Unanswered};

/// Something that one node says to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    /// The leader shows how the datacenters stand.
    Show(Snapshot),
    /// A node that has heard nothing asks.
    Ask,
    /// The datacenter is to be drained.
    Drain,
    /// Another datacenter places an actor here.
    Place {
        kind: String,
        key: String,
        /// Where the asker believes this node to be.
        datacenter: DataCenterId,
        /// Whether the actor is to come to life at once.
        wake: bool,
    },
    /// A node of another datacenter wants a sign of life.
    Greet,
}

/// What is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    Heard,
    Map(Option<Snapshot>),
    /// Whether the datacenter drains now.
    Draining(bool),
    /// The actor has its home here, and lives there if that was asked for.
    Placed(Option<Spawned>),
    /// The actor was placed in another datacenter before.
    Elsewhere(DataCenterId),
    /// The actor was not taken, and nothing was written down: why.
    NotTaken(CallError),
}

/// Says something to the node at `address`, within `limit`. With `to`, only to that node.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(super) async fn say(
    node: &Arc<NodeShared>,
    address: NodeAddress,
    to: Option<NodeId>,
    word: &Word,
    limit: Millis,
) -> Result<Answer, Unanswered> {
    let no_route = |reason: String| Unanswered::NotSent(CallError::NoRoute { reason: reason.into() });
    let payload = encode(word).map_err(Unanswered::NotSent)?;
    let until = node.env().now() + limit;
    let met = within(node.env(), limit, node.remoting().meet(address)).await;
    let peer = met.ok_or(Unanswered::NotSent(CallError::Timeout { started: false }))?.map_err(no_route)?;
    if to.is_some_and(|to| to != peer.id()) {
        return Err(no_route(format!("node {} is there now", peer.id())));
    }
    let left = until.since(node.env().now());
    let answer = node.remoting().request(peer, DATACENTERS, payload, left).await?;
    decode(&answer).map_err(Unanswered::Silent)
}

/// Waits for a sign of life of another node, for `limit` at most.
///
/// # Errors
///
/// There was none.
pub(super) async fn greet(node: &Arc<NodeShared>, peer: Arc<Peer>, limit: Millis) -> Result<(), CallError> {
    let greeting = encode(&Word::Greet)?;
    let asked = node.remoting().ask_service(peer, DATACENTERS, greeting, limit);
    let answer = within(node.env(), limit, asked).await;
    decode::<Answer>(&answer.unwrap_or(Err(CallError::Timeout { started: false }))?).map(drop)
}

/// Answers what another node says.
///
/// # Errors
///
/// It is not understood, is not for it to say, or came to nothing.
pub(crate) async fn answer(node: &Arc<NodeShared>, from: NodeId, request: &[u8]) -> Result<Bytes, CallError> {
    let answer = match decode(request)? {
        Word::Place { kind, key, datacenter, wake } => take_in(node, &kind, &key, &datacenter, wake).await?,
        Word::Greet => Answer::Heard,
        word => of_member(node, from, word).await?,
    };
    encode(&answer)
}

/// What only nodes of the same cluster may say.
async fn of_member(node: &Arc<NodeShared>, from: NodeId, word: Word) -> Result<Answer, CallError> {
    if !node.members().view().members.contains_key(&from) {
        return Err(not_serving("it is no member of this cluster"));
    }
    let controller = node.controller().ok_or_else(|| not_serving("the node has no control plane"))?;
    let stopped = |_| CallError::Stopped;
    match word {
        Word::Show(snapshot) => {
            controller.send(Hear(snapshot)).await.map_err(stopped)?;
            Ok(Answer::Heard)
        }
        Word::Ask => Ok(Answer::Map(controller.send(AskMap).await.map_err(stopped)?)),
        _ => Ok(Answer::Draining(controller.send(Want(Wanted::Draining)).await.map_err(stopped)?)),
    }
}

fn encode(value: &impl Serialize) -> Result<Bytes, CallError> {
    let bytes = Codec::Postcard.encode(value).map(Bytes::from);
    bytes.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CallError> {
    let decoded = Codec::Postcard.decode(bytes);
    decoded.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

/// What of this is read from peers.
#[cfg(feature = "corpus")]
pub(crate) fn readers() -> Vec<crate::corpus::Reader> {
    use crate::corpus::Reader;
    vec![
        Reader::postcard::<Word>("a word about datacenters"),
        Reader::postcard::<Answer>("an answer about datacenters"),
    ]
}
