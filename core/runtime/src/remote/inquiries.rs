//! Questions to another node itself: is somebody registered at a path, let an actor come to life, tell me when one ends.
//!
//! All are service requests over the control lane, with numbers that no other service has.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{ActorId, ActorPath, Generation, NodeAddress, NodeId};
use archipelago_protocol::link::Hint;
use archipelago_protocol::membership::MembershipFrame;
use archipelago_protocol::message::{Codec, MessageFlags};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::routes::Shard;
use super::whereabouts::where_is;
use crate::arbiter::not_serving;
use crate::call::answer_channel;
use crate::catalog::{AnyKind, JobHead, Target};
use crate::client;
use crate::datacenter;
use crate::env::within;
use crate::node::{Node, NodeShared};
use crate::placement::{answer_handoff, place_here};
use crate::ranges;
use crate::tables;
use crate::watch::{Begun, WatchWord, hear};

/// Asks whether an actor is registered at a path of the node asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RemoteLookup {
    path: ActorPath,
}

/// Asks the node to activate a virtual actor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RemoteSpawn {
    kind: String,
    key: String,
}

/// Asks the node to serve a shard, if nobody does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PlaceShard {
    kind: String,
    number: u64,
    /// The key of the actor, if actors of the kind have records of their own.
    key: Option<String>,
}

/// A virtual actor that was brought to life, or was alive already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spawned {
    /// The actor.
    pub actor: ActorId,
    /// Where it lives.
    pub node: NodeId,
    /// The generation under which its node owns it.
    pub generation: Generation,
}

impl Node {
    /// Asks the node of `path` whether an actor is registered there, and if so for its address. A path without a node is
    /// looked up on this one.
    ///
    /// # Errors
    ///
    /// [`CallError`] if nobody could be asked within `calls.timeout`; `Ok(None)` is an answer.
    pub async fn lookup_named(&self, path: &ActorPath) -> Result<Option<ActorPath>, CallError> {
        let node = self.shared();
        let request = RemoteLookup { path: path.clone() };
        match path.address().filter(|address| !node.is_own_address(address)) {
            Some(address) => inquire(node, address.clone(), LOOKUP, &request).await,
            None => Ok(node.look_up_here(path)),
        }
    }

    /// Brings the virtual actor of a kind with a key to life on the node at `address`, without a message.
    ///
    /// # Errors
    ///
    /// [`CallError::UnknownKind`] and [`CallError::InvalidId`] as that node sees it, [`CallError::NotServing`] if it does not
    /// own the kind, [`CallError::ActivationFailed`], or why it could not be asked within `calls.timeout`.
    pub async fn spawn_at(&self, address: &NodeAddress, kind: &str, key: &str) -> Result<Spawned, CallError> {
        let node = self.shared();
        let request = RemoteSpawn { kind: kind.to_owned(), key: key.to_owned() };
        if node.is_own_address(address) {
            return node.bring_to_life(kind, key).await;
        }
        inquire(node, address.clone(), SPAWN, &request).await
    }
}

/// Asks another node a question, within the usual time.
async fn inquire<A: DeserializeOwned>(
    node: &Arc<NodeShared>,
    address: NodeAddress,
    service: u16,
    request: &impl Serialize,
) -> Result<A, CallError> {
    let payload = encode(request)?;
    let limit = node.settings().call_timeout;
    let until = node.env().now() + limit;
    let met = within(node.env(), limit, node.remoting().meet(address)).await;
    let peer = met.ok_or(CallError::Timeout { started: false })?;
    let peer = peer.map_err(|reason| CallError::NoRoute { reason: reason.into() })?;
    let left = until.since(node.env().now());
    decode(&node.remoting().ask_service(peer, service, payload, left).await?)
}

/// Asks another node to serve a shard, if nobody does; who serves it then.
///
/// # Errors
///
/// It could not be asked.
pub(crate) async fn ask_to_place(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    kind: &str,
    (number, actor): (u64, Option<&ActorId>),
) -> Result<Option<Hint>, CallError> {
    let key = actor.map(|actor| actor.key().as_str().to_owned());
    let payload = encode(&PlaceShard { kind: kind.to_owned(), number, key })?;
    let answer = node.remoting().ask_service(peer, PLACE, payload, PLACE_WITHIN).await?;
    let placed: Option<(NodeId, Generation)> = decode(&answer)?;
    Ok(placed.map(|(owner, generation)| Hint { owner, generation }))
}

/// Says something about a move to another node.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(crate) async fn ask_about_move(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    payload: Bytes,
    limit: Millis,
) -> Result<Bytes, CallError> {
    node.remoting().ask_service(peer, MOVES, payload, limit).await
}

/// Says something about watches to another node.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(crate) async fn ask_about_watch(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    word: &WatchWord,
    limit: Millis,
) -> Result<Begun, CallError> {
    decode(&node.remoting().ask_service(peer, WATCHES, encode(word)?, limit).await?)
}

/// Asks another node for a table.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(crate) async fn ask_for_tables(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    payload: Bytes,
    limit: Millis,
) -> Result<Bytes, CallError> {
    node.remoting().ask_service(peer, TABLES, payload, limit).await
}

/// Asks whoever decides about ranges for a change.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(crate) async fn ask_about_ranges(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    payload: Bytes,
    limit: Millis,
) -> Result<Bytes, CallError> {
    node.remoting().ask_service(peer, RANGES, payload, limit).await
}

/// Asks a contact of this client.
///
/// # Errors
///
/// What it answers, or why it could not be asked.
pub(crate) async fn ask_contact(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    payload: Bytes,
    limit: Millis,
) -> Result<Bytes, CallError> {
    node.remoting().ask_service(peer, CONTACT, payload, limit).await
}

/// Tells another node something about membership. With `to`, only that one.
///
/// # Errors
///
/// It did not get through.
pub(crate) async fn say_to_cluster(
    node: &Arc<NodeShared>,
    address: NodeAddress,
    to: Option<NodeId>,
    frame: &MembershipFrame,
) -> Result<(), CallError> {
    let lost = |reason: String| CallError::NoRoute { reason: reason.into() };
    let payload = frame.encode().map_err(|error| lost(error.to_string()))?;
    let met = within(node.env(), SAY_WITHIN, node.remoting().meet(address)).await;
    let peer = met.ok_or(CallError::Timeout { started: false })?.map_err(lost)?;
    if to.is_some_and(|to| to != peer.id()) {
        return Err(lost(format!("node {} is there now", peer.id())));
    }
    node.remoting().ask_service(peer, MEMBERSHIP, payload.into(), SAY_WITHIN).await.map(drop)
}

/// Answers what other nodes ask this one; `None` if it is no question of ours.
pub(super) async fn answer(
    node: &Arc<NodeShared>,
    from: NodeId,
    service: u16,
    request: Bytes,
) -> Option<Result<Bytes, CallError>> {
    let answered = match service {
        MEMBERSHIP => MembershipFrame::decode(&request)
            .map(|frame| {
                node.members().hear(from, frame);
                Bytes::new()
            })
            .map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false }),
        LOOKUP => decode(&request).and_then(|lookup: RemoteLookup| encode(&node.look_up_here(&lookup.path))),
        PLACE => match decode(&request) {
            Ok(place) => node.place_asked(&place).await.and_then(|at| encode(&at)),
            Err(error) => Err(error),
        },
        CONTACT => client::answer(node, &request).await,
        TABLES => tables::answer(node, &request).await,
        RANGES => ranges::answer(node, &request).await,
        MOVES => answer_handoff(node, from, &request).await,
        WATCHES => match decode(&request) {
            Ok(word) => hear(node, from, word).await.and_then(|begun| encode(&begun)),
            Err(error) => Err(error),
        },
        SPAWN => match decode(&request) {
            Ok(RemoteSpawn { kind, key }) => {
                node.bring_to_life(&kind, &key).await.and_then(|spawned| encode(&spawned))
            }
            Err(error) => Err(error),
        },
        DATACENTERS => datacenter::answer(node, from, &request).await,
        WHEREABOUTS => match decode(&request) {
            Ok(question) => where_is(node, &question).await.and_then(|found| encode(&found)),
            Err(error) => Err(error),
        },
        _ => return None,
    };
    Some(answered)
}

impl NodeShared {
    pub(super) fn look_up_here(&self, path: &ActorPath) -> Option<ActorPath> {
        let ours = path.system() == self.namespace().as_str();
        let door = self.named().door(path.path()).filter(|door| ours && door.is_open_to_others())?;
        drop(door);
        let path = ActorPath::local(path.system(), path.path()).ok()?;
        Some(self.path_from_outside(&path))
    }

    /// Brings a virtual actor to life on this node, if it owns the actor or nobody does.
    ///
    /// # Errors
    ///
    /// As [`Node::spawn_at`].
    pub(crate) async fn bring_to_life(self: &Arc<Self>, kind: &str, key: &str) -> Result<Spawned, CallError> {
        let unknown = || CallError::UnknownKind { kind: kind.into() };
        let found = self.kinds().iter().find(|known| known.name() == kind).ok_or_else(unknown)?;
        if !found.is_hosted() {
            return Err(not_serving(&format!("kind {kind} is not hosted here")));
        }
        let actor = self.namespace().actor_id_of(found.kind(), key)?;
        let target = Target { hash: actor.stable_hash(), id: actor.clone() };
        let shard = self.shard(found.index(), target.hash);
        let not_placed = || not_serving(&format!("{actor} could not be placed here"));
        let place = self.key_for(shard, &actor).ok_or_else(not_placed)?;
        let placed = place_here(self, shard, &place).await;
        let Hint { owner, generation } = placed.ok_or_else(not_placed)?;
        if owner != self.id() {
            return Err(not_serving(&format!("{actor} lives on node {owner}")));
        }
        let (caller, answer) = answer_channel();
        let (index, head) = (found.index(), self.summons());
        self.on_arbiter(self.arbiter_of_shard(shard.number), move |on| {
            let key = target.id.key().as_str();
            let served = |kind: &&dyn AnyKind| kind.shards().serves(shard.number, Generation::new(0), key);
            match on.any_kind(index).filter(served) {
                // The caller is told through its way back.
                Some(kind) => drop(kind.summon(&target, head, caller, on)),
                None => caller.send(Err(not_serving("the actor has moved"))),
            }
        })?;
        answer.await.unwrap_or(Err(CallError::Stopped))?;
        Ok(Spawned { actor, node: self.id(), generation })
    }

    async fn place_asked(
        self: &Arc<Self>,
        PlaceShard { kind, number, key }: &PlaceShard,
    ) -> Result<Option<(NodeId, Generation)>, CallError> {
        let unknown = || CallError::UnknownKind { kind: kind.as_str().into() };
        let found = self.kinds().iter().find(|known| known.name() == kind).ok_or_else(unknown)?;
        if self.is_stopping() {
            return Err(not_serving("the node stops"));
        }
        if !found.layout().has(*number) {
            return Err(not_serving(&format!("kind {kind} has no shard {number}")));
        }
        let shard = Shard::home(found.index(), *number);
        let place = match key {
            Some(key) => {
                let actor = self.namespace().actor_id_of(found.kind(), key)?;
                self.key_for(shard, &actor).filter(|_| self.shard(shard.kind, actor.stable_hash()) == shard)
            }
            None => self.shard_key(shard),
        };
        let place = place.ok_or_else(|| not_serving(&format!("kind {kind} is not divided like that")))?;
        let placed = place_here(self, shard, &place).await;
        Ok(placed.map(|hint| (hint.owner, hint.generation)))
    }

    fn summons(&self) -> JobHead {
        let deadline = self.env().now() + self.settings().call_timeout;
        let flags = MessageFlags::empty();
        JobHead { call: None, asks: true, remote: false, inside: false, deadline, flags, scope: None }
    }
}

pub(super) fn encode(value: &impl Serialize) -> Result<Bytes, CallError> {
    let bytes = Codec::Postcard.encode(value).map(Bytes::from);
    bytes.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CallError> {
    let decoded = Codec::Postcard.decode(bytes);
    decoded.map_err(|error| CallError::Codec { reason: error.to_string().into(), started: false })
}

/// Whether a number of a service is the library's own.
pub(super) const fn is_inquiry(service: u16) -> bool {
    service >= RANGES
}

/// Whether a client may ask for it: what members tell each other about themselves and their shards is nothing for clients, and
/// neither is a store that a node serves.
pub(super) const fn is_for_clients(service: u16) -> bool {
    matches!(service, LOOKUP | SPAWN | WATCHES | CONTACT | TABLES)
}

/// Whether a question is only for nodes of the same cluster and datacenter.
pub(super) const fn is_for_members(service: u16) -> bool {
    matches!(service, PLACE | MEMBERSHIP | MOVES | CONTACT | TABLES | RANGES)
}

const LOOKUP: u16 = u16::MAX;
const SPAWN: u16 = u16::MAX - 1;
const PLACE: u16 = u16::MAX - 2;
const MEMBERSHIP: u16 = u16::MAX - 3;
const WATCHES: u16 = u16::MAX - 4;
const MOVES: u16 = u16::MAX - 5;
pub(super) const WHEREABOUTS: u16 = u16::MAX - 6;
const CONTACT: u16 = u16::MAX - 7;
const TABLES: u16 = u16::MAX - 8;
pub(crate) const DATACENTERS: u16 = u16::MAX - 9;
const RANGES: u16 = u16::MAX - 10;

/// How long a word about membership may take.
const SAY_WITHIN: Millis = Millis(1_000);

/// How long another node may take to serve a shard before the next one is asked.
const PLACE_WITHIN: Millis = Millis(2_000);

/// What of this is read from peers.
#[cfg(feature = "corpus")]
pub(crate) fn readers() -> Vec<crate::corpus::Reader> {
    use crate::corpus::Reader;
    vec![
        Reader::postcard::<RemoteLookup>("a lookup"),
        Reader::postcard::<Option<ActorPath>>("what was looked up"),
        Reader::postcard::<RemoteSpawn>("a spawn"),
        Reader::postcard::<Spawned>("what was spawned"),
        Reader::postcard::<PlaceShard>("a shard to place"),
        Reader::postcard::<Option<(NodeId, Generation)>>("where it was placed"),
        Reader::postcard::<WatchWord>("a word about watches"),
        Reader::postcard::<Begun>("how a watch begins"),
        Reader::postcard::<super::whereabouts::WhereIs>("a question for whereabouts"),
        Reader::postcard::<super::whereabouts::Whereabouts>("whereabouts"),
    ]
}
