//! The actor that keeps the shards of all kinds in balance, on the node that has the duty. Every decision is
//! [`Coordinator`]'s, one per kind; it asks owners to hand shards over and nodes to claim what a dead owner has left, and
//! writes nothing but the claim of its duty. Who demands a rebalance comes by [`rebalance`](super::rebalance).
//!
//! Every node has one on its control arbiter. The leader of the cluster claims the duty; whoever has it keeps it until its
//! session ends. Two that think they have it are harmless: both can only ask.

use std::collections::BTreeMap;
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_protocol::contract::{Entry, EntryId, OwnerRecord, WatchEvent, WatchScope};
use archipelago_protocol::handoff::{
    Coordinator, CoordinatorAction, CoordinatorEvent, HandOffOutcome, HandoffFrame, Host, Imbalance,
    KindBalance, Owned, ShardName, version_of,
};
use archipelago_protocol::identity::{Generation, Kind, NodeId, OwnedKey};
use archipelago_protocol::link::Hint;
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::time::Millis;
use metrics::{counter, gauge};
use tokio::sync::oneshot;

use super::moving::{order_move, tell_about_move};
use super::seek::place_here;
use crate::cluster::{ClusterMember, Watched, not_listed, watch};
use crate::node::NodeShared;
use crate::role::{Officer, Seat, want};

/// Starts the actor, if there can be other nodes. Call it on the control arbiter.
pub(crate) fn start(node: &Arc<NodeShared>) {
    if node.remoting().transport().is_some() {
        let seat = Seat::new(node, duty());
        let coordinator = ShardCoordinator { node: Arc::clone(node), seat, office: None };
        node.has_coordinator(coordinator.start());
    }
}

// ---- messages ----

/// Somebody wants the shards balanced now, and hears what there is to do.
pub(super) struct Demand {
    /// Of this kind; of all if none is named.
    pub(super) kind: Option<Kind>,
    pub(super) answer: oneshot::Sender<Vec<KindBalance>>,
}

impl Message for Demand {
    type Result = ();
}

// ---- state ----

pub(crate) struct ShardCoordinator {
    node: Arc<NodeShared>,
    seat: Seat,
    office: Option<Office>,
}

/// What the node with the duty knows.
struct Office {
    kinds: BTreeMap<Kind, Coordinator>,
    /// The owner records, and whether the machine was last told that the owner has ended.
    records: BTreeMap<(Kind, u32), (Hint, bool)>,
    wakes: BTreeMap<Kind, SpawnHandle>,
}

impl ShardCoordinator {
    // ---- the duty ----

    fn look(&mut self, ctx: &mut Context<Self>) {
        let leads = self.node.members().view().leader == Some(self.node.id());
        if self.office.is_some() {
            self.show_hosts(ctx);
        }
        want(self, leads && !self.node.is_stopping(), ctx);
        let sleep = self.node.env().sleep(LOOK_EVERY);
        ctx.spawn(sleep.into_actor(self).map(|(), coordinator, ctx| coordinator.look(ctx)));
    }

    // ---- what it is fed with ----

    /// Tells every machine who is there. Whose owner is gone is placed anew; whether its session has really ended, the claim
    /// finds out.
    fn show_hosts(&mut self, ctx: &mut Context<Self>) {
        let names: Vec<Kind> = self.office.iter().flat_map(|office| office.kinds.keys().cloned()).collect();
        names.iter().for_each(|kind| self.show_hosts_of(kind, ctx));
        let Some(office) = &mut self.office else { return };
        let members = self.node.members().view();
        let mut changed = Vec::new();
        for ((kind, shard), (hint, was)) in &mut office.records {
            let ended = !members.members.contains_key(&hint.owner);
            if std::mem::replace(was, ended) != ended {
                changed.push((kind.clone(), *shard, *hint, ended));
            }
        }
        for (kind, shard, hint, ended) in changed {
            self.apply(&kind, CoordinatorEvent::Record { shard, record: Some(hint), ended }, ctx);
        }
    }

    fn show_hosts_of(&mut self, kind: &Kind, ctx: &mut Context<Self>) {
        let hosts = self.node.shard_hosts(kind);
        self.apply(kind, CoordinatorEvent::Hosts(hosts), ctx);
    }

    /// A kind that has shards is looked after, whether or not this node knows it.
    fn meet(&mut self, kind: &Kind, ctx: &mut Context<Self>) {
        let (now, limits) = (self.node.env().now(), self.node.settings().sharding.duty());
        let Some(office) = &mut self.office else { return };
        if office.kinds.contains_key(kind) {
            return;
        }
        if office.kinds.len() >= MOST_KINDS {
            tracing::debug!(%kind, "too many kinds: the shards of this one stay where they are");
            return;
        }
        office.kinds.insert(kind.clone(), Coordinator::new(now, limits));
        self.show_hosts_of(kind, ctx);
    }

    fn seen(&mut self, record: &OwnerRecord, ctx: &mut Context<Self>) {
        let OwnedKey::Shard { kind, shard } = record.key().clone() else { return };
        self.meet(&kind, ctx);
        let hint = Owned::from(record).hint;
        let ended = !self.node.members().view().members.contains_key(&hint.owner);
        if let Some(office) = &mut self.office {
            office.records.insert((kind.clone(), shard), (hint, ended));
        }
        self.apply(&kind, CoordinatorEvent::Record { shard, record: Some(hint), ended }, ctx);
    }

    fn gone(&mut self, key: OwnedKey, ctx: &mut Context<Self>) {
        let OwnedKey::Shard { kind, shard } = key else { return };
        if let Some(office) = &mut self.office {
            office.records.remove(&(kind.clone(), shard));
        }
        self.apply(&kind, CoordinatorEvent::Record { shard, record: None, ended: false }, ctx);
    }

    fn take_in(&mut self, change: WatchEvent, ctx: &mut Context<Self>) {
        match change {
            WatchEvent::Snapshot { entries, .. } => self.listed(entries, ctx),
            WatchEvent::Put { entry: Entry::Owner(record), .. } => self.seen(&record, ctx),
            WatchEvent::Gone { id: EntryId::Owner(key), .. } => self.gone(key, ctx),
            WatchEvent::Put { .. } | WatchEvent::Gone { .. } => {}
        }
    }

    fn listed(&mut self, entries: Vec<Entry>, ctx: &mut Context<Self>) {
        let shard = |entry| match entry {
            Entry::Owner(record) if matches!(record.key(), OwnedKey::Shard { .. }) => Some(record),
            _ => None,
        };
        let records: Vec<OwnerRecord> = entries.into_iter().filter_map(shard).collect();
        let known = self.office.iter().flat_map(|office| office.records.keys().cloned());
        let known = known.map(|(kind, shard)| OwnedKey::shard(kind, shard));
        let missing = not_listed(known, records.iter().map(|record| record.key().clone()));
        missing.into_iter().for_each(|key| self.gone(key, ctx));
        records.iter().for_each(|record| self.seen(record, ctx));
    }

    // ---- what it does ----

    fn apply(&mut self, kind: &Kind, event: CoordinatorEvent, ctx: &mut Context<Self>) {
        let now = self.node.env().now();
        let strategy = self.node.settings().sharding.strategy_of(kind.as_str());
        let machine = self.office.as_mut().and_then(|office| office.kinds.get_mut(kind));
        let Some(actions) = machine.map(|machine| machine.handle(now, event, strategy)) else { return };
        for action in actions {
            match action {
                CoordinatorAction::HandOff { shard, owner, generation, to } => {
                    let name = ShardName { kind: kind.clone(), number: shard };
                    self.hand_off(name, owner, generation, to, ctx);
                }
                CoordinatorAction::Allocate { shard, node, expect } => {
                    self.allocate(ShardName { kind: kind.clone(), number: shard }, node, expect);
                }
                CoordinatorAction::WakeAt(at) => self.wake_at(kind, at, ctx),
            }
        }
    }

    /// Begins what was demanded of a kind; nothing if this node has not the duty, or there is no such kind.
    fn balance(&mut self, kind: &Kind, ctx: &mut Context<Self>) -> Option<KindBalance> {
        self.apply(kind, CoordinatorEvent::Rebalance, ctx);
        let strategy = self.node.settings().sharding.strategy_of(kind.as_str());
        let Imbalance { under_way, remaining } = self.office.as_ref()?.kinds.get(kind)?.imbalance(strategy);
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        Some(KindBalance { kind: kind.clone(), under_way: count(under_way), remaining: count(remaining) })
    }

    fn hand_off(
        &self,
        shard: ShardName,
        owner: NodeId,
        generation: Generation,
        to: NodeId,
        ctx: &mut Context<Self>,
    ) {
        counter!("archipelago_shard_orders_total").increment(1);
        let (node, name) = (Arc::clone(&self.node), shard.clone());
        let order = async move { order_move(&node, owner, &name, generation, to).await };
        ctx.spawn(order.into_actor(self).map(move |outcome, coordinator, ctx| {
            let moved = match outcome {
                Ok(HandOffOutcome::Moved(generation)) => Some(Hint { owner: to, generation }),
                _ => None,
            };
            if moved.is_none() {
                tracing::debug!(?shard, ?outcome, "an order to move a shard came to nothing");
            }
            let done = CoordinatorEvent::Done { shard: shard.number, generation, moved };
            coordinator.apply(&shard.kind, done, ctx);
        }));
    }

    /// The record tells what came of it.
    fn allocate(&self, shard: ShardName, to: NodeId, expect: Option<Generation>) {
        let node = Arc::clone(&self.node);
        self.node.env().spawn(Box::pin(async move {
            if to == node.id() {
                if let Ok(shard) = node.shard_named(&shard)
                    && let Some(key) = node.shard_key(shard)
                {
                    place_here(&node, shard, &key).await;
                }
                return;
            }
            let limit = node.settings().sharding.limits.place;
            let frame = HandoffFrame::Allocate { shard, expect };
            if let Err(error) = tell_about_move(&node, to, &frame, limit).await {
                tracing::debug!(%to, %error, "a node could not be asked to claim a shard");
            }
        }));
    }

    fn wake_at(&mut self, kind: &Kind, at: Millis, ctx: &mut Context<Self>) {
        let env = self.node.env();
        // A shard that nobody can take is due again at once; it is looked at again after a pause.
        let sleep = env.sleep(at.since(env.now()).max(LEAST_PAUSE));
        let of_kind = kind.clone();
        let wake = ctx.spawn(sleep.into_actor(self).map(move |(), coordinator, ctx| {
            coordinator.apply(&of_kind, CoordinatorEvent::WokeUp, ctx);
        }));
        let earlier = self.office.as_mut().and_then(|office| office.wakes.insert(kind.clone(), wake));
        if let Some(earlier) = earlier {
            ctx.cancel_future(earlier);
        }
    }
}

impl NodeShared {
    /// The members that host a kind. One that does not answer neither gets nor loses anything.
    pub(super) fn shard_hosts(&self, kind: &Kind) -> BTreeMap<NodeId, Host> {
        let host = |member: &ClusterMember| Host {
            status: if member.suspect { MemberStatus::Joining } else { member.status },
            version: version_of(&member.info.version),
            load: member.load.map_or(0, |load| load.activations.into()),
            measured: member.load.map_or(0, |load| load.counter),
        };
        let view = self.members().view();
        let hosts = view.members.values().filter(|member| member.info.kinds.contains(kind.as_str()));
        hosts.map(|member| (member.info.id, host(member))).collect()
    }
}

impl Officer for ShardCoordinator {
    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn take_office(&mut self, generation: Generation, ctx: &mut Context<Self>) {
        tracing::info!(node = %self.node.id(), %generation, "this node keeps the shards in balance");
        gauge!("archipelago_shard_coordinator").set(1.0);
        // Its kinds come with their records.
        self.office =
            Some(Office { kinds: BTreeMap::new(), records: BTreeMap::new(), wakes: BTreeMap::new() });
        watch(&Arc::clone(&self.node), WatchScope::Owners, self, ctx);
    }
}

impl Actor for ShardCoordinator {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.look(ctx);
    }
}

// ---- handlers ----

impl Handler<Watched> for ShardCoordinator {
    type Result = ();

    fn handle(&mut self, watched: Watched, ctx: &mut Context<Self>) {
        if let Watched::Change(change) = watched {
            self.take_in(change, ctx);
        }
    }
}

impl Handler<Demand> for ShardCoordinator {
    type Result = ();

    fn handle(&mut self, Demand { kind, answer }: Demand, ctx: &mut Context<Self>) {
        // Without the duty the answer is dropped, which says so.
        let Some(office) = &self.office else { return };
        let wanted = |known: &&Kind| kind.as_ref().is_none_or(|kind| kind == *known);
        let kinds: Vec<Kind> = office.kinds.keys().filter(wanted).cloned().collect();
        let balances = kinds.iter().filter_map(|kind| self.balance(kind, ctx)).collect();
        // Whoever asked may have given up.
        let _ = answer.send(balances);
    }
}

/// The duty to look after shards, in the directory.
pub(super) fn duty() -> OwnedKey {
    OwnedKey::role(DUTY).expect("the duty has a plain name")
}

/// The name of the duty in the directory.
const DUTY: &str = "shard-coordinator";

/// How often to look at the members, and whether the duty is free.
const LOOK_EVERY: Millis = Millis(1_000);

/// Between two looks at what is due.
const LEAST_PAUSE: Millis = Millis(50);

/// Of how many kinds the shards are kept in balance.
const MOST_KINDS: usize = HandoffFrame::MAX_KINDS;
