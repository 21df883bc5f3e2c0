//! The actor that asks the others whether they are there. Every decision is [`HeartbeatMachine`]'s.
//!
//! [`GossipActor`] tells it whom to watch and hears from it who does not answer. Both live on the control arbiter and speak over
//! the control lanes, so no message of the application stands in their way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt, Addr, AsyncContext, Context, Handler, Message, MessageResult, SpawnHandle,
    WrapFuture,
};
use archipelago_protocol::identity::{NodeAddress, NodeId};
use archipelago_protocol::membership::{HeartbeatAction, HeartbeatEvent, HeartbeatMachine, MembershipFrame};
use archipelago_protocol::time::Millis;

use super::gossip::{GossipActor, Hear, Silent};
use super::speaking::speak;
use crate::inspect::Suspicion;
use crate::node::NodeShared;

// ---- messages ----

/// Whom to watch.
pub(super) struct Watch {
    pub(super) present: BTreeMap<NodeId, NodeAddress>,
    pub(super) suspected: BTreeSet<NodeId>,
}

/// Something came from another node.
pub(super) struct Sign(pub(super) HeartbeatEvent);

impl Message for Watch {
    type Result = ();
}

impl Message for Sign {
    type Result = ();
}

/// Asks what this node thinks of those it watches.
pub(super) struct AskSuspicions;

impl Message for AskSuspicions {
    type Result = BTreeMap<NodeId, Suspicion>;
}

// ---- state ----

/// Beats the other nodes, and notices who falls silent.
pub(crate) struct HeartbeatActor {
    node: Arc<NodeShared>,
    gossip: Addr<GossipActor>,
    machine: HeartbeatMachine,
    addresses: BTreeMap<NodeId, NodeAddress>,
    /// When something last came from those who are watched, over whichever lane.
    heard: BTreeMap<NodeId, Millis>,
    wake: Option<SpawnHandle>,
}

impl HeartbeatActor {
    pub(super) fn new(node: Arc<NodeShared>, gossip: Addr<GossipActor>) -> Self {
        let (now, settings) = (node.env().now(), node.settings().membership.heartbeat);
        let machine = HeartbeatMachine::new(now, node.id(), settings);
        Self { node, gossip, machine, addresses: BTreeMap::new(), heard: BTreeMap::new(), wake: None }
    }

    fn apply(&mut self, event: HeartbeatEvent, ctx: &mut Context<Self>) {
        for action in self.machine.handle(self.node.env().now(), event) {
            if let Some((to, frame)) = action.frame() {
                self.say(to, frame);
                continue;
            }
            match action {
                HeartbeatAction::WakeAt(at) => self.wake_at(at, ctx),
                HeartbeatAction::StrangerAsks(from) => {
                    self.gossip.do_send(Hear { from, frame: MembershipFrame::Heartbeat });
                }
                // Who is silent has changed.
                _ => self.gossip.do_send(Silent(self.machine.unreachable())),
            }
        }
    }

    /// Whatever came from a node since the last look is a sign of life, also a message from one of its actors to one of ours.
    fn notice_traffic(&mut self, ctx: &mut Context<Self>) {
        let book = self.node.remoting().book();
        let heard = |id: NodeId| Some((id, book.get(id)?.heard()));
        let heard: BTreeMap<NodeId, Millis> = self.machine.watched().filter_map(heard).collect();
        let earlier = std::mem::replace(&mut self.heard, heard.clone());
        for (id, at) in heard {
            if at > earlier.get(&id).copied().unwrap_or_default() {
                self.apply(HeartbeatEvent::Life(id), ctx);
            }
        }
    }

    /// Only to those present: their addresses are known.
    fn say(&self, to: NodeId, frame: MembershipFrame) {
        if let Some(address) = self.addresses.get(&to) {
            speak(&self.node, address.clone(), Some(to), frame);
        }
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        self.wake = Some(ctx.spawn(sleep.into_actor(self).map(|(), heartbeat, ctx| {
            heartbeat.wake = None;
            heartbeat.notice_traffic(ctx);
            let random = heartbeat.node.env().random();
            heartbeat.apply(HeartbeatEvent::Wake { random }, ctx);
        })));
    }
}

impl Actor for HeartbeatActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(super::MAILBOX);
    }
}

// ---- handlers ----

impl Handler<Watch> for HeartbeatActor {
    type Result = ();

    fn handle(&mut self, Watch { present, suspected }: Watch, ctx: &mut Context<Self>) {
        self.addresses = present;
        let present = self.addresses.keys().copied().collect();
        self.apply(HeartbeatEvent::Nodes { present, suspected }, ctx);
    }
}

impl Handler<AskSuspicions> for HeartbeatActor {
    type Result = MessageResult<AskSuspicions>;

    fn handle(&mut self, _: AskSuspicions, _: &mut Context<Self>) -> Self::Result {
        let suspicions = self.machine.suspicions(self.node.env().now());
        MessageResult(suspicions.map(|(node, phi, reachable)| (node, Suspicion { phi, reachable })).collect())
    }
}

impl Handler<Sign> for HeartbeatActor {
    type Result = ();

    fn handle(&mut self, Sign(event): Sign, ctx: &mut Context<Self>) {
        self.apply(event, ctx);
    }
}
