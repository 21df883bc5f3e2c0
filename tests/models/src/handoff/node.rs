//! A node around its machine: inboxes, handlers, activations, offers and parcels.

use archipelago_protocol::handoff::{Assertion, HostAction, HostEvent, HostState, Job, Moment};
use archipelago_protocol::identity::Generation;
use archipelago_protocol::link::ReturnReason;
use archipelago_protocol::route::LaneId;
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;

use super::Handoff;
use super::mutant::Mutant;
use super::world::{
    Fate, INNER, Life, Lookup, Message, Parcel, Slot, Up, What, World, Write, id, index_of, lane_id, moment,
    owned,
};

impl World {
    pub(crate) fn tell(&mut self, model: &Handoff, node: usize, event: HostEvent<Message>) {
        let lease = self.nodes[node].lease || model.breaks(Mutant::ActivateAfterFence);
        self.tell_at(model, node, moment(lease), event);
    }

    fn tell_at(&mut self, model: &Handoff, node: usize, at: Moment, event: HostEvent<Message>) {
        let mut actions = self.nodes[node].host.handle(at, event);
        if model.breaks(Mutant::SettleNoFlush) {
            actions.sort_by_key(|action| !matches!(action, HostAction::SendSettled { .. }));
        }
        if model.breaks(Mutant::OverflowNewestOnly) {
            self.keep_all_but_the_newest(node, &mut actions);
        }
        for action in actions {
            self.act(model, node, action);
        }
        let taking = matches!(self.nodes[node].host.state(), HostState::Probing | HostState::Reasserting(_));
        self.marks.held_at_new_owner |= node != 0 && taking && self.nodes[node].host.held().0 > 0;
    }

    fn keep_all_but_the_newest(&mut self, node: usize, actions: &mut Vec<HostAction<Message>>) {
        let overflow = |action: &HostAction<Message>| {
            matches!(action, HostAction::Return { reason: ReturnReason::Overflow, .. })
        };
        let mut returned = actions.iter().filter(|action| overflow(action)).count();
        actions.retain(|action| match action {
            HostAction::Return { job, reason: ReturnReason::Overflow } if returned > 1 => {
                returned -= 1;
                self.nodes[node].aside.push(job.clone());
                false
            }
            _ => true,
        });
    }

    fn act(&mut self, model: &Handoff, node: usize, action: HostAction<Message>) {
        match action {
            HostAction::Deliver(job) => self.deliver(model, node, job),
            HostAction::Return { job, reason } => self.give_back(model, node, job, reason),
            HostAction::Drop { job, .. } => self.drop_job(model, node, job),
            HostAction::ReturnQueued { lane, .. } => self.return_queued(model, node, lane),
            HostAction::Abort => self.abort(model, node),
            HostAction::SendSettled { lane, generation, hint } => {
                self.return_aside(model, node, Some(lane));
                self.say(node, lane, Up::Settled { generation: generation.as_u64(), hint });
            }
            HostAction::Notify { lane, hint } if !model.breaks(Mutant::NoNotice) => {
                self.say(node, lane, Up::Notice(hint));
            }
            HostAction::LookUp => self.nodes[node].lookup = Lookup::Asked,
            HostAction::Claim => self.write(node, What::Claim { expect: self.record().generation }),
            HostAction::Reassert(base) => self.write(node, What::Reassert(base)),
            HostAction::Transfer { generation, to, moved } => {
                let (expect, state) = (generation.as_u64(), self.nodes[node].state);
                self.write(node, What::Transfer { expect, to: to.id, moved, state });
            }
            HostAction::Serve { .. } => self.serve(model, node),
            HostAction::LetGo(_) => {
                self.nodes[node].state = 0;
                self.nodes[node].stopping = None;
                self.return_aside(model, node, None);
            }
            HostAction::Offer { to, move_id, generation } => {
                self.offer(model, (node, index_of(to)), move_id, generation);
            }
            HostAction::AnswerOffer { to, move_id, accept } => {
                self.answer_offer(model, (node, index_of(to)), move_id, accept)
            }
            HostAction::Seal => self.seal(model, node),
            HostAction::Stop { move_id } => self.nodes[node].stopping = Some(move_id),
            HostAction::SendParcels { to, move_id } => self.send_parcels(model, node, index_of(to), move_id),
            HostAction::InstallParcels { .. } => self.install(node),
            HostAction::DropParcels { .. } if !model.breaks(Mutant::ParcelAnyMove) => {
                self.nodes[node].parcel = None;
            }
            HostAction::Contradicted { .. } => self.marks.stray = true,
            _ => {}
        }
    }

    // ---- jobs ----

    fn deliver(&mut self, model: &Handoff, node: usize, job: Job<Message>) {
        let actor = model.actor_of(job.body);
        self.nodes[node].inbox[actor].push_back(job);
    }

    fn give_back(&mut self, model: &Handoff, node: usize, job: Job<Message>, reason: ReturnReason) {
        if model.breaks(Mutant::DropWhenNotOwner) && reason == ReturnReason::NotOwner {
            return;
        }
        self.send_back(model, node, job);
    }

    fn send_back(&mut self, model: &Handoff, node: usize, job: Job<Message>) {
        let Some(lane) = self.lane_of(node, job.lane) else { return };
        self.lanes[lane].up.push_back(Up::Return(job.body));
        self.marks.returned = true;
        if model.forgets_refusals() {
            let LaneId(number) = self.real_lane(node, job.lane);
            let fresh = LaneId(10_000 + self.nodes[node].aliases.len() as u64);
            self.nodes[node].aliases.push((LaneId(number), fresh));
        }
    }

    pub(crate) fn real_lane(&self, node: usize, lane: LaneId) -> LaneId {
        let alias = self.nodes[node].aliases.iter().find(|(_, alias)| *alias == lane);
        alias.map_or(lane, |(real, _)| *real)
    }

    /// What a lane is called at a node: itself, unless a mutant forgets refusals.
    pub(crate) fn alias(&self, node: usize, lane: LaneId) -> LaneId {
        let alias = self.nodes[node].aliases.iter().rev().find(|(real, _)| *real == lane);
        alias.map_or(lane, |(_, alias)| *alias)
    }

    fn drop_job(&mut self, model: &Handoff, node: usize, mut job: Job<Message>) {
        if model.breaks(Mutant::OrphanReturned) && job.lane != INNER {
            let sender = model.sender_of(job.body);
            job.lane = lane_id(sender, self.lanes[self.lane(sender, node)].incarnation);
            self.send_back(model, node, job);
        }
    }

    fn return_queued(&mut self, model: &Handoff, node: usize, lane: LaneId) {
        for actor in 0..self.nodes[node].inbox.len() {
            let inbox = std::mem::take(&mut self.nodes[node].inbox[actor]);
            let (ours, rest): (Vec<_>, Vec<_>) = inbox.into_iter().partition(|job| job.lane == lane);
            self.nodes[node].inbox[actor] = rest.into();
            ours.into_iter().for_each(|job| self.send_back(model, node, job));
        }
    }

    fn return_aside(&mut self, model: &Handoff, node: usize, lane: Option<LaneId>) {
        for job in std::mem::take(&mut self.nodes[node].aside) {
            if lane.is_none_or(|lane| lane == job.lane) {
                self.send_back(model, node, job);
            } else {
                self.nodes[node].aside.push(job);
            }
        }
    }

    fn say(&mut self, node: usize, lane: LaneId, frame: Up) {
        if let Some(lane) = self.lane_of(node, lane) {
            self.lanes[lane].up.push_back(frame);
        }
    }

    // ---- serving ----

    fn serve(&mut self, model: &Handoff, node: usize) {
        let lease = self.nodes[node].lease || model.breaks(Mutant::ActivateAfterFence);
        self.nodes[node].stopping = None;
        self.nodes[node].gate = lease;
        self.marks.moved |= node != 0;
        let expected = self.record().owned.and_then(|owned| owned.moved).is_some_and(|moved| moved.state);
        let newly = self.nodes[node].state == 0 && self.record().state != 0;
        if model.breaks(Mutant::ParcelAnyMove) && self.nodes[node].parcel.is_some() {
            self.install(node);
        } else if expected && newly && !self.marks.faulted {
            self.marks.incomplete = true;
        }
        for job in std::mem::take(&mut self.nodes[node].aside) {
            self.deliver(model, node, job);
        }
    }

    /// The state that came ahead must be all that the old owner had when it gave the shard away.
    fn install(&mut self, node: usize) {
        let Some((_, state)) = self.nodes[node].parcel.take() else { return };
        let moved = self.record().owned.and_then(|owned| owned.moved);
        let named = moved.is_some_and(|moved| moved.state) && self.record().state == state;
        self.marks.incomplete |= !named;
        self.nodes[node].state = state;
    }

    pub(crate) fn start(&mut self, model: &Handoff, node: usize, actor: usize) {
        let Some(job) = self.nodes[node].inbox[actor].pop_front() else { return };
        self.marks.twin |= self.nodes[node].slots[actor] == Slot::Deactivating;
        self.nodes[node].slots[actor] = Slot::Valid;
        let message = job.body;
        self.marks.twice |= self.started.contains(&message);
        let same = |other: &Message| {
            model.sender_of(*other) == model.sender_of(message)
                && model.actor_of(*other) == model.actor_of(message)
        };
        let overtaken = |other: &Message| *other != NESTED && *other > message && same(other);
        self.marks.disorder |= message != NESTED && self.started.iter().any(overtaken);
        self.started.push(message);
        self.nodes[node].running[actor] = Some(job);
        if model.config.nested && message == 0 {
            let inner = !model.breaks(Mutant::InnerHeld);
            let generation = self.nodes[node].host.serving().map_or(Generation::new(1), |at| at.generation);
            let job = Job { inner, ..new_job(INNER, generation.as_u64(), NESTED) };
            self.tell(model, node, HostEvent::Data(job));
        }
    }

    pub(crate) fn finish(&mut self, node: usize, actor: usize) {
        if let Some(job) = self.nodes[node].running[actor].take() {
            self.nodes[node].state |= 1 << (job.body % 32);
            if let Some(fate) = self.messages.get_mut(job.body as usize)
                && *fate == Fate::Given(node)
            {
                *fate = Fate::Done;
            }
        }
    }

    /// A handler that has called another waits for it.
    pub(crate) fn may_finish(&self, model: &Handoff, node: usize, actor: usize) -> bool {
        let Some(job) = &self.nodes[node].running[actor] else { return false };
        let runs = self.nodes[node].running.iter().flatten().any(|job| job.body == NESTED);
        let waits = model.config.nested && job.body == 0;
        !waits || self.started.contains(&NESTED) && !runs
    }

    /// Everything that the drain waits for has ended.
    pub(crate) fn is_quiet(&self, model: &Handoff, node: usize) -> bool {
        let node = &self.nodes[node];
        let idle =
            node.running.iter().all(Option::is_none) && node.inbox.iter().all(|inbox| inbox.is_empty());
        let gone = node.slots.iter().all(|slot| *slot != Slot::Deactivating);
        node.stopping.is_some() && (idle && gone || model.breaks(Mutant::ReleaseBeforeQuiet))
    }

    pub(crate) fn quiet(&mut self, model: &Handoff, node: usize) {
        let Some(move_id) = self.nodes[node].stopping.take() else { return };
        if !model.breaks(Mutant::ReleaseBeforeQuiet) {
            self.nodes[node].slots.fill(Slot::Empty);
        }
        let state = model.config.migrate.then_some(1);
        self.tell(model, node, HostEvent::Stopped { move_id, state });
    }

    fn seal(&mut self, model: &Handoff, node: usize) {
        let mut sealed = Vec::new();
        for inbox in &mut self.nodes[node].inbox {
            let (inner, outer): (Vec<_>, Vec<_>) = inbox.drain(..).partition(|job| job.inner);
            *inbox = inner.into();
            sealed.extend(outer);
        }
        for job in &mut sealed {
            job.orphan = self.lane_of(node, job.lane).is_none();
        }
        if model.breaks(Mutant::LetGoDropsInbox) {
            sealed.clear();
        }
        if model.breaks(Mutant::HoldBeforeInbox) {
            self.nodes[node].aside = std::mem::take(&mut sealed);
        }
        if model.breaks(Mutant::ParcelBeforeQuiet) {
            self.early_parcel(node);
        }
        self.tell(model, node, HostEvent::Sealed(sealed));
    }

    /// The session is over: everything stops, calls that run end in the dark.
    fn abort(&mut self, model: &Handoff, node: usize) {
        self.nodes[node].stopping = None;
        self.nodes[node].gate = false;
        self.nodes[node].slots.fill(Slot::Empty);
        self.nodes[node].state = 0;
        for actor in 0..self.nodes[node].inbox.len() {
            let running = self.nodes[node].running[actor].take();
            let fate = running.and_then(|job| self.messages.get_mut(job.body as usize));
            fate.into_iter().for_each(|fate| *fate = Fate::Unknown);
            for job in std::mem::take(&mut self.nodes[node].inbox[actor]) {
                self.send_back(model, node, job);
            }
        }
        self.return_aside(model, node, None);
    }

    pub(crate) fn wake_host(&mut self, model: &Handoff, node: usize) {
        let now = match self.nodes[node].host.state() {
            HostState::Reasserting(Assertion::Recast { again_at, .. }) => again_at,
            HostState::Reasserting(Assertion::Claim { again_at: Some(again_at), .. }) => again_at,
            _ => return,
        };
        let at = Moment { now, ..moment(self.nodes[node].lease) };
        self.tell_at(model, node, at, HostEvent::WokeUp);
    }

    // ---- moves ----

    fn offer(&mut self, model: &Handoff, (node, to): (usize, usize), move_id: u64, generation: Generation) {
        if !self.nodes[to].is_awake() || self.nodes[to].life == Life::Leaving {
            return self.tell(model, node, HostEvent::OfferNo { move_id });
        }
        self.tell(model, to, HostEvent::Offered { from: id(node), move_id, bytes: 1 });
        if model.breaks(Mutant::EarlyOpen) {
            let next = generation.as_u64() + 1;
            self.tell(model, to, HostEvent::Seen(owned(to, next, next)));
            self.tell(model, to, HostEvent::Seen(owned(to, next + 1, next)));
        }
    }

    fn answer_offer(&mut self, model: &Handoff, (node, to): (usize, usize), move_id: u64, accept: bool) {
        let session = Session { id: id(node), ttl: Millis(1) };
        let answer =
            if accept { HostEvent::OfferOk { move_id, session } } else { HostEvent::OfferNo { move_id } };
        self.tell(model, to, answer);
    }

    fn early_parcel(&mut self, node: usize) {
        if let HostState::Draining(drain) = self.nodes[node].host.state()
            && let Some(to) = drain.to
        {
            let state = self.nodes[node].state;
            self.parcels.push(Parcel { from: node, to: index_of(to.id), move_id: drain.move_id, state });
        }
    }

    fn send_parcels(&mut self, model: &Handoff, node: usize, to: usize, move_id: u64) {
        if !model.breaks(Mutant::ParcelBeforeQuiet) {
            let state = self.nodes[node].state;
            self.parcels.push(Parcel { from: node, to, move_id, state });
        }
        if model.breaks(Mutant::ParcelNoAck) {
            self.tell(model, node, HostEvent::ParcelsAcked { move_id });
        }
    }

    pub(crate) fn parcel_arrives(&mut self, model: &Handoff, number: usize) {
        let Parcel { from, to, move_id, state } = self.parcels.remove(number);
        if self.nodes[to].is_awake() {
            self.nodes[to].parcel = Some((move_id, state));
            self.tell(model, to, HostEvent::ParcelsArrived { move_id });
            self.acks.push((from, move_id));
        }
    }

    pub(crate) fn write(&mut self, by: usize, what: What) {
        self.writes.push(Write { by, awaited: true, what, answer: None });
    }
}

pub(crate) fn new_job(lane: LaneId, generation: u64, body: Message) -> Job<Message> {
    let generation = Generation::new(generation);
    Job { lane, generation, expires: Millis::MAX, bytes: 1, inner: false, orphan: false, body }
}

/// The call that the handler of the first message makes inside the shard.
pub(crate) const NESTED: Message = 31;
