//! Sessions and ownership on the machines that the nodes run: `SessionHolder`, `LeaseObserver` and `Claim`.
//!
//! The guarantee: at most one node's gate is open on a key at any instant. Around the machines stand a store whose writes
//! land late or never, lost answers, stale reads, engine deletes, pauses (every step may wait for ever while time goes on),
//! crashes and restarts. Properties bear the names by which the simulator and `docs/models.md` know them.

mod calm;
mod flights;
mod key;
mod mutant;
mod store;
mod world;

use archipelago_protocol::session::{HolderEvent, Lease, ObserverEvent};
use stateright::{Model, Property};

use mutant::Mutant;
use store::{FlightState, Waiter, Who};
use world::{Duty, Rules, World, index_of, session_id};

/// One run: what may happen in it, and how much of it.
#[derive(Clone, Copy, Debug)]
struct Sessions {
    bounds: Bounds,
    life: Life,
    rules: Rules,
    /// Whether B watches all leases, or only the one that blocks it.
    monitoring: bool,
    /// Whether every state is tried for a way out (P5); costs most of the time where it is.
    ways_out: bool,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    ticks: u64,
    sessions: usize,
    lease_writes: u64,
    owner_writes: u64,
    flights: usize,
}

/// What may happen besides opening, beating, claiming, looking, ending, late writes and lost answers.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    engine_deletes: bool,
    collects: bool,
    crashes: bool,
    releases: bool,
    transfers: bool,
    closes: bool,
    evicts: bool,
    revokes: bool,
    refusals: bool,
    /// An open may be carried out twice: the way to the store repeats it. Ends are remembered for longer than that takes.
    repeats: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    Open,
    Beat,
    Close,
    Crash,
    Claim {
        who: Who,
        stale: bool,
    },
    Release(Who),
    Transfer,
    Look {
        session: usize,
        stale: bool,
    },
    Observe,
    Revoke(usize),
    Evict,
    /// The engine or a collector deletes a lease.
    Vanish(usize),
    /// The store carries out a write.
    Apply(usize),
    Answer(usize),
    GiveUp(usize),
    Refuse(usize),
    /// Another copy of an open is on its way, for nobody.
    Repeat(usize),
    /// A write that nobody waits for gets lost.
    Drop(usize),
}

impl Sessions {
    fn room(&self, world: &World) -> bool {
        world.flights.len() < self.bounds.flights
    }

    fn of_a(&self, world: &World, actions: &mut Vec<Action>) {
        let holds_waits = world.waits(|waiter| matches!(waiter, Waiter::Open | Waiter::Beat(_)));
        let stopped = matches!(world.duty(Who::A), Duty::Idle);
        let Some(_) = &world.holder else {
            if world.opened < self.bounds.sessions && self.room(world) {
                actions.push(Action::Open);
            }
            return;
        };
        if !holds_waits && self.room(world) && self.leases_have_room(world) {
            actions.push(Action::Beat);
        }
        let early = self.rules.breaks(Mutant::ClosesBeforeStopping);
        if self.life.closes && self.room(world) && (stopped || early) {
            actions.push(Action::Close);
        }
        if self.life.crashes {
            actions.push(Action::Crash);
        }
        if self.life.transfers && self.room(world) && self.may_leave(world, Who::A) {
            actions.push(Action::Transfer);
        }
    }

    fn of_b(&self, world: &World, actions: &mut Vec<Action>) {
        let ends = world.waits(|waiter| matches!(waiter, Waiter::End { .. } | Waiter::ObserverPin(_)));
        if !ends && self.room(world) {
            actions.push(Action::Observe);
        }
        for (session, lease) in world.leases.iter().enumerate().take(world.opened.max(1)) {
            if self.monitoring && self.room(world) {
                actions.push(Action::Look { session, stale: false });
                if lease.before.is_some() {
                    actions.push(Action::Look { session, stale: true });
                }
            }
            if self.life.revokes && self.room(world) && matches!(lease.value, Some(Lease::Live { .. })) {
                actions.push(Action::Revoke(session));
            }
            let ended = matches!(lease.value, Some(Lease::Ended { .. }));
            let live = matches!(lease.value, Some(Lease::Live { .. }));
            let forgotten = ended && !self.life.repeats;
            if self.life.collects && forgotten || self.life.engine_deletes && (forgotten || live) {
                actions.push(Action::Vanish(session));
            }
            let owns = world.owner.value == Some(session_id(session));
            if self.life.evicts && self.room(world) && ended && owns {
                actions.push(Action::Evict);
            }
        }
    }

    fn of_the_key(&self, world: &World, who: Who, actions: &mut Vec<Action>) {
        let room = self.room(world) && world.owner.version < self.bounds.owner_writes;
        if room && matches!(world.duty(who), Duty::Idle) && self.may_claim(world, who) {
            actions.push(Action::Claim { who, stale: false });
            if self.rules.stale_reads {
                actions.push(Action::Claim { who, stale: true });
            }
        }
        if self.life.releases && self.room(world) && self.may_leave(world, who) {
            actions.push(Action::Release(who));
        }
    }

    /// A node claims only under a session whose open is confirmed: a record that names a session which was never there
    /// gets its lease pinned, ended and collected, and an open that lands after that would bring it back.
    fn may_claim(&self, world: &World, who: Who) -> bool {
        let opening = self.rules.breaks(Mutant::ClaimsBeforeConfirmed);
        match (who, &world.holder) {
            (Who::B, _) => true,
            (Who::A, Some(holder)) => opening || holder.serving(world.now()),
            (Who::A, None) => false,
        }
    }

    /// A node waits for one write per key at a time.
    fn may_leave(&self, world: &World, who: Who) -> bool {
        let leaves = world.waits(|waiter| waiter == Waiter::Leave(who));
        matches!(world.duty(who), Duty::Serving { .. }) && !leaves
    }

    fn of_the_store(&self, world: &World, actions: &mut Vec<Action>) {
        for (number, flight) in world.flights.iter().enumerate() {
            let sent = flight.state == FlightState::Sent;
            let opens = sent && flight.waiter == Some(Waiter::Open);
            let steps = [
                (sent, Action::Apply(number)),
                (!sent, Action::Answer(number)),
                (flight.waiter.is_some(), Action::GiveUp(number)),
                (sent && flight.waiter.is_some() && self.life.refusals, Action::Refuse(number)),
                (opens && self.life.repeats && self.room(world), Action::Repeat(number)),
                (sent && flight.waiter.is_none(), Action::Drop(number)),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
    }

    fn leases_have_room(&self, world: &World) -> bool {
        world.leases.iter().all(|lease| lease.version < self.bounds.lease_writes)
    }

    fn step(&self, world: &mut World, action: Action) {
        let rules = self.rules;
        match action {
            Action::Tick => world.tick += 1,
            Action::Open => world.open(rules),
            Action::Beat => world.tell_holder(rules, HolderEvent::Wake { nonce: world.opened as u64 }),
            Action::Close => world.close(rules),
            Action::Crash => world.crash(),
            Action::Claim { who, stale } => world.claim(rules, who, stale),
            Action::Release(who) => world.release(rules, who),
            Action::Transfer => world.transfer(rules),
            Action::Look { session, stale } => world.look(rules, session, stale),
            Action::Observe => world.tell_observer(rules, world.now(), ObserverEvent::Wake),
            Action::Revoke(session) => world.revoke(rules, session),
            Action::Evict => world.evict(rules),
            Action::Vanish(session) => world.leases[session].set(None, rules.stale_reads),
            Action::Apply(number) => world.apply(rules, number),
            Action::Answer(number) => world.answer(rules, number),
            Action::GiveUp(number) => world.give_up(rules, number),
            Action::Refuse(number) => world.refuse(rules, number),
            Action::Repeat(number) => world.repeat(number),
            Action::Drop(number) => drop(world.flights.remove(number)),
        }
    }
}

impl Model for Sessions {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.bounds.sessions, self.monitoring)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // Time before the first session differs from time after it by nothing but the name of the tick.
        if world.tick < self.bounds.ticks && world.opened > 0 {
            actions.push(Action::Tick);
        }
        self.of_a(world, actions);
        self.of_b(world, actions);
        self.of_the_key(world, Who::A, actions);
        self.of_the_key(world, Who::B, actions);
        self.of_the_store(world, actions);
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        self.step(&mut world, action);
        (world != *last).then_some(world)
    }

    fn within_boundary(&self, world: &World) -> bool {
        world.flights.len() <= self.bounds.flights
            && world.owner.version <= self.bounds.owner_writes
            && world.leases.iter().all(|lease| lease.version <= self.bounds.lease_writes)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at_most_one_server", |model: &Self, world: &World| {
                world.serves(model.rules, Who::A).is_none() || world.serves(model.rules, Who::B).is_none()
            }),
            Property::always("server_is_recorded", |model, world: &World| {
                let recorded = (world.owner.value, world.owner.version);
                let servers = [Who::A, Who::B].map(|who| world.serves(model.rules, who));
                servers.into_iter().flatten().all(|(id, generation)| recorded == (Some(id), generation))
            }),
            Property::always("ended_session_is_silent", |model, world: &World| {
                world.serves(model.rules, Who::A).is_none_or(|(id, _)| {
                    !world.leases[index_of(id)].value.as_ref().is_some_and(Lease::has_ended)
                })
            }),
            Property::always("ended_never_comes_back", |_, world: &World| !world.revived),
            // Writes on their way can always be settled first, which leads to states without any.
            Property::always("never_stuck", |model, world: &World| {
                !model.ways_out || !world.flights.is_empty() || calm::serves_in_the_end(model, world)
            }),
            Property::sometimes("B serves what an ended session had", |model, world: &World| {
                world.ended[0]
                    && world.serves(model.rules, Who::B).is_some_and(|(_, generation)| generation > 1)
            }),
            Property::sometimes("A serves under a second session", |model, world: &World| {
                world.serves(model.rules, Who::A).is_some_and(|(id, _)| id == session_id(1))
            }),
        ]
    }
}

mod tests;
