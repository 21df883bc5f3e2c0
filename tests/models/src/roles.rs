//! Two holders of a role who write one decision record, on the real comparison of [`Epoch`]s (P6).
//!
//! This is also the record of a datacenter after a fail-over of its leader. Every write may land late; a leader that lost
//! its office does not know it until it reads the record. SEAL: a new leader first writes the record under its own epoch,
//! and relies on what it says only after that.

use archipelago_protocol::contract::Epoch;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug)]
struct Roles {
    writes: u8,
    broken: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// 26: after a conflict the record is read again and written, whatever its epoch.
    NoEpochCheck,
    /// 27: a leader relies on what it reads before it has sealed it.
    ReliesUnsealed,
    /// 28: a write does not name the version it replaces.
    NoVersion,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    /// The generation of the role's owner record.
    office: u64,
    record: Record,
    leaders: [Leader; 2],
    flights: Vec<Flight>,
    /// The greatest epoch whose leader has relied on the record.
    relied: Epoch,
    fell: bool,
    betrayed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    version: u8,
    epoch: Epoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Leader {
    /// `None` once it stepped down, and before it was elected.
    epoch: Option<Epoch>,
    seen: Option<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Flight {
    over: u8,
    epoch: Epoch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    TakeOffice(usize),
    Read(usize),
    Rely(usize),
    Write(usize),
    Land(usize),
    Lose(usize),
}

impl Roles {
    fn read(&self, state: &mut State, n: usize) {
        let Some(epoch) = state.leaders[n].epoch else { return };
        if epoch.may_replace(state.record.epoch) || self.broken == Some(Mutant::NoEpochCheck) {
            state.leaders[n].seen = Some(state.record);
        } else {
            state.leaders[n] = Leader { epoch: None, seen: None };
        }
    }

    fn land(&self, state: &mut State, number: usize) {
        let flight = state.flights.remove(number);
        if flight.over != state.record.version && self.broken != Some(Mutant::NoVersion) {
            return;
        }
        state.fell |= flight.epoch < state.record.epoch;
        state.betrayed |= flight.epoch < state.relied;
        state.record = Record { version: state.record.version + 1, epoch: flight.epoch };
    }

    /// What the leader read bears its own epoch: nobody before it can write any more.
    fn may_rely(&self, leader: Leader) -> bool {
        let (Some(epoch), Some(seen)) = (leader.epoch, leader.seen) else { return false };
        seen.epoch == epoch || self.broken == Some(Mutant::ReliesUnsealed)
    }
}

impl Model for Roles {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            office: 0,
            record: Record { version: 0, epoch: Epoch(0) },
            leaders: [Leader { epoch: None, seen: None }; 2],
            flights: Vec::new(),
            relied: Epoch(0),
            fell: false,
            betrayed: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, leader) in state.leaders.iter().enumerate() {
            let may_send = state.flights.len() < 2 && state.record.version < self.writes;
            let steps = [
                (leader.epoch.is_none() && state.office < 3, Action::TakeOffice(n)),
                (leader.epoch.is_some(), Action::Read(n)),
                (leader.seen.is_some() && may_send, Action::Write(n)),
                (self.may_rely(*leader), Action::Rely(n)),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
        actions.extend((0..state.flights.len()).flat_map(|f| [Action::Land(f), Action::Lose(f)]));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::TakeOffice(n) => {
                state.office += 1;
                state.leaders[n] = Leader { epoch: Some(Epoch(state.office)), seen: None };
            }
            Action::Read(n) => self.read(&mut state, n),
            Action::Rely(n) => state.relied = state.relied.max(state.leaders[n].epoch.unwrap_or_default()),
            Action::Write(n) => {
                let Leader { epoch, seen } = state.leaders[n];
                state.flights.push(Flight { over: seen?.version, epoch: epoch? });
                state.leaders[n].seen = None;
            }
            Action::Land(number) => self.land(&mut state, number),
            Action::Lose(number) => drop(state.flights.remove(number)),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("epoch_never_falls", |_, state: &State| !state.fell),
            Property::always("no_old_write_after_reliance", |_, state: &State| !state.betrayed),
            Property::sometimes("a second leader relies on what it sealed", |_, state: &State| {
                state.relied >= Epoch(2)
            }),
        ]
    }
}

mod tests {
    use super::*;
    use crate::check::{explore, hunt};

    #[test]
    fn an_epoch_never_falls_and_nobody_is_betrayed() {
        explore(Roles { writes: 5, broken: None }).assert_clean();
    }

    #[test]
    fn mutant_26_retry_without_epoch_check() {
        hunt(Roles { writes: 5, broken: Some(Mutant::NoEpochCheck) }).assert_broken("epoch_never_falls");
    }

    #[test]
    fn mutant_27_relying_on_an_unsealed_read() {
        hunt(Roles { writes: 5, broken: Some(Mutant::ReliesUnsealed) })
            .assert_broken("no_old_write_after_reliance");
    }

    #[test]
    fn mutant_28_write_without_version() {
        hunt(Roles { writes: 5, broken: Some(Mutant::NoVersion) }).assert_broken("epoch_never_falls");
    }
}
