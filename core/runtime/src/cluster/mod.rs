//! The other nodes: who is there, who answers, and whose session has ended.

mod actor;
mod gossip;
mod heartbeat;
mod members;
mod monitor;
mod speaking;
mod watching;

pub(crate) use actor::{Cluster, Plan};
pub use members::ClusterMember;
pub(crate) use members::Members;
pub(crate) use monitor::Monitor;
pub(crate) use watching::{Watched, not_listed, watch};

use std::sync::Arc;

use actix::{Actor, AsyncContext};

use crate::node::NodeShared;
use gossip::GossipActor;

/// Starts the actors that follow the cluster. Call it on the control arbiter, once the session is live.
pub(crate) fn start(node: &Arc<NodeShared>) {
    let monitor = Monitor::new(Arc::clone(node)).start();
    let mut gossips = None;
    let cluster = Cluster::create(|ctx| {
        let has_transport = node.remoting().transport().is_some();
        gossips = has_transport.then(|| GossipActor::start(node, ctx.address()));
        let gossip = gossips.as_ref().map(|(gossip, _)| gossip.clone());
        Cluster::new(Arc::clone(node), monitor.clone(), gossip)
    });
    monitor.do_send(monitor::Report(cluster.clone()));
    node.members().followed_by(cluster, monitor, gossips);
}

/// Words of other nodes that may wait at an actor; beyond it they are dropped and counted.
const MAILBOX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::heartbeat::HeartbeatActor;
    use super::*;
    use crate::datacenter::DataCenterController;
    use crate::remote::TransportActor;

    /// The compiler is the judge.
    ///
    /// Proves: R136, R189, R479
    #[test]
    fn whatever_keeps_a_node_in_its_cluster_is_an_actor() {
        fn is_an_actor<A: Actor>() {}
        is_an_actor::<Cluster>();
        is_an_actor::<GossipActor>();
        is_an_actor::<HeartbeatActor>();
        is_an_actor::<Monitor>();
        is_an_actor::<DataCenterController>();
        is_an_actor::<TransportActor>();
    }
}
