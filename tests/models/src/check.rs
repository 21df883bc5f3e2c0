//! Runs a model and says how large it was and which properties it broke.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hash;

use stateright::{Checker, CheckerBuilder, Expectation, HasDiscoveries, Model};

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Explored {
    /// Different states.
    pub(crate) distinct: usize,
    /// States counted as often as they were reached, the first one included.
    pub(crate) generated: usize,
    /// States on the longest of the shortest ways to a state.
    pub(crate) depth: usize,
    /// Per broken property, how it was broken.
    pub(crate) broken: BTreeMap<&'static str, Vec<String>>,
    /// The `sometimes` properties that never held.
    pub(crate) never: BTreeSet<&'static str>,
}

impl Explored {
    /// Fails unless all properties held and every `sometimes` happened.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        self.assert_clean_but(&[]);
    }

    /// Fails unless all properties held and every `sometimes` happened but these, which cannot in this run.
    #[track_caller]
    pub(crate) fn assert_clean_but(&self, impossible: &[&'static str]) {
        self.report("holds");
        assert!(self.broken.is_empty(), "{self:#?}");
        let impossible: BTreeSet<&str> = impossible.iter().copied().collect();
        assert_eq!(self.never, impossible, "never seen");
    }

    /// Fails unless `property` was broken.
    #[track_caller]
    pub(crate) fn assert_broken(&self, property: &str) {
        self.report(property);
        assert!(self.broken.contains_key(property), "{property} is not broken: {self:#?}");
    }

    /// One line for those who ask for the figures with `--nocapture`.
    fn report(&self, what: &str) {
        let Self { distinct, generated, depth, broken, .. } = self;
        let ways: Vec<String> =
            broken.iter().map(|(name, steps)| format!("{name} in {}", steps.len())).collect();
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default();
        eprintln!(
            "figure {test} {what}: {distinct} distinct, {generated} generated, depth {depth}, broken {ways:?}"
        );
    }
}

/// Searches the whole space.
pub(crate) fn explore<M>(model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    run(model.checker())
}

/// Searches until some property is broken, or everything was seen.
pub(crate) fn hunt<M>(model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    run(model.checker().finish_when(HasDiscoveries::AnyFailures))
}

/// Searches until this very property is broken, whatever else falls before, or everything was seen.
pub(crate) fn hunt_for<M>(model: M, property: &'static str) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    run(model.checker().finish_when(HasDiscoveries::AnyOf(BTreeSet::from([property]))))
}

/// Whether some way of less than `steps` steps breaks a property.
pub(crate) fn breaks_within_less_than<M>(model: M, steps: usize) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    // A state after k steps is at depth k + 1, and only smaller depths are looked at.
    !run(model.checker().target_max_depth(steps + 1)).broken.is_empty()
}

/// The state after `actions`, each of which must be possible where it is taken.
#[track_caller]
pub(crate) fn replay<M>(model: &M, actions: &[M::Action]) -> M::State
where
    M: Model,
    M::State: Debug,
    M::Action: Clone + Debug + PartialEq,
{
    let mut state = model.init_states().remove(0);
    for action in actions {
        let mut possible = Vec::new();
        model.actions(&state, &mut possible);
        assert!(possible.contains(action), "{action:?} is not possible in {state:#?}");
        state = model.next_state(&state, action.clone()).expect("a possible action has a next state");
    }
    state
}

/// The properties that are broken in `state`.
pub(crate) fn broken_in<M: Model>(model: &M, state: &M::State) -> BTreeSet<&'static str> {
    let always = model.properties().into_iter().filter(|p| p.expectation == Expectation::Always);
    always.filter(|property| !(property.condition)(model, state)).map(|property| property.name).collect()
}

fn run<M>(builder: CheckerBuilder<M>) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = builder.threads(1).spawn_bfs().join();
    let mut found = checker.discoveries();
    let mut explored = Explored {
        distinct: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        broken: BTreeMap::new(),
        never: BTreeSet::new(),
    };
    for property in checker.model().properties() {
        match (property.expectation, found.remove(property.name)) {
            (Expectation::Always, Some(path)) => {
                let steps = path.into_actions().iter().map(|action| format!("{action:?}")).collect();
                explored.broken.insert(property.name, steps);
            }
            (Expectation::Sometimes, None) => {
                explored.never.insert(property.name);
            }
            _ => {}
        }
    }
    explored
}
