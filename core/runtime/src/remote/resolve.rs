//! Finding out where a kind lives, and getting to know the node.

use std::sync::Arc;

use archipelago_protocol::identity::{NodeId, OwnedKey};
use archipelago_protocol::link::Hint;

use super::locator::{Location, Place};
use crate::node::NodeShared;

/// Finds out where a kind is owned, and makes sure that we know the node and its arbiters.
pub(super) async fn resolve(node: &Arc<NodeShared>, kind: u32) -> Option<Hint> {
    let key = OwnedKey::shard(node.kinds().get(kind as usize)?.kind().clone(), 0);
    let Location { at, generation } = match node.remoting().locator().look_up(&key).await {
        Ok(found) => found?,
        Err(error) => {
            tracing::debug!(%key, %error, "look-up unanswered");
            return None;
        }
    };
    let owner = match at {
        Place::Node(id) if id == node.id() => id,
        Place::Node(id) => known(node, id).await?,
        Place::Address(address) => met(node.remoting().meet_serving(address).await)?,
    };
    Some(Hint { owner, generation })
}

/// Makes sure that a node is known with all its arbiters.
async fn known(node: &Arc<NodeShared>, id: NodeId) -> Option<NodeId> {
    if node.remoting().book().get(id).is_some_and(|peer| peer.serves()) {
        return Some(id);
    }
    let address = match node.remoting().locator().address_of(id).await {
        Ok(address) => address?,
        Err(error) => {
            tracing::debug!(%id, %error, "nobody says where a node is");
            return None;
        }
    };
    let found = met(node.remoting().meet_serving(address.clone()).await)?;
    if found == id {
        return Some(id);
    }
    // Whoever was met there before has gone.
    met(node.remoting().meet_anew(address).await).filter(|found| *found == id)
}

fn met(peer: Result<Arc<super::peer::Peer>, String>) -> Option<NodeId> {
    match peer {
        Ok(peer) => Some(peer.id()),
        Err(error) => {
            tracing::debug!(error, "a node could not be met");
            None
        }
    }
}
