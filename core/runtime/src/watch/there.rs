//! Watching what lives on other nodes: finding the node, asking it, and being told by it.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::{NodeAddress, NodeId, OwnedKey};
use archipelago_protocol::session::Lease;
use archipelago_protocol::time::Millis;
use archipelago_protocol::watch::{Termination, WatchId};
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::here::{Listener, begin_here};
use super::{At, Begun, WatchTarget, too_many};
use crate::node::NodeShared;
use crate::placement::{address_of, meet};
use crate::remote::{Location, Peer, Place, Shard, ask_about_watch};

/// What nodes say to each other about watches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WatchWord {
    /// Tell me when this ends.
    Watch(WatchId, WatchTarget),
    /// I need not know any more.
    Unwatch(WatchId),
    /// It has ended.
    Ended(WatchId, Termination),
}

/// Has a watch of this node kept where its target is.
pub(super) async fn place(
    node: &Arc<NodeShared>,
    id: WatchId,
    target: WatchTarget,
    at: At,
) -> Result<Begun, CallError> {
    match at {
        At::Here => begin_here(node, &target, Listener::Own(id)).await,
        At::Address(address) => {
            let met = node.remoting().meet(address).await;
            ask(node, met.map_err(no_route)?, id, target).await
        }
        At::Shard(shard) => {
            for _ in 0..LOOKS {
                match place_at_owner(node, id, target.clone(), shard).await? {
                    Begun::NotHere => node.env().sleep(LOOK_AGAIN).await,
                    begun => return Ok(begun),
                }
            }
            Ok(Begun::NotHere)
        }
    }
}

/// One look for the owner of a shard. To look claims nothing.
async fn place_at_owner(
    node: &Arc<NodeShared>,
    id: WatchId,
    target: WatchTarget,
    shard: Shard,
) -> Result<Begun, CallError> {
    let here = begin_here(node, &target, Listener::Own(id)).await?;
    let Some(key) = key_of(node, &target, shard).filter(|_| here == Begun::NotHere) else { return Ok(here) };
    let found = node.remoting().locator().look_up(&key).await;
    let peer = match found.map_err(|error| no_route(error.to_string()))? {
        None => return Ok(Begun::NotActive),
        Some(Location { at: Place::Address(address), .. }) => {
            node.remoting().meet(address).await.map_err(no_route)?
        }
        // The record alone grants nothing: what this node does not serve is not active.
        Some(Location { at: Place::Node(owner), .. }) if owner == node.id() => return Ok(Begun::NotActive),
        Some(Location { at: Place::Node(owner), .. }) => match address_of(node, owner).await {
            Some(address) => reached(node, owner, address).await?,
            None => return has_ended(node, owner).await,
        },
    };
    ask(node, peer, id, target).await
}

/// What the node of an actor owns it by.
fn key_of(node: &NodeShared, target: &WatchTarget, shard: Shard) -> Option<OwnedKey> {
    let WatchTarget::Actor(kind, key) = target else { return None };
    node.key_for(shard, &node.namespace().actor_id(kind, key).ok()?)
}

async fn reached(
    node: &Arc<NodeShared>,
    owner: NodeId,
    address: NodeAddress,
) -> Result<Arc<Peer>, CallError> {
    meet(node, owner, address).await.ok_or_else(|| no_route(format!("node {owner} cannot be reached")))
}

/// Of an owner that nobody knows: nothing is active there if its session has ended.
async fn has_ended(node: &NodeShared, owner: NodeId) -> Result<Begun, CallError> {
    let lease = node.directory().lease(owner).await.map_err(|error| no_route(error.to_string()))?;
    match lease.map(|seen| seen.lease) {
        Some(Lease::Ended { .. }) | None => Ok(Begun::NotActive),
        Some(_) => Err(no_route(format!("node {owner} cannot be reached"))),
    }
}

async fn ask(
    node: &Arc<NodeShared>,
    peer: Arc<Peer>,
    id: WatchId,
    target: WatchTarget,
) -> Result<Begun, CallError> {
    // Before it is asked: its end must not be missed in between.
    node.watches().change(|book| book.asked(id, peer.id()));
    ask_about_watch(node, peer, &WatchWord::Watch(id, target), node.settings().call_timeout).await
}

/// Tells another node that it need not tell. If that is lost, it tells in vain.
pub(super) fn unwatch(node: &Arc<NodeShared>, asked: NodeId, id: WatchId) {
    let shared = Arc::clone(node);
    let sent = node.enter_work(0, move |on| {
        let env = Arc::clone(on.node().env());
        env.spawn(Box::pin(async move {
            if let Some(peer) = shared.remoting().book().get(asked) {
                drop(ask_about_watch(&shared, peer, &WatchWord::Unwatch(id), TELL_WITHIN).await);
            }
        }));
    });
    if let Err(error) = sent {
        tracing::debug!(%error, "a watch that was given up is told in vain");
    }
}

/// Answers what another node says about watches. On the control arbiter.
///
/// # Errors
///
/// The watch cannot be kept.
pub(crate) async fn hear(node: &Arc<NodeShared>, from: NodeId, word: WatchWord) -> Result<Begun, CallError> {
    match word {
        WatchWord::Watch(id, target) => watch_for(node, from, id, &target).await,
        WatchWord::Unwatch(id) => {
            node.watches().change(|book| book.close_for(from, id));
            Ok(Begun::NotActive)
        }
        WatchWord::Ended(id, how) => {
            node.watches().end(id, Some(from), how);
            Ok(Begun::NotActive)
        }
    }
}

async fn watch_for(
    node: &Arc<NodeShared>,
    from: NodeId,
    id: WatchId,
    target: &WatchTarget,
) -> Result<Begun, CallError> {
    if let WatchTarget::Named(path) = target
        && node.named().door(path).is_some_and(|door| !door.is_open_to_others())
    {
        return Ok(Begun::NotActive);
    }
    let (keeper, given_up) = oneshot::channel();
    node.watches().change(|book| book.open_for(from, id, keeper)).map_err(too_many)?;
    let (listener, ended) = oneshot::channel();
    let begun = begin_here(node, target, Listener::Other(listener)).await;
    if matches!(begun, Ok(Begun::Watching)) {
        node.env().spawn(Box::pin(keep(Arc::clone(node), (from, id), ended, given_up)));
    } else {
        node.watches().change(|book| book.close_for(from, id));
    }
    begun
}

/// Waits for the end and tells the other node, until it has heard or is gone.
async fn keep(
    node: Arc<NodeShared>,
    (from, id): (NodeId, WatchId),
    ended: oneshot::Receiver<Termination>,
    given_up: oneshot::Receiver<()>,
) {
    let how = match select(ended, given_up).await {
        Either::Left((how, _)) => how.unwrap_or(Termination::NodeGone { node: node.id() }),
        Either::Right(_) => return,
    };
    while node.watches().change(|book| book.waits(from, id)) {
        match tell(&node, from, WatchWord::Ended(id, how)).await {
            Ok(_) => break,
            Err(error) => tracing::debug!(%from, %error, "an end could not be told yet"),
        }
        node.env().sleep(TELL_AGAIN).await;
    }
    node.watches().change(|book| book.close_for(from, id));
}

async fn tell(node: &Arc<NodeShared>, to: NodeId, word: WatchWord) -> Result<Begun, CallError> {
    let peer = match node.remoting().book().get(to) {
        Some(peer) => peer,
        None => {
            let address = address_of(node, to).await.ok_or_else(|| no_route(format!("node {to} is away")))?;
            reached(node, to, address).await?
        }
    };
    ask_about_watch(node, peer, &word, TELL_WITHIN).await
}

fn no_route(reason: String) -> CallError {
    CallError::NoRoute { reason: reason.into() }
}

/// How often the owner of an actor is looked for, if the one that was found says that it is another.
const LOOKS: usize = 5;

/// How long to wait before it is looked for again.
const LOOK_AGAIN: Millis = Millis(100);

/// How long another node may take to hear of an end.
const TELL_WITHIN: Millis = Millis(1_000);

/// How long to wait before it is told again.
const TELL_AGAIN: Millis = Millis(1_000);
