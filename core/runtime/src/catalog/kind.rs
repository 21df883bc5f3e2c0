//! All actors of one kind on one arbiter.

use std::any::{Any, TypeId};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use archipelago_protocol::activation::{DeactivateReason, TimeQueue};
use archipelago_protocol::call::{CallError, UnknownMessage};
use archipelago_protocol::handoff::CarriedState;
use archipelago_protocol::identity::{ActorId, Generation};
use archipelago_protocol::message::{MessageFlags, WireId};
use archipelago_protocol::time::Millis;

use super::any_kind::{AnyKind, Encoded};
use super::job::{Job, JobHead, Queued};
use super::luggage::Luggage;
use super::messages::MessageTable;
use super::seal::{Leaving, Left};
use super::shards::Shards;
use super::slot::Slot;
use super::slots::Slots;
use super::summons::Summons;
use super::tally::Tallies;
use crate::arbiter::{ArbiterLocal, Expire, not_serving};
use crate::call::AnswerSender;
use crate::inspect::{ActorView, Listed, Wanted};
use crate::message::{BoxError, VirtualActor};
use crate::meters::KindMeters;
use crate::node::{KindShared, Node};
use crate::refs::decoding;
use crate::remote::{Arrived, Incoming, LargeArrived, Violation};

/// Makes the instance of an actor from its id.
pub type Factory<A> = Arc<dyn Fn(&ActorId, &Node) -> Result<A, BoxError> + Send + Sync>;

/// The actor a message is for.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) id: ActorId,
    pub(crate) hash: u64,
}

/// The actors of one kind on one arbiter.
pub(crate) struct KindCatalog<A: VirtualActor> {
    shared: Arc<KindShared>,
    factory: Factory<A>,
    messages: Arc<MessageTable<A>>,
    slots: Slots<A>,
    newborn: RefCell<VecDeque<Rc<Slot<A>>>>,
    ended: RefCell<VecDeque<Rc<Slot<A>>>>,
    idle: RefCell<TimeQueue<Weak<Slot<A>>>>,
    /// By when they were last known to be used.
    ranks: RefCell<TimeQueue<Weak<Slot<A>>>>,
    shards: Shards,
    luggage: Luggage,
    /// The jobs whose replies wait to leave.
    held: RefCell<Vec<Queued<A>>>,
    /// Jobs that have ended, to be filled again.
    jobs: RefCell<Vec<Queued<A>>>,
    meters: KindMeters,
    tallies: Tallies,
    /// How many activations have begun, and how many had when all were last asked to leave.
    begun: Cell<u64>,
    asked: Cell<Option<u64>>,
}

impl<A: VirtualActor> KindCatalog<A> {
    /// `reaches` if its actors may live in other datacenters.
    pub(crate) fn new(
        shared: Arc<KindShared>,
        factory: Factory<A>,
        messages: Arc<MessageTable<A>>,
        reaches: bool,
    ) -> Self {
        Self {
            shards: Shards::new(shared.layout(), reaches),
            meters: KindMeters::new(shared.name()),
            luggage: Luggage::new(shared.name()),
            slots: Slots::new(shared.layout()),
            tallies: Tallies::new(messages.types()),
            shared,
            factory,
            messages,
            newborn: RefCell::default(),
            ended: RefCell::default(),
            idle: RefCell::default(),
            ranks: RefCell::default(),
            held: RefCell::default(),
            jobs: RefCell::default(),
            begun: Cell::new(0),
            asked: Cell::new(None),
        }
    }

    /// Queues a job for an actor, which is activated if it is not active.
    ///
    /// # Errors
    ///
    /// The job was not queued and will never start; whoever waits for it has been told.
    pub(crate) fn submit(
        &self,
        target: &Target,
        mut job: Queued<A>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        match self.admit(target, &mut job.head, on) {
            Ok(slot) => {
                self.meters.messages.increment(1);
                slot.push(job, on);
                Ok(())
            }
            Err(error) => {
                job.body.fail(error.clone(), on);
                Err(error)
            }
        }
    }

    /// Queues a job that came over a lane.
    ///
    /// # Errors
    ///
    /// The job was not queued; whoever waits for it has been told.
    pub(super) fn submit_to(
        &self,
        slot: Rc<Slot<A>>,
        mut job: Queued<A>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let admitted =
            on.admit(&job.head).and_then(|()| slot.check(&job.head, on.node().settings().inbox, on));
        if let Err(error) = admitted {
            job.body.fail(error.clone(), on);
            return Err(error);
        }
        self.meters.messages.increment(1);
        slot.push(job, on);
        Ok(())
    }

    /// Finds the slot of a job that may be queued, and registers the call that waits for it.
    fn admit(
        &self,
        target: &Target,
        head: &mut JobHead,
        on: &Rc<ArbiterLocal>,
    ) -> Result<Rc<Slot<A>>, CallError> {
        on.admit(head)?;
        let slot = match self.find(target.hash, target.id.key().as_str()) {
            Some(slot) => slot,
            None => self.new_slot(target, head, on)?,
        };
        slot.check(head, on.node().settings().inbox, on)?;
        if head.asks && !head.remote {
            head.call = Some(on.open_call(head.deadline, Rc::clone(&slot) as Rc<dyn Expire>)?);
        }
        Ok(slot)
    }

    /// Notes that an activation begins.
    pub(super) fn begins(&self) {
        self.begun.set(self.begun.get().wrapping_add(1));
        self.meters.activations.increment(1);
    }

    /// Notes that the inbox of `slot` is gone.
    pub(super) fn ended(&self, slot: Rc<Slot<A>>, on: &ArbiterLocal) {
        self.ended.borrow_mut().push_back(slot);
        on.wake_main();
    }

    /// Notes that `slot` waits for its actor.
    pub(super) fn newborn(&self, slot: Rc<Slot<A>>, on: &ArbiterLocal) {
        self.newborn.borrow_mut().push_back(slot);
        on.wake_main();
    }

    pub(super) fn remove(&self, slot: &Rc<Slot<A>>) {
        if self.slots.remove(slot) {
            self.meters.active.decrement(1);
        }
    }

    /// Has an eye on a new activation; the main task must know if it is the first to be looked at.
    pub(super) fn watch_idleness(&self, slot: &Rc<Slot<A>>, on: &ArbiterLocal) {
        let due = slot.inner.borrow().life.idle_at(self.shared.idle_after());
        let Some(due) = due.filter(|due| *due < Millis::MAX) else { return };
        if std::mem::replace(&mut slot.inner.borrow_mut().watched, true) {
            // Its entry is due no later: it is from an earlier life in the same slot.
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let first = idle.next_at().is_none_or(|at| due < at);
        idle.push(due, Rc::downgrade(slot));
        // Slots that have gone would stay in memory until their entries are due.
        if idle.len() > 2 * self.slots.len() + 64 {
            idle.retain(|slot| slot.strong_count() > 0);
        }
        if first {
            on.wake_main();
        }
    }

    /// At which generation the shard of the actor with this hash is served.
    pub(super) fn generation(&self, hash: u64) -> Generation {
        self.shards.generation(self.shards.of(hash))
    }

    /// Whether messages of this node go straight to the actor.
    #[inline]
    pub(crate) fn is_open_to(&self, target: &Target) -> bool {
        self.shards.is_open_to(target)
    }

    pub(super) const fn factory(&self) -> &Factory<A> {
        &self.factory
    }

    pub(super) const fn shared(&self) -> &Arc<KindShared> {
        &self.shared
    }

    pub(super) fn messages(&self) -> &MessageTable<A> {
        &self.messages
    }

    pub(super) const fn ranks(&self) -> &RefCell<TimeQueue<Weak<Slot<A>>>> {
        &self.ranks
    }

    pub(super) const fn held(&self) -> &RefCell<Vec<Queued<A>>> {
        &self.held
    }

    pub(super) const fn jobs(&self) -> &RefCell<Vec<Queued<A>>> {
        &self.jobs
    }

    pub(super) const fn slots(&self) -> &Slots<A> {
        &self.slots
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    pub(super) const fn luggage(&self) -> &Luggage {
        &self.luggage
    }

    pub(super) const fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(super) const fn meters(&self) -> &KindMeters {
        &self.meters
    }

    /// The handler of a job has ended; it took so many seconds, if that was measured.
    #[inline]
    pub(super) fn handled(&self, job: &Queued<A>, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            self.meters.handling.record(seconds);
            self.tallies.took(job.body.name(), seconds);
        }
    }

    /// What is counted of its messages.
    pub(super) const fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    pub(super) fn index(&self) -> u32 {
        self.shared.index()
    }

    #[inline(never)]
    pub(super) fn new_slot(
        &self,
        target: &Target,
        head: &JobHead,
        on: &ArbiterLocal,
    ) -> Result<Rc<Slot<A>>, CallError> {
        if head.asks && !head.remote {
            on.admit_call()?;
        }
        let slot = Rc::new(Slot::new(target.id.clone(), target.hash, on.coarse()));
        self.slots.insert(&slot);
        self.meters.active.increment(1);
        self.newborn(Rc::clone(&slot), on);
        Ok(slot)
    }

    #[inline]
    pub(super) fn find(&self, hash: u64, wanted: &str) -> Option<Rc<Slot<A>>> {
        self.slots.find(hash, wanted)
    }

    /// Looks at one actor that may have been idle long enough.
    fn look_at(&self, slot: &Rc<Slot<A>>, now: Millis) {
        let mut inner = slot.inner.borrow_mut();
        let waiting = !inner.queue.is_empty();
        let due = inner.life.look_for_idleness(now, self.shared.idle_after(), waiting);
        inner.watched = due.is_some();
        drop(inner);
        match due {
            Some(due) => self.idle.borrow_mut().push(due, Rc::downgrade(slot)),
            None => slot.wake(),
        }
    }

    /// The slots of a part of the kind.
    pub(super) fn slots_of(&self, shard: u64) -> Vec<Rc<Slot<A>>> {
        self.slots.of_shard(shard)
    }

    fn unknown_message(&self, message: String) -> CallError {
        CallError::UnknownMessage(Box::new(UnknownMessage {
            kind: self.shared.name().into(),
            message: message.into(),
        }))
    }
}

impl<A: VirtualActor> AnyKind for KindCatalog<A> {
    fn submit_encoded(
        &self,
        target: &Target,
        mut head: JobHead,
        message: Encoded<'_>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let Encoded { id, name, bytes, codec, mut way_back } = message;
        let entry = self.messages.get(id).ok_or_else(|| self.unknown_message(name.to_owned()));
        let job = entry.and_then(|entry| {
            head.flags |= entry.flags;
            decoding(on.node(), || entry.decode(head, bytes, codec, &mut way_back, None))
        });
        self.submit(target, job.map_err(|error| way_back.refuse(error, on))?, on)
    }

    fn submit_arrived(&self, arrived: Arrived<'_>, on: &Rc<ArbiterLocal>) -> Result<(), Violation> {
        self.arrive(arrived, on)
    }

    fn submit_large(&self, arrived: LargeArrived, on: &Rc<ArbiterLocal>) -> Result<(), Violation> {
        self.arrive_large(arrived, on)
    }

    fn shards(&self) -> &Shards {
        &self.shards
    }

    fn empty_inboxes(&self, shard: u64, leaving: Leaving<'_>, on: &Rc<ArbiterLocal>) -> Left {
        self.empty_inboxes(shard, leaving, on)
    }

    fn has_unstarted(&self, shard: u64, incoming: &Incoming, on: &ArbiterLocal) -> bool {
        self.has_unstarted(shard, incoming, on)
    }

    fn is_inner(&self, shard: u64, head: &JobHead) -> bool {
        self.is_inner(shard, head)
    }

    fn clear_out(&self, shard: u64, reason: DeactivateReason) -> bool {
        self.clear_out(shard, reason)
    }

    fn is_vacant(&self, shard: u64) -> bool {
        self.slots_of(shard).is_empty()
    }

    fn busy_for(&self, shard: u64, now: Millis) -> Millis {
        self.busy_for(shard, now)
    }

    fn luggage(&self) -> &Luggage {
        &self.luggage
    }

    fn unload(&self, shard: u64, states: Vec<CarriedState>, now: Millis) {
        self.unload(shard, states, now);
    }

    fn takes(&self, id: WireId, message: TypeId) -> bool {
        self.messages.get(id).is_some_and(|entry| entry.type_id == message)
    }

    fn flags_of(&self, id: WireId) -> MessageFlags {
        self.messages.get(id).map_or(MessageFlags::empty(), |entry| entry.flags)
    }

    fn submit_boxed(
        &self,
        target: &Target,
        (id, job): (WireId, Box<dyn Any + Send>),
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        let job = self
            .messages
            .get(id)
            .and_then(|entry| entry.unwrap(job))
            .ok_or_else(|| self.unknown_message(id.to_string()))?;
        self.submit(target, job, on)
    }

    fn summon(
        &self,
        target: &Target,
        head: JobHead,
        caller: AnswerSender<()>,
        on: &Rc<ArbiterLocal>,
    ) -> Result<(), CallError> {
        self.submit(target, Job::boxed(head, Summons(Some(caller))), on)
    }

    fn leave(&self, target: &Target, reason: DeactivateReason) {
        if let Some(slot) = self.find(target.hash, target.id.key().as_str()) {
            slot.inner.borrow_mut().life.leave(reason);
            slot.wake();
        }
    }

    fn is_active(&self, target: &Target) -> bool {
        self.find(target.hash, target.id.key().as_str()).is_some()
    }

    fn leave_all(&self, reason: DeactivateReason) {
        // Of a million that go only those who came later have to be asked again.
        if self.asked.replace(Some(self.begun.get())) == Some(self.begun.get()) {
            return;
        }
        for slot in self.slots.all() {
            slot.inner.borrow_mut().life.leave(reason);
            slot.wake();
        }
    }

    fn work(&self, on: &Rc<ArbiterLocal>) -> bool {
        let ended = std::mem::take(&mut *self.ended.borrow_mut());
        let newborn = std::mem::take(&mut *self.newborn.borrow_mut());
        let any = !ended.is_empty() || !newborn.is_empty();
        for slot in ended {
            self.retire(slot, on);
        }
        for slot in newborn {
            self.activate(slot, on);
        }
        any
    }

    fn sweep_idle(&self, now: Millis) {
        self.luggage.expire(now);
        loop {
            let due = self.idle.borrow_mut().pop_due(now);
            match due {
                Some(slot) => {
                    if let Some(slot) = slot.upgrade() {
                        self.look_at(&slot, now);
                    }
                }
                None => return,
            }
        }
    }

    fn next_idle(&self) -> Option<Millis> {
        [self.idle.borrow().next_at(), self.luggage.next_at()].into_iter().flatten().min()
    }

    fn longest_unused(&self) -> Option<Millis> {
        Self::longest_unused(self)
    }

    fn look_for_room(&self, now: Millis) -> bool {
        Self::look_for_room(self, now)
    }

    fn tables(&self) -> usize {
        self.slots.tables()
    }

    fn list(&self, wanted: &Wanted<'_>, now: Millis) -> Listed {
        Self::list(self, wanted, now)
    }

    fn view(&self, target: &Target, now: Millis) -> Option<ActorView> {
        Self::view(self, target, now)
    }

    fn tallies(&self) -> &Tallies {
        &self.tallies
    }

    fn active(&self) -> usize {
        self.count()
    }

    fn close(&self, on: &ArbiterLocal) {
        self.flush_replies(on);
        for slot in self.slots.all() {
            let waiting = std::mem::take(&mut slot.inner.borrow_mut().queue);
            for job in waiting {
                on.refuse(&slot.id, job, not_serving("it has stopped"));
            }
        }
        // What is active now dies with the arbiter.
        let active = self.slots.clear();
        self.meters.active.decrement(active as f64);
    }
}
