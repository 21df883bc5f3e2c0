//! Who is in the cluster, as the directory shows it: the nodes that announced themselves and have not ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use actix::{Actor, Addr, AsyncContext, Context, Handler};
use archipelago_protocol::contract::{Entry, EntryId, WatchEvent, WatchScope};
use archipelago_protocol::identity::{NodeId, NodeInfo};
use archipelago_protocol::session::{ObserverEvent, Session};
use archipelago_protocol::time::Millis;
use metrics::gauge;

use super::monitor::{Judge, Monitor};
use super::watching::{Watched, watch};
use crate::events::Event;
use crate::node::NodeShared;

/// The nodes of the cluster, readable from every thread.
#[derive(Default)]
pub(crate) struct Members {
    nodes: RwLock<Arc<BTreeMap<NodeId, NodeInfo>>>,
    monitor: OnceLock<Addr<Monitor>>,
}

impl Members {
    /// All of them, in the order of their ids. Empty until the directory has been read.
    pub(crate) fn all(&self) -> Arc<BTreeMap<NodeId, NodeInfo>> {
        Arc::clone(&self.nodes.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something cannot go on because of a session that has not ended: watch it (BLOCKED).
    pub(crate) fn blocked_by(&self, session: Session) {
        if let Some(monitor) = self.monitor.get() {
            monitor.do_send(Judge(ObserverEvent::Blocked(session)));
        }
    }

    pub(super) fn monitored_by(&self, monitor: Addr<Monitor>) {
        // Set once, when the control arbiter starts.
        let _ = self.monitor.set(monitor);
    }

    fn replace(&self, nodes: BTreeMap<NodeId, NodeInfo>) {
        *self.nodes.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(nodes);
    }
}

/// Follows the directory's list of nodes.
pub(super) struct Follower {
    node: Arc<NodeShared>,
    monitor: Addr<Monitor>,
    nodes: BTreeMap<NodeId, NodeInfo>,
}

impl Follower {
    pub(super) const fn new(node: Arc<NodeShared>, monitor: Addr<Monitor>) -> Self {
        Self { node, monitor, nodes: BTreeMap::new() }
    }

    fn take_in(&mut self, change: WatchEvent) {
        let mut nodes = self.nodes.clone();
        match change {
            WatchEvent::Snapshot { entries, .. } => nodes = entries.into_iter().filter_map(named).collect(),
            WatchEvent::Put { entry, .. } => nodes.extend(named(entry)),
            WatchEvent::Gone { id: EntryId::Node(id), .. } => drop(nodes.remove(&id)),
            WatchEvent::Gone { .. } => {}
        }
        self.change_to(nodes);
    }

    fn change_to(&mut self, nodes: BTreeMap<NodeId, NodeInfo>) {
        let before = std::mem::replace(&mut self.nodes, nodes);
        let came = self.nodes.values().filter(|info| !before.contains_key(&info.id));
        came.for_each(|info| self.node.events().publish(Event::MemberJoined { member: info.clone() }));
        let went = before.into_values().filter(|info| !self.nodes.contains_key(&info.id));
        went.for_each(|member| self.node.events().publish(Event::MemberGone { member }));
        gauge!("archipelago_members").set(self.nodes.len() as f64);
        self.node.members().replace(self.nodes.clone());
        self.tell_monitor();
    }

    /// Whoever this node has no connection to counts as out of reach: then there is one monitor more, which is harmless.
    fn tell_monitor(&self) {
        let (me, book) = (self.node.id(), self.node.remoting().book());
        let near = self.nodes.keys().copied().filter(|id| *id == me || book.is_reached(*id));
        self.monitor.do_send(Judge(ObserverEvent::Reachable(near.collect::<BTreeSet<_>>())));
    }
}

fn named(entry: Entry) -> Option<(NodeId, NodeInfo)> {
    match entry {
        Entry::Node(info) => Some((info.id, info)),
        _ => None,
    }
}

impl Actor for Follower {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        watch(&self.node, WatchScope::Nodes, self, ctx);
        self.tell_monitor();
        self.look_again_later(ctx);
    }
}

impl Follower {
    /// Connections come and go without a change in the directory.
    fn look_again_later(&self, ctx: &mut Context<Self>) {
        use actix::{ActorFutureExt, WrapFuture};
        let sleep = self.node.env().sleep(LOOK_EVERY);
        ctx.spawn(sleep.into_actor(self).map(|(), follower, ctx| {
            follower.tell_monitor();
            follower.look_again_later(ctx);
        }));
    }
}

impl Handler<Watched> for Follower {
    type Result = ();

    fn handle(&mut self, watched: Watched, _: &mut Context<Self>) {
        if let Watched::Change(change) = watched {
            self.take_in(change);
        }
    }
}

/// How often to look who can be reached.
const LOOK_EVERY: Millis = Millis(1_000);
