//! What a client asks its contacts, and what they answer.
//!
//! The words are JSON: a client and its contact may be of different versions for longer than the nodes of a cluster.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{Generation, NodeAddress, NodeId, OwnedKey};
use archipelago_protocol::link::Hint;
use archipelago_protocol::message::Codec;
use archipelago_protocol::placement::KindLayout;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::arbiter::not_serving;
use crate::node::NodeShared;
use crate::placement::{Found, seek};
use crate::remote::Shard;

/// A question of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Question {
    /// How are these kinds divided? Answered by a list of [`KindLayout`], none for a kind that is not known.
    Layouts(Vec<String>),
    /// Who serves this, of a kind that the client believes to be divided so? Answered by an optional [`Whereabouts`]. What
    /// nobody serves is given an owner.
    Where(OwnedKey, KindLayout),
}

/// Where something is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Whereabouts {
    pub(super) owner: NodeId,
    pub(super) generation: Generation,
    pub(super) address: NodeAddress,
}

/// Answers a client.
///
/// # Errors
///
/// The question makes no sense to this node; another contact may know better.
pub(crate) async fn answer(node: &Arc<NodeShared>, question: &[u8]) -> Result<Bytes, CallError> {
    if node.is_stopping() || node.is_client() {
        return Err(not_serving("it answers no clients"));
    }
    match decode(question)? {
        Question::Layouts(kinds) => encode(&layouts(node, &kinds)),
        Question::Where(key, layout) => encode(&whereabouts(node, &key, layout).await?),
    }
}

fn layouts(node: &NodeShared, kinds: &[String]) -> Vec<Option<KindLayout>> {
    let layout = |name: &String| {
        let known = node.kinds().iter().find(|kind| kind.name() == name);
        known.map(|kind| kind.layout())
    };
    kinds.iter().map(layout).collect()
}

async fn whereabouts(
    node: &Arc<NodeShared>,
    key: &OwnedKey,
    layout: KindLayout,
) -> Result<Option<Whereabouts>, CallError> {
    let shard = shard_of(node, key, layout)?;
    let Found::At(Hint { owner, generation }) = seek(node, shard, key).await else { return Ok(None) };
    let address = if owner == node.id() {
        Some(node.address())
    } else {
        node.remoting().book().get(owner).map(|peer| peer.address().clone())
    };
    Ok(address.map(|address| Whereabouts { owner, generation, address }))
}

/// The shard that a client means. Two that divide a kind differently mean different shards by the same number.
fn shard_of(node: &NodeShared, key: &OwnedKey, layout: KindLayout) -> Result<Shard, CallError> {
    let kind = key.kind().ok_or_else(|| not_serving(&format!("{key} belongs to no kind")))?;
    let unknown = || CallError::UnknownKind { kind: kind.as_str().into() };
    let index = node.kind_index(kind).ok_or_else(unknown)?;
    let known = node.kinds().get(index as usize).ok_or_else(unknown)?;
    if known.layout() != layout {
        let ours = known.layout();
        return Err(not_serving(&format!("kind {kind} has {ours}, and {layout} as the client sees it")));
    }
    match key {
        OwnedKey::Shard { shard, .. } if layout.shards().is_some() && layout.has(u64::from(*shard)) => {
            Ok(Shard::home(index, u64::from(*shard)))
        }
        OwnedKey::Actor(actor) if layout.shards().is_none() => Ok(node.shard(index, actor.stable_hash())),
        _ => Err(not_serving(&format!("kind {kind} has no {key}"))),
    }
}

pub(super) fn encode(value: &impl Serialize) -> Result<Bytes, CallError> {
    let bytes = Codec::Json.encode(value).map(Bytes::from);
    bytes.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CallError> {
    let decoded = Codec::Json.decode(bytes);
    decoded.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

/// What of this is read from peers.
#[cfg(feature = "corpus")]
pub(crate) fn readers() -> Vec<crate::corpus::Reader> {
    use crate::corpus::Reader;
    vec![
        Reader::json::<Question>("a question of a client"),
        Reader::json::<Vec<Option<KindLayout>>>("how kinds are divided"),
        Reader::json::<Option<Whereabouts>>("whereabouts for a client"),
    ]
}
