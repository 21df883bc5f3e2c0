//! How a call ends: reply, deadline, cancellation or shutdown, whichever comes first, on the real [`CallTable`].
//!
//! Three calls share two places of the table, so that places are used again while replies of earlier calls are still on
//! their way.

use archipelago_protocol::call::{CallTable, Start};
use archipelago_protocol::identity::CorrelationId;
use archipelago_protocol::time::Millis;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug)]
struct Calls {
    /// Broken: a late reply ends whatever call has its place now.
    late_reply_completes: bool,
    /// Broken: a call is started without asking the table.
    starts_ended_calls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    table: CallTable<usize>,
    now: u64,
    calls: Vec<Call>,
    /// A reply reached a waiter that is not its own.
    mistaken: bool,
    /// A call that was reported as never started was started.
    started_late: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Call {
    id: CorrelationId,
    started: bool,
    /// Whether the far side's reply has been delivered.
    replied: bool,
    ends: u8,
    reported_unstarted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Open,
    Start(usize),
    Reply(usize),
    Cancel(usize),
    Tick,
    Drain,
}

impl Calls {
    fn start(&self, state: &mut State, n: usize) {
        let goes = state.table.start(state.calls[n].id) == Start::Go || self.starts_ended_calls;
        if goes {
            state.calls[n].started = true;
            state.started_late |= state.calls[n].reported_unstarted;
        }
    }

    fn reply(&self, state: &mut State, n: usize) {
        state.calls[n].replied = true;
        let mut id = state.calls[n].id;
        if self.late_reply_completes {
            let here = state.calls.iter().map(|call| call.id).filter(|other| other.slot() == id.slot());
            id = here.into_iter().find(|other| state.table.is_pending(*other)).unwrap_or(id);
        }
        if let Some(waiter) = state.table.complete(id) {
            state.mistaken |= waiter != n;
            state.calls[waiter].ends += 1;
        }
    }
}

impl State {
    fn end(&mut self, ended: archipelago_protocol::call::Ended<usize>) {
        let call = &mut self.calls[ended.waiter];
        call.ends += 1;
        call.reported_unstarted = !ended.started;
    }
}

impl Model for Calls {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (table, calls) = (CallTable::new(0, PLACES), Vec::new());
        vec![State { table, now: 0, calls, mistaken: false, started_late: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.calls.len() < CALLS && !state.table.is_full() {
            actions.push(Action::Open);
        }
        for (n, call) in state.calls.iter().enumerate() {
            let steps = [
                (!call.started, Action::Start(n)),
                (call.started && !call.replied, Action::Reply(n)),
                (call.ends == 0, Action::Cancel(n)),
            ];
            actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
        }
        if state.now < TICKS {
            actions.push(Action::Tick);
        }
        actions.push(Action::Drain);
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Open => {
                let id = state.table.open(Millis(state.now + 1), state.calls.len()).ok()?;
                let call = Call { id, started: false, replied: false, ends: 0, reported_unstarted: false };
                state.calls.push(call);
            }
            Action::Start(n) => self.start(&mut state, n),
            Action::Reply(n) => self.reply(&mut state, n),
            Action::Cancel(n) => {
                let ended = state.table.end(state.calls[n].id);
                ended.into_iter().for_each(|ended| state.end(ended));
            }
            Action::Tick => {
                state.now += 1;
                let ended = state.table.sweep(Millis(state.now));
                ended.into_iter().for_each(|ended| state.end(ended));
            }
            Action::Drain => {
                let ended = state.table.drain();
                ended.into_iter().for_each(|ended| state.end(ended));
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("a_call_ends_once", |_, state: &State| {
                state.calls.iter().all(|call| call.ends + u8::from(state.table.is_pending(call.id)) == 1)
            }),
            Property::always("a_reply_reaches_its_own_caller", |_, state: &State| !state.mistaken),
            Property::always("a_call_reported_as_not_started_never_starts", |_, state: &State| {
                !state.started_late
            }),
            Property::always("no_call_outlives_its_deadline", |_, state: &State| {
                state.table.next_sweep().is_none_or(|due| due > Millis(state.now))
            }),
            Property::sometimes("a reply is late and its place is taken", |_, state: &State| {
                let late = |call: &Call| call.replied && !state.table.is_pending(call.id);
                state.calls.len() == CALLS && state.table.len() == PLACES && late(&state.calls[0])
            }),
        ]
    }
}

const PLACES: usize = 2;
const CALLS: usize = 3;
const TICKS: u64 = 3;

mod tests {
    use super::*;
    use crate::check::{explore, hunt};

    const SOUND: Calls = Calls { late_reply_completes: false, starts_ended_calls: false };

    /// Proves: R34, R87
    #[test]
    fn every_call_ends_once_and_for_its_own_caller() {
        explore(SOUND).assert_clean();
    }

    #[test]
    fn a_late_reply_that_ends_another_call_is_noticed() {
        let explored = hunt(Calls { late_reply_completes: true, ..SOUND });
        explored.assert_broken("a_reply_reaches_its_own_caller");
    }

    #[test]
    fn a_call_that_starts_after_its_end_is_noticed() {
        let explored = hunt(Calls { starts_ended_calls: true, ..SOUND });
        explored.assert_broken("a_call_reported_as_not_started_never_starts");
    }
}
