//! Actors of which a cluster has one, alive without being asked.
//!
//! A singleton is the one actor of a kind with one shard. Every node that hosts the kind looks now and then whether that
//! shard has an owner, and tries to be it if not; the directory lets one of them succeed, which brings the actor to life.

use std::sync::Arc;

use archipelago_protocol::call::CallError;
use archipelago_protocol::identity::OwnedKey;
use archipelago_protocol::session::times;

use crate::env::within;
use crate::message::VirtualActor;
use crate::node::{KindShared, Node, NodeShared};
use crate::refs::ActorRef;

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
    if owner.is_some_and(|record| record.placement.node != node.id()) {
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
