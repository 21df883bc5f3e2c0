//! A question that a node answers for whoever cannot look for itself: where is this actor, this shard, this name?
//!
//! Other datacenters ask it, and clients that have no directory. The node answers from its own directory and its view of
//! the cluster, and asks the owner where only that knows more. The answer is advice: the owner itself decides whether it
//! takes a message, and returns what is not for it.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::datacenter::{DataCenterId, Residence, ShardHold};
use archipelago_protocol::identity::{ActorId, ActorPath, Generation, NodeAddress, NodeId};
use archipelago_protocol::link::Hint;
use archipelago_protocol::placement::ShardCount;
use archipelago_protocol::time::Millis;
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::inquiries::{WHEREABOUTS, decode, encode};
use super::locator::{Location, Place};
use super::peer::Peer;
use super::routes::Shard;
use super::unanswered::Unanswered;
use crate::arbiter::not_serving;
use crate::catalog::Target;
use crate::node::{KindShared, NodeShared};
use crate::placement::{Found, address_of, meet, seek};

/// Where is something?
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WhereIs {
    pub(crate) subject: Subject,
    /// Find it an owner if it has none.
    pub(crate) place: bool,
    /// Say also whether the actor is active, which only its owner knows.
    pub(crate) live: bool,
    /// The answer is to come from the node itself: it was asked on behalf of somebody.
    pub(crate) relayed: bool,
}

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Subject {
    /// A virtual actor.
    Actor { kind: String, key: String },
    /// A shard of a kind.
    Shard { kind: String, number: u64 },
    /// Whoever is registered at a path, on any node of the cluster.
    Named(ActorPath),
}

impl Subject {
    /// A virtual actor.
    pub(crate) fn of_actor(id: &ActorId) -> Self {
        Self::Actor { kind: id.kind().as_str().to_owned(), key: id.key().as_str().to_owned() }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Whereabouts {
    /// Nobody here knows the kind.
    UnknownKind,
    /// The kind has no shard with this number.
    UnknownShard { shards: ShardCount },
    /// Where the shard is, that of the actor if one was asked for.
    Shard(ShardPlace),
    /// The path of the named actor with the address of its node, if there is one.
    Named(Option<ActorPath>),
}

/// Where a shard is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ShardPlace {
    /// Into how many shards the kind is divided there.
    pub(crate) shards: ShardCount,
    pub(crate) number: u64,
    /// Who serves it; none if nobody does.
    pub(crate) owner: Option<Owner>,
    /// Whether the actor is active there, if that was asked.
    pub(crate) residence: Residence,
    /// The datacenter that the actor was placed in, if that is written there.
    pub(crate) home: Option<DataCenterId>,
}

/// The node that serves a shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub(crate) node: NodeId,
    pub(crate) generation: Generation,
    /// Where its control arbiter listens.
    pub(crate) address: NodeAddress,
}

impl Owner {
    pub(crate) const fn hint(&self) -> Hint {
        Hint { owner: self.node, generation: self.generation }
    }
}

/// Asks another node where something is. Dropping the future cancels the question on the wire.
///
/// # Errors
///
/// What it answers, or why it could not be asked within `limit`.
pub(crate) async fn ask_where(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    question: &WhereIs,
    limit: Millis,
) -> Result<Whereabouts, Unanswered> {
    let payload = encode(question).map_err(Unanswered::NotSent)?;
    let answer = node.remoting().request(peer, WHEREABOUTS, payload, limit).await?;
    decode(&answer).map_err(Unanswered::Silent)
}

/// Answers the question on this node.
///
/// # Errors
///
/// [`CallError::InvalidId`], or [`CallError::NotServing`] if it cannot be found out now.
pub(crate) async fn where_is(node: &Arc<NodeShared>, question: &WhereIs) -> Result<Whereabouts, CallError> {
    match &question.subject {
        Subject::Named(path) => Ok(Whereabouts::Named(find_named(node, path, question.relayed).await)),
        Subject::Actor { kind, key } => {
            let Some(found) = kind_of(node, kind) else { return as_a_host_says(node, kind, question).await };
            let id = node.namespace().actor_id_of(found.kind(), key)?;
            let target = Target { hash: id.stable_hash(), id };
            of_shard(node, found, found.shard_of(target.hash), Some(target), question).await
        }
        Subject::Shard { kind, number } => {
            let Some(found) = kind_of(node, kind) else { return as_a_host_says(node, kind, question).await };
            of_shard(node, found, *number, None, question).await
        }
    }
}

fn kind_of<'a>(node: &'a NodeShared, kind: &str) -> Option<&'a Arc<KindShared>> {
    node.kinds().iter().find(|known| known.name() == kind)
}

/// What a node says of a kind that it does not know: what a member says that hosts it, if there is one.
async fn as_a_host_says(
    node: &Arc<NodeShared>,
    kind: &str,
    question: &WhereIs,
) -> Result<Whereabouts, CallError> {
    let view = node.members().view();
    let host = view.members.values().find(|member| member.info.kinds.contains(kind));
    let Some(host) = host.map(|member| member.info.clone()) else { return Ok(Whereabouts::UnknownKind) };
    if question.relayed {
        return Err(not_serving("another node of the datacenter knows the kind"));
    }
    let asked = async {
        let peer = meet(node, host.id, host.address.clone()).await?;
        Some(ask_where(node, peer, question, RELAY_WITHIN).await)
    };
    let answer = crate::env::within(node.env(), RELAY_WITHIN, asked).await.flatten();
    let answer = answer.ok_or_else(|| not_serving("the node that knows the kind does not answer"))?;
    Ok(answer?)
}

// ---- shards ----

async fn of_shard(
    node: &Arc<NodeShared>,
    kind: &KindShared,
    number: u64,
    target: Option<Target>,
    question: &WhereIs,
) -> Result<Whereabouts, CallError> {
    // Single actors are known to their own datacenter alone.
    let Some(shards) = kind.layout().shards() else { return Ok(Whereabouts::UnknownKind) };
    if number >= u64::from(shards.get()) {
        return Ok(Whereabouts::UnknownShard { shards });
    }
    let shard = Shard::home(kind.index(), number);
    let holder = match question {
        WhereIs { relayed: true, .. } => served_here(node, shard).await?.unwrap_or(Holder::Nobody),
        // Whoever serves it knows without the directory.
        WhereIs { live: true, .. } => match served_here(node, shard).await? {
            Some(here) => here,
            None => holder_of(node, shard, question.place).await?,
        },
        _ => holder_of(node, shard, question.place).await?,
    };
    let residence = match &target {
        Some(target) if question.live && question.relayed => seen_here(node, shard, target).await?,
        Some(target) if question.live => residence_of(node, &holder, shard, target).await?,
        _ => Residence::NotHere,
    };
    let home = match (&target, node.homes()) {
        (Some(target), Some(homes)) if !residence.is_here() && !question.relayed => {
            homes.home_of(&target.id).await.map_err(|error| not_serving(&error.to_string()))?
        }
        _ => None,
    };
    let owner = match holder {
        Holder::Known(owner) => Some(owner),
        Holder::Lost(id) if !question.live => {
            return Err(not_serving(&format!("nobody says where node {id} is")));
        }
        Holder::Nobody | Holder::Lost(_) => None,
    };
    Ok(Whereabouts::Shard(ShardPlace { shards, number, owner, residence, home }))
}

/// Who owns a shard.
enum Holder {
    Nobody,
    Known(Owner),
    /// This node; nobody says where it is.
    Lost(NodeId),
}

async fn holder_of(node: &Arc<NodeShared>, shard: Shard, place: bool) -> Result<Holder, CallError> {
    let hint = if place { placed(node, shard).await? } else { looked_up(node, shard).await? };
    let Some(hint) = hint else { return Ok(Holder::Nobody) };
    if hint.owner == node.id() {
        return Ok(Holder::Known(own(node, hint)));
    }
    let address = address_of(node, hint.owner).await;
    let known = || node.remoting().book().get(hint.owner).map(|peer| peer.address().clone());
    Ok(match address.or_else(known) {
        Some(address) => Holder::Known(Owner { node: hint.owner, generation: hint.generation, address }),
        None => Holder::Lost(hint.owner),
    })
}

fn own(node: &NodeShared, hint: Hint) -> Owner {
    Owner { node: hint.owner, generation: hint.generation, address: node.address() }
}

async fn placed(node: &Arc<NodeShared>, shard: Shard) -> Result<Option<Hint>, CallError> {
    if node.is_stopping() {
        return Err(not_serving("the node stops"));
    }
    let key = node.shard_key(shard).ok_or_else(|| not_serving("the kind has no such shard"))?;
    match seek(node, shard, &key).await {
        Found::At(hint) => Ok(Some(hint)),
        Found::OutOfReach(owner) => Err(not_serving(&format!("node {owner} cannot be reached from here"))),
        Found::Gone(error) => Err(error),
        Found::NotYet => Err(not_serving("no node has taken the shard yet")),
    }
}

async fn looked_up(node: &Arc<NodeShared>, shard: Shard) -> Result<Option<Hint>, CallError> {
    let Some(key) = node.shard_key(shard) else { return Ok(None) };
    let found = node.remoting().locator().look_up(&key).await;
    match found.map_err(|error| not_serving(&error.to_string()))? {
        None => Ok(None),
        Some(Location { at: Place::Node(owner), generation }) => Ok(Some(Hint { owner, generation })),
        Some(Location { at: Place::Address(address), generation }) => {
            let met = node.remoting().meet_serving(address).await.map_err(|error| not_serving(&error))?;
            Ok(Some(Hint { owner: met.id(), generation }))
        }
    }
}

async fn served_here(node: &Arc<NodeShared>, shard: Shard) -> Result<Option<Holder>, CallError> {
    let served = on_its_arbiter(node, shard, move |kind| kind.shards().served(shard.number)).await?;
    let hint = |generation| Hint { owner: node.id(), generation };
    Ok(served.flatten().map(|generation| Holder::Known(own(node, hint(generation)))))
}

/// Whether the actor is active, as this node sees it.
async fn seen_here(node: &Arc<NodeShared>, shard: Shard, target: &Target) -> Result<Residence, CallError> {
    let (target, may_serve) = (target.clone(), node.env().now() < node.gate().serve_until());
    let seen = on_its_arbiter(node, shard, move |kind| {
        let hold = match kind.shards() {
            shards if shards.is_sealed(shard.number) => ShardHold::Leaves,
            shards if may_serve && shards.served(shard.number).is_some() => ShardHold::Serves,
            _ => ShardHold::Neither,
        };
        let waits = kind.luggage().has(shard.number, target.id.key().as_str());
        Residence::seen(hold, waits || kind.is_active(&target))
    });
    Ok(seen.await?.unwrap_or(Residence::Unsettled))
}

/// Whether the actor is active, as whoever has its shard says.
async fn residence_of(
    node: &Arc<NodeShared>,
    holder: &Holder,
    shard: Shard,
    target: &Target,
) -> Result<Residence, CallError> {
    match holder {
        Holder::Nobody => Ok(Residence::NotHere),
        Holder::Lost(_) => Ok(Residence::as_owner_says(None)),
        Holder::Known(owner) if owner.node == node.id() => seen_here(node, shard, target).await,
        Holder::Known(owner) => {
            let asked = crate::env::within(node.env(), RELAY_WITHIN, relay(node, owner, target)).await;
            Ok(Residence::as_owner_says(asked.flatten()))
        }
    }
}

/// What the owner of an actor's shard says about it; none if it does not answer.
async fn relay(node: &Arc<NodeShared>, owner: &Owner, target: &Target) -> Option<Residence> {
    let peer = meet(node, owner.node, owner.address.clone()).await?;
    let subject = Subject::of_actor(&target.id);
    let question = WhereIs { subject, place: false, live: true, relayed: true };
    match ask_where(node, peer, &question, RELAY_WITHIN).await {
        Ok(Whereabouts::Shard(place)) => Some(place.residence),
        Ok(_) => None,
        Err(error) => {
            tracing::debug!(owner = %owner.node, %error, "the owner of a shard did not say who is active");
            None
        }
    }
}

async fn on_its_arbiter<T: Send + 'static>(
    node: &Arc<NodeShared>,
    shard: Shard,
    look: impl FnOnce(&dyn crate::catalog::AnyKind) -> T + Send + 'static,
) -> Result<Option<T>, CallError> {
    let (tell, seen) = oneshot::channel();
    node.on_arbiter(node.arbiter_of_shard(shard.number), move |on| {
        // Whoever asked may have gone.
        let _ = tell.send(on.any_kind(shard.kind).map(look));
    })?;
    seen.await.map_err(|_| not_serving("it has stopped"))
}

// ---- names ----

/// Finds a named actor on this node, else on the other members of its cluster, all asked at once: the first one that has it
/// is the answer.
async fn find_named(node: &Arc<NodeShared>, path: &ActorPath, relayed: bool) -> Option<ActorPath> {
    let here = node.look_up_here(path);
    if here.is_some() || relayed {
        return here;
    }
    let view = node.members().view();
    let others: Vec<_> = view.members.values().filter(|member| member.info.id != node.id()).collect();
    let asked = others.into_iter().map(|member| ask_member(node, member.info.address.clone(), path));
    let mut answers = std::pin::pin!(stream::iter(asked).buffer_unordered(ASKED_AT_ONCE));
    while let Some(answer) = answers.next().await {
        if answer.is_some() {
            return answer;
        }
    }
    None
}

async fn ask_member(node: &Arc<NodeShared>, address: NodeAddress, path: &ActorPath) -> Option<ActorPath> {
    let question =
        WhereIs { subject: Subject::Named(path.clone()), place: false, live: false, relayed: true };
    let asked = async {
        let peer = node.remoting().meet(address).await.ok()?;
        ask_where(node, peer, &question, RELAY_WITHIN).await.ok()
    };
    match crate::env::within(node.env(), RELAY_WITHIN, asked).await {
        Some(Some(Whereabouts::Named(found))) => found,
        _ => None,
    }
}

/// How long another node of the cluster may take to say what only it knows.
const RELAY_WITHIN: Millis = Millis(1_000);

/// How many members are asked for a name at once.
const ASKED_AT_ONCE: usize = 64;
