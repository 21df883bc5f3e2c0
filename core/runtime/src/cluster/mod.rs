//! The other nodes: who is there, who answers, and whose session has ended.

mod actor;
mod members;
mod monitor;
mod watching;

pub(crate) use actor::{Cluster, Plan};
pub use members::ClusterMember;
pub(crate) use members::Members;
pub(crate) use monitor::Monitor;
pub(crate) use watching::{Watched, watch};

use std::sync::Arc;

use actix::Actor;

use crate::node::NodeShared;

/// Starts the actors that follow the cluster. Call it on the control arbiter, once the session is live.
pub(crate) fn start(node: &Arc<NodeShared>) {
    let monitor = Monitor::new(Arc::clone(node)).start();
    let cluster = Cluster::new(Arc::clone(node), monitor.clone()).start();
    monitor.do_send(monitor::Report(cluster.clone()));
    node.members().followed_by(cluster, monitor);
}
