//! Who may end sessions when any nodes die, on the real rule [`is_monitor`] (P10).
//!
//! Five nodes die in any order, but for one; each survivor notices each death by itself, some time or never. Noticing is
//! the detector's, ending is a monitor's. The property assumes that the detector is right in the end.

use std::collections::BTreeSet;

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::is_monitor;
use stateright::{Model, Property};

#[derive(Clone, Debug)]
struct Monitors {
    /// Broken: the lowest three nodes that have not ended, whether anybody can reach them or not.
    lowest_three_up: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    alive: [bool; NODES],
    ended: [bool; NODES],
    /// `noticed[n][m]`: live node n no longer reaches dead node m.
    noticed: [[bool; NODES]; NODES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Die(usize),
    Notice { by: usize, dead: usize },
    End(usize),
}

impl Monitors {
    fn monitors(&self, state: &State, me: usize, noticed: &[bool; NODES]) -> bool {
        let counts = |m: &usize| !state.ended[*m] && (self.lowest_three_up || !noticed[*m]);
        let reachable: BTreeSet<NodeId> = (0..NODES).filter(counts).map(id).collect();
        is_monitor(id(me), &reachable)
    }

    fn some_monitor(&self, state: &State, noticed: impl Fn(usize) -> [bool; NODES]) -> bool {
        (0..NODES).any(|n| state.alive[n] && self.monitors(state, n, &noticed(n)))
    }
}

impl Model for Monitors {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let nobody = [false; NODES];
        vec![State { alive: [true; NODES], ended: nobody, noticed: [nobody; NODES] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let survivors = state.alive.iter().filter(|alive| **alive).count();
        for n in 0..NODES {
            if state.alive[n] && survivors > 1 {
                actions.push(Action::Die(n));
            }
            if !state.alive[n] && !state.ended[n] && self.some_monitor(state, |m| state.noticed[m]) {
                actions.push(Action::End(n));
            }
            let unnoticed =
                (0..NODES).filter(|m| !state.alive[*m] && !state.noticed[n][*m] && state.alive[n]);
            actions.extend(unnoticed.map(|dead| Action::Notice { by: n, dead }));
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Die(n) => {
                state.alive[n] = false;
                state.noticed[n] = [false; NODES];
            }
            Action::Notice { by, dead } => state.noticed[by][dead] = true,
            Action::End(n) => state.ended[n] = true,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("dead_sessions_can_end", |model: &Self, state: &State| {
                model.some_monitor(state, |_| state.alive.map(|alive| !alive))
            }),
            Property::sometimes("the lowest three are dead and ended", |_, state: &State| {
                state.ended[..3].iter().all(|ended| *ended)
            }),
        ]
    }
}

fn id(node: usize) -> NodeId {
    NodeId::new(node as u64)
}

const NODES: usize = 5;

mod tests {
    use super::*;
    use crate::check::{broken_in, explore, hunt, replay};

    #[test]
    fn whoever_dies_somebody_can_end_them() {
        let explored = explore(Monitors { lowest_three_up: false });
        explored.assert_clean();
        assert_eq!(explored.distinct, 9_121);
    }

    #[test]
    fn mutant_32_lowest_three_up_leaves_nobody_after_three_deaths() {
        let model = Monitors { lowest_three_up: true };
        hunt(model.clone()).assert_broken("dead_sessions_can_end");
        let state = replay(&model, &[Action::Die(0), Action::Die(1), Action::Die(2)]);
        assert!(broken_in(&model, &state).contains("dead_sessions_can_end"));
    }
}
