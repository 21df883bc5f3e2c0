//! The actor that decides the tables of all kinds that are divided by ranges, on the node that has the duty. Every decision is
//! [`RangeManager`]'s, one per kind; it writes tables, fenced by the epoch of the duty, and nothing else: owners follow the
//! tables by themselves.
//!
//! Every node has one on its control arbiter. The leader of the cluster claims the duty; whoever has it keeps it until its
//! session ends. Two that think they have it are harmless: the later epoch wins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::{Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, SpawnHandle, WrapFuture};
use archipelago_protocol::contract::{Epoch, RoutingTable, RoutingTableError, SavedTable};
use archipelago_protocol::identity::{Generation, Kind, NodeId, OwnedKey, PartitionName};
use archipelago_protocol::membership::MemberStatus;
use archipelago_protocol::ranges::{
    ChangeOutcome, ManagerAction, ManagerEvent, ManagerLimits, OwnerStatus, RangeHost, RangeManager,
    RangeTable, RequestId, SaveFailure,
};
use archipelago_protocol::session::times;
use archipelago_protocol::time::Millis;
use metrics::{counter, gauge};
use tokio::sync::oneshot;

use super::requests::{Answered, Wish};
use crate::cluster::ClusterMember;
use crate::env::within;
use crate::node::NodeShared;
use crate::role::{Officer, Seat, give_up, want};

/// Starts the actor, if the node can write tables. Call it on the control arbiter.
pub(super) fn start(node: &Arc<NodeShared>) {
    if let Some(tables) = node.ranges().routing_table().cloned() {
        let (node, seat) = (Arc::clone(node), Seat::new(node, duty()));
        let managers = RangeManagers { node: Arc::clone(&node), tables, seat, office: None };
        node.ranges().has_managers(managers.start());
    }
}

// ---- messages ----

/// Somebody wants a change, and hears what comes of it.
pub(super) struct Ask {
    pub(super) kind: Kind,
    pub(super) wish: Wish,
    pub(super) until: Millis,
    pub(super) answer: oneshot::Sender<Answered>,
}

impl Message for Ask {
    type Result = ();
}

// ---- state ----

pub(crate) struct RangeManagers {
    node: Arc<NodeShared>,
    tables: Arc<dyn RoutingTable>,
    seat: Seat,
    office: Option<Office>,
}

/// What the node with the duty knows.
struct Office {
    epoch: Epoch,
    desks: BTreeMap<Kind, Desk>,
}

/// One kind.
struct Desk {
    machine: RangeManager,
    wake: Option<SpawnHandle>,
    asked: BTreeMap<RequestId, oneshot::Sender<Answered>>,
    /// How many were asked for.
    requests: u64,
    /// The partitions whose end is waited for.
    awaited: BTreeSet<PartitionName>,
}

impl RangeManagers {
    // ---- the duty ----

    fn look(&mut self, ctx: &mut Context<Self>) {
        let alone = self.node.remoting().transport().is_none();
        let leads = alone || self.node.members().view().leader == Some(self.node.id());
        if self.office.is_some() {
            self.show_hosts(ctx);
        }
        want(self, leads && !self.node.is_stopping(), ctx);
        let sleep = self.node.env().sleep(LOOK_EVERY);
        ctx.spawn(sleep.into_actor(self).map(|(), managers, ctx| managers.look(ctx)));
    }

    // ---- what it is fed with ----

    fn show_hosts(&mut self, ctx: &mut Context<Self>) {
        let kinds: Vec<Kind> = self.office.iter().flat_map(|office| office.desks.keys().cloned()).collect();
        for kind in kinds {
            let hosts = self.node.range_hosts(&kind);
            self.apply(&kind, ManagerEvent::Hosts(hosts), ctx);
        }
    }

    fn apply(&mut self, kind: &Kind, event: ManagerEvent, ctx: &mut Context<Self>) {
        let now = self.node.env().now();
        let Some(desk) = self.desk(kind) else { return };
        let actions = desk.machine.handle(now, event);
        self.carry_out_all(kind, actions, ctx);
    }

    // ---- what it does ----

    fn carry_out_all(&mut self, kind: &Kind, actions: Vec<ManagerAction>, ctx: &mut Context<Self>) {
        for action in actions {
            match action {
                ManagerAction::Seal => self.seal(kind.clone(), ctx),
                ManagerAction::Save { table, expected } => self.save(kind.clone(), table, expected, ctx),
                ManagerAction::Load => self.load(kind.clone(), ctx),
                ManagerAction::Retire { partition, .. } => self.await_end(kind.clone(), partition, ctx),
                // Owners follow the table by themselves.
                ManagerAction::HandOver { .. } => {}
                ManagerAction::Answer { id, outcome } => self.answer(kind, id, &outcome),
                ManagerAction::WakeAt(at) => self.wake_at(kind, at, ctx),
                ManagerAction::StepDown { by } => return self.step_down(by, ctx),
            }
        }
    }

    fn seal(&self, kind: Kind, ctx: &mut Context<Self>) {
        let (tables, of) = (Arc::clone(&self.tables), kind.clone());
        let Some(epoch) = self.epoch() else { return };
        self.ask(kind, async move { tables.seal(&of, epoch).await }, ManagerEvent::Sealed, ctx);
    }

    fn save(&self, kind: Kind, table: RangeTable, expected: SavedTable, ctx: &mut Context<Self>) {
        let (tables, of) = (Arc::clone(&self.tables), kind.clone());
        let Some(epoch) = self.epoch() else { return };
        let save = async move { tables.save(&of, &table, Some(&expected), epoch).await };
        self.ask(kind, save, ManagerEvent::Saved, ctx);
    }

    fn load(&self, kind: Kind, ctx: &mut Context<Self>) {
        let (tables, of) = (Arc::clone(&self.tables), kind.clone());
        self.ask(kind, async move { tables.load(&of).await }, ManagerEvent::Loaded, ctx);
    }

    /// Asks the store, for a while, and tells the machine what came of it.
    fn ask<T: 'static>(
        &self,
        kind: Kind,
        request: impl Future<Output = Result<T, RoutingTableError>> + 'static,
        event: fn(Result<T, SaveFailure>) -> ManagerEvent,
        ctx: &mut Context<Self>,
    ) {
        let node = Arc::clone(&self.node);
        let limit = times::attempt_timeout(node.settings().session_ttl);
        let asked = async move { within(node.env(), limit, request).await };
        ctx.spawn(asked.into_actor(self).map(move |answer, managers, ctx| {
            let answer = match answer {
                Some(Ok(answer)) => Ok(answer),
                Some(Err(error)) => {
                    tracing::debug!(%kind, %error, "the store did not do what a table needs");
                    Err(SaveFailure::from(error))
                }
                None => Err(SaveFailure::Unknown),
            };
            managers.apply(&kind, event(answer), ctx);
        }));
    }

    /// The owner of a partition that was divided or merged follows the table; its record tells when it has. Without a result
    /// the machine asks again.
    fn await_end(&mut self, kind: Kind, partition: PartitionName, ctx: &mut Context<Self>) {
        let Some(desk) = self.desk(&kind) else { return };
        if !desk.awaited.insert(partition.clone()) {
            return;
        }
        let node = Arc::clone(&self.node);
        let key = OwnedKey::Range { kind: kind.clone(), partition: partition.clone() };
        let ended = async move { has_no_owner(&node, &key).await };
        ctx.spawn(ended.into_actor(self).map(move |ended, managers, ctx| {
            if let Some(desk) = managers.desk(&kind) {
                desk.awaited.remove(&partition);
            }
            if ended {
                managers.apply(&kind, ManagerEvent::Retired(partition), ctx);
            }
        }));
    }

    fn answer(&mut self, kind: &Kind, id: RequestId, outcome: &ChangeOutcome) {
        let answered = Answered::from(outcome);
        counter!("archipelago_range_changes_total", "outcome" => answered.label()).increment(1);
        tracing::info!(%kind, ?outcome, "a change of ranges was decided");
        if let Some(asker) = self.desk(kind).and_then(|desk| desk.asked.remove(&id)) {
            // It may have given up.
            let _ = asker.send(answered);
        }
    }

    /// Whoever waits for an answer hears that nobody gives one.
    fn step_down(&mut self, by: Epoch, ctx: &mut Context<Self>) {
        tracing::info!(node = %self.node.id(), %by, "another node decides the tables of ranges");
        gauge!("archipelago_range_manager").set(0.0);
        self.office = None;
        give_up(self, ctx);
    }

    fn wake_at(&mut self, kind: &Kind, at: Millis, ctx: &mut Context<Self>) {
        let (env, of_kind) = (self.node.env(), kind.clone());
        let sleep = env.sleep(at.since(env.now()).max(LEAST_PAUSE));
        let wake = ctx.spawn(sleep.into_actor(self).map(move |(), managers, ctx| {
            managers.apply(&of_kind, ManagerEvent::WokeUp, ctx);
        }));
        if let Some(earlier) = self.desk(kind).and_then(|desk| desk.wake.replace(wake)) {
            ctx.cancel_future(earlier);
        }
    }

    fn epoch(&self) -> Option<Epoch> {
        self.office.as_ref().map(|office| office.epoch)
    }

    fn desk(&mut self, kind: &Kind) -> Option<&mut Desk> {
        self.office.as_mut()?.desks.get_mut(kind)
    }
}

impl Desk {
    const fn new(machine: RangeManager) -> Self {
        Self { machine, wake: None, asked: BTreeMap::new(), requests: 0, awaited: BTreeSet::new() }
    }
}

impl NodeShared {
    /// The members that host a kind. One that does not answer loses nothing; whether it has gone, its session tells.
    fn range_hosts(&self, kind: &Kind) -> BTreeMap<NodeId, RangeHost> {
        let host = |member: &ClusterMember| {
            let status = match member.status {
                MemberStatus::Up => OwnerStatus::Up,
                MemberStatus::Leaving | MemberStatus::Exiting => OwnerStatus::Leaving,
                MemberStatus::Joining | MemberStatus::Down | MemberStatus::Removed => return None,
            };
            let address = member.info.address.clone();
            let hosts = member.info.kinds.contains(kind.as_str());
            hosts.then_some((member.info.id, RangeHost { address, status }))
        };
        let mut hosts: BTreeMap<NodeId, RangeHost> =
            self.members().view().members.values().filter_map(host).collect();
        let hosted = |index: u32| self.kinds().get(index as usize).is_some_and(|kind| kind.is_hosted());
        let alone = self.remoting().transport().is_none();
        if alone && self.kind_index(kind).is_some_and(hosted) {
            let status = if self.is_stopping() { OwnerStatus::Leaving } else { OwnerStatus::Up };
            hosts.insert(self.id(), RangeHost { address: self.address(), status });
        }
        hosts
    }
}

/// Waits a little until nobody owns a partition.
async fn has_no_owner(node: &NodeShared, key: &OwnedKey) -> bool {
    let limit = times::attempt_timeout(node.settings().session_ttl);
    let mut pause = FIRST_LOOK;
    while pause <= LAST_LOOK {
        node.env().sleep(pause).await;
        if let Some(Ok(None)) = within(node.env(), limit, node.directory().lookup(key)).await {
            return true;
        }
        pause = Millis(pause.0 * 2);
    }
    false
}

/// The duty in the directory.
pub(super) fn duty() -> OwnedKey {
    OwnedKey::role(DUTY).expect("the duty has a plain name")
}

impl Officer for RangeManagers {
    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn take_office(&mut self, generation: Generation, ctx: &mut Context<Self>) {
        tracing::info!(node = %self.node.id(), %generation, "this node decides the tables of ranges");
        gauge!("archipelago_range_manager").set(1.0);
        let epoch = Epoch::from(generation);
        self.office = Some(Office { epoch, desks: BTreeMap::new() });
        let kinds: Vec<_> =
            self.node.kinds().iter().filter(|kind| kind.layout().is_by_range()).cloned().collect();
        for kind in kinds {
            let (machine, actions) = RangeManager::take_office(epoch, ManagerLimits::DEFAULT);
            let machine = machine.first_cut_at(self.node.settings().cuts_of(kind.name()));
            if let Some(office) = &mut self.office {
                office.desks.insert(kind.kind().clone(), Desk::new(machine));
            }
            self.carry_out_all(kind.kind(), actions, ctx);
        }
        self.show_hosts(ctx);
    }
}

impl Actor for RangeManagers {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.look(ctx);
    }
}

// ---- handlers ----

impl Handler<Ask> for RangeManagers {
    type Result = ();

    fn handle(&mut self, Ask { kind, wish, until, answer }: Ask, ctx: &mut Context<Self>) {
        let Some(desk) = self.desk(&kind) else { return };
        let table = desk.machine.saved().and_then(|saved| saved.table.as_ref());
        let Some(change) = table.map(|table| wish.of(table)) else {
            // It may have given up.
            let _ = answer.send(Answered::NotYet);
            return;
        };
        desk.requests += 1;
        let id = RequestId(desk.requests);
        desk.asked.insert(id, answer);
        self.apply(&kind, ManagerEvent::Asked { id, change, until }, ctx);
    }
}

/// The name of the duty.
const DUTY: &str = "range-manager";

/// How often to look at the members, and whether the duty is free.
const LOOK_EVERY: Millis = Millis(1_000);

/// Between two looks at what is due.
const LEAST_PAUSE: Millis = Millis(10);

/// The first and the longest pause before a look at the record of a partition whose end is waited for.
const FIRST_LOOK: Millis = Millis(10);
const LAST_LOOK: Millis = Millis(400);
