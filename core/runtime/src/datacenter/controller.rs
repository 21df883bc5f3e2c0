//! The actor that speaks with the control plane for its datacenter, on the control arbiter. Every decision is
//! [`Controller`]'s; what the node makes of what it hears is [`SharedMap`]'s.
//!
//! Every node has one. That on the leader claims the duty, writes the record of the datacenter, and shows the map to the
//! others; those hear it, and ask if nobody tells them.

use std::sync::Arc;

use actix::{
    Actor, ActorFutureExt, AsyncContext, Context, Handler, Message, ResponseFuture, SpawnHandle, WrapFuture,
};
use archipelago_protocol::contract::{ControlPlane, ControlPlaneError, DataCenterEvent, Epoch};
use archipelago_protocol::datacenter::{
    Controller, ControllerAction, ControllerEvent, ControllerReport, DataCenterMap, DataCenterRecord,
    DataCenterState, MapChange, SharedMap, Snapshot, WriteAnswer,
};
use archipelago_protocol::identity::{Generation, OwnedKey};
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use metrics::{counter, gauge};

use super::describe::{described, note_left_out};
use super::leaving::limit;
use super::waiting::{Waiting, Wanted};
use super::words::{Answer, Word, say};
use crate::env::within;
use crate::events::Event;
use crate::node::NodeShared;
use crate::role::{Officer, Seat, give_up, want};

// ---- messages: those of other nodes first, then those that the actor sends itself ----

/// The leader shows how the datacenters stand.
pub(crate) struct Hear(pub(super) Snapshot);

/// What this node knows, for one that knows nothing.
pub(crate) struct AskMap;

/// The datacenter is to become something else; true once it has.
pub(crate) struct Want(pub(super) Wanted);

/// The watch of the control plane told something, or broke.
struct Told(Option<DataCenterEvent>);

impl Message for Hear {
    type Result = ();
}

impl Message for AskMap {
    type Result = Option<Snapshot>;
}

impl Message for Want {
    type Result = bool;
}

impl Message for Told {
    type Result = ();
}

// ---- state ----

/// The controller of a datacenter, on one node.
pub(crate) struct DataCenterController {
    node: Arc<NodeShared>,
    plane: Arc<dyn ControlPlane>,
    machine: Controller,
    shared: SharedMap,
    seat: Seat,
    wake: Option<SpawnHandle>,
    watch: Option<SpawnHandle>,
    waiting: Waiting,
}

impl DataCenterController {
    pub(super) fn new(node: Arc<NodeShared>, plane: Arc<dyn ControlPlane>) -> Self {
        let settings = &node.settings().datacenter;
        let machine = Controller::new(settings.info.clone(), settings.controller.clone());
        let shared = SharedMap::new(settings.info.id().clone(), settings.controller.max_staleness)
            .starting_from((*node.datacenters().newest()).clone());
        let (seat, wake, watch, waiting) = (Seat::new(&node, duty()), None, None, Waiting::default());
        Self { node, plane, machine, shared, seat, wake, watch, waiting }
    }

    fn apply(&mut self, event: ControllerEvent, ctx: &mut Context<Self>) {
        let (now, random) = (self.node.env().now(), self.node.env().random());
        for action in self.machine.handle(now, random, event) {
            match action {
                ControllerAction::ClaimDuty => want(self, true, ctx),
                // A later leader was found; whoever claims next gets a later generation.
                ControllerAction::ReleaseDuty => give_up(self, ctx),
                write @ (ControllerAction::Register { .. }
                | ControllerAction::Heartbeat { .. }
                | ControllerAction::SetState { .. }) => self.write(write, ctx),
                ControllerAction::List { epoch } => self.list(epoch, ctx),
                ControllerAction::Watch => self.open_watch(ctx),
                ControllerAction::StopWatching => self.close_watch(ctx),
                ControllerAction::Show => self.show(ctx),
                ControllerAction::Report(report) => self.report(&report),
                ControllerAction::WakeAt(at) => self.wake_at(at, ctx),
            }
        }
    }

    // ---- looking ----

    fn look(&mut self, ctx: &mut Context<Self>) {
        let leader = self.node.members().view().leader;
        let leads = leader == Some(self.node.id()) && !self.node.is_stopping();
        if let Some(info) = described(&self.node, leads || self.machine.is_in_office()) {
            self.apply(ControllerEvent::Describe(info), ctx);
        }
        self.apply(ControllerEvent::Leads(leads), ctx);
        if !leads {
            want(self, false, ctx);
        }
        if self.shared.is_empty() && !self.machine.is_in_office() {
            self.ask_leader(ctx);
        }
        let now = self.node.env().now();
        let changes = self.shared.look(now);
        self.publish(changes);
        if let Some(age) = self.shared.age(now) {
            gauge!("archipelago_datacenters_age_seconds").set(age.to_duration().as_secs_f64());
        }
        let check = self.node.settings().datacenter.controller.leader_check;
        // A cluster that is just coming together soon has a leader.
        let pause = if leader.is_none() { check.min(SOON) } else { check };
        let sleep = self.node.env().sleep(pause);
        ctx.spawn(sleep.into_actor(self).map(|(), controller, ctx| controller.look(ctx)));
    }

    fn wake_at(&mut self, at: Millis, ctx: &mut Context<Self>) {
        if let Some(earlier) = self.wake.take() {
            ctx.cancel_future(earlier);
        }
        let env = self.node.env();
        let sleep = env.sleep(at.since(env.now()));
        self.wake = Some(ctx.spawn(sleep.into_actor(self).map(|(), controller, ctx| {
            controller.wake = None;
            controller.apply(ControllerEvent::Woke, ctx);
        })));
    }

    // ---- requests to the control plane ----

    fn write(&self, action: ControllerAction, ctx: &mut Context<Self>) {
        let (plane, node) = (Arc::clone(&self.plane), Arc::clone(&self.node));
        let limit = self.node.settings().datacenter.controller.request_timeout;
        let work = async move {
            let wall = node.env().wall_millis();
            let request = async {
                match &action {
                    ControllerAction::Register { info, epoch } => plane.register(info, *epoch, wall).await,
                    ControllerAction::SetState { seen, state, epoch } => {
                        plane.set_state(seen, *state, *epoch).await
                    }
                    ControllerAction::Heartbeat { seen, epoch } => plane.heartbeat(seen, *epoch, wall).await,
                    _ => Err(ControlPlaneError::Invalid { what: "no write", source: None }),
                }
            };
            (epoch_of(&action), within(node.env(), limit, request).await)
        };
        ctx.spawn(work.into_actor(self).map(|(epoch, answer), controller, ctx| {
            let answer = answer.map_or(WriteAnswer::Unanswered, write_answer);
            controller.apply(ControllerEvent::Written { epoch, answer }, ctx);
        }));
    }

    fn list(&self, epoch: Epoch, ctx: &mut Context<Self>) {
        let (plane, node) = (Arc::clone(&self.plane), Arc::clone(&self.node));
        let limit = self.node.settings().datacenter.controller.request_timeout;
        let work = async move { within(node.env(), limit, plane.list_all()).await };
        ctx.spawn(work.into_actor(self).map(move |answer, controller, ctx| {
            let listing = match answer {
                Some(Ok(listing)) => Some((listing.revision, listing.records)),
                unanswered => {
                    tracing::debug!(?unanswered, "the control plane did not list its datacenters");
                    None
                }
            };
            controller.apply(ControllerEvent::Listed { epoch, listing }, ctx);
        }));
    }

    fn open_watch(&mut self, ctx: &mut Context<Self>) {
        let (plane, to) = (Arc::clone(&self.plane), ctx.address());
        let follow = async move {
            match plane.watch(None).await {
                Ok(mut events) => {
                    while let Some(Ok(event)) = events.next().await {
                        if to.send(Told(Some(event))).await.is_err() {
                            return;
                        }
                    }
                }
                Err(error) => tracing::debug!(%error, "the control plane cannot be watched"),
            }
            to.do_send(Told(None));
        };
        self.close_watch(ctx);
        self.watch = Some(ctx.spawn(follow.into_actor(self)));
    }

    fn close_watch(&mut self, ctx: &mut Context<Self>) {
        if let Some(watch) = self.watch.take() {
            ctx.cancel_future(watch);
        }
    }

    // ---- telling ----

    /// Takes the leader's own view in and tells the others.
    fn show(&mut self, ctx: &mut Context<Self>) {
        let Some(snapshot) = self.machine.snapshot(self.node.env().now()) else { return };
        self.hear(snapshot.clone(), ctx);
        let view = self.node.members().view();
        for member in view.members.values().filter(|member| member.info.id != self.node.id()) {
            let (node, word) = (Arc::clone(&self.node), Word::Show(snapshot.clone()));
            let (to, address) = (member.info.id, member.info.address.clone());
            self.node.env().spawn(Box::pin(async move {
                // The next round says it again.
                if let Err(error) = say(&node, address, Some(to), &word, SAY_WITHIN).await {
                    tracing::debug!(%to, %error, "a node could not be told about the datacenters");
                }
            }));
        }
    }

    fn ask_leader(&self, ctx: &mut Context<Self>) {
        let view = self.node.members().view();
        let leader = view.leader.filter(|leader| *leader != self.node.id());
        let Some(member) = leader.and_then(|leader| view.members.get(&leader)) else { return };
        let (node, to, address) = (Arc::clone(&self.node), member.info.id, member.info.address.clone());
        let ask = async move { say(&node, address, Some(to), &Word::Ask, SAY_WITHIN).await };
        ctx.spawn(ask.into_actor(self).map(|answer, controller, ctx| {
            if let Ok(Answer::Map(Some(snapshot))) = answer {
                controller.hear(snapshot, ctx);
            }
        }));
    }

    fn hear(&mut self, snapshot: Snapshot, ctx: &mut Context<Self>) {
        note_left_out("datacenters", snapshot.entries.len().saturating_sub(DataCenterMap::MAX_ENTRIES));
        let changes = self.shared.offer(self.node.env().now(), snapshot);
        self.publish(changes);
        // Should this node take over, it goes on with what the datacenter was asked for.
        if self.shared.is_draining() && !self.machine.is_draining() {
            self.apply(ControllerEvent::Drain, ctx);
        }
    }

    fn publish(&self, changes: Vec<MapChange>) {
        self.node.datacenters().replace(self.shared.map().clone());
        let active =
            self.shared.map().entries.iter().filter(|entry| entry.standing == DataCenterState::Active);
        gauge!("archipelago_datacenters").set(active.count() as f64);
        for change in changes {
            tracing::info!(node = %self.node.id(), ?change, "the datacenters have changed");
            self.node.events().publish(match change {
                MapChange::Up(datacenter) => Event::DataCenterUp { datacenter },
                MapChange::Draining(datacenter) => Event::DataCenterDraining { datacenter },
                MapChange::Down(datacenter) => Event::DataCenterDown { datacenter },
                MapChange::Stale => Event::DataCentersStale,
                MapChange::Fresh => Event::DataCentersFresh,
            });
        }
    }

    fn report(&mut self, report: &ControllerReport) {
        match report {
            ControllerReport::Taken(epoch) => {
                gauge!("archipelago_datacenter_controller").set(1.0);
                tracing::info!(node = %self.node.id(), %epoch, "this node speaks for its datacenter");
                self.node.events().publish(Event::ControllerTaken { epoch: *epoch });
            }
            ControllerReport::Superseded(by) => {
                gauge!("archipelago_datacenter_controller").set(0.0);
                tracing::warn!(node = %self.node.id(), %by, "another node speaks for this datacenter");
                self.node.events().publish(Event::ControllerLost { by: *by });
                self.waiting.give_up();
            }
            ControllerReport::State(state) => {
                tracing::info!(node = %self.node.id(), %state, "the datacenter's own record has changed");
                self.waiting.reached(*state);
            }
            ControllerReport::WriteFailed => {
                counter!("archipelago_datacenter_heartbeats_failed_total").increment(1);
            }
            ControllerReport::ListFailed => {
                counter!("archipelago_datacenter_refreshes_failed_total").increment(1);
            }
        }
    }
}

const fn epoch_of(action: &ControllerAction) -> Epoch {
    match action {
        ControllerAction::Register { epoch, .. }
        | ControllerAction::Heartbeat { epoch, .. }
        | ControllerAction::SetState { epoch, .. } => *epoch,
        _ => Epoch(0),
    }
}

fn write_answer(answer: Result<DataCenterRecord, ControlPlaneError>) -> WriteAnswer {
    match answer {
        Ok(record) => WriteAnswer::Done(Box::new(record)),
        Err(ControlPlaneError::Conflict { current }) => WriteAnswer::Conflict(current),
        Err(ControlPlaneError::Superseded { by }) => WriteAnswer::Superseded(by),
        Err(error @ ControlPlaneError::Invalid { .. }) => {
            tracing::warn!(%error, "the control plane refuses a write");
            WriteAnswer::Refused
        }
        Err(error) => {
            tracing::debug!(%error, "a write to the control plane is unanswered");
            WriteAnswer::Unanswered
        }
    }
}

impl Officer for DataCenterController {
    fn seat(&mut self) -> &mut Seat {
        &mut self.seat
    }

    fn take_office(&mut self, generation: Generation, ctx: &mut Context<Self>) {
        self.apply(ControllerEvent::Duty(Some(Epoch::from(generation))), ctx);
    }

    fn passed_over(&mut self, ctx: &mut Context<Self>) {
        self.apply(ControllerEvent::Duty(None), ctx);
    }
}

impl Actor for DataCenterController {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        self.look(ctx);
    }
}

// ---- handlers ----

impl Handler<Hear> for DataCenterController {
    type Result = ();

    fn handle(&mut self, Hear(snapshot): Hear, ctx: &mut Context<Self>) {
        self.hear(snapshot, ctx);
    }
}

impl Handler<AskMap> for DataCenterController {
    type Result = actix::MessageResult<AskMap>;

    fn handle(&mut self, _: AskMap, _: &mut Context<Self>) -> Self::Result {
        actix::MessageResult(self.shared.snapshot(self.node.env().now()))
    }
}

impl Handler<Want> for DataCenterController {
    type Result = ResponseFuture<bool>;

    fn handle(&mut self, Want(wanted): Want, ctx: &mut Context<Self>) -> ResponseFuture<bool> {
        if self.machine.record().is_some_and(|record| wanted.is_met_by(record.state)) {
            return Box::pin(std::future::ready(true));
        }
        if wanted == Wanted::Draining && !self.machine.is_in_office() {
            return Box::pin(std::future::ready(false));
        }
        let Some(done) = self.waiting.wait_for(wanted) else {
            return Box::pin(std::future::ready(false));
        };
        let event = match wanted {
            Wanted::Draining => ControllerEvent::Drain,
            Wanted::Inactive => ControllerEvent::Disable,
        };
        self.apply(event, ctx);
        // Whoever asked waits no longer than this, and is not waited for.
        let node = Arc::clone(&self.node);
        Box::pin(async move {
            let done = within(node.env(), limit(&node), done).await;
            matches!(done, Some(Ok(true)))
        })
    }
}

impl Handler<Told> for DataCenterController {
    type Result = ();

    fn handle(&mut self, Told(event): Told, ctx: &mut Context<Self>) {
        let event = event.map_or(ControllerEvent::WatchBroken, ControllerEvent::Watched);
        self.apply(event, ctx);
    }
}

/// The duty in the directory.
pub(super) fn duty() -> OwnedKey {
    OwnedKey::role(DUTY).expect("the duty has a plain name")
}

/// The name of the duty.
const DUTY: &str = "datacenter";

/// How long a word to another node of the cluster may take.
pub(super) const SAY_WITHIN: Millis = Millis(1_000);

/// How soon to look again while there is no leader.
const SOON: Millis = Millis(500);
