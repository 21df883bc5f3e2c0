//! Work that is done across a pause: replies and storage, with the gate of a real [`SessionHolder`] (P7, P8).
//!
//! No look at the clock before the work keeps a paused process from finishing it too late. GATE-AFTER looks again before
//! anything leaves; FENCE-ON-LOAD makes the storage remember the newest owner from the moment it *reads*.

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::session::{
    Gate, HolderEvent, LeaseOutcome, LeaseVersion, Session, SessionHolder, times,
};
use archipelago_protocol::time::Millis;
use stateright::{Model, Property};

#[derive(Clone, Copy, Debug)]
struct Effects {
    broken: Option<Mutant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mutant {
    /// 29: the lease is looked at before the work only.
    NoGateAfter,
    /// 30: the storage knows no generations.
    StorageWithoutGeneration,
    /// 30: the storage remembers a generation when it first writes.
    FencedAtFirstWrite,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    tick: u64,
    old: Job,
    /// Whether the old owner's write to storage is still on its way.
    write_on_its_way: bool,
    stored_generation: u64,
    new_owner_loaded: bool,
    reply_after_deadline: bool,
    replied: bool,
    overwritten: bool,
}

/// The one job of the old owner, which serves at generation 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Job {
    Waiting,
    Running,
    Done { at: u64 },
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Tick,
    Start,
    Finish,
    Flush,
    Drop,
    SendWrite,
    LandWrite,
    NewOwnerLoads,
    NewOwnerWrites,
}

impl Effects {
    fn now(state: &State) -> Millis {
        Millis(state.tick * TICK)
    }

    fn load(&self, state: &mut State) {
        state.new_owner_loaded = true;
        if self.broken.is_none() || self.broken == Some(Mutant::NoGateAfter) {
            state.stored_generation = NEW;
        }
    }

    fn write(&self, state: &mut State, generation: u64) {
        let refuses = self.broken != Some(Mutant::StorageWithoutGeneration);
        if refuses && generation < state.stored_generation {
            return;
        }
        state.stored_generation = generation;
        state.overwritten |= generation == OLD && state.new_owner_loaded;
    }
}

impl Model for Effects {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            tick: 0,
            old: Job::Waiting,
            write_on_its_way: false,
            stored_generation: OLD,
            new_owner_loaded: false,
            reply_after_deadline: false,
            replied: false,
            overwritten: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        let (now, gate) = (Self::now(state), gate());
        let done = matches!(state.old, Job::Done { .. });
        let may_leave = now < gate.fence_at || self.broken == Some(Mutant::NoGateAfter);
        let taken = now >= times::observer_wait(TTL);
        let steps = [
            (state.tick < TICKS, Action::Tick),
            (state.old == Job::Waiting && now < gate.serve_until, Action::Start),
            (state.old == Job::Running, Action::Finish),
            (state.old == Job::Running && !state.write_on_its_way, Action::SendWrite),
            (done && may_leave, Action::Flush),
            (done && !may_leave, Action::Drop),
            (state.write_on_its_way, Action::LandWrite),
            (taken && !state.new_owner_loaded, Action::NewOwnerLoads),
            (state.new_owner_loaded, Action::NewOwnerWrites),
        ];
        actions.extend(steps.into_iter().filter_map(|(possible, action)| possible.then_some(action)));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Tick => state.tick += 1,
            Action::Start => state.old = Job::Running,
            Action::Finish => state.old = Job::Done { at: state.tick },
            Action::Flush => {
                let Job::Done { at } = state.old else { return None };
                state.reply_after_deadline |= Millis(at * TICK) >= gate().fence_at;
                state.replied = true;
                state.old = Job::Over;
            }
            Action::Drop => state.old = Job::Over,
            Action::SendWrite => state.write_on_its_way = true,
            Action::LandWrite => {
                state.write_on_its_way = false;
                self.write(&mut state, OLD);
            }
            Action::NewOwnerLoads => self.load(&mut state),
            Action::NewOwnerWrites => self.write(&mut state, NEW),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no_reply_for_work_done_after_the_deadline", |_, state: &State| {
                !state.reply_after_deadline
            }),
            Property::always("no_old_write_after_the_new_owner_loaded", |_, state: &State| {
                !state.overwritten
            }),
            Property::sometimes("a reply leaves in time", |_, state: &State| state.replied),
            Property::sometimes("a late reply is dropped", |_, state: &State| {
                state.old == Job::Over && !state.replied
            }),
        ]
    }
}

/// The gate of a session that was opened at time zero and never beat again.
fn gate() -> Gate {
    let (mut holder, _) = SessionHolder::open(Millis::ZERO, Session { id: NodeId::new(1), ttl: TTL }, 0);
    holder.handle(Millis::ZERO, HolderEvent::OpenAnswered(LeaseOutcome::Applied(LeaseVersion(1))));
    holder.gate()
}

const TTL: Millis = times::DEFAULT_TTL;
/// In milliseconds; short enough to tell the deadline from the end.
const TICK: u64 = 1_000;
const TICKS: u64 = 8;
const OLD: u64 = 1;
const NEW: u64 = 2;

mod tests {
    use super::*;
    use crate::check::{explore, hunt};

    #[test]
    fn nothing_leaves_late_and_nothing_old_is_stored() {
        let explored = explore(Effects { broken: None });
        explored.assert_clean();
    }

    #[test]
    fn mutant_29_lease_checked_only_before_the_work() {
        let explored = hunt(Effects { broken: Some(Mutant::NoGateAfter) });
        explored.assert_broken("no_reply_for_work_done_after_the_deadline");
    }

    #[test]
    fn mutant_30_storage_without_fence_on_load() {
        for broken in [Mutant::StorageWithoutGeneration, Mutant::FencedAtFirstWrite] {
            let explored = hunt(Effects { broken: Some(broken) });
            explored.assert_broken("no_old_write_after_the_new_owner_loaded");
        }
    }
}
