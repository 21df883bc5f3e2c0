//! What happens if nothing goes wrong any more: every write is carried out and answered, every timer fires.

use super::store::{FlightState, Who};
use super::world::{Duty, World};
use super::{Action, Sessions};

/// Whether somebody serves the key in the end, if faults stop here and B wants it (P5).
pub(super) fn serves_in_the_end(model: &Sessions, from: &World) -> bool {
    let mut world = from.clone();
    for _ in 0..ROUNDS {
        settle(model, &mut world);
        for action in calm_steps(&world) {
            model.step(&mut world, action);
            settle(model, &mut world);
        }
        if [Who::A, Who::B].into_iter().any(|who| world.serves(model.rules, who).is_some()) {
            return true;
        }
        model.step(&mut world, Action::Tick);
    }
    false
}

/// A does what keeps its session and takes what a record says it owns; B looks, ends and claims.
fn calm_steps(world: &World) -> Vec<Action> {
    let mut steps = Vec::new();
    let idle = |who| matches!(world.duty(who), Duty::Idle);
    if let Some(session) = world.present_session(Who::A) {
        steps.push(Action::Beat);
        if idle(Who::A) && world.owner.value == Some(session.id) {
            steps.push(Action::Claim { who: Who::A, stale: false });
        }
    }
    steps.extend((0..world.leases.len()).map(|session| Action::Look { session, stale: false }));
    steps.push(Action::Observe);
    if idle(Who::B) {
        steps.push(Action::Claim { who: Who::B, stale: false });
    }
    steps
}

fn settle(model: &Sessions, world: &mut World) {
    for _ in 0..FLIGHTS {
        let Some(flight) = world.flights.first() else { return };
        let step = if flight.state == FlightState::Sent { Action::Apply(0) } else { Action::Answer(0) };
        model.step(world, step);
    }
}

/// Twice an observer's wait, and some: a beat on its way at the end of the first wait starts a second.
const ROUNDS: usize = 12;
/// More than a step sends.
const FLIGHTS: usize = 40;
