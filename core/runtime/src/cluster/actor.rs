//! The actor of the cluster: joins what the directory shows with what the nodes tell each other, and shows the outcome to the
//! rest of the node. Every decision is [`Membership`](archipelago_protocol::membership::Membership)'s, which [`GossipActor`]
//! drives.
//!
//! It lives on the control arbiter. Who has announced itself, and whose session has ended, it reads from the directory; a node
//! without a transport goes by that alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, WrapFuture};
use archipelago_protocol::contract::{Entry, EntryId, WatchEvent, WatchScope};
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::membership::{
    MemberEvent, MemberStatus, MembershipAction, MembershipEvent, NodeLoad,
};
use archipelago_protocol::session::{EndReason, Lease, LeaseSeen};
use archipelago_protocol::time::Millis;
use metrics::gauge;

use super::gossip::{Concluded, GossipActor, Learn, Picture};
use super::members::{ClusterMember, View};
use super::monitor::{Monitor, Reachable};
use super::watching::{Watched, watch};
use crate::events::Event;
use crate::mutants::{Mutant, broken};
use crate::node::NodeShared;

// ---- messages ----

/// What this node is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It leaves, and still owns things.
    Leave,
    /// It owns nothing any more.
    HandedOff,
}

/// A session has ended, for certain.
pub(super) struct Ended(pub(super) NodeId);

impl Message for Plan {
    type Result = ();
}

impl Message for Ended {
    type Result = ();
}

// ---- state ----

/// The cluster, as one node sees it.
pub(crate) struct Cluster {
    node: Arc<NodeShared>,
    monitor: Addr<Monitor>,
    /// Who has announced itself and is not known to have ended.
    announced: BTreeMap<NodeId, NodeInfo>,
    /// None without a transport.
    gossip: Option<Addr<GossipActor>>,
    /// What the nodes tell each other, as it was last heard.
    picture: Picture,
}

impl Cluster {
    pub(super) fn new(
        node: Arc<NodeShared>,
        monitor: Addr<Monitor>,
        gossip: Option<Addr<GossipActor>>,
    ) -> Self {
        Self { node, monitor, announced: BTreeMap::new(), gossip, picture: Picture::default() }
    }

    fn tell(&self, event: MembershipEvent) {
        if let Some(gossip) = &self.gossip {
            gossip.do_send(Learn(event));
        }
    }

    fn carry_out(&mut self, actions: Vec<MembershipAction>, ctx: &mut Context<Self>) {
        for action in actions {
            match action {
                MembershipAction::Revoke(id) => self.revoke(id, ctx),
                MembershipAction::Publish(event) => {
                    self.end_suspect(&event, ctx);
                    if let MemberEvent::MemberDowned(member) | MemberEvent::MemberRemoved(member) = &event {
                        self.node.watches().node_gone(member.id());
                    }
                    if let MemberEvent::MemberRemoved(member) = &event {
                        self.node.part_from(member.id(), false);
                    }
                    self.node.events().publish(Event::Membership(event));
                }
                MembershipAction::Reachable(nodes) => self.monitor.do_send(Reachable(nodes)),
                MembershipAction::SelfDown => {
                    self.node.give_up_by("the others hold this node to be gone", Millis::ZERO);
                }
                // The gossip's own affairs, and a node that goes as it wanted to.
                _ => {}
            }
        }
    }

    /// Keeps the session of a node that nobody reaches from beating on. The store decides whether it still does.
    fn revoke(&self, id: NodeId, ctx: &mut Context<Self>) {
        let (directory, me) = (Arc::clone(self.node.directory()), self.node.id());
        let work = async move {
            let seen = directory.lease(id).await.ok().flatten()?;
            if matches!(seen.lease, Lease::Ended { .. }) {
                return Some(Ended(id));
            }
            match directory.revoke(&seen, me).await {
                Ok(_) => tracing::warn!(%id, "a node that nobody reaches has its session revoked"),
                Err(error) => tracing::debug!(%id, %error, "a session could not be revoked"),
            }
            None
        };
        ctx.spawn(work.into_actor(self).map(|ended, cluster, ctx| {
            if let Some(Ended(id)) = ended {
                cluster.ended(id, ctx);
            }
        }));
    }

    /// A deliberate bug: suspicion is no evidence.
    fn end_suspect(&self, event: &MemberEvent, ctx: &mut Context<Self>) {
        let MemberEvent::Unreachable(member) = event else { return };
        if !broken(Mutant::SuspicionTakenForDeath) {
            return;
        }
        let (directory, me, id) = (Arc::clone(self.node.directory()), self.node.id(), member.id());
        let work = async move {
            if let Ok(Some(seen)) = directory.lease(id).await {
                drop(directory.end_session(id, seen.version, me, EndReason::Silent).await);
            }
        };
        ctx.spawn(work.into_actor(self));
    }

    // ---- the directory ----

    fn take_in(&mut self, change: WatchEvent, ctx: &mut Context<Self>) {
        match change {
            WatchEvent::Snapshot { entries, .. } => self.listed(entries, ctx),
            WatchEvent::Put { entry: Entry::Node(info), .. } => self.poster(info, MembershipEvent::Announced),
            WatchEvent::Gone { id: EntryId::Node(id), .. } => self.look_at_lease(id, ctx),
            WatchEvent::Put { .. } | WatchEvent::Gone { .. } => {}
        }
        self.show();
    }

    fn listed(&mut self, entries: Vec<Entry>, ctx: &mut Context<Self>) {
        let listed: Vec<NodeInfo> = entries.into_iter().filter_map(named).collect();
        let still: BTreeSet<NodeId> = listed.iter().map(|info| info.id).collect();
        listed.into_iter().for_each(|info| self.poster(info, MembershipEvent::Listed));
        let missing: Vec<NodeId> = self.announced.keys().filter(|id| !still.contains(id)).copied().collect();
        missing.into_iter().for_each(|id| self.look_at_lease(id, ctx));
        self.tell(MembershipEvent::DirectoryListed);
    }

    /// A poster may be left over: written late, or never taken down.
    fn poster(&mut self, info: NodeInfo, event: fn(NodeInfo) -> MembershipEvent) {
        if self.is_removed(info.id) {
            return;
        }
        if self.announced.insert(info.id, info.clone()).is_none() {
            self.node.events().publish(Event::MemberJoined { member: info.clone() });
        }
        self.tell(event(info));
    }

    /// A poster that is gone proves nothing; the end of the lease does.
    fn look_at_lease(&self, id: NodeId, ctx: &mut Context<Self>) {
        let (node, directory) = (Arc::clone(&self.node), Arc::clone(self.node.directory()));
        let work = async move {
            for _ in 0..LOOKS {
                match directory.lease(id).await {
                    Ok(Some(seen)) if matches!(seen.lease, Lease::Ended { .. }) => return Some(true),
                    Ok(None) => return Some(false),
                    Ok(Some(_)) | Err(_) => node.env().sleep(LOOK_AGAIN).await,
                }
            }
            None
        };
        ctx.spawn(work.into_actor(self).map(move |ended, cluster, ctx| match ended {
            Some(true) => cluster.ended(id, ctx),
            // Nobody knows anything of it any more. Whether it has ended is not for this node to say.
            Some(false) => cluster.forget(id),
            None => {}
        }));
    }

    fn ended(&mut self, id: NodeId, ctx: &mut Context<Self>) {
        self.node.watches().node_gone(id);
        self.tell(MembershipEvent::SessionEnded(id));
        self.forget(id);
        self.part_from(id, ctx);
    }

    /// Links to a node whose session has ended are given up: at once if others have ended it.
    fn part_from(&self, id: NodeId, ctx: &mut Context<Self>) {
        let (node, directory) = (Arc::clone(&self.node), Arc::clone(self.node.directory()));
        let work = async move {
            let at_once = match directory.lease(id).await {
                Ok(Some(LeaseSeen { lease: Lease::Ended { by, .. }, .. })) => by != id,
                Ok(_) => false,
                Err(error) => {
                    tracing::debug!(%id, %error, "who has ended a session is not known");
                    false
                }
            };
            node.part_from(id, at_once);
        };
        ctx.spawn(work.into_actor(self));
    }

    fn forget(&mut self, id: NodeId) {
        if let Some(member) = self.announced.remove(&id) {
            self.node.events().publish(Event::MemberGone { member });
        }
        self.show();
    }

    /// Whether the members have agreed that this node is gone for ever.
    fn is_removed(&self, id: NodeId) -> bool {
        self.picture.buried.contains(&id)
    }

    // ---- showing ----

    fn show(&mut self) {
        let removed: Vec<NodeId> =
            self.announced.keys().filter(|id| self.is_removed(**id)).copied().collect();
        for member in removed.into_iter().filter_map(|id| self.announced.remove(&id)) {
            self.node.watches().node_gone(member.id);
            self.node.events().publish(Event::MemberGone { member });
        }
        let view = View {
            members: self.announced.values().map(|info| (info.id, self.member(info))).collect(),
            leader: self.picture.leader,
        };
        gauge!("archipelago_members").set(view.members.len() as f64);
        let unreachable = view.members.values().filter(|member| member.suspect).count();
        gauge!("archipelago_members_unreachable").set(unreachable as f64);
        self.node.members().show(view);
    }

    fn member(&self, info: &NodeInfo) -> ClusterMember {
        let info = info.clone();
        if self.gossip.is_none() {
            return ClusterMember { info, status: MemberStatus::Up, suspect: false, load: None };
        }
        let known = self.picture.members.get(&info.id);
        ClusterMember {
            info,
            status: known.map_or(MemberStatus::Joining, |known| known.status),
            suspect: known.is_some_and(|known| known.suspect),
            load: known.and_then(|known| known.load),
        }
    }

    fn measure_load(&self, ctx: &mut Context<Self>) {
        let sleep = self.node.env().sleep(MEASURE_EVERY);
        ctx.spawn(sleep.into_actor(self).map(|(), cluster, ctx| {
            let load = NodeLoad {
                activations: at_most_u32(cluster.node.active_actors()),
                waiting: at_most_u32(cluster.node.waiting_jobs()),
                ..NodeLoad::default()
            };
            cluster.tell(MembershipEvent::LoadMeasured(load));
            cluster.measure_load(ctx);
        }));
    }
}

fn at_most_u32(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn named(entry: Entry) -> Option<NodeInfo> {
    match entry {
        Entry::Node(info) => Some(info),
        _ => None,
    }
}

impl Actor for Cluster {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        watch(&Arc::clone(&self.node), WatchScope::Nodes, self, ctx);
        if self.gossip.is_some() {
            self.measure_load(ctx);
        } else {
            // It reaches nobody, so it monitors: too many monitors are harmless.
            self.monitor.do_send(Reachable(BTreeSet::from([self.node.id()])));
        }
    }
}

// ---- handlers ----

impl Handler<Watched> for Cluster {
    type Result = ();

    fn handle(&mut self, watched: Watched, ctx: &mut Context<Self>) {
        if let Watched::Change(change) = watched {
            self.take_in(change, ctx);
        }
    }
}

impl Handler<Concluded> for Cluster {
    type Result = ();

    fn handle(&mut self, Concluded { actions, picture }: Concluded, ctx: &mut Context<Self>) {
        self.picture = picture;
        self.carry_out(actions, ctx);
        self.show();
    }
}

impl Handler<Ended> for Cluster {
    type Result = ();

    fn handle(&mut self, Ended(id): Ended, ctx: &mut Context<Self>) {
        self.ended(id, ctx);
    }
}

impl Handler<Plan> for Cluster {
    type Result = ();

    fn handle(&mut self, plan: Plan, _: &mut Context<Self>) {
        self.tell(match plan {
            Plan::Leave => MembershipEvent::LeaveRequested,
            Plan::HandedOff => MembershipEvent::HandedOff,
        });
    }
}

/// How often a lease is read whose poster is gone.
const LOOKS: usize = 10;

/// How long to wait before a lease is read again.
const LOOK_AGAIN: Millis = Millis(500);

/// How often the node's own load is measured.
const MEASURE_EVERY: Millis = Millis(5_000);
