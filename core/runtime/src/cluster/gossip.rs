//! The actor that spreads the view of the cluster among its nodes. Every decision is [`Membership`]'s.
//!
//! [`Cluster`] tells it what the directory shows and hears from it what follows; [`HeartbeatActor`] tells it who does not
//! answer. All of them live on the control arbiter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::membership::{
    Member, MemberStatus, Membership, MembershipAction, MembershipEvent, MembershipFrame, NodeLoad,
};
use archipelago_protocol::time::Millis;

use super::actor::Cluster;
use super::heartbeat::{HeartbeatActor, Watch};
use super::speaking::speak;
use crate::node::NodeShared;

// ---- messages ----

/// Another node speaks about the view.
pub(super) struct Hear {
    pub(super) from: NodeId,
    pub(super) frame: MembershipFrame,
}

/// Those who do not answer this node.
pub(super) struct Silent(pub(super) BTreeSet<NodeId>);

/// What the directory shows, or this node plans.
pub(super) struct Learn(pub(super) MembershipEvent);

/// What follows for the rest of the node, and the view as it stands.
pub(super) struct Concluded {
    pub(super) actions: Vec<MembershipAction>,
    pub(super) picture: Picture,
}

impl Message for Hear {
    type Result = ();
}

impl Message for Silent {
    type Result = ();
}

impl Message for Learn {
    type Result = ();
}

impl Message for Concluded {
    type Result = ();
}

/// The view of the cluster at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    pub(super) members: BTreeMap<NodeId, Known>,
    /// Who is gone for ever.
    pub(super) buried: BTreeSet<NodeId>,
    pub(super) leader: Option<NodeId>,
}

/// What the view says of a member.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) status: MemberStatus,
    pub(super) suspect: bool,
    pub(super) load: Option<NodeLoad>,
}

// ---- state ----

/// Spreads the view, and takes over what others know.
pub(crate) struct GossipActor {
    node: Arc<NodeShared>,
    cluster: Addr<Cluster>,
    heartbeat: Addr<HeartbeatActor>,
    membership: Membership,
    first: Vec<MembershipAction>,
    /// When it is to be woken, and by what.
    wake: Option<(Millis, SpawnHandle)>,
}

impl GossipActor {
    /// Starts the actor, and the one that beats for it.
    pub(super) fn start(
        node: &Arc<NodeShared>,
        cluster: Addr<Cluster>,
    ) -> (Addr<Self>, Addr<HeartbeatActor>) {
        let (now, settings) = (node.env().now(), node.settings().membership.clone());
        let (membership, first) = Membership::new(now, node.info(), settings);
        let node = Arc::clone(node);
        let mut beating = None;
        let gossip = Self::create(|ctx| {
            let heartbeat = HeartbeatActor::new(Arc::clone(&node), ctx.address()).start();
            beating = Some(heartbeat.clone());
            Self { node, cluster, heartbeat, membership, first, wake: None }
        });
        (gossip, beating.expect("made together with the actor"))
    }

    fn apply(&mut self, event: MembershipEvent, ctx: &mut Context<Self>) {
        let shows = matches!(event, MembershipEvent::LoadMeasured(_));
        let actions = self.membership.handle(self.node.env().now(), event);
        self.carry_out(actions, shows, ctx);
    }

    fn carry_out(&mut self, actions: Vec<MembershipAction>, shows: bool, ctx: &mut Context<Self>) {
        let mut concluded = Vec::new();
        for action in actions {
            match action {
                MembershipAction::Send { to, frame } => self.send(to, frame),
                MembershipAction::SendToAddress { to, frame } => speak(&self.node, to, None, frame),
                MembershipAction::Watch { present, suspected } => self.watch(&present, suspected),
                MembershipAction::WakeAt(at) => self.wake_at(at, ctx),
                other => concluded.push(other),
            }
        }
        if shows || !concluded.is_empty() {
            self.cluster.do_send(Concluded { actions: concluded, picture: self.picture() });
        }
    }

    fn send(&self, to: NodeId, frame: MembershipFrame) {
        let known = self.membership.address(to).cloned();
        let announced = || {
            let view = self.node.members().view();
            view.members.get(&to).map(|member| member.info.address.clone())
        };
        if let Some(address) = known.or_else(announced) {
            speak(&self.node, address, Some(to), frame);
        }
    }

    fn watch(&self, present: &BTreeSet<NodeId>, suspected: BTreeSet<NodeId>) {
        let at = |id: &NodeId| Some((*id, self.membership.address(*id)?.clone()));
        let present: BTreeMap<NodeId, NodeAddress> = present.iter().filter_map(at).collect();
        self.heartbeat.do_send(Watch { present, suspected });
    }

    fn picture(&self) -> Picture {
        let view = self.membership.view();
        let suspects = view.suspects(self.node.id());
        let known = |member: &Member| {
            let (id, status) = (member.id(), member.status);
            (id, Known { status, suspect: suspects.contains(&id), load: view.load(id) })
        };
        Picture {
            members: view.members().map(known).collect(),
            buried: view.buried().collect(),
            leader: self.membership.leader(),
        }
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if self.wake.is_some_and(|(armed, _)| armed == at) {
            return;
        }
        if let Some((_, earlier)) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        let woken = ctx.spawn(sleep.into_actor(self).map(|(), gossip, ctx| {
            gossip.wake = None;
            gossip.wake_up(ctx);
        }));
        self.wake = Some((at, woken));
    }

    fn wake_up(&mut self, ctx: &mut Context<Self>) {
        let random = self.node.env().random();
        self.apply(MembershipEvent::Wake { random }, ctx);
    }
}

impl Actor for GossipActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(super::MAILBOX);
        let first = std::mem::take(&mut self.first);
        self.carry_out(first, true, ctx);
        // Nodes whose kinds have fixed places share no directory, and so no membership.
        let remote = &self.node.settings().remote;
        if remote.placed.is_empty() && !remote.peers.is_empty() {
            let seeds = remote.peers.clone();
            self.apply(MembershipEvent::JoinThrough(seeds), ctx);
        }
    }
}

// ---- handlers ----

impl Handler<Hear> for GossipActor {
    type Result = ();

    fn handle(&mut self, Hear { from, frame }: Hear, ctx: &mut Context<Self>) {
        self.apply(MembershipEvent::Received { from, frame }, ctx);
    }
}

impl Handler<Silent> for GossipActor {
    type Result = ();

    fn handle(&mut self, Silent(nodes): Silent, ctx: &mut Context<Self>) {
        self.apply(MembershipEvent::Unreachable(nodes), ctx);
    }
}

impl Handler<Learn> for GossipActor {
    type Result = ();

    fn handle(&mut self, Learn(event): Learn, ctx: &mut Context<Self>) {
        let plans = matches!(event, MembershipEvent::LeaveRequested | MembershipEvent::HandedOff);
        self.apply(event, ctx);
        if plans {
            // Everybody should know at once.
            self.wake_up(ctx);
        }
    }
}
