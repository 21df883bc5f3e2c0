//! The record of a datacenter with two leaders, each a real [`Controller`], on a control plane whose writes land late.
//!
//! A leader that lost its duty does not know it. Requests may be lost, may be applied although nobody hears of it, and may
//! be applied long after their sender gave up waiting. Listings are never answered: only the own record matters here.

use archipelago_protocol::contract::Epoch;
use archipelago_protocol::datacenter::{
    Controller, ControllerAction, ControllerEvent, ControllerSettings, DataCenterInfo, DataCenterRecord,
    DataCenterState, DataCenterVersion, LifeEvent, WriteAnswer,
};
use archipelago_protocol::time::Millis;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug)]
struct DataCenters {
    /// How often the duty may change hands.
    terms: u64,
    /// How often the record may be written.
    writes: u64,
    broken: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// 61: a write does not name the version it replaces.
    NoVersion,
    /// 62: a registration begins anew, also over the record of a living datacenter.
    RegisterBeginsAnew,
    /// 63: whoever leaves office drains the datacenter.
    LeaverDrains,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    controllers: [Controller; 2],
    now: [Millis; 2],
    wake: [Option<Millis>; 2],
    /// The generation of the duty's owner record.
    office: u64,
    record: Option<DataCenterRecord>,
    flights: Vec<Flight>,
    writes: u64,
    was_active: bool,
    left_active: bool,
    fell: bool,
    handed_over: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    from: usize,
    write: ControllerAction,
    /// Its sender has given up waiting.
    orphan: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// The node leads and gets the duty; whoever had it has lost its session and does not know.
    TakeDuty(usize),
    Wake(usize),
    /// A write arrives and is answered.
    Land(usize),
    /// A write arrives, its answer does not.
    LandUnheard(usize),
    /// The sender waits no longer; the write is still on its way.
    GiveUp(usize),
    Lose(usize),
}

impl DataCenters {
    fn feed(&self, state: &mut State, n: usize, event: ControllerEvent) {
        let now = state.now[n];
        for action in state.controllers[n].handle(now, 0, event) {
            match action {
                ControllerAction::Register { .. }
                | ControllerAction::Heartbeat { .. }
                | ControllerAction::SetState { .. } => {
                    state.flights.push(Flight { from: n, write: action, orphan: false });
                }
                ControllerAction::WakeAt(at) => state.wake[n] = Some(at),
                _ => {}
            }
        }
    }

    fn take_duty(&self, state: &mut State, n: usize) {
        state.office += 1;
        self.feed(state, n, ControllerEvent::Leads(true));
        self.feed(state, n, ControllerEvent::Duty(Some(Epoch(state.office))));
        if self.broken == Some(Mutant::LeaverDrains) {
            self.feed(state, 1 - n, ControllerEvent::Drain);
        }
    }

    fn answer(&self, state: &mut State, flight: &Flight, answer: WriteAnswer) {
        if !flight.orphan {
            let event = ControllerEvent::Written { epoch: epoch_of(&flight.write), answer };
            self.feed(state, flight.from, event);
        }
    }

    /// The control plane as its contract words it.
    fn apply(&self, state: &mut State, write: &ControllerAction) -> WriteAnswer {
        let epoch = epoch_of(write);
        if let Some(found) = state.record.as_ref().filter(|found| found.epoch > epoch)
            && self.broken != Some(Mutant::NoVersion)
        {
            return WriteAnswer::Superseded(found.epoch);
        }
        let (info, next) = match write {
            ControllerAction::Register { info, .. } => ((**info).clone(), self.registered(state)),
            ControllerAction::Heartbeat { seen, .. } | ControllerAction::SetState { seen, .. } => {
                let stands = state.record.as_ref().map(|record| record.version);
                if stands != Some(seen.version) && self.broken != Some(Mutant::NoVersion) {
                    return WriteAnswer::Conflict(state.record.clone().map(Box::new));
                }
                (seen.info.clone(), seen.state.after(life_event(write)).ok())
            }
            _ => return WriteAnswer::Refused,
        };
        let Some(next) = next else { return WriteAnswer::Refused };
        WriteAnswer::Done(Box::new(self.put(state, info, next, epoch)))
    }

    fn registered(&self, state: &State) -> Option<DataCenterState> {
        let Some(found) = &state.record else { return Some(DataCenterState::Registered) };
        if self.broken == Some(Mutant::RegisterBeginsAnew) {
            return Some(DataCenterState::Registered);
        }
        found.state.after(LifeEvent::Register).ok()
    }

    fn put(
        &self,
        state: &mut State,
        info: DataCenterInfo,
        next: DataCenterState,
        epoch: Epoch,
    ) -> DataCenterRecord {
        state.writes += 1;
        let before = state.record.as_ref().map_or(Epoch(0), |record| record.epoch);
        state.fell |= epoch < before;
        state.left_active |= state.was_active && next != DataCenterState::Active;
        state.was_active |= next == DataCenterState::Active;
        state.handed_over |= state.was_active && epoch > before && before > Epoch(0);
        let (lease_ttl, version) = (Millis(30_000), DataCenterVersion(state.writes));
        let record = DataCenterRecord { info, state: next, epoch, lease_ttl, lease_expiry_ms: 0, version };
        state.record = Some(record.clone());
        record
    }
}

fn epoch_of(write: &ControllerAction) -> Epoch {
    match write {
        ControllerAction::Register { epoch, .. }
        | ControllerAction::Heartbeat { epoch, .. }
        | ControllerAction::SetState { epoch, .. } => *epoch,
        _ => Epoch(0),
    }
}

fn life_event(write: &ControllerAction) -> LifeEvent {
    match write {
        ControllerAction::SetState { state: DataCenterState::Draining, .. } => LifeEvent::Drain,
        ControllerAction::SetState { .. } => LifeEvent::Disable,
        _ => LifeEvent::Heartbeat,
    }
}

impl Model for DataCenters {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let info = DataCenterInfo::new("north", "", "").expect("a plain name");
        let settings = ControllerSettings { watch: false, ..ControllerSettings::default() };
        let controller = Controller::new(info, settings);
        vec![State {
            controllers: [controller.clone(), controller],
            now: [Millis::ZERO; 2],
            wake: [None; 2],
            office: 0,
            record: None,
            flights: Vec::new(),
            writes: 0,
            was_active: false,
            left_active: false,
            fell: false,
            handed_over: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for n in 0..2 {
            if !state.controllers[n].is_in_office() && state.office < self.terms {
                actions.push(Action::TakeDuty(n));
            }
            let may_send = state.writes < self.writes && state.flights.len() < 3;
            if state.wake[n].is_some() && may_send {
                actions.push(Action::Wake(n));
            }
        }
        for (at, flight) in state.flights.iter().enumerate() {
            actions.push(Action::Land(at));
            actions.push(Action::Lose(at));
            if !flight.orphan {
                actions.extend([Action::LandUnheard(at), Action::GiveUp(at)]);
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::TakeDuty(n) => self.take_duty(&mut state, n),
            Action::Wake(n) => {
                state.now[n] = state.wake[n].take()?;
                self.feed(&mut state, n, ControllerEvent::Woke);
            }
            Action::Land(at) | Action::LandUnheard(at) => {
                let flight = state.flights.remove(at);
                let answer = self.apply(&mut state, &flight.write);
                let heard = matches!(action, Action::Land(_));
                let answer = if heard { answer } else { WriteAnswer::Unanswered };
                self.answer(&mut state, &flight, answer);
            }
            Action::GiveUp(at) => {
                let flight = state.flights[at].clone();
                state.flights[at].orphan = true;
                self.answer(&mut state, &flight, WriteAnswer::Unanswered);
            }
            Action::Lose(at) => {
                let flight = state.flights.remove(at);
                self.answer(&mut state, &flight, WriteAnswer::Unanswered);
            }
        }
        Some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.writes <= self.writes && state.now.iter().all(|now| *now <= Millis(25_000))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("epoch_never_falls", |_, state: &State| !state.fell),
            Property::always("active_stays_active", |_, state: &State| !state.left_active),
            Property::sometimes(
                "a second leader goes on with the record of the first",
                |_, state: &State| state.handed_over,
            ),
            Property::sometimes("a leader finds out that it is one no longer", |_, state: &State| {
                let in_office = state.controllers.iter().filter(|one| one.is_in_office()).count();
                state.handed_over && in_office == 1
            }),
        ]
    }
}

mod tests {
    use super::*;
    use crate::check::{explore, hunt_for};

    const MODEL: DataCenters = DataCenters { terms: 2, writes: 4, broken: None };

    /// Proves: R347, R376, R397
    #[test]
    fn two_leaders_never_take_a_datacenter_down() {
        explore(DataCenters { writes: 3, ..MODEL }).assert_clean();
    }

    #[test]
    #[ignore = "millions of states: for `cargo xtask soak`"]
    fn two_leaders_never_take_a_datacenter_down_large() {
        explore(MODEL).assert_clean();
    }

    #[test]
    fn mutant_61_write_without_version() {
        let mutant = DataCenters { broken: Some(Mutant::NoVersion), ..MODEL };
        hunt_for(mutant, "epoch_never_falls").assert_broken("epoch_never_falls");
    }

    #[test]
    fn mutant_62_registration_that_begins_anew() {
        let mutant = DataCenters { broken: Some(Mutant::RegisterBeginsAnew), ..MODEL };
        hunt_for(mutant, "active_stays_active").assert_broken("active_stays_active");
    }

    #[test]
    fn mutant_63_leaver_that_drains() {
        let mutant = DataCenters { broken: Some(Mutant::LeaverDrains), ..MODEL };
        hunt_for(mutant, "active_stays_active").assert_broken("active_stays_active");
    }
}
