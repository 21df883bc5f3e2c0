//! Finding out which node serves a shard, finding it an owner if it has none, and getting to know that node.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::handoff::{of_the_newest, version_of};
use archipelago_protocol::identity::{NodeAddress, NodeId, OwnedKey};
use archipelago_protocol::link::Hint;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::placement::{Candidate, Wanted};
use archipelago_protocol::session::times;
use metrics::counter;
use tokio::sync::oneshot;

use crate::cluster::ClusterMember;
use crate::env::within;
use crate::node::{KindShared, NodeShared};
use crate::remote::{Location, Peer, Place, Shard, ask_to_place};

/// What came of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The shard is served there.
    At(Hint),
    /// A node serves it that this one cannot talk to.
    OutOfReach(NodeId),
    /// It is not known yet; look again.
    NotYet,
    /// It is in a datacenter that takes nothing any more, or does not know it.
    Gone(CallError),
}

/// Finds out who serves a shard, and makes sure that we know the node and its arbiters.
pub(crate) async fn seek(node: &Arc<NodeShared>, shard: Shard, key: &OwnedKey) -> Found {
    counter!("archipelago_placement_lookups_total").increment(1);
    if is_routed_by_table(node, shard) {
        return seek_by_table(node, shard, key).await;
    }
    match node.remoting().locator().look_up(key).await {
        Ok(Some(location)) => at(node, shard, key, location).await,
        Ok(None) => find_an_owner(node, shard, key).await,
        Err(error) => {
            tracing::debug!(%key, %error, "look-up unanswered");
            Found::NotYet
        }
    }
}

/// Whether the table of its kind says where an actor lives. A client has none: it asks.
fn is_routed_by_table(node: &NodeShared, shard: Shard) -> bool {
    let by_table = |kind: &Arc<KindShared>| {
        kind.layout().is_by_range() && node.remoting().locator().fixed_place(kind.kind()).is_none()
    };
    !node.is_client() && node.kinds().get(shard.kind as usize).is_some_and(by_table)
}

/// Asks the node that should own the range of an actor to run it. It knows whether it may; if it may not, the table has changed
/// or is about to.
async fn seek_by_table(node: &Arc<NodeShared>, shard: Shard, key: &OwnedKey) -> Found {
    let OwnedKey::Actor(actor) = key else { return Found::NotYet };
    let Some(owner) = node.ranges().owner_of(shard.kind, actor.key().as_str()) else { return Found::NotYet };
    let placed = if owner == node.id() {
        place_here(node, shard, key).await
    } else {
        place_there(node, (shard, key), owner).await
    };
    match placed {
        Some(hint) if hint.owner == node.id() => Found::At(hint),
        Some(hint) => reached(node, key, hint).await,
        None => Found::NotYet,
    }
}

/// Has this node serve a shard, if nobody else does; who serves it then.
pub(crate) async fn place_here(node: &Arc<NodeShared>, shard: Shard, key: &OwnedKey) -> Option<Hint> {
    let hosted = node.kinds().get(shard.kind as usize).is_some_and(|kind| kind.is_hosted());
    if !hosted {
        return None;
    }
    let ((asker, answer), key) = (oneshot::channel(), key.clone());
    let arbiter = node.arbiter_of_shard(shard.number);
    // Always through the queue: what follows must belong to the arbiter's own tasks.
    node.enter_work(arbiter, move |on| on.want_part(shard, &key, asker)).ok()?;
    answer.await.ok().flatten()
}

async fn at(node: &Arc<NodeShared>, shard: Shard, key: &OwnedKey, location: Location) -> Found {
    let Location { at, generation } = location;
    match at {
        // The record alone grants nothing: it may be left over from a claim whose answer was lost.
        Place::Node(id) if id == node.id() => {
            place_here(node, shard, key).await.map_or(Found::NotYet, Found::At)
        }
        Place::Node(owner) => {
            counter!("archipelago_placements_total", "decision" => "already_placed").increment(1);
            reached(node, key, Hint { owner, generation }).await
        }
        Place::Address(address) => match met(node.remoting().meet_serving(address).await) {
            Some(owner) => Found::At(Hint { owner, generation }),
            None => Found::NotYet,
        },
    }
}

/// Asks the nodes that may own the shard, one after the other, until one says who does.
async fn find_an_owner(node: &Arc<NodeShared>, shard: Shard, key: &OwnedKey) -> Found {
    for candidate in candidates(node, shard) {
        let placed = if candidate == node.id() {
            place_here(node, shard, key).await
        } else {
            place_there(node, (shard, key), candidate).await
        };
        match placed {
            Some(hint) if hint.owner == node.id() => return Found::At(hint),
            Some(hint) => return reached(node, key, hint).await,
            None => tracing::debug!(%key, %candidate, "a node did not take a shard"),
        }
    }
    Found::NotYet
}

/// The nodes to ask, in order.
fn candidates(node: &NodeShared, shard: Shard) -> Vec<NodeId> {
    let Some(kind) = node.kinds().get(shard.kind as usize) else { return Vec::new() };
    let all = not_outdated(node, active_or_all(node, hosts(node, kind)));
    let wanted =
        Wanted { kind: kind.kind(), number: shard.number, asker: node.id(), random: node.env().random() };
    let mut order = node.settings().placement_of(kind.name()).order(&wanted, &all);
    if node.is_stopping() && order.contains(&node.id()) {
        // It takes nothing more, unless nobody else does.
        order.retain(|one| *one != node.id());
        order.truncate(ASKED - 1);
        order.push(node.id());
    }
    order.truncate(ASKED);
    order
}

/// The members that may own shards of a kind, in the order of their ids.
fn hosts(node: &NodeShared, kind: &KindShared) -> Vec<Candidate> {
    let (view, book) = (node.members().view(), node.remoting().book());
    let reaches = node.remoting().transport().is_some();
    let hosts = |ClusterMember { info, status, .. }: &ClusterMember| {
        let stays = !book.is_leaving(info.id) && *status < MemberStatus::Leaving;
        reaches && info.id != node.id() && info.kinds.contains(kind.name()) && stays
    };
    let others = view.members.values().filter(|member| hosts(member));
    let mut all: Vec<Candidate> = others
        .map(|member| Candidate {
            node: member.info.id,
            load: member.load.map_or(0, |load| load.activations.into()),
            suspect: member.suspect || book.is_lost(member.info.id),
        })
        .collect();
    if kind.is_hosted() {
        let load = u64::try_from(node.active_actors()).unwrap_or(u64::MAX);
        all.push(Candidate { node: node.id(), load, suspect: false });
    }
    all.sort_by_key(|one| one.node);
    all
}

/// Work is given to members that take part and answer. As long as there are none, whoever is there will do.
fn active_or_all(node: &NodeShared, all: Vec<Candidate>) -> Vec<Candidate> {
    let view = node.members().view();
    let active: Vec<Candidate> = all.iter().filter(|one| view.is_active(one.node)).copied().collect();
    if active.is_empty() { all } else { active }
}

/// While a cluster is upgraded node by node, nodes of an older version get nothing any more: it would have to move again soon.
fn not_outdated(node: &NodeShared, all: Vec<Candidate>) -> Vec<Candidate> {
    let view = node.members().view();
    let version = |one: &Candidate| match view.members.get(&one.node) {
        // It takes nothing more, so others need not be as new.
        _ if one.node == node.id() && node.is_stopping() => Vec::new(),
        _ if one.node == node.id() => version_of(&node.settings().version),
        Some(member) => version_of(&member.info.version),
        None => Vec::new(),
    };
    of_the_newest(all.into_iter().map(|one| (one, version(&one))))
}

async fn place_there(
    node: &Arc<NodeShared>,
    (shard, key): (Shard, &OwnedKey),
    candidate: NodeId,
) -> Option<Hint> {
    let address = node.members().view().members.get(&candidate)?.info.address.clone();
    let peer = meet(node, candidate, address).await?;
    let kind = node.kinds().get(shard.kind as usize)?;
    let actor = if let OwnedKey::Actor(actor) = key { Some(actor) } else { None };
    match ask_to_place(node, peer, kind.name(), (shard.number, actor)).await {
        Ok(hint) => hint,
        Err(error) => {
            tracing::debug!(%candidate, %error, "a node could not be asked to take a shard");
            None
        }
    }
}

/// Makes sure that the owner is known with all its arbiters.
async fn reached(node: &Arc<NodeShared>, key: &OwnedKey, hint: Hint) -> Found {
    if node.remoting().transport().is_none() {
        return Found::OutOfReach(hint.owner);
    }
    if node.remoting().book().get(hint.owner).is_some_and(|peer| peer.serves()) {
        // It was met, and may have died since.
        if node.is_doubtful(hint.owner) {
            note_block(node, key, hint.owner).await;
        }
        return Found::At(hint);
    }
    let met = match address_of(node, hint.owner).await {
        Some(address) => meet(node, hint.owner, address).await,
        None => None,
    };
    if met.is_none() {
        note_block(node, key, hint.owner).await;
        return Found::NotYet;
    }
    Found::At(hint)
}

/// Where a node listens, as far as anybody says.
pub(crate) async fn address_of(node: &Arc<NodeShared>, id: NodeId) -> Option<NodeAddress> {
    if let Some(member) = node.members().view().members.get(&id) {
        return Some(member.info.address.clone());
    }
    match node.remoting().locator().address_of(id).await {
        Ok(address) => address,
        Err(error) => {
            tracing::debug!(%id, %error, "nobody says where a node is");
            None
        }
    }
}

/// The owner may be gone for good: then somebody must notice, and it may have to be us. How long its session lasts stands in
/// its own record.
async fn note_block(node: &Arc<NodeShared>, key: &OwnedKey, owner: NodeId) {
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let found = within(node.env(), limit, node.directory().lookup(key)).await;
    if let Some(Ok(Some(record))) = found
        && record.placement.node == owner
    {
        node.members().blocked_by(record.session());
    }
}

impl NodeShared {
    /// Whether a node may have gone without anybody noticing: nobody reaches it, or the cluster does not count on it.
    pub(super) fn is_doubtful(&self, other: NodeId) -> bool {
        other != self.id()
            && (self.remoting().book().is_lost(other) || !self.members().view().is_active(other))
    }
}

/// The node `id`, if it is the one that listens at `address`.
pub(crate) async fn meet(node: &Arc<NodeShared>, id: NodeId, address: NodeAddress) -> Option<Arc<Peer>> {
    let found = node.remoting().meet_serving(address.clone()).await;
    match found {
        Ok(peer) if peer.id() == id => Some(peer),
        // Whoever was met there before has gone.
        Ok(_) => {
            node.remoting().meet_anew(address).await.ok().filter(|peer| peer.id() == id && peer.serves())
        }
        Err(error) => {
            tracing::debug!(%id, error, "a node could not be met");
            None
        }
    }
}

fn met(peer: Result<Arc<Peer>, String>) -> Option<NodeId> {
    match peer {
        Ok(peer) => Some(peer.id()),
        Err(error) => {
            tracing::debug!(error, "a node could not be met");
            None
        }
    }
}

/// How many nodes are asked to take a shard before everything is looked at anew.
const ASKED: usize = 3;
