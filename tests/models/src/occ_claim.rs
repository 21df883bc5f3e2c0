//! The optimistic claim: read the record's version, commit if the record is unchanged and free.

use stateright::{Model, Property};

/// Two nodes that claim one actor, each in four steps.
#[derive(Clone, Debug)]
struct OccClaim {
    max_version: u8,
    /// Broken: a commit does not look at the version.
    blind_commit: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    holder: Option<u8>,
    version: u8,
    nodes: [Node; NODES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    phase: Phase,
    /// What it read last; it is not forgotten.
    read: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Reading,
    Committing,
    Active,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Start(usize),
    Read(usize),
    Commit(usize),
    Release(usize),
}

impl OccClaim {
    fn commit(&self, state: &mut State, node: usize) {
        let unchanged = state.nodes[node].read == state.version && state.holder.is_none();
        if unchanged || self.blind_commit {
            state.holder = Some(number(node));
            state.version += 1;
            state.nodes[node].phase = Phase::Active;
        } else {
            state.nodes[node].phase = Phase::Idle;
        }
    }
}

impl Model for OccClaim {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State { holder: None, version: 0, nodes: [Node { phase: Phase::Idle, read: 0 }; NODES] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(state.nodes.iter().enumerate().map(|(n, node)| match node.phase {
            Phase::Idle => Action::Start(n),
            Phase::Reading => Action::Read(n),
            Phase::Committing => Action::Commit(n),
            Phase::Active => Action::Release(n),
        }));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Start(n) => state.nodes[n].phase = Phase::Reading,
            Action::Read(n) => state.nodes[n] = Node { phase: Phase::Committing, read: state.version },
            Action::Commit(n) => self.commit(&mut state, n),
            Action::Release(n) => {
                state.nodes[n].phase = Phase::Idle;
                state.holder = None;
                state.version += 1;
            }
        }
        Some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.version <= self.max_version
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("SingleActivation", |_, state: &State| active(state).count() <= 1),
            Property::always("the active node is the recorded one", |_, state: &State| {
                active(state).all(|n| state.holder == Some(number(n)))
            }),
            Property::sometimes("one is active while the other commits in vain", |_, state: &State| {
                active(state).count() == 1 && state.nodes.iter().any(|node| node.phase == Phase::Committing)
            }),
        ]
    }
}

fn active(state: &State) -> impl Iterator<Item = usize> {
    (0..NODES).filter(|n| state.nodes[*n].phase == Phase::Active)
}

fn number(node: usize) -> u8 {
    u8::try_from(node).expect("two nodes")
}

const NODES: usize = 2;

mod tests {
    use super::*;
    use crate::check::{explore, hunt};

    #[test]
    fn at_most_one_node_is_active() {
        let explored = explore(OccClaim { max_version: 10, blind_commit: false });
        explored.assert_clean();
        assert_eq!(explored.distinct, 714);
    }

    #[test]
    fn a_commit_that_does_not_compare_is_noticed() {
        hunt(OccClaim { max_version: 10, blind_commit: true }).assert_broken("SingleActivation");
    }
}
