//! Who is in the cluster, readable from every thread.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use actix::Addr;
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::membership::{HeartbeatEvent, MemberStatus, MembershipFrame, NodeLoad};
use archipelago_protocol::session::Session;

use super::actor::{Cluster, Plan};
use super::gossip::{GossipActor, Hear};
use super::heartbeat::{AskSuspicions, HeartbeatActor, Sign};
use super::monitor::{Blocked, Monitor};
use crate::inspect::Suspicion;

/// A node of the cluster, as this one sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterMember {
    /// What it says about itself.
    pub info: NodeInfo,
    /// Where it stands.
    pub status: MemberStatus,
    /// Whether it does not answer; nothing is decided by that alone.
    pub suspect: bool,
    /// How busy it is, if it has said so.
    pub load: Option<NodeLoad>,
}

/// The nodes of the cluster.
#[derive(Default)]
pub(crate) struct Members {
    view: RwLock<Arc<View>>,
    cluster: OnceLock<Addr<Cluster>>,
    gossip: OnceLock<(Addr<GossipActor>, Addr<HeartbeatActor>)>,
    monitor: OnceLock<Addr<Monitor>>,
}

/// The cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) members: BTreeMap<NodeId, ClusterMember>,
    pub(crate) leader: Option<NodeId>,
}

impl Members {
    /// The cluster as it was seen last. Empty until the directory has been read.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn show(&self, view: View) {
        *self.view.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(view);
    }

    /// Something cannot go on because of a session that has not ended: watch it (BLOCKED).
    pub(crate) fn blocked_by(&self, session: Session) {
        if let Some(monitor) = self.monitor.get() {
            monitor.do_send(Blocked(session));
        }
    }

    /// Another node speaks about membership.
    pub(crate) fn hear(&self, from: NodeId, frame: MembershipFrame) {
        let Some((gossip, heartbeat)) = self.gossip.get() else { return };
        let sign = HeartbeatEvent::of_frame(from, &frame);
        let is_gossip = matches!(sign, HeartbeatEvent::Life(_));
        let felt = heartbeat.try_send(Sign(sign)).is_ok();
        let heard = !is_gossip || gossip.try_send(Hear { from, frame }).is_ok();
        // A full mailbox drops it, as a lossy network would.
        if !felt || !heard {
            metrics::counter!("archipelago_membership_dropped_total").increment(1);
        }
    }

    /// What this node thinks of those it watches; nothing if it watches nobody.
    pub(crate) async fn suspicions(&self) -> Option<BTreeMap<NodeId, Suspicion>> {
        let (_, heartbeat) = self.gossip.get()?;
        heartbeat.send(AskSuspicions).await.ok()
    }

    /// This node is about to leave, or has nothing left.
    pub(crate) fn plan(&self, plan: Plan) {
        if let Some(cluster) = self.cluster.get() {
            cluster.do_send(plan);
        }
    }

    pub(super) fn followed_by(
        &self,
        cluster: Addr<Cluster>,
        monitor: Addr<Monitor>,
        gossip: Option<(Addr<GossipActor>, Addr<HeartbeatActor>)>,
    ) {
        // Set once, when the control arbiter starts.
        let _ = self.cluster.set(cluster);
        let _ = gossip.map(|gossip| self.gossip.set(gossip));
        let _ = self.monitor.set(monitor);
    }
}

impl View {
    /// Whether work may be given to a member: it takes part, and answers.
    pub(crate) fn is_active(&self, node: NodeId) -> bool {
        let active = |member: &ClusterMember| member.status == MemberStatus::Up && !member.suspect;
        self.members.get(&node).is_some_and(active)
    }
}
