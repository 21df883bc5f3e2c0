//! Moves of a shard on the machines that the nodes run: `HostedShard` at the nodes, `RouteEntry` at the senders.
//!
//! One shard, two or three nodes that may own it, two senders. Lanes are in order; everything else (lanes among each
//! other, the watch, look-ups, writes, orders, handlers) comes in any order and as late as it likes, and a write stays
//! applicable after its writer has given up, crashed or been fenced. The coordinator is the most general one: it may order
//! any move at any time, and be lost with its order. Properties bear the names of `docs/models.md`.

mod mutant;
mod node;
mod sender;
mod store;
mod tests;
mod world;

use archipelago_protocol::handoff::{Assertion, HostEvent, HostState};
use archipelago_protocol::identity::Generation;
use archipelago_protocol::route::RouteEvent;
use archipelago_protocol::time::Millis;
use stateright::{Model, Property};

use mutant::Mutant;
use node::NESTED;
use world::{Down, Fate, Left, Life, Lookup, Message, Order, Slot, Up, What, World, id, index_of};

/// One run: who is there, what is sent, what may happen.
#[derive(Clone, Copy, Debug)]
struct Handoff {
    config: Config,
    mutant: Option<Mutant>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    hosts: usize,
    actors: usize,
    /// Per sender the actors of its messages, in order.
    plans: &'static [&'static [usize]],
    hold: usize,
    left: Left,
    nested: bool,
    migrate: bool,
    /// Whether a suffix of what is on a breaking lane was never sent.
    unsent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Send(usize),
    ReadDown(usize, usize),
    ReadOld(usize, usize),
    CloseOld(usize, usize),
    ReadUp(usize, usize),
    Start(usize, usize),
    Finish(usize, usize),
    Deactivated(usize, usize),
    Quiet(usize),
    /// The watch shows the next record to a node, or to a sender.
    Watch(usize),
    Learn(usize),
    Read(usize),
    LookedUp(usize),
    LookUp(usize),
    WakeRoute(usize),
    WakeHost(usize),
    Deliver,
    Apply(usize),
    Answer(usize),
    Parcel(usize),
    Acked(usize),
    Allocate(usize),
    EndSession(usize),
    Fence(usize),
    Wake(usize),
    SeeLoss(usize, usize),
    SayBye(usize),
    Exit(usize),
    // ---- what need not happen ----
    Order {
        to: usize,
    },
    LoseOrder,
    Cancel(usize),
    Unanswered(usize),
    Refused(usize),
    Forget(usize),
    Break {
        sender: usize,
        node: usize,
        sent: usize,
    },
    Crash(usize),
    LeaseOver(usize),
    Pause(usize),
    Deadline(Message),
    Passivate(usize, usize),
    Leave(usize),
    Force(usize),
}

impl Handoff {
    pub(crate) fn breaks(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn forgets_refusals(&self) -> bool {
        self.breaks(Mutant::NotSticky) || self.breaks(Mutant::GenAndSticky)
    }

    pub(crate) fn sender_of(&self, message: Message) -> usize {
        let first = self.config.plans[0].len() as Message;
        usize::from(message != NESTED && message >= first)
    }

    pub(crate) fn actor_of(&self, message: Message) -> usize {
        if message == NESTED {
            return 1;
        }
        *self
            .config
            .plans
            .iter()
            .flat_map(|plan| plan.iter())
            .nth(message as usize)
            .expect("a planned message")
    }

    // ---- what goes on by itself ----

    fn steps(&self, world: &World, actions: &mut Vec<Action>) {
        for sender in 0..world.senders.len() {
            self.steps_of_sender(world, sender, actions);
        }
        for node in 0..world.nodes.len() {
            self.steps_of_node(world, node, actions);
        }
        for (number, write) in world.writes.iter().enumerate() {
            if write.answer.is_none() {
                actions.push(Action::Apply(number));
            } else if world.nodes[write.by].is_awake() {
                actions.push(Action::Answer(number));
            }
        }
        if world.order.is_some_and(|order| world.nodes[order.from].is_awake()) {
            actions.push(Action::Deliver);
        }
        actions.extend((0..world.parcels.len()).map(Action::Parcel));
        let acked = |at: &usize| world.nodes[world.acks[*at].0].is_awake();
        actions.extend((0..world.acks.len()).filter(acked).map(Action::Acked));
    }

    fn steps_of_sender(&self, world: &World, sender: usize, actions: &mut Vec<Action>) {
        let it = &world.senders[sender];
        let steps = [
            (!it.plan.is_empty(), Action::Send(sender)),
            (it.seen < world.records.len(), Action::Learn(sender)),
            (it.lookup && world.useful(sender).is_some(), Action::LookUp(sender)),
            (it.wake.is_some(), Action::WakeRoute(sender)),
        ];
        actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        for node in 0..world.nodes.len() {
            let lane = &world.lanes[world.lane(sender, node)];
            let awake = world.nodes[node].is_awake();
            let dead = world.nodes[node].life == Life::Dead;
            let steps = [
                (awake && !lane.down.is_empty(), Action::ReadDown(sender, node)),
                (awake && lane.old_open && !lane.old.is_empty(), Action::ReadOld(sender, node)),
                (awake && lane.old_open, Action::CloseOld(sender, node)),
                (!lane.up.is_empty(), Action::ReadUp(sender, node)),
                (dead && (lane.old_open || !lane.down.is_empty()), Action::SeeLoss(sender, node)),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
    }

    fn steps_of_node(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        let it = &world.nodes[node];
        let over = !it.lease && !it.ended;
        let unfenced = self.breaks(Mutant::NoSelfFence) && world.left.fences > 0 && !it.ended;
        if over || unfenced {
            actions.push(Action::EndSession(node));
        }
        if it.life == Life::Paused {
            actions.push(Action::Wake(node));
        }
        if !it.is_awake() {
            return;
        }
        for actor in 0..self.config.actors {
            self.steps_of_actor(world, (node, actor), actions);
        }
        let fenced = it.host.state() == HostState::Fenced;
        let waits = world.writes.iter().any(|write| write.by == node && write.awaited);
        let repeats = matches!(it.host.state(), HostState::Reasserting(Assertion::Recast { .. }) if !waits)
            || matches!(it.host.state(), HostState::Reasserting(Assertion::Claim { again_at: Some(_), .. }));
        let steps = [
            (world.is_quiet(self, node), Action::Quiet(node)),
            (it.seen < world.records.len(), Action::Watch(node)),
            (it.lookup == Lookup::Asked, Action::Read(node)),
            (matches!(it.lookup, Lookup::Read(_)), Action::LookedUp(node)),
            (repeats, Action::WakeHost(node)),
            (!it.lease && !fenced, Action::Fence(node)),
            (self.may_allocate(world, node), Action::Allocate(node)),
        ];
        actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        if it.life == Life::Leaving {
            self.steps_of_leaver(world, node, actions);
        }
    }

    fn steps_of_actor(&self, world: &World, (node, actor): (usize, usize), actions: &mut Vec<Action>) {
        let it = &world.nodes[node];
        let twin = self.breaks(Mutant::PassivationTwin);
        let free = it.running[actor].is_none() && (it.slots[actor] != Slot::Deactivating || twin);
        if it.gate && free && !it.inbox[actor].is_empty() {
            actions.push(Action::Start(node, actor));
        }
        if it.gate && world.may_finish(self, node, actor) {
            actions.push(Action::Finish(node, actor));
        }
        if it.slots[actor] == Slot::Deactivating {
            actions.push(Action::Deactivated(node, actor));
        }
    }

    fn steps_of_leaver(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        let it = &world.nodes[node];
        let owns = world.record().owned.is_some_and(|owned| index_of(owned.hint.owner) == node);
        if owns || it.host.state() != HostState::Absent {
            return;
        }
        let at_once = self.breaks(Mutant::LeaveAtOnce);
        if it.bye.is_none() && !at_once {
            actions.push(Action::SayBye(node));
        }
        if it.bye == Some(world.senders.len()) || at_once {
            actions.push(Action::Exit(node));
        }
    }

    /// The coordinator places a shard whose owner's session has ended.
    fn may_allocate(&self, world: &World, node: usize) -> bool {
        let it = &world.nodes[node];
        let idle = matches!(it.host.state(), HostState::Absent | HostState::Probing);
        it.life == Life::Up && it.lease && idle && world.live_owner().is_none()
    }

    // ---- what may happen ----

    fn chances(&self, world: &World, actions: &mut Vec<Action>) {
        let left = world.left;
        let owner = world.record().owned.map(|owned| index_of(owned.hint.owner));
        if world.order.is_some() && left.lost_orders > 0 {
            actions.push(Action::LoseOrder);
        }
        for (node, it) in world.nodes.iter().enumerate() {
            let target = it.life == Life::Up && owner != Some(node) && world.order.is_none();
            if left.moves > 0 && target {
                actions.push(Action::Order { to: node });
            }
            if self.breaks(Mutant::CoordForces) && target && world.records.len() < 3 {
                actions.push(Action::Force(node));
            }
            self.chances_of_node(world, node, actions);
        }
        for (number, write) in world.writes.iter().enumerate() {
            let awake = world.nodes[write.by].is_awake();
            if left.unanswered > 0 && write.awaited && awake {
                actions.push(Action::Unanswered(number));
                if write.answer.is_none() && matches!(write.what, What::Transfer { .. }) {
                    actions.push(Action::Refused(number));
                }
            }
            if !write.awaited {
                actions.push(Action::Forget(number));
            }
        }
        if left.breaks > 0 {
            self.breaks_of_lanes(world, actions);
        }
        if left.deadlines > 0 {
            let open = |fate: &Fate| matches!(fate, Fate::Waiting | Fate::Given(_));
            let sent = |at: usize| !world.senders.iter().any(|it| it.plan.contains(&(at as Message)));
            let late = world.messages.iter().enumerate().filter(|(at, fate)| open(fate) && sent(*at));
            actions.extend(late.map(|(at, _)| Action::Deadline(at as Message)));
        }
    }

    fn chances_of_node(&self, world: &World, node: usize, actions: &mut Vec<Action>) {
        let (left, it) = (world.left, &world.nodes[node]);
        if it.life == Life::Dead {
            return;
        }
        let draining = matches!(it.host.state(), HostState::Draining(_));
        let up = it.life == Life::Up;
        let has_to_do = it.host.state() != HostState::Absent;
        let steps = [
            (left.cancels > 0 && draining && it.is_awake(), Action::Cancel(node)),
            (left.crashes > 0 && has_to_do, Action::Crash(node)),
            (
                left.fences > 0 && it.lease && has_to_do && !self.breaks(Mutant::NoSelfFence),
                Action::LeaseOver(node),
            ),
            (left.pauses > 0 && up && it.lease && has_to_do, Action::Pause(node)),
            (left.leaves > 0 && up && node == 0, Action::Leave(node)),
        ];
        actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        for actor in 0..self.config.actors {
            let idle = it.running[actor].is_none() && it.inbox[actor].is_empty();
            let valid = it.slots[actor] == Slot::Valid && it.host.serving().is_some();
            if left.passivations > 0 && idle && valid {
                actions.push(Action::Passivate(node, actor));
            }
        }
    }

    fn breaks_of_lanes(&self, world: &World, actions: &mut Vec<Action>) {
        for sender in 0..world.senders.len() {
            for node in 0..world.nodes.len() {
                let frames = world.lanes[world.lane(sender, node)].down.len();
                let least = if self.config.unsent { 0 } else { frames };
                if world.nodes[node].life != Life::Dead {
                    actions.extend((least..=frames).map(|sent| Action::Break { sender, node, sent }));
                }
            }
        }
    }

    // ---- what happens ----

    fn step(&self, world: &mut World, action: Action) {
        match action {
            Action::Send(sender) => {
                let message = world.senders[sender].plan.remove(0);
                world.route(self, sender, RouteEvent::Send(message));
            }
            Action::ReadDown(sender, node) => world.read_down(self, sender, node),
            Action::ReadOld(sender, node) => world.read_old(self, sender, node),
            Action::CloseOld(sender, node) => world.close_old(self, sender, node),
            Action::ReadUp(sender, node) => world.read_up(self, sender, node),
            Action::Start(node, actor) => world.start(self, node, actor),
            Action::Finish(node, actor) => world.finish(node, actor),
            Action::Deactivated(node, actor) => {
                world.nodes[node].slots[actor] = Slot::Empty;
                if self.breaks(Mutant::PassivationDrops) {
                    world.nodes[node].inbox[actor].clear();
                }
            }
            Action::Quiet(node) => world.quiet(self, node),
            Action::Watch(node) => {
                let record = world.records[world.nodes[node].seen];
                world.nodes[node].seen += 1;
                record.owned.into_iter().for_each(|owned| world.tell(self, node, HostEvent::Seen(owned)));
            }
            Action::Learn(sender) => {
                let record = world.records[world.senders[sender].seen];
                world.senders[sender].seen += 1;
                record.owned.into_iter().for_each(|owned| world.learn(self, sender, owned.hint));
            }
            Action::Read(node) => world.nodes[node].lookup = Lookup::Read(world.read_owned()),
            Action::LookedUp(node) => {
                if let Lookup::Read(found) = std::mem::replace(&mut world.nodes[node].lookup, Lookup::None) {
                    world.tell(self, node, HostEvent::LookedUp(found));
                }
            }
            Action::LookUp(sender) => world.look_up(self, sender),
            Action::WakeRoute(sender) => world.wake_route(self, sender),
            Action::WakeHost(node) => world.wake_host(self, node),
            Action::Deliver => self.deliver_order(world),
            Action::Apply(number) => world.apply(self, number),
            Action::Answer(number) => world.answer(self, number),
            Action::Parcel(number) => world.parcel_arrives(self, number),
            Action::Acked(number) => {
                let (node, move_id) = world.acks.remove(number);
                world.tell(self, node, HostEvent::ParcelsAcked { move_id });
            }
            Action::Allocate(node) => world.tell(self, node, HostEvent::Asked),
            _ => self.fault(world, action),
        }
    }

    fn deliver_order(&self, world: &mut World) {
        let Some(Order { generation, from, to }) = world.order.take() else { return };
        let move_id = if self.breaks(Mutant::ParcelNoMoveId) { generation } else { world.marks.next_move };
        world.marks.next_move += 1;
        let generation = Generation::new(generation);
        let order = HostEvent::HandOff { generation, to: id(to), move_id, busy: Millis(0) };
        world.tell(self, from, order);
    }

    fn fault(&self, world: &mut World, action: Action) {
        world.marks.faulted |= matches!(
            action,
            Action::Break { .. }
                | Action::Crash(_)
                | Action::LeaseOver(_)
                | Action::Pause(_)
                | Action::Deadline(_)
        );
        match action {
            Action::EndSession(node) => world.nodes[node].ended = true,
            Action::Fence(node) => world.tell(self, node, HostEvent::Fence),
            Action::Wake(node) => {
                world.nodes[node].life = Life::Up;
                if !world.nodes[node].lease {
                    world.tell(self, node, HostEvent::Fence);
                }
            }
            Action::SeeLoss(sender, node) => world.see_loss(self, sender, node),
            Action::SayBye(node) => {
                world.nodes[node].bye = Some(0);
                for sender in 0..world.senders.len() {
                    let lane = world.lane(sender, node);
                    world.lanes[lane].up.push_back(Up::Bye);
                }
            }
            Action::Exit(node) => {
                world.die(node);
                world.nodes[node].ended = true;
            }
            Action::Order { to } => {
                world.left.moves -= 1;
                let owner = world.record().owned.map_or(0, |owned| index_of(owned.hint.owner));
                world.order = Some(Order { generation: world.record().generation, from: owner, to });
            }
            Action::LoseOrder => {
                world.left.lost_orders -= 1;
                world.order = None;
            }
            Action::Cancel(node) => {
                world.left.cancels -= 1;
                world.tell(self, node, HostEvent::Cancel);
            }
            Action::Unanswered(number) => {
                world.left.unanswered -= 1;
                world.leave_unanswered(self, number);
            }
            Action::Refused(number) => {
                world.left.unanswered -= 1;
                world.refuse(self, number);
            }
            Action::Forget(number) => drop(world.writes.remove(number)),
            Action::Break { sender, node, sent } => {
                world.left.breaks -= 1;
                world.break_lane(self, (sender, node), sent);
            }
            Action::Crash(node) => {
                world.left.crashes -= 1;
                world.die(node);
            }
            Action::LeaseOver(node) => {
                world.left.fences -= 1;
                world.nodes[node].lease = false;
                world.nodes[node].gate = false;
            }
            Action::Pause(node) => {
                world.left.pauses -= 1;
                world.nodes[node].life = Life::Paused;
                // It sleeps for as long as its lease lasts, and longer.
                world.nodes[node].lease = false;
                world.nodes[node].gate = false;
            }
            Action::Deadline(message) => self.deadline(world, message),
            Action::Passivate(node, actor) => {
                world.left.passivations -= 1;
                world.nodes[node].slots[actor] = Slot::Deactivating;
            }
            Action::Leave(node) => {
                world.left.leaves -= 1;
                world.nodes[node].life = Life::Leaving;
            }
            Action::Force(node) => world.force(node),
            _ => {}
        }
    }

    fn deadline(&self, world: &mut World, message: Message) {
        world.left.deadlines -= 1;
        let waits = world.messages[message as usize] == Fate::Waiting;
        world.messages[message as usize] = if waits { Fate::NotStarted } else { Fate::Unknown };
        if waits {
            let sender = self.sender_of(message);
            world.senders[sender].route.take_ended(|other| *other == message);
        }
    }

    // ---- what must hold ----

    fn activations(&self, world: &World, actor: usize) -> usize {
        let runs = |node: &&world::Node| {
            node.gate && (node.slots[actor] != Slot::Empty || node.running[actor].is_some())
        };
        world.nodes.iter().filter(runs).count()
    }

    /// Every message that was sent is somewhere, or was started.
    fn nothing_is_lost(&self, world: &World) -> bool {
        let sent = world.messages.len() - world.senders.iter().map(|it| it.plan.len()).sum::<usize>();
        let data = |frame: &&Down| matches!(frame, Down::Data { .. });
        let back = |frame: &&Up| matches!(frame, Up::Return(_));
        let on_lanes = |lane: &world::Lane| {
            lane.down.iter().filter(data).count()
                + lane.old.iter().filter(data).count()
                + lane.up.iter().filter(back).count()
        };
        let at_node = |node: &world::Node| {
            let outer = |job: &&archipelago_protocol::handoff::Job<Message>| job.body != NESTED;
            node.host.held().0 + node.aside.len() + node.inbox.iter().flatten().filter(outer).count()
        };
        let nested_held = usize::from(self.breaks(Mutant::InnerHeld));
        let waiting: usize = world.senders.iter().map(|it| it.route.waiting()).sum();
        let lanes: usize = world.lanes.iter().map(on_lanes).sum();
        let nodes: usize = world.nodes.iter().map(at_node).sum();
        let started = world.started.iter().filter(|message| **message != NESTED).count();
        let there = waiting + lanes + nodes + started;
        let ends = world.messages.iter().all(|fate| !matches!(fate, Fate::Unknown | Fate::NotStarted));
        (sent..=sent + nested_held).contains(&there) && ends
    }

    fn everything_has_ended(&self, world: &World) -> bool {
        let open = |fate: &Fate| matches!(fate, Fate::Waiting | Fate::Given(_));
        let dead = |node: usize| world.nodes[node].life == Life::Dead;
        let moving = (0..world.nodes.len()).any(|node| !dead(node) && world.is_moving(node));
        !moving && !world.messages.iter().any(open)
    }
}

impl Model for Handoff {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.config)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.steps(world, actions);
        self.chances(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        self.step(&mut next, action);
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at_most_one_activation", |model: &Self, world: &World| {
                !world.marks.twin
                    && (0..model.config.actors).all(|actor| model.activations(world, actor) <= 1)
            }),
            Property::always("shard_has_one_owner", |_, world: &World| {
                let owns = |node: &&world::Node| {
                    let state = node.host.state();
                    node.gate && matches!(state, HostState::Serving { .. } | HostState::Draining(_))
                };
                world.nodes.iter().filter(owns).count() <= 1
            }),
            Property::always("owner_is_in_directory", |_, world: &World| {
                let listed = |(at, node): (usize, &world::Node)| {
                    let hint = world.record().owned.map(|owned| owned.hint);
                    let serving = node.host.serving().filter(|_| node.gate);
                    serving.is_none_or(|at_generation| {
                        hint.is_some_and(|hint| {
                            hint.owner == id(at) && hint.generation == at_generation.generation
                        })
                    })
                };
                world.nodes.iter().enumerate().all(listed)
            }),
            Property::always("no_message_handled_twice", |_, world: &World| !world.marks.twice),
            Property::always("order_per_sender_and_actor", |_, world: &World| !world.marks.disorder),
            Property::always("no_stray_return", |_, world: &World| !world.marks.stray),
            Property::always("not_started_is_true", |_, world: &World| {
                let started = |at: &usize| world.started.contains(&(*at as Message));
                let fates = world.messages.iter().enumerate();
                !fates.filter(|(_, fate)| **fate == Fate::NotStarted).any(|(at, _)| started(&at))
            }),
            Property::always("no_message_lost_without_fault", |model: &Self, world: &World| {
                world.marks.faulted || model.nothing_is_lost(world)
            }),
            Property::always("every_move_and_call_ends", |model: &Self, world: &World| {
                let mut steps = Vec::new();
                model.steps(world, &mut steps);
                !steps.is_empty() || model.everything_has_ended(world)
            }),
            Property::always("migrated_state_is_complete", |_, world: &World| !world.marks.incomplete),
            Property::sometimes("moved", |_, world: &World| world.marks.moved),
            Property::sometimes("all_done_after_move", |_, world: &World| {
                world.marks.moved && world.messages.iter().all(|fate| *fate == Fate::Done)
            }),
            Property::sometimes("returned_some", |_, world: &World| world.marks.returned),
            Property::sometimes("held_at_new_owner", |_, world: &World| world.marks.held_at_new_owner),
        ]
    }
}
