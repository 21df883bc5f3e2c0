//! The senders around their route entries, and the lanes.

use archipelago_protocol::handoff::HostEvent;
use archipelago_protocol::identity::Generation;
use archipelago_protocol::link::{Hint, ReturnReason};
use archipelago_protocol::route::{RouteAction, RouteEvent, RouteState};
use archipelago_protocol::time::Millis;

use super::Handoff;
use super::mutant::Mutant;
use super::node::new_job;
use super::world::{Down, Fate, Life, Message, Slot, Up, World, id, index_of, lane_id};

impl World {
    pub(crate) fn route(&mut self, model: &Handoff, sender: usize, event: RouteEvent<Message>) {
        self.route_at(model, sender, 0, event);
    }

    fn route_at(&mut self, model: &Handoff, sender: usize, now: u64, event: RouteEvent<Message>) {
        let fates = self.messages.clone();
        let over = |message: &Message| !matches!(fates[*message as usize], Fate::Waiting | Fate::Given(_));
        let mut actions = self.senders[sender].route.handle(Millis(now), event, over);
        if model.breaks(Mutant::FlushBufFirst) {
            let tried = &self.senders[sender].tried;
            actions.sort_by_key(
                |action| matches!(action, RouteAction::Deliver { message, .. } if tried.contains(message)),
            );
        }
        for action in actions {
            self.carry_out(model, sender, action);
        }
        self.acknowledge_byes(sender);
    }

    fn carry_out(&mut self, model: &Handoff, sender: usize, action: RouteAction<Message>) {
        match action {
            RouteAction::Deliver { owner, generation, message } => {
                let node = index_of(owner);
                let lane = self.lane(sender, node);
                self.messages[message as usize] = Fate::Given(node);
                let generation = generation.as_u64();
                self.lanes[lane].down.push_back(Down::Data { message, generation });
                if model.breaks(Mutant::FlushBufFirst) {
                    self.senders[sender].tried.push(message);
                }
            }
            RouteAction::SendSettle { owner, generation } if model.breaks(Mutant::SwitchAtOnce) => {
                self.route(model, sender, RouteEvent::Settled { from: owner, generation, hint: None });
            }
            RouteAction::SendSettle { owner, generation } => {
                let lane = self.lane(sender, index_of(owner));
                self.lanes[lane].down.push_back(Down::Settle { generation: generation.as_u64() });
            }
            RouteAction::LookUp => self.senders[sender].lookup = true,
            // Only the pauses of a route are as short as this; rechecks are longer and never needed.
            RouteAction::WakeAt(at) => self.senders[sender].wake = Some(at.0).filter(|at| *at < 50),
            RouteAction::Refuse { .. } => self.marks.stray = true,
            RouteAction::CheckLane { .. } | RouteAction::CloseLane { .. } | RouteAction::Over(_) => {}
        }
    }

    fn acknowledge_byes(&mut self, sender: usize) {
        for node in 0..self.nodes.len() {
            let clear = self.senders[sender].route.is_clear_of(id(node));
            if self.senders[sender].byes[node] == Some(false) && clear {
                self.senders[sender].byes[node] = Some(true);
                let lane = self.lane(sender, node);
                self.lanes[lane].down.push_back(Down::ByeAck);
            }
        }
    }

    /// Nobody is led to a node that has said goodbye.
    pub(crate) fn learn(&mut self, model: &Handoff, sender: usize, hint: Hint) {
        if self.senders[sender].byes[index_of(hint.owner)].is_none() {
            self.route(model, sender, RouteEvent::Learn(hint));
        }
    }

    pub(crate) fn look_up(&mut self, model: &Handoff, sender: usize) {
        self.senders[sender].lookup = false;
        if let Some(owned) = self.useful(sender) {
            self.route(model, sender, RouteEvent::LookedUp(Some(owned)));
        }
    }

    /// A look-up is repeated until it shows somebody who could be there.
    pub(crate) fn useful(&self, sender: usize) -> Option<Hint> {
        let hint = self.live_owner()?.hint;
        let node = index_of(hint.owner);
        let there = self.nodes[node].life != Life::Dead && self.senders[sender].byes[node].is_none();
        // Who has promised a notice is asked again for ever, with growing pauses: only news ends that.
        let news = match self.senders[sender].route.state() {
            RouteState::Waiting { generation, on: Some(_) } => hint.generation > generation,
            _ => true,
        };
        (there && news).then_some(hint)
    }

    pub(crate) fn wake_route(&mut self, model: &Handoff, sender: usize) {
        if let Some(at) = self.senders[sender].wake.take() {
            self.route_at(model, sender, at, RouteEvent::WokeUp);
        }
    }

    // ---- lanes ----

    pub(crate) fn read_up(&mut self, model: &Handoff, sender: usize, node: usize) {
        let lane = self.lane(sender, node);
        let from = id(node);
        match self.lanes[lane].up.pop_front() {
            Some(Up::Return(message)) => {
                self.marks.stray |= self.senders[sender].route.is_clear_of(from);
                let fate = &mut self.messages[message as usize];
                if *fate == Fate::Given(node) {
                    *fate = Fate::Waiting;
                }
                let reason = ReturnReason::NotOwner;
                let event = RouteEvent::Returned { from, message, local_only: false, reason };
                self.route(model, sender, event);
            }
            Some(Up::Settled { generation, hint }) => {
                let generation = Generation::new(generation);
                let hint = hint.filter(|hint| self.senders[sender].byes[index_of(hint.owner)].is_none());
                self.route(model, sender, RouteEvent::Settled { from, generation, hint });
            }
            Some(Up::Notice(hint)) => self.learn(model, sender, hint),
            Some(Up::Bye) => {
                self.senders[sender].byes[node] = Some(false);
                self.route(model, sender, RouteEvent::Bye(from));
            }
            None => {}
        }
    }

    /// The last incarnation is closed before the first frame of the next is read (L-CLOSE).
    pub(crate) fn read_down(&mut self, model: &Handoff, sender: usize, node: usize) {
        let lane = self.lane(sender, node);
        if self.lanes[lane].old_open && !model.breaks(Mutant::OldLaneRead) {
            self.close_old(model, sender, node);
        }
        let incarnation = self.lanes[lane].incarnation;
        if let Some(frame) = self.lanes[lane].down.pop_front() {
            self.take_frame(model, (sender, node), incarnation, frame);
        }
    }

    pub(crate) fn read_old(&mut self, model: &Handoff, sender: usize, node: usize) {
        let lane = self.lane(sender, node);
        let incarnation = self.lanes[lane].incarnation - 1;
        if let Some(frame) = self.lanes[lane].old.pop_front() {
            self.take_frame(model, (sender, node), incarnation, frame);
        }
    }

    pub(crate) fn close_old(&mut self, model: &Handoff, sender: usize, node: usize) {
        let lane = self.lane(sender, node);
        self.lanes[lane].old.clear();
        self.lanes[lane].old_open = false;
        let old = lane_id(sender, self.lanes[lane].incarnation - 1);
        for job in self.nodes[node].inbox.iter_mut().flatten().filter(|job| job.lane == old) {
            job.orphan = true;
        }
        self.tell(model, node, HostEvent::LaneLost(old));
    }

    fn take_frame(&mut self, model: &Handoff, (sender, node): (usize, usize), incarnation: u64, frame: Down) {
        let real = lane_id(sender, incarnation);
        match frame {
            Down::Data { message, mut generation } => {
                let unchecked = model.breaks(Mutant::GenUnchecked) || model.breaks(Mutant::GenAndSticky);
                if let Some(serving) = self.nodes[node].host.serving().filter(|_| unchecked) {
                    generation = serving.generation.as_u64();
                }
                let job = new_job(self.alias(node, real), generation, message);
                self.tell(model, node, HostEvent::Data(job));
            }
            Down::Settle { generation } => {
                let generation = Generation::new(generation);
                let last = self.alias(node, real);
                if last != real {
                    self.forget_aliases(model, (sender, node), generation);
                }
                self.tell(model, node, HostEvent::Settle { lane: last, generation });
            }
            Down::ByeAck => {
                self.nodes[node].bye = self.nodes[node].bye.map(|acks| acks + 1);
            }
        }
    }

    /// The earlier names of a lane settle too; their answers count for nothing.
    fn forget_aliases(&mut self, model: &Handoff, (sender, node): (usize, usize), generation: Generation) {
        let lane = self.lane(sender, node);
        let real = lane_id(sender, self.lanes[lane].incarnation);
        let mut names = vec![real];
        names.extend(self.nodes[node].aliases.iter().filter(|(of, _)| *of == real).map(|(_, name)| *name));
        names.pop();
        for name in names {
            self.tell(model, node, HostEvent::Settle { lane: name, generation });
            if matches!(self.lanes[lane].up.back(), Some(Up::Settled { .. })) {
                self.lanes[lane].up.pop_back();
            }
        }
    }

    /// A lane breaks; of what is on it the first `sent` frames may still be read, the others never left.
    pub(crate) fn break_lane(&mut self, model: &Handoff, (sender, node): (usize, usize), sent: usize) {
        let lane = self.lane(sender, node);
        if self.lanes[lane].old_open {
            self.close_old(model, sender, node);
        }
        let lane = &mut self.lanes[lane];
        let unsent = lane.down.split_off(sent.min(lane.down.len()));
        lane.old = std::mem::take(&mut lane.down);
        lane.old_open = true;
        lane.incarnation += 1;
        lane.up.clear();
        self.lane_lost(model, (sender, node), messages_of(unsent));
    }

    /// The sender sees that a node has gone: what it gave to the lane before is out of its hands.
    pub(crate) fn see_loss(&mut self, model: &Handoff, sender: usize, node: usize) {
        let lane = self.lane(sender, node);
        self.lanes[lane].old_open = false;
        let unsent = std::mem::take(&mut self.lanes[lane].down);
        self.lane_lost(model, (sender, node), messages_of(unsent));
    }

    fn lane_lost(&mut self, model: &Handoff, (sender, node): (usize, usize), mut unsent: Vec<Message>) {
        for message in 0..self.messages.len() as Message {
            let ours = model.sender_of(message) == sender;
            if ours && self.messages[message as usize] == Fate::Given(node) {
                let never_left = unsent.contains(&message);
                self.messages[message as usize] = if never_left { Fate::Waiting } else { Fate::Unknown };
            }
        }
        let state = self.senders[sender].route.state();
        let waits = matches!(state, RouteState::Waiting { on: Some(on), .. } if on == id(node));
        if waits && model.breaks(Mutant::WaitIgnoresLoss) {
            return;
        }
        if model.breaks(Mutant::UnsentToHead) {
            unsent.extend(self.senders[sender].route.take_all());
        }
        self.route(model, sender, RouteEvent::LaneLost { node: id(node), unsent });
    }

    pub(crate) fn die(&mut self, node: usize) {
        let gone = &mut self.nodes[node];
        gone.life = Life::Dead;
        (gone.lease, gone.gate, gone.stopping) = (false, false, None);
        gone.inbox.iter_mut().for_each(|inbox| inbox.clear());
        gone.running.fill(None);
        gone.slots.fill(Slot::Empty);
        gone.aside.clear();
        gone.lookup = super::world::Lookup::None;
        gone.parcel = None;
        for sender in 0..self.senders.len() {
            let lane = self.lane(sender, node);
            let lane = &mut self.lanes[lane];
            lane.down.clear();
            lane.up.clear();
            lane.old.clear();
            lane.old_open = true;
        }
        for write in self.writes.iter_mut().filter(|write| write.by == node) {
            write.awaited = false;
        }
        self.writes.retain(|write| write.awaited || write.answer.is_none());
    }
}

fn messages_of(frames: impl IntoIterator<Item = Down>) -> Vec<Message> {
    let message = |frame| match frame {
        Down::Data { message, .. } => Some(message),
        _ => None,
    };
    frames.into_iter().filter_map(message).collect()
}
