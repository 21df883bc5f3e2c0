//! Two nodes that may hold one role, on the real [`RoleHolder`] and the real [`Claim`](archipelago_protocol::session::Claim).
//!
//! Both sessions live for ever, which is the worst case: nobody may ever replace the record of the other. Either node may think
//! at any time that it leads, or that it does not. Every write may be given up by its sender and be applied at any later time,
//! or never; every look may show nothing. The question is whether the role can always be filled again.

mod mutant;
mod world;

use stateright::{Model, Property};

use self::mutant::Mutant;
use self::world::{NODES, World};

#[derive(Clone, Copy, Debug)]
struct Offices {
    /// Writes that may change the record.
    versions: u64,
    flights: usize,
    broken: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// A node thinks that it leads.
    Lead(usize),
    /// A node thinks that it does not.
    Follow(usize),
    /// Whoever holds the role finds that another one does, and stops.
    StepDown(usize),
    /// A node's look at the record is answered.
    Read(usize),
    /// A node's look is not answered.
    Unread(usize),
    /// A write arrives, and is answered if somebody waits for it.
    Land(usize),
    /// A write arrives and its answer is lost.
    LandUnheard(usize),
    /// A node waits no longer for its write, which may still arrive.
    Leave(usize),
    /// A write for which nobody waits is lost.
    Lose(usize),
}

impl Offices {
    fn step(&self, world: &mut World, action: Action) {
        match action {
            Action::Lead(n) => world.lead(self.broken, n),
            Action::Follow(n) => world.follow(self.broken, n),
            Action::StepDown(n) => world.step_down(self.broken, n),
            Action::Read(n) => world.read(self.broken, n),
            Action::Unread(n) => world.unread(self.broken, n),
            Action::Land(flight) => world.land(self.broken, flight, true),
            Action::LandUnheard(flight) => world.land(self.broken, flight, false),
            Action::Leave(n) => world.leave(self.broken, n),
            Action::Lose(flight) => drop(world.flights.remove(flight)),
        }
    }

    /// Whether somebody holds the role in the end, if faults stop here and only `leader` leads. What is under way arrives
    /// first; `lost`, or is lost.
    fn is_filled_in_the_end(&self, from: &World, leader: usize, lost: bool) -> bool {
        let mut world = from.clone();
        if lost {
            world.flights.retain(|flight| flight.waits);
        }
        for _ in 0..ROUNDS {
            self.settle(&mut world);
            if world.nodes.iter().any(|node| node.machine.held().is_some()) {
                return true;
            }
            for n in 0..NODES {
                self.step(&mut world, if n == leader { Action::Lead(n) } else { Action::Follow(n) });
                self.settle(&mut world);
            }
        }
        false
    }

    fn settle(&self, world: &mut World) {
        for _ in 0..STEPS {
            if !world.flights.is_empty() {
                self.step(world, Action::Land(0));
            }
            for n in (0..NODES).filter(|n| world.nodes[*n].looks).collect::<Vec<_>>() {
                self.step(world, Action::Read(n));
            }
        }
    }
}

impl Model for Offices {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let may_send = world.flights.len() < self.flights && world.version < self.versions;
        for (n, node) in world.nodes.iter().enumerate() {
            let held = node.machine.held().is_some();
            let steps = [
                (may_send && !held, Action::Lead(n)),
                (may_send && !held, Action::Follow(n)),
                (may_send && held, Action::StepDown(n)),
                (node.looks, Action::Read(n)),
                (node.looks, Action::Unread(n)),
                (world.flights.iter().any(|flight| flight.waits && flight.by == n), Action::Leave(n)),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
        for (number, flight) in world.flights.iter().enumerate() {
            actions.push(Action::Land(number));
            actions.push(if flight.waits { Action::LandUnheard(number) } else { Action::Lose(number) });
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        self.step(&mut world, action);
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("office_is_recorded", |_, world: &World| world.offices_are_recorded()),
            Property::always("no_record_is_forgotten", |_, world: &World| world.records_are_known()),
            Property::always("role_is_filled_again", |model: &Self, world: &World| {
                let ways = (0..NODES).flat_map(|leader| [(leader, false), (leader, true)]);
                ways.into_iter().all(|(leader, lost)| model.is_filled_in_the_end(world, leader, lost))
            }),
            Property::sometimes(
                "a claim lands at a node that leads no more, and is given back",
                |_, world: &World| world.given_back,
            ),
            Property::sometimes("both nodes have held the role", |_, world: &World| {
                world.nodes.iter().all(|node| node.has_held)
            }),
        ]
    }
}

/// A look, a release, a claim, each by its own tick, and each once more because of what was under way.
const ROUNDS: usize = 8;
/// More than a step sends.
const STEPS: usize = 8;

mod tests {
    use super::*;
    use crate::check::{explore, hunt_for};

    fn offices(broken: Option<Mutant>) -> Offices {
        Offices { versions: 5, flights: 3, broken }
    }

    #[test]
    fn a_role_is_never_lost_to_a_claim_that_nobody_answered() {
        explore(Offices { versions: 3, flights: 2, broken: None }).assert_clean();
    }

    #[test]
    fn a_claim_without_an_answer_that_is_forgotten_blocks_the_role() {
        let broken = offices(Some(Mutant::ForgetsUnanswered));
        hunt_for(broken, "role_is_filled_again").assert_broken("role_is_filled_again");
    }

    #[test]
    fn one_look_is_not_enough() {
        let broken = offices(Some(Mutant::LooksOnce));
        hunt_for(broken, "role_is_filled_again").assert_broken("role_is_filled_again");
    }

    #[test]
    fn a_role_is_not_adopted_by_reading() {
        let broken = offices(Some(Mutant::AdoptsByReading));
        hunt_for(broken, "office_is_recorded").assert_broken("office_is_recorded");
    }

    #[test]
    fn a_release_names_its_generation() {
        let broken = offices(Some(Mutant::ReleasesAnything));
        hunt_for(broken, "office_is_recorded").assert_broken("office_is_recorded");
    }

    #[test]
    fn a_release_without_an_answer_is_not_done() {
        let broken = offices(Some(Mutant::ReleasesOnce));
        hunt_for(broken, "role_is_filled_again").assert_broken("role_is_filled_again");
    }
}
