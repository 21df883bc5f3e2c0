//! The shards of one arbiter that this node serves, or is about to, or gives away. Every decision is [`HostedShard`]'s.
//!
//! Messages that come for a shard which is not served go back to their senders at once and wait there, so the machine has
//! none on hold; whom a lane's messages were refused, the arbiter remembers for all its shards together.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;

use archipelago_protocol::activation::TimeQueue;
use archipelago_protocol::handoff::{
    HandOffOutcome, HandoffLimits, HostAction, HostEvent, HostState, HostedShard, Moment, Tenancy,
};
use archipelago_protocol::identity::{ActorId, Generation, NodeId, OwnedKey};
use archipelago_protocol::link::{Hint, ShardRef};
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::time::Millis;
use metrics::counter;
use tokio::sync::oneshot;

use crate::arbiter::ArbiterLocal;
use crate::inspect::MoveView;
use crate::node::NodeShared;
use crate::remote::Shard;

/// What this node has to do with the shards of one arbiter.
#[derive(Default)]
pub(crate) struct Hosting {
    shards: RefCell<BTreeMap<Shard, Hosted>>,
    /// Single actors whose records may stand without them, and when to look.
    vacancies: RefCell<TimeQueue<Shard>>,
    /// Whether somebody looks.
    looks: Cell<bool>,
    /// Nothing is served here any more, whatever the answers to writes that are under way.
    over: Cell<bool>,
}

/// What the machine keeps of a message: nothing, because none waits here.
pub(crate) type NoJob = Infallible;

/// One shard, and whoever waits to hear of it.
struct Hosted {
    machine: HostedShard<NoJob>,
    askers: Vec<Asker>,
    /// Who ordered the move that is under way, and where to.
    order: Option<Order>,
    /// Who waits for the answer to an offer.
    offer: Option<oneshot::Sender<bool>>,
    /// The move for which its actors end.
    draining: Option<u64>,
}

/// Waits to be told where a shard is.
type Asker = oneshot::Sender<Option<Hint>>;

/// An order to hand a shard over.
pub(super) struct Order {
    pub(super) to: NodeId,
    pub(super) done: oneshot::Sender<HandOffOutcome>,
}

impl Hosting {
    pub(super) const fn vacancies(&self) -> &RefCell<TimeQueue<Shard>> {
        &self.vacancies
    }

    /// Somebody looks at the vacancies from now on, or nobody; whether somebody did before.
    pub(super) fn looks_at_vacancies(&self, looks: bool) -> bool {
        self.looks.replace(looks)
    }

    /// Whether this node has to do with a shard.
    pub(super) fn knows(&self, shard: Shard) -> bool {
        self.shards.borrow().contains_key(&shard)
    }

    /// Forgets a shard that is not here and of which nobody waits to hear.
    pub(super) fn drop_absent(&self, shard: Shard) {
        let mut shards = self.shards.borrow_mut();
        if shards.get(&shard).is_some_and(Hosted::is_over) {
            shards.remove(&shard);
        }
    }

    /// The moves of shards to other nodes that are under way.
    pub(crate) fn moves(&self, node: &NodeShared) -> Vec<MoveView> {
        let shards = self.shards.borrow();
        let view = |(shard, hosted): (&Shard, &Hosted)| {
            let step = hosted.step()?;
            let kind = node.kinds().get(shard.kind as usize)?.name().to_owned();
            Some(MoveView { kind, shard: shard.number, to: hosted.order.as_ref()?.to, step })
        };
        shards.iter().filter_map(view).collect()
    }

    /// Of the parts of a kind that are meant: how many are being given up, and those that are served.
    pub(crate) fn of_kind(&self, kind: u32, is_meant: impl Fn(Shard) -> bool) -> (usize, Vec<Shard>) {
        let shards = self.shards.borrow();
        let all = shards.range(Shard::home(kind, 0)..=Shard::home(kind, u64::MAX));
        let all = all.filter(|(shard, _)| is_meant(**shard));
        let (served, others): (Vec<_>, Vec<_>) =
            all.partition(|(_, hosted)| hosted.machine.serving().is_some());
        let leaving = |hosted: &Hosted| {
            matches!(hosted.machine.state(), HostState::Draining(_) | HostState::Transferring(_))
        };
        let leaving = others.into_iter().filter(|(_, hosted)| leaving(hosted)).count();
        (leaving, served.into_iter().map(|(shard, _)| *shard).collect())
    }
}

impl ArbiterLocal {
    /// Has this node serve the part with this key, if nobody else does; `asker` is told who serves it then.
    pub(crate) fn want_part(self: &Rc<Self>, shard: Shard, key: &OwnedKey, asker: Asker) {
        if let OwnedKey::Actor(actor) = key
            && let Err(error) = self.name_part(shard, actor)
        {
            // Whoever asked hears nothing and asks another node.
            return tracing::debug!(%actor, %error, "an actor cannot be placed here");
        }
        self.want_shard(shard, Some(asker));
    }

    /// Has this node serve a shard, if nobody else does; `asker` is told who serves it then.
    pub(crate) fn want_shard(self: &Rc<Self>, shard: Shard, asker: Option<Asker>) {
        self.with_hosted(shard, |hosted| {
            hosted.askers.retain(|asker| !asker.is_closed());
            // Beyond the bound nobody waits; whoever asked looks again by itself.
            hosted.askers.extend(asker.filter(|_| hosted.askers.len() < ASKERS));
        });
        self.host(shard, HostEvent::Asked);
    }

    /// Hands a shard over, if it is served here at this generation. The answer says what became of it.
    pub(super) fn order_move(self: &Rc<Self>, shard: Shard, generation: Generation, order: Order) {
        let busy =
            self.any_kind(shard.kind).map_or(Millis::ZERO, |kind| kind.busy_for(shard.number, self.now()));
        let (to, move_id) = (order.to, self.node().env().random());
        let actions = self.decide(shard, HostEvent::HandOff { generation, to, move_id, busy });
        let refused = actions.iter().find_map(|action| match action {
            HostAction::HandOffDone { outcome: HandOffOutcome::Refused(why), .. } => Some(*why),
            _ => None,
        });
        match refused {
            Some(why) => {
                counter!("archipelago_shard_moves_total", "outcome" => "refused").increment(1);
                // Whoever asked may have given up.
                let _ = order.done.send(HandOffOutcome::Refused(why));
            }
            // An order that is dropped counts as refused.
            None if actions.is_empty() => {}
            None => {
                self.with_hosted(shard, |hosted| hosted.order = Some(order));
                self.move_begins(shard, generation, to);
                self.carry_out_all(shard, actions);
            }
        }
    }

    /// Another node offers a shard; the answer says whether it may come.
    pub(super) fn hear_offer(
        self: &Rc<Self>,
        shard: Shard,
        (from, move_id, bytes): (NodeId, u64, u64),
        answer: oneshot::Sender<bool>,
    ) {
        self.with_hosted(shard, |hosted| hosted.offer = Some(answer));
        self.host(shard, HostEvent::Offered { from, move_id, bytes });
    }

    /// Serves nothing from now on: what still comes goes back.
    pub(crate) fn serve_nothing(&self) {
        self.hosting().over.set(true);
        self.all_kinds().for_each(|kind| kind.shards().serve_nothing());
        // Whoever waits hears that nobody answers any more.
        for hosted in self.hosting().shards.borrow_mut().values_mut() {
            hosted.forget_all();
        }
    }

    /// Feeds one event to a shard and carries out what follows.
    pub(crate) fn host(self: &Rc<Self>, shard: Shard, event: HostEvent<NoJob>) {
        let actions = self.decide(shard, event);
        self.carry_out_all(shard, actions);
        self.tidy_up(shard);
    }

    fn decide(&self, shard: Shard, event: HostEvent<NoJob>) -> Vec<HostAction<NoJob>> {
        if self.hosting().over.get() {
            self.with_hosted(shard, Hosted::forget_all);
            return Vec::new();
        }
        let at = Moment { now: self.now(), serve_until: self.node().gate().serve_until(), room: 0 };
        self.with_hosted(shard, |hosted| hosted.machine.handle(at, event))
    }

    fn carry_out_all(self: &Rc<Self>, shard: Shard, actions: Vec<HostAction<NoJob>>) {
        for action in actions {
            self.carry_out_host(shard, action);
        }
    }

    fn carry_out_host(self: &Rc<Self>, shard: Shard, action: HostAction<NoJob>) {
        match action {
            HostAction::Claim => self.claim(shard),
            HostAction::LookUp => self.look_at_record(shard),
            HostAction::Reassert(record) => self.reassert(shard, record),
            HostAction::Transfer { generation, to, moved } => {
                if !moved.state {
                    self.note_cold(shard);
                }
                self.transfer(shard, generation, to, moved);
            }
            HostAction::Release { generation, move_id } => self.release(shard, generation, move_id),
            HostAction::Serve { generation, since } => {
                self.begin_tenure(shard, Tenancy { generation, since })
            }
            HostAction::LetGo(_) | HostAction::Abort => self.end_tenure(shard),
            HostAction::Answer(hint) => self.answer_askers(shard, hint),
            HostAction::Offer { to, move_id, generation } => self.offer(shard, to, move_id, generation),
            HostAction::AnswerOffer { to, move_id, accept } => {
                self.answer_offer(shard, (to, move_id), accept)
            }
            HostAction::Seal => self.seal(shard),
            HostAction::Stop { move_id } => self.stop_actors(shard, move_id),
            HostAction::HandOffDone { outcome, .. } => self.move_ends(shard, outcome),
            HostAction::WakeAt(at) => self.wake_host(shard, at),
            HostAction::Contradicted { served } => self.contradicted(shard, served),
            HostAction::SendParcels { to, move_id } => self.send_parcels(shard, to, move_id),
            HostAction::InstallParcels { move_id } => self.install_parcels(shard, move_id),
            HostAction::DropParcels { move_id } => self.drop_parcels(shard, move_id),
            // Nothing is ever on hold here.
            HostAction::Deliver(_)
            | HostAction::Return { .. }
            | HostAction::Drop { .. }
            | HostAction::ReturnQueued { .. }
            | HostAction::SendSettled { .. }
            | HostAction::Notify { .. } => {}
        }
    }

    /// Messages that wait for the shard go to its actors, in order, before any that comes later.
    fn begin_tenure(self: &Rc<Self>, shard: Shard, tenancy: Tenancy) {
        let Some(kind) = self.any_kind(shard.kind) else { return };
        kind.shards().serve(shard.number, tenancy);
        self.drains_for(shard, None);
        let generation = tenancy.generation;
        let hint = Hint { owner: self.node().id(), generation };
        tracing::debug!(node = %self.node().id(), kind = shard.kind, shard = shard.number, %generation, "shard served");
        if self.is_single(shard) {
            // Without a route nothing waits.
            kind.shards().set_open(shard.number, !self.routes().knows(shard));
            self.look_at_vacancy(shard);
        }
        self.route(shard, RouteEvent::Learn(hint));
        self.tell_the_owed(shard, hint);
    }

    fn end_tenure(&self, shard: Shard) {
        self.drains_for(shard, None);
        if let Some(kind) = self.any_kind(shard.kind) {
            kind.shards().let_go(shard.number);
            kind.luggage().forget(shard.number);
        }
    }

    /// Whoever asked is told; so is whoever waits for a shard that has gone to another node.
    fn answer_askers(self: &Rc<Self>, shard: Shard, hint: Option<Hint>) {
        for asker in self.with_hosted(shard, |hosted| std::mem::take(&mut hosted.askers)) {
            // It may have given up.
            let _ = asker.send(hint);
        }
        let elsewhere = hint.filter(|hint| hint.owner != self.node().id());
        if let Some(hint) = elsewhere.filter(|hint| self.node().remoting().book().get(hint.owner).is_some()) {
            self.route(shard, RouteEvent::Learn(hint));
            self.tell_the_owed(shard, hint);
        }
    }

    fn answer_offer(&self, shard: Shard, (to, move_id): (NodeId, u64), accept: bool) {
        if accept {
            self.node().with_parcels(|room| room.expect(move_id, to, shard));
        }
        if let Some(answer) = self.with_hosted(shard, |hosted| hosted.offer.take()) {
            // It may have given up.
            let _ = answer.send(accept);
        }
    }

    fn wake_host(self: &Rc<Self>, shard: Shard, at: Millis) {
        let (on, env) = (Rc::downgrade(self), self.node().env());
        let sleep = env.sleep(at.since(env.now()));
        env.spawn(Box::pin(async move {
            sleep.await;
            if let Some(on) = on.upgrade() {
                on.host(shard, HostEvent::WokeUp);
            }
        }));
    }

    fn contradicted(&self, shard: Shard, served: Generation) {
        counter!("archipelago_duplicate_activations_total").increment(1);
        tracing::error!(kind = shard.kind, shard = shard.number, %served, "the directory names another owner");
        let reason = "the directory names another owner of what this node serves";
        self.node().give_up_by(reason, Millis::ZERO);
    }

    /// For which move the actors of a shard end, if for any.
    pub(super) fn drains_for(&self, shard: Shard, move_id: Option<u64>) {
        self.with_hosted(shard, |hosted| hosted.draining = move_id);
    }

    pub(super) fn is_draining_for(&self, shard: Shard, move_id: u64) -> bool {
        self.with_hosted(shard, |hosted| hosted.draining == Some(move_id))
    }

    /// Whoever ordered the move that has ended.
    pub(super) fn take_order(&self, shard: Shard) -> Option<Order> {
        self.with_hosted(shard, |hosted| hosted.order.take())
    }

    fn with_hosted<T>(&self, shard: Shard, with: impl FnOnce(&mut Hosted) -> T) -> T {
        let mut shards = self.hosting().shards.borrow_mut();
        with(shards.entry(shard).or_insert_with(|| Hosted::new(self.node(), shard)))
    }
}

impl Hosted {
    fn new(node: &NodeShared, Shard { kind, number, .. }: Shard) -> Self {
        let shard = ShardRef { kind: u16::try_from(kind).unwrap_or(u16::MAX), number };
        Self {
            machine: HostedShard::new(node.id(), shard, HandoffLimits::DEFAULT),
            askers: Vec::new(),
            order: None,
            offer: None,
            draining: None,
        }
    }

    /// Whether the shard is not here and nobody waits to hear of it.
    fn is_over(&self) -> bool {
        let absent = matches!(self.machine.state(), HostState::Absent);
        absent && self.askers.is_empty() && self.order.is_none() && self.offer.is_none()
    }

    /// How far it is on its way to another node.
    fn step(&self) -> Option<&'static str> {
        match self.machine.state() {
            HostState::Serving { offer: Some(_), .. } => Some("offered"),
            HostState::Draining(_) => Some("draining"),
            HostState::Transferring(_) => Some("transferring"),
            _ => None,
        }
    }

    /// Nobody is answered any more.
    fn forget_all(&mut self) {
        self.askers.clear();
        (self.order, self.offer, self.draining) = (None, None, None);
    }
}

impl NodeShared {
    /// The key of an actor's part in the directory.
    pub(crate) fn key_for(&self, shard: Shard, actor: &ActorId) -> Option<OwnedKey> {
        let kind = self.kinds().get(shard.kind as usize)?;
        if kind.layout().is_by_actor() { Some(OwnedKey::Actor(actor.clone())) } else { self.shard_key(shard) }
    }

    /// The key of a shard in the directory; none if the kind has no shards.
    pub(crate) fn shard_key(&self, shard: Shard) -> Option<OwnedKey> {
        let kind = self.kinds().get(shard.kind as usize)?;
        kind.layout().shards()?;
        Some(OwnedKey::shard(kind.kind().clone(), u32::try_from(shard.number).ok()?))
    }
}

/// How many may wait for one shard to be placed.
const ASKERS: usize = 1_024;
