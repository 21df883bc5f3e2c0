//! Changes of ranges that somebody asks for: the way to the node that decides, and back.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::contract::TableVersion;
use archipelago_protocol::identity::{ActorIdError, ActorKey, Kind, NodeId};
use archipelago_protocol::message::Codec;
use archipelago_protocol::ranges::{ChangeOutcome, ChangeRefusal, KnownTable, RangeChange, RangeTable};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::manager::{Ask, duty};
use crate::arbiter::not_serving;
use crate::env::within;
use crate::node::{Node, NodeShared};
use crate::placement::{address_of, meet};
use crate::remote::ask_about_ranges;

/// Why ranges were not changed, or may not have been.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// The node has no such kind, or it is not divided by ranges of keys.
    #[error("kind {kind} is not divided by ranges of keys")]
    NotDivided {
        /// The kind.
        kind: String,
    },
    /// No actor can have this key.
    #[error(transparent)]
    InvalidKey(#[from] ActorIdError),
    /// The change makes no sense; nothing was changed.
    #[error("the ranges cannot be changed so: {0}")]
    Refused(ChangeRefusal),
    /// The kind has no table yet, or an earlier change of the same ranges was not over in time; nothing was changed. Ask again.
    #[error("the ranges could not be changed yet")]
    NotYet,
    /// The change may come into force. Look at [`Node::ranges`] before you ask again.
    #[error("whether the ranges were changed is not known")]
    Unknown,
    /// Nobody who could decide was reached; nothing was changed. Ask again.
    #[error("nobody decides about ranges now: {reason}")]
    NobodyDecides {
        /// Why, in words.
        reason: String,
    },
}

impl Node {
    /// How the keys of a kind are divided, as far as this node knows, and who should own what; none as long as nobody has
    /// said so.
    pub fn ranges(&self, kind: &str) -> Option<Arc<KnownTable>> {
        let node = self.shared();
        let kind = node.kinds().iter().find(|known| known.name() == kind)?;
        node.ranges().table(kind.index())
    }

    /// Divides the range that holds `at` into the keys before it and those from it on. Both stay on their node for now. The actors
    /// of the range end with their hooks run and come to life again with their next message; no message is lost or overtaken,
    /// and callers notice nothing but a pause.
    ///
    /// The answer is the version of the table that has the two ranges; they are served as soon as the one that they were is
    /// given up.
    ///
    /// # Errors
    ///
    /// [`RangeError`], which says whether anything was changed.
    pub async fn split_range(&self, kind: &str, at: &str) -> Result<TableVersion, RangeError> {
        self.change_ranges(kind, Wish::Split { at: ActorKey::new(at)? }).await
    }

    /// Makes the range that holds `key` and the one after it one, on the node of the first. What is said of actors and messages
    /// in [`split_range`](Self::split_range) holds here, too.
    ///
    /// # Errors
    ///
    /// [`RangeError`], which says whether anything was changed.
    pub async fn merge_range(&self, kind: &str, key: &str) -> Result<TableVersion, RangeError> {
        self.change_ranges(kind, Wish::Merge { key: ActorKey::new(key)? }).await
    }

    /// Gives the range that holds `key` to node `to`. What is said of actors and messages in
    /// [`split_range`](Self::split_range) holds here, too. Ranges are kept spread evenly:
    /// a move that leaves a node with two more than another has one of them moved back.
    ///
    /// # Errors
    ///
    /// [`RangeError`], which says whether anything was changed.
    pub async fn move_range(&self, kind: &str, key: &str, to: NodeId) -> Result<TableVersion, RangeError> {
        self.change_ranges(kind, Wish::Move { key: ActorKey::new(key)?, to }).await
    }

    async fn change_ranges(&self, kind: &str, wish: Wish) -> Result<TableVersion, RangeError> {
        let node = self.shared();
        let not_divided = || RangeError::NotDivided { kind: kind.to_owned() };
        let found = node.kinds().iter().find(|known| known.name() == kind && known.layout().is_by_range());
        let kind = found.ok_or_else(not_divided)?.kind().clone();
        let limit = node.settings().call_timeout;
        let until = node.env().now() + limit;
        match within(node.env(), limit + GRACE, asked(node, Wanted { kind, wish }, until)).await {
            Some(answered) => answered?.result(),
            None => Err(RangeError::Unknown),
        }
    }
}

/// A change that somebody wants, in the words of keys: who asks may know an older table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Wish {
    Split { at: ActorKey },
    Merge { key: ActorKey },
    Move { key: ActorKey, to: NodeId },
}

impl Wish {
    /// What it means in a table.
    pub(super) fn of(self, table: &RangeTable) -> RangeChange {
        let partition = |key: &ActorKey| table.find(key.as_str()).partition.clone();
        match self {
            Self::Split { at } => RangeChange::Split { partition: partition(&at), at },
            Self::Merge { key } => RangeChange::Merge { partition: partition(&key) },
            Self::Move { key, to } => RangeChange::Assign { partition: partition(&key), to },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Wanted {
    kind: Kind,
    wish: Wish,
}

/// What the node that decides answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answered {
    Done(u64),
    Refused(ChangeRefusal),
    NotYet,
    Unknown,
}

impl Answered {
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Done(_) => "done",
            Self::Refused(_) => "refused",
            Self::NotYet => "not_yet",
            Self::Unknown => "unknown",
        }
    }

    fn result(self) -> Result<TableVersion, RangeError> {
        match self {
            Self::Done(version) => Ok(TableVersion(version)),
            Self::Refused(why) => Err(RangeError::Refused(why)),
            Self::NotYet => Err(RangeError::NotYet),
            Self::Unknown => Err(RangeError::Unknown),
        }
    }
}

impl From<&ChangeOutcome> for Answered {
    fn from(outcome: &ChangeOutcome) -> Self {
        match outcome {
            ChangeOutcome::Done(version) => Self::Done(version.0),
            ChangeOutcome::Refused(why) => Self::Refused(*why),
            ChangeOutcome::NotYet => Self::NotYet,
            ChangeOutcome::Unknown | ChangeOutcome::SteppedDown { .. } => Self::Unknown,
        }
    }
}

/// Asks whoever has the duty.
async fn asked(node: &Arc<NodeShared>, wanted: Wanted, until: Millis) -> Result<Answered, RangeError> {
    let nobody = |reason: &str| RangeError::NobodyDecides { reason: reason.to_owned() };
    let found = node.directory().lookup(&duty()).await.map_err(|error| nobody(&error.to_string()))?;
    let decides = found.ok_or_else(|| nobody("nobody has the duty yet"))?.placement.node;
    if decides == node.id() {
        return decide(node, wanted, until).await.map_err(|error| nobody(&error.to_string()));
    }
    let address = address_of(node, decides).await.ok_or_else(|| nobody("nobody says where it is"))?;
    let peer = meet(node, decides, address).await.ok_or_else(|| nobody("it does not answer"))?;
    let payload = Codec::Postcard.encode(&wanted).map_err(|error| nobody(&error.to_string()))?;
    let left = until.since(node.env().now());
    match ask_about_ranges(node, peer, payload.into(), left).await {
        Ok(answer) => Codec::Postcard.decode(&answer).map_err(|_| RangeError::Unknown),
        Err(error @ CallError::NotServing { .. }) => Err(nobody(&error.to_string())),
        Err(error) => {
            tracing::debug!(%decides, %error, "whoever decides about ranges did not answer");
            Err(RangeError::Unknown)
        }
    }
}

/// Answers what another node wants.
///
/// # Errors
///
/// It makes no sense, or this node does not decide.
pub(crate) async fn answer(node: &Arc<NodeShared>, request: &[u8]) -> Result<Bytes, CallError> {
    let codec = |reason: String| CallError::Codec { reason: reason.into(), started: false };
    let wanted: Wanted = Codec::Postcard.decode(request).map_err(|error| codec(error.to_string()))?;
    let until = node.env().now() + node.settings().call_timeout;
    let answered = decide(node, wanted, until).await?;
    Codec::Postcard.encode(&answered).map(Bytes::from).map_err(|error| codec(error.to_string()))
}

async fn decide(node: &Arc<NodeShared>, wanted: Wanted, until: Millis) -> Result<Answered, CallError> {
    let does_not = || not_serving("this node does not decide about ranges");
    let managers = node.ranges().managers().ok_or_else(does_not)?;
    let (answer, answered) = oneshot::channel();
    let Wanted { kind, wish } = wanted;
    managers.try_send(Ask { kind, wish, until, answer }).map_err(|_| not_serving("too much is asked"))?;
    // Whoever steps down answers nobody.
    answered.await.map_err(|_| does_not())
}

/// How much longer than an answer may take somebody waits for it.
const GRACE: Millis = Millis(500);

/// What of this is read from peers.
#[cfg(feature = "corpus")]
pub(crate) fn readers() -> Vec<crate::corpus::Reader> {
    use crate::corpus::Reader;
    vec![
        Reader::postcard::<Wanted>("a wish for other ranges"),
        Reader::postcard::<Answered>("what became of a wish"),
    ]
}
