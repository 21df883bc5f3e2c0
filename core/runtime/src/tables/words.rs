//! What is asked about tables, and what the leader answers.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::TableVersion;
use archipelago_protocol::identity::{Kind, NodeAddress};
use archipelago_protocol::message::Codec;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::node::NodeShared;

/// Asks for a table that is newer than the one the asker has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Newer {
    pub(super) kind: Kind,
    /// Zero if it has none.
    pub(super) than: u64,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum News {
    /// A newer one, as bytes of a [`KnownTable`](archipelago_protocol::ranges::KnownTable).
    Table(Vec<u8>),
    /// There is none yet. Ask again.
    NoneYet,
    /// The leader is another node, at this address if that is known. Ask there.
    Elsewhere(Option<NodeAddress>),
}

/// Answers a question on this node: at once, or when there is something to tell.
///
/// # Errors
///
/// It makes no sense, or too many listen already.
pub(crate) async fn answer(node: &Arc<NodeShared>, question: &[u8]) -> Result<Bytes, CallError> {
    let newer: Newer = Codec::Postcard.decode(question).map_err(codec)?;
    encode(&news(node, &newer).await?)
}

pub(super) async fn news(node: &Arc<NodeShared>, newer: &Newer) -> Result<News, CallError> {
    let leader = node.members().view().leader;
    if leader != Some(node.id()) {
        let view = node.members().view();
        let address = leader.and_then(|leader| view.members.get(&leader));
        return Ok(News::Elsewhere(address.map(|member| member.info.address.clone())));
    }
    node.tables().newer(node, &newer.kind, TableVersion(newer.than)).await
}

pub(super) fn encode(value: &impl Serialize) -> Result<Bytes, CallError> {
    Codec::Postcard.encode(value).map(Bytes::from).map_err(codec)
}

pub(super) fn codec(error: impl ToString) -> CallError {
    CallError::Codec { reason: error.to_string().into(), started: false }
}

/// What of this is read from peers.
#[cfg(feature = "corpus")]
pub(crate) fn readers() -> Vec<crate::corpus::Reader> {
    use crate::corpus::Reader;
    vec![
        Reader::postcard::<Newer>("a question for a table"),
        Reader::postcard::<News>("an answer about a table"),
    ]
}
