//! The other nodes: who is there, and whose session has ended.

mod members;
mod monitor;
mod watching;

pub(crate) use members::Members;
pub(crate) use monitor::Monitor;

use std::sync::Arc;

use actix::Actor;

use crate::node::NodeShared;

/// Starts the actors that follow the cluster. Call it on the control arbiter, once the session is being opened.
pub(crate) fn start(node: &Arc<NodeShared>) {
    let monitor = Monitor::new(Arc::clone(node)).start();
    node.members().monitored_by(monitor.clone());
    members::Follower::new(Arc::clone(node), monitor).start();
}
