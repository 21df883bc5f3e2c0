//! Actors of which a cluster has one, alive without being asked.
//!
//! A singleton is the one actor of a kind with one shard. Every node that hosts the kind looks now and then whether that
//! shard has an owner. If not, the nodes that should have it are asked to take it, one after the other, as for any shard: by
//! the placement of the kind, and of the newest version that is there. Whoever finds that it owns the shard brings the actor
//! to life.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::OwnedKey;
use archipelago_protocol::session::times;

use crate::env::within;
use crate::message::VirtualActor;
use crate::node::{KindShared, Node, NodeShared};
use crate::placement::{Found, seek};
use crate::refs::ActorRef;
use crate::remote::Shard;

impl Node {
    /// The one actor of a kind that was registered with [`NodeBuilder::singleton`](crate::NodeBuilder::singleton).
    pub fn singleton<A: VirtualActor>(&self) -> ActorRef<A> {
        self.actor(KEY)
    }
}

/// Keeps the singletons alive that this node may host. Runs on the node's first data arbiter and ends with it.
pub(crate) fn keep_alive(node: &Arc<NodeShared>) {
    for kind in node.kinds().iter().filter(|kind| kind.is_singleton() && kind.is_hosted()) {
        let (node, kind) = (Arc::clone(node), Arc::clone(kind));
        let env = Arc::clone(node.env());
        env.spawn(Box::pin(async move {
            while !node.is_stopping() {
                look_after(&node, &kind).await;
                // As often as the session beats: then both cost the store about as much.
                node.env().sleep(node.settings().session_heartbeat).await;
            }
        }));
    }
}

/// Brings a singleton to life unless another node has it.
async fn look_after(node: &Arc<NodeShared>, kind: &KindShared) {
    let key = OwnedKey::shard(kind.kind().clone(), 0);
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let owner = match within(node.env(), limit, node.directory().lookup(&key)).await {
        Some(Ok(owner)) => owner,
        // It is looked at again soon.
        Some(Err(_)) | None => return,
    };
    let is_ours = match owner {
        Some(record) => record.placement.node == node.id(),
        None => {
            let found = seek(node, Shard::home(kind.index(), 0), &key).await;
            matches!(found, Found::At(hint) if hint.owner == node.id())
        }
    };
    // Its owner looks after it as well.
    if !is_ours {
        return;
    }
    match node.bring_to_life(kind.name(), KEY).await {
        // Another node may have been quicker.
        Ok(_) | Err(CallError::NotServing { .. }) => {}
        Err(error) => {
            tracing::warn!(kind = kind.name(), %error, "a singleton could not be brought to life");
        }
    }
}

/// The key of every singleton.
const KEY: &str = "singleton";
