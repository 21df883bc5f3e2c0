//! The registry as archipelago really keeps single activation: with what *runs*, false suspicion, self-fencing and rejoin.
//!
//! The published protocol says where an actor is placed, not where it runs. Here `running` is the truth, heartbeats of live
//! nodes may be lost, and a node that could not renew stops by itself before it can be declared failed. The guard of
//! [`Action::Fail`] stands for "the lease ran out, and it is longer than skew plus the time to stop"; the sessions model
//! and the drift model show why that may be assumed.

use stateright::{Model, Property};

/// Sizes, and what is broken.
#[derive(Clone, Debug)]
struct Extended {
    nodes: usize,
    actors: usize,
    max_miss: u8,
    generations: u8,
    variant: Variant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Sound,
    NoSelfFence,
    UncheckedUnregister,
    KeepsPlacementsOfFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Status {
    Active,
    Suspect,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    nodes: Vec<Node>,
    actors: Vec<Actor>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Node {
    status: Status,
    missed: u8,
    alive: bool,
    fenced: bool,
    /// Per actor the generation that runs here.
    running: Vec<Option<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Actor {
    placement: Option<(usize, u8)>,
    generation: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Heartbeat(usize),
    Miss(usize),
    Suspect(usize),
    SelfFence(usize),
    Fail(usize),
    Crash(usize),
    Rejoin(usize),
    Claim { actor: usize, node: usize },
    Stop { node: usize, actor: usize },
    Unregister { node: usize, actor: usize },
}

use Action::{Claim, Crash, Fail, Heartbeat, Miss, Rejoin, SelfFence, Stop, Suspect, Unregister};

impl Extended {
    fn new(nodes: usize, actors: usize, variant: Variant) -> Self {
        Self { nodes, actors, max_miss: 1, generations: 2, variant }
    }

    fn judging(&self, n: usize, node: &Node, actions: &mut Vec<Action>) {
        let silent = node.missed >= self.max_miss;
        let stopped = !node.alive || node.fenced || self.variant == Variant::NoSelfFence;
        let steps = [
            (node.alive && !node.fenced && node.status != Status::Failed, Heartbeat(n)),
            (node.status != Status::Failed && !silent, Miss(n)),
            (node.status == Status::Active && silent, Suspect(n)),
            (node.status == Status::Suspect && silent && stopped, Fail(n)),
            (node.status == Status::Failed && node.runs_nothing(), Rejoin(n)),
            (node.alive, Crash(n)),
            (self.may_fence(node), SelfFence(n)),
        ];
        actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
    }

    fn may_fence(&self, node: &Node) -> bool {
        let cut_off = node.status != Status::Active || node.missed >= self.max_miss;
        self.variant != Variant::NoSelfFence && node.alive && !node.fenced && cut_off
    }

    fn acting(&self, n: usize, node: &Node, state: &State, actions: &mut Vec<Action>) {
        for (a, actor) in state.actors.iter().enumerate() {
            let serves = node.status == Status::Active && node.alive && !node.fenced;
            let mine = actor.placement.is_some_and(|(owner, _)| owner == n)
                || self.variant == Variant::UncheckedUnregister;
            let steps = [
                (
                    serves && actor.placement.is_none() && actor.generation < self.generations,
                    Claim { actor: a, node: n },
                ),
                (node.running[a].is_some(), Stop { node: n, actor: a }),
                (
                    node.alive && node.running[a].is_none() && actor.placement.is_some() && mine,
                    Unregister { node: n, actor: a },
                ),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
    }

    fn fail(&self, state: &mut State, n: usize) {
        state.nodes[n].status = Status::Failed;
        if self.variant != Variant::KeepsPlacementsOfFailed {
            let lost =
                state.actors.iter_mut().filter(|actor| actor.placement.is_some_and(|(owner, _)| owner == n));
            lost.for_each(|actor| actor.placement = None);
        }
    }
}

impl Model for Extended {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let node = Node {
            status: Status::Active,
            missed: 0,
            alive: true,
            fenced: false,
            running: vec![None; self.actors],
        };
        let actor = Actor { placement: None, generation: 0 };
        vec![State { nodes: vec![node; self.nodes], actors: vec![actor; self.actors] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, node) in state.nodes.iter().enumerate() {
            self.judging(n, node, actions);
            self.acting(n, node, state, actions);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Heartbeat(n) => {
                state.nodes[n].missed = 0;
                state.nodes[n].status = Status::Active;
            }
            Miss(n) => state.nodes[n].missed += 1,
            Suspect(n) => state.nodes[n].status = Status::Suspect,
            SelfFence(n) => {
                state.nodes[n].stop_all();
                state.nodes[n].fenced = true;
            }
            Fail(n) => self.fail(&mut state, n),
            Crash(n) => {
                state.nodes[n].stop_all();
                state.nodes[n].alive = false;
            }
            Rejoin(n) => {
                let running = vec![None; self.actors];
                state.nodes[n] =
                    Node { status: Status::Active, missed: 0, alive: true, fenced: false, running };
            }
            Claim { actor, node } => {
                let generation = state.actors[actor].generation + 1;
                state.actors[actor] = Actor { placement: Some((node, generation)), generation };
                state.nodes[node].running[actor] = Some(generation);
            }
            Stop { node, actor } => state.nodes[node].running[actor] = None,
            Unregister { actor, .. } => state.actors[actor].placement = None,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("at most one runs", |model: &Self, state: &State| {
                (0..model.actors)
                    .all(|a| state.nodes.iter().filter(|node| node.running[a].is_some()).count() <= 1)
            }),
            Property::always("what runs is recorded", |_, state: &State| {
                runs(state).all(|(n, a, generation)| state.actors[a].placement == Some((n, generation)))
            }),
            Property::always("PlacementConsistency", |_, state: &State| {
                let owners = state.actors.iter().filter_map(|actor| actor.placement);
                owners.into_iter().all(|(n, _)| state.nodes[n].status != Status::Failed)
            }),
            Property::always("generations stay within the bound", |model, state: &State| {
                state.actors.iter().all(|actor| actor.generation <= model.generations)
            }),
            Property::sometimes("a second node runs what the fenced one had", |_, state: &State| {
                state.nodes[0].alive && state.nodes[0].fenced && state.nodes[1].running[0] == Some(2)
            }),
        ]
    }
}

impl Node {
    fn runs_nothing(&self) -> bool {
        self.running.iter().all(Option::is_none)
    }

    fn stop_all(&mut self) {
        self.running.iter_mut().for_each(|generation| *generation = None);
    }
}

fn runs(state: &State) -> impl Iterator<Item = (usize, usize, u8)> {
    state.nodes.iter().enumerate().flat_map(|(n, node)| {
        node.running.iter().enumerate().filter_map(move |(a, generation)| Some((n, a, (*generation)?)))
    })
}

mod tests {
    use super::*;
    use crate::check::{broken_in, explore, hunt, replay};

    #[track_caller]
    fn assert_size(model: Extended, distinct: usize) {
        let explored = explore(model);
        explored.assert_clean();
        assert_eq!(explored.distinct, distinct);
    }

    /// Proves: R232
    #[test]
    fn with_self_fencing_and_checked_unregister_everything_holds() {
        assert_size(Extended::new(2, 1, Variant::Sound), 1_183);
        assert_size(Extended::new(2, 2, Variant::Sound), 8_905);
        let large = Extended { max_miss: 2, generations: 3, ..Extended::new(3, 1, Variant::Sound) };
        assert_size(large, 45_900);
    }

    #[track_caller]
    fn assert_two_run_after(variant: Variant, distinct: usize, trace: &[Action]) {
        let explored = explore(Extended::new(2, 1, variant));
        explored.assert_broken("at most one runs");
        assert_eq!(explored.distinct, distinct);
        let model = Extended::new(2, 1, variant);
        let two_run = |steps| broken_in(&model, &replay(&model, steps)).contains("at most one runs");
        assert!(two_run(trace) && !two_run(&trace[..trace.len() - 1]));
    }

    #[test]
    fn without_self_fencing_two_run_after_five_steps() {
        let trace = [Miss(0), Claim { actor: 0, node: 0 }, Suspect(0), Fail(0), Claim { actor: 0, node: 1 }];
        assert_two_run_after(Variant::NoSelfFence, 548, &trace);
    }

    #[test]
    fn with_an_unregister_that_names_no_owner_two_run_after_three_steps() {
        let trace =
            [Claim { actor: 0, node: 0 }, Unregister { node: 1, actor: 0 }, Claim { actor: 0, node: 1 }];
        assert_two_run_after(Variant::UncheckedUnregister, 1_495, &trace);
    }

    #[test]
    fn placements_that_stay_on_a_failed_node_are_noticed() {
        let kept = hunt(Extended::new(2, 1, Variant::KeepsPlacementsOfFailed));
        kept.assert_broken("PlacementConsistency");
    }
}
