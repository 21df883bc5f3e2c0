//! How the actors of membership speak to other nodes: over the control lanes, without waiting for an answer.

use std::sync::Arc;

use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::membership::MembershipFrame;

use crate::node::NodeShared;
use crate::remote::say_to_cluster;

/// Says something to the node at an address, if it is `to` or nobody in particular is meant. What does not get through is
/// dropped: the next round says it again.
pub(super) fn speak(
    node: &Arc<NodeShared>,
    address: NodeAddress,
    to: Option<NodeId>,
    frame: MembershipFrame,
) {
    let speaker = Arc::clone(node);
    node.env().spawn(Box::pin(async move {
        if let Err(error) = say_to_cluster(&speaker, address, to, &frame).await {
            tracing::trace!(?to, %error, "a word about membership did not get through");
        }
    }));
}
