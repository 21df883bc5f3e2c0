//! Managers of one range-partitioned kind, on the real [`RangeManager`]: splits, merges and moves of partitions while requests
//! and answers are lost, writes land late, a second manager takes office and a node dies (R336, R502).
//!
//! The store keeps the contract of the routing table, the nodes that of the directory: whoever the table names claims a
//! partition once its parents are retired, and retires what the table names no more. Nodes may act on old tables.

mod mutant;
mod tests;
mod world;

use archipelago_protocol::ranges::{RangeChange, RangeTable};
use stateright::{Model, Property};

use mutant::Mutant;
use world::{Flight, World};

/// How much may happen.
#[derive(Clone, Copy, Debug)]
struct Ranges {
    /// Changes that somebody asks for.
    asks: u8,
    /// Requests and answers that are lost or late.
    losses: u8,
    /// Nodes that die.
    deaths: u8,
    /// Managers that take office.
    managers: u64,
    broken: Option<Mutant>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// The next manager takes office, in the first or the second place.
    TakeOffice(usize),
    /// A manager learns who is there.
    Hosts(usize),
    /// Somebody asks a manager for a change.
    Split(usize),
    Merge(usize),
    /// The request of a manager is carried out and answered.
    Answer(usize),
    /// It is not carried out, and nobody answers.
    LoseRequest(usize),
    /// It is carried out, and nobody answers.
    LoseAnswer(usize),
    /// Nobody answers, and it is carried out later.
    Delay(usize),
    Land,
    /// A manager looks again.
    Wake(usize),
    /// A manager is told that a parent is retired, true or not.
    Told(usize),
    /// A node reads the table.
    See(usize),
    /// A node does what the table it has read says.
    Claim(usize, usize),
    Retire(usize, usize),
    Die,
}

impl Model for Ranges {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.office < self.managers {
            steps.push(Step::TakeOffice(usize::from(world.managers[0].is_some())));
        }
        for place in 0..world.managers.len() {
            self.steps_of_manager(world, place, steps);
        }
        if world.late.is_some() {
            steps.push(Step::Land);
        }
        for node in 0..world.nodes.len() {
            steps_of_node(world, node, steps);
        }
        if world.deaths < self.deaths && world.nodes[1].up {
            steps.push(Step::Die);
        }
    }

    fn next_state(&self, last: &World, step: Step) -> Option<World> {
        let mut world = last.clone();
        match step {
            Step::TakeOffice(place) => world.take_office(place),
            Step::Hosts(place) => world.show_hosts(place),
            Step::Split(place) => world.ask(place, split(&world)?),
            Step::Merge(place) => world.ask(place, merge(&world)?),
            Step::Answer(place) => world.answer(place, self.broken),
            Step::LoseRequest(place) => world.lose(place, false, self.broken),
            Step::LoseAnswer(place) => world.lose(place, true, self.broken),
            Step::Delay(place) => world.delay(place, self.broken),
            Step::Land => world.land(self.broken),
            Step::Wake(place) => world.wake(place),
            Step::Told(place) => world.tell_retired(place),
            Step::See(node) => world.nodes[node].seen = world.table().cloned(),
            Step::Claim(node, entry) => world.claim(node, entry, self.broken),
            Step::Retire(node, owned) => world.retire(node, owned),
            Step::Die => world.die(),
        }
        (world != *last).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no_two_owners", |_, world: &World| !world.owners_overlap()),
            Property::always("done_is_in_force", |_, world: &World| !world.lied),
            Property::always("old_managers_are_fenced", |_, world: &World| !world.unfenced),
            Property::always("nothing_is_saved_unsealed", |_, world: &World| !world.unsealed),
            Property::always("the_table_names_nothing_retired", |_, world: &World| {
                let names =
                    |table: &RangeTable| table.entries().iter().any(|e| world.retired.contains(&e.partition));
                !world.table().is_some_and(names)
            }),
            Property::sometimes(SPLIT, |_, world: &World| {
                world.table().is_some_and(|table| table.entries().len() == 2 && is_free(table))
            }),
            Property::sometimes(TAKEN_OVER, |_, world: &World| {
                world.deaths > 0 && world.owners.values().any(|(node, _)| *node == 0)
            }),
            Property::sometimes(SECOND, |_, world: &World| {
                world.saved.as_ref().is_some_and(|saved| saved.epoch.0 == 2) && world.owners.len() == 2
            }),
        ]
    }
}

impl Ranges {
    fn steps_of_manager(&self, world: &World, place: usize, steps: &mut Vec<Step>) {
        let Some(office) = &world.managers[place] else { return };
        match office.flight {
            Flight::None => {}
            Flight::Seal | Flight::Load => {
                steps.push(Step::Answer(place));
            }
            Flight::Save { .. } => {
                steps.push(Step::Answer(place));
                if world.losses < self.losses {
                    steps.extend([Step::LoseRequest(place), Step::LoseAnswer(place)]);
                    steps.extend(world.late.is_none().then_some(Step::Delay(place)));
                }
            }
        }
        if office.hosts != world.up() {
            steps.push(Step::Hosts(place));
        }
        if world.asks < self.asks && world.table().is_some() {
            steps.extend([Step::Split(place), Step::Merge(place)]);
        }
        if office.wakes && office.flight == Flight::None {
            steps.push(Step::Wake(place));
        }
        if world.table().is_some_and(|table| !is_free(table)) {
            steps.push(Step::Told(place));
        }
    }
}

fn steps_of_node(world: &World, node: usize, steps: &mut Vec<Step>) {
    let it = &world.nodes[node];
    if !it.up {
        return;
    }
    if it.seen.as_ref() != world.table() {
        steps.push(Step::See(node));
    }
    let entries = it.seen.as_ref().map_or(0, |table| table.entries().len());
    steps.extend((0..entries).map(|entry| Step::Claim(node, entry)));
    steps.extend((0..world.owners.len()).map(|owned| Step::Retire(node, owned)));
}

// ---- what must have been seen ----

const SPLIT: &str = "a split is finished";
const SECOND: &str = "a second manager goes on with two owners";
const TAKEN_OVER: &str = "a node serves after the other has died";

/// Nothing waits for a parent.
fn is_free(table: &RangeTable) -> bool {
    table.entries().iter().all(|entry| entry.parents.is_empty())
}

fn split(world: &World) -> Option<RangeChange> {
    let entry = world.table()?.entries().first()?;
    let at = world::key(if entry.range.end().is_none() { "m" } else { "f" });
    Some(RangeChange::Split { partition: entry.partition.clone(), at })
}

fn merge(world: &World) -> Option<RangeChange> {
    let table = world.table()?;
    (table.entries().len() > 1)
        .then(|| RangeChange::Merge { partition: table.entries()[0].partition.clone() })
}
