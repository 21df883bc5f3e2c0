//! The registry protocol as it was published, to its last state, and the variants that its invariants must catch.
//!
//! It has no machine of ours: nodes are judged by missed heartbeats alone and nothing fences itself, which is why
//! [`super::registry_extended`] exists. Reproducing its size shows that we read it as its authors did.

use std::collections::{BTreeSet, VecDeque};

use stateright::{Model, Property};

/// Nodes, actors and misses, and what is broken.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    nodes: u8,
    actors: u8,
    max_miss: u8,
    variant: Variant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    Published,
    ClaimOnSuspect,
    ClaimOnAnyStatus,
    ClaimForTheDead,
    KeepsPlacementsOfFailed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Status {
    Active,
    Suspect,
    Failed,
}

/// `cache[n][a]` and `placement[a]` are nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct State {
    status: Vec<Status>,
    placement: Vec<Option<u8>>,
    missed: Vec<u8>,
    alive: Vec<bool>,
    cache: Vec<Vec<Option<u8>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Heartbeat(u8),
    Tick(u8),
    Detect(u8),
    Crash(u8),
    Claim { actor: u8, node: u8 },
    Release(u8),
    Invalidate { node: u8, actor: u8 },
}

use Action::{Claim, Crash, Detect, Heartbeat, Invalidate, Release, Tick};

impl Registry {
    fn new(nodes: u8, actors: u8, max_miss: u8) -> Self {
        Self { nodes, actors, max_miss, variant: Variant::Published }
    }

    fn but(variant: Variant) -> Self {
        Self { variant, ..Self::new(2, 1, 1) }
    }

    fn may_claim(&self, state: &State, node: u8) -> bool {
        let (status, alive) = (state.status[at(node)], state.alive[at(node)]);
        match self.variant {
            Variant::Published | Variant::KeepsPlacementsOfFailed => status == Status::Active && alive,
            Variant::ClaimOnSuspect => status != Status::Failed && alive,
            Variant::ClaimOnAnyStatus => alive,
            Variant::ClaimForTheDead => true,
        }
    }

    fn node_actions(&self, state: &State, node: u8, actions: &mut Vec<Action>) {
        let n = at(node);
        let judged = state.status[n] != Status::Failed;
        if state.alive[n] {
            actions.extend([Heartbeat(node), Crash(node)]);
        }
        if judged && !state.alive[n] && state.missed[n] < self.max_miss {
            actions.push(Tick(node));
        }
        if judged && state.missed[n] >= self.max_miss {
            actions.push(Detect(node));
        }
        for actor in 0..self.actors {
            if state.placement[at(actor)].is_none() && self.may_claim(state, node) {
                actions.push(Claim { actor, node });
            }
            if state.alive[n] && state.cache[n][at(actor)] != state.placement[at(actor)] {
                actions.push(Invalidate { node, actor });
            }
        }
    }

    fn detect(&self, state: &mut State, node: u8) {
        if state.status[at(node)] == Status::Active {
            state.status[at(node)] = Status::Suspect;
            return;
        }
        state.status[at(node)] = Status::Failed;
        if self.variant != Variant::KeepsPlacementsOfFailed {
            state
                .placement
                .iter_mut()
                .filter(|placed| **placed == Some(node))
                .for_each(|placed| *placed = None);
        }
    }
}

impl Model for Registry {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (nodes, actors) = (at(self.nodes), at(self.actors));
        vec![State {
            status: vec![Status::Active; nodes],
            placement: vec![None; actors],
            missed: vec![0; nodes],
            alive: vec![true; nodes],
            cache: vec![vec![None; actors]; nodes],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        (0..self.nodes).for_each(|node| self.node_actions(state, node, actions));
        actions.extend((0..self.actors).filter(|a| state.placement[at(*a)].is_some()).map(Release));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Heartbeat(node) => {
                state.missed[at(node)] = 0;
                if state.status[at(node)] == Status::Suspect {
                    state.status[at(node)] = Status::Active;
                }
            }
            Tick(node) => state.missed[at(node)] += 1,
            Detect(node) => self.detect(&mut state, node),
            Crash(node) => state.alive[at(node)] = false,
            Claim { actor, node } => {
                state.placement[at(actor)] = Some(node);
                state.cache[at(node)][at(actor)] = Some(node);
            }
            Release(actor) => state.placement[at(actor)] = None,
            Invalidate { node, actor } => state.cache[at(node)][at(actor)] = state.placement[at(actor)],
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("TypeOK", |model: &Self, state: &State| {
                let known = |node: &Option<u8>| node.is_none_or(|node| node < model.nodes);
                state.placement.iter().all(known)
                    && state.cache.iter().flatten().all(known)
                    && state.missed.iter().all(|missed| *missed <= model.max_miss)
            }),
            Property::always("PlacementConsistency", |_, state: &State| {
                state.placement.iter().flatten().all(|node| state.status[at(*node)] != Status::Failed)
            }),
            Property::sometimes("a node takes what a failed one had", |_, state: &State| {
                state.status[0] == Status::Failed
                    && state.cache[0][0] == Some(0)
                    && state.placement[0] == Some(1)
            }),
        ]
    }
}

fn at(index: u8) -> usize {
    usize::from(index)
}

mod tests {
    use super::*;
    use crate::check::{breaks_within_less_than, broken_in, explore, replay};

    #[track_caller]
    fn assert_size(model: Registry, distinct: usize, generated: usize) {
        let explored = explore(model);
        explored.assert_clean();
        assert_eq!((explored.distinct, explored.generated), (distinct, generated));
    }

    /// Proves: R457, R459, R233
    #[test]
    fn the_published_run_has_the_published_size_and_depth() {
        let explored = explore(Registry::new(2, 2, 2));
        explored.assert_clean();
        assert_eq!((explored.distinct, explored.generated, explored.depth), (6_174, 22_845, 19));
    }

    #[test]
    fn the_smallest_run_holds() {
        assert_size(Registry::new(2, 1, 1), 320, 937);
    }

    /// Proves: C56, R460
    ///
    /// Only dead nodes miss beats and none comes back, so no live node is ever suspected: these two claim nothing more.
    #[test]
    fn claiming_on_a_suspect_or_failed_but_live_node_changes_nothing() {
        assert_size(Registry::but(Variant::ClaimOnSuspect), 320, 937);
        assert_size(Registry::but(Variant::ClaimOnAnyStatus), 320, 937);
    }

    #[track_caller]
    fn assert_breaks_placement(variant: Variant, generated: usize, trace: &[Action]) {
        let explored = explore(Registry::but(variant));
        explored.assert_broken("PlacementConsistency");
        assert_eq!((explored.distinct, explored.generated, explored.broken.len()), (350, generated, 1));
        let broken = broken_in(&Registry::but(variant), &replay(&Registry::but(variant), trace));
        assert_eq!(broken, BTreeSet::from(["PlacementConsistency"]));
        assert!(!breaks_within_less_than(Registry::but(variant), trace.len()), "there is a shorter way");
    }

    /// Proves: C56, R460
    #[test]
    fn claiming_for_a_dead_node_breaks_placement_in_five_steps() {
        let trace = [Crash(0), Tick(0), Detect(0), Detect(0), Claim { actor: 0, node: 0 }];
        assert_breaks_placement(Variant::ClaimForTheDead, 1_321, &trace);
    }

    /// Proves: C56, R460
    #[test]
    fn keeping_the_placements_of_a_failed_node_breaks_placement_in_five_steps() {
        let trace = [Claim { actor: 0, node: 0 }, Crash(0), Tick(0), Detect(0), Detect(0)];
        assert_breaks_placement(Variant::KeepsPlacementsOfFailed, 1_001, &trace);
    }

    #[test]
    #[ignore = "1.7 million states: for `cargo xtask soak`"]
    fn three_nodes_hold() {
        assert_size(Registry::new(3, 2, 2), 1_674_000, 8_766_001);
    }

    /// Proves: R458, C57
    ///
    /// "Leads to" without fairness in the checker: from every state with a dead node the judge alone (Tick, Detect) gets it
    /// to Failed, and no step of anybody undoes what the judge has done about a dead node.
    #[test]
    fn a_dead_node_is_always_on_its_way_to_failed() {
        let (model, states) = reachable(Registry::new(2, 2, 2));
        let mut steps_taken = 0;
        for state in &states {
            for node in (0..model.nodes).filter(|node| !state.alive[at(*node)]) {
                let judged =
                    run_alone(&model, state, |action| matches!(action, Tick(n) | Detect(n) if *n == node));
                assert_eq!(judged.status[at(node)], Status::Failed, "{state:?}");
                for next in successors(&model, state) {
                    assert!(progress(&next, node) >= progress(state, node), "{state:?} -> {next:?}");
                    steps_taken += 1;
                }
            }
        }
        assert!(steps_taken > 10_000, "only {steps_taken} steps were looked at");
    }

    /// Proves: R458, R216
    ///
    /// A stale cache of a live node is made fresh by its own step, which nothing but the node's death takes away.
    #[test]
    fn a_stale_cache_can_always_be_made_fresh() {
        let (model, states) = reachable(Registry::new(2, 2, 2));
        let stale = |state: &State, n: u8, a: u8| {
            state.alive[at(n)] && state.cache[at(n)][at(a)] != state.placement[at(a)]
        };
        let mut seen = 0;
        for (state, node, actor) in states.iter().flat_map(|s| [(s, 0, 0), (s, 0, 1), (s, 1, 0), (s, 1, 1)]) {
            if stale(state, node, actor) {
                let fresh = model.next_state(state, Invalidate { node, actor }).expect("a next state");
                assert!(!stale(&fresh, node, actor));
                for next in successors(&model, state).filter(|next| stale(next, node, actor)) {
                    let mut possible = Vec::new();
                    model.actions(&next, &mut possible);
                    assert!(possible.contains(&Invalidate { node, actor }));
                }
                seen += 1;
            }
        }
        assert!(seen > 1_000, "only {seen} stale caches were seen");
    }

    /// How far the judge has come with a dead node.
    fn progress(state: &State, node: u8) -> (Status, u8) {
        (state.status[at(node)], state.missed[at(node)])
    }

    fn run_alone(model: &Registry, from: &State, allowed: impl Fn(&Action) -> bool) -> State {
        let mut state = from.clone();
        loop {
            let mut possible = Vec::new();
            model.actions(&state, &mut possible);
            let Some(action) = possible.into_iter().find(&allowed) else { return state };
            state = model.next_state(&state, action).expect("a next state");
        }
    }

    fn successors<'a>(model: &'a Registry, state: &'a State) -> impl Iterator<Item = State> + 'a {
        model.next_steps(state).into_iter().map(|(_, next)| next)
    }

    fn reachable(model: Registry) -> (Registry, BTreeSet<State>) {
        let mut seen: BTreeSet<State> = model.init_states().into_iter().collect();
        let mut pending: VecDeque<State> = seen.iter().cloned().collect();
        while let Some(state) = pending.pop_front() {
            for next in successors(&model, &state) {
                if seen.insert(next.clone()) {
                    pending.push_back(next);
                }
            }
        }
        (model, seen)
    }
}
