use alloc::collections::VecDeque;
use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::datacenter::{DataCenterId, DataCenterVersion, LifeEvent};
use crate::identity::NodeAddress;

const TTL: Millis = Millis(30_000);

fn info() -> DataCenterInfo {
    DataCenterInfo::new("north", "", "").unwrap()
}

/// The control plane as its contract words it: one record per datacenter.
#[derive(Clone, Debug, Default)]
struct Plane {
    records: Vec<DataCenterRecord>,
    revision: u64,
}

impl Plane {
    fn get(&self, id: &DataCenterId) -> Option<&DataCenterRecord> {
        self.records.iter().find(|record| record.id() == id)
    }

    fn put(&mut self, mut record: DataCenterRecord) -> WriteAnswer {
        self.revision += 1;
        record.version = DataCenterVersion(self.revision);
        self.records.retain(|other| other.id() != record.id());
        self.records.push(record.clone());
        WriteAnswer::Done(record.into())
    }

    fn write(&mut self, action: &ControllerAction) -> WriteAnswer {
        match action {
            ControllerAction::Register { info, epoch } => self.register(info, *epoch),
            ControllerAction::Heartbeat { seen, epoch } => self.change(seen, *epoch, LifeEvent::Heartbeat),
            ControllerAction::SetState { seen, state, epoch } => {
                self.change(seen, *epoch, DataCenterState::asked_by(*state).unwrap())
            }
            other => panic!("no write: {other:?}"),
        }
    }

    fn register(&mut self, info: &DataCenterInfo, epoch: Epoch) -> WriteAnswer {
        let found = self.get(info.id()).cloned();
        if let Some(found) = found.as_ref().filter(|found| found.epoch > epoch) {
            return WriteAnswer::Superseded(found.epoch);
        }
        let state = found
            .map_or(DataCenterState::Registered, |found| found.state.after(LifeEvent::Register).unwrap());
        let (info, version) = (info.clone(), DataCenterVersion(0));
        self.put(DataCenterRecord { info, state, epoch, lease_ttl: TTL, lease_expiry_ms: 0, version })
    }

    fn change(&mut self, seen: &DataCenterRecord, epoch: Epoch, event: LifeEvent) -> WriteAnswer {
        let Ok(state) = seen.state.after(event) else { return WriteAnswer::Refused };
        let found = self.get(seen.id()).cloned();
        match found {
            Some(found) if found.epoch > epoch => WriteAnswer::Superseded(found.epoch),
            Some(found) if found.version == seen.version => {
                self.put(DataCenterRecord { state, epoch, ..seen.clone() })
            }
            found => WriteAnswer::Conflict(found.map(Into::into)),
        }
    }
}

/// One controller and a control plane that answers at once, or not at all.
struct Rig {
    controller: Controller,
    plane: Plane,
    now: Millis,
    wake: Option<Millis>,
    away: bool,
    /// Writes are applied and their answers lost.
    mute: bool,
    epoch: u64,
    watching: bool,
    /// What it did, most recent last.
    done: Vec<ControllerAction>,
}

impl Rig {
    fn new(settings: ControllerSettings) -> Self {
        let (controller, plane) = (Controller::new(info(), settings), Plane::default());
        let (now, wake, done) = (Millis(1_000), None, Vec::new());
        Self { controller, plane, now, wake, away: false, mute: false, epoch: 0, watching: false, done }
    }

    fn in_office() -> Self {
        let mut rig = Self::new(ControllerSettings::default());
        rig.feed(ControllerEvent::Leads(true));
        rig
    }

    /// Hands an event in and answers whatever the controller asks for.
    fn feed(&mut self, event: ControllerEvent) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            for action in self.controller.handle(self.now, self.now.0, event) {
                events.extend(self.carry_out(&action));
                self.done.push(action);
            }
        }
    }

    fn carry_out(&mut self, action: &ControllerAction) -> Option<ControllerEvent> {
        match action {
            ControllerAction::ClaimDuty => {
                self.epoch += 1;
                Some(ControllerEvent::Duty(Some(Epoch(self.epoch))))
            }
            ControllerAction::Register { epoch, .. }
            | ControllerAction::Heartbeat { epoch, .. }
            | ControllerAction::SetState { epoch, .. } => {
                let answer = if self.away { WriteAnswer::Unanswered } else { self.plane.write(action) };
                let answer = if self.mute { WriteAnswer::Unanswered } else { answer };
                Some(ControllerEvent::Written { epoch: *epoch, answer })
            }
            ControllerAction::List { epoch } => {
                let all = || (Revision(self.plane.revision), self.plane.records.clone());
                Some(ControllerEvent::Listed { epoch: *epoch, listing: (!self.away).then(all) })
            }
            ControllerAction::WakeAt(at) => {
                self.wake = Some(*at);
                None
            }
            ControllerAction::Watch => {
                self.watching = true;
                None
            }
            ControllerAction::StopWatching => {
                self.watching = false;
                None
            }
            ControllerAction::ReleaseDuty | ControllerAction::Show | ControllerAction::Report(_) => None,
        }
    }

    /// Lets time pass, wake-up by wake-up.
    fn pass(&mut self, length: Millis) {
        let until = self.now + length;
        while let Some(at) = self.wake.filter(|at| *at <= until) {
            assert!(at > self.now, "it does not spin");
            (self.now, self.wake) = (at, None);
            self.feed(ControllerEvent::Woke);
        }
        self.now = until;
    }

    fn state(&self) -> Option<DataCenterState> {
        self.plane.get(info().id()).map(|record| record.state)
    }

    fn count(&self, counts: impl Fn(&ControllerAction) -> bool) -> usize {
        self.done.iter().filter(|action| counts(action)).count()
    }

    fn beats(&self) -> usize {
        self.count(|action| matches!(action, ControllerAction::Heartbeat { .. }))
    }

    /// The first time from now on at which the snapshot shows the datacenter so; within a minute.
    fn shown_as(&mut self, name: &str, wanted: DataCenterState) -> Millis {
        let id = DataCenterId::new(name).unwrap();
        let since = self.now;
        for _ in 0..600 {
            let entries = self.controller.snapshot(self.now).unwrap().entries;
            if entries.iter().any(|entry| *entry.id() == id && entry.standing == wanted) {
                return self.now.since(since);
            }
            self.pass(Millis(100));
        }
        panic!("never shown as {wanted}");
    }

    /// Another datacenter, which writes its own record.
    fn other_beats(&mut self, name: &str) {
        let other = DataCenterInfo::new(name, "", "").unwrap();
        let registered = self.plane.register(&other, Epoch(1));
        let WriteAnswer::Done(seen) = registered else { panic!("{registered:?}") };
        let beaten = self.plane.change(&seen, Epoch(1), LifeEvent::Heartbeat);
        let WriteAnswer::Done(record) = beaten else { panic!("{beaten:?}") };
        if self.watching {
            let revision = Revision(self.plane.revision);
            self.feed(ControllerEvent::Watched(DataCenterEvent::Put { revision, record: *record }));
        }
    }
}

/// Proves: R347, R390, R394
#[test]
fn only_the_leader_registers_and_the_first_heartbeat_makes_it_active() {
    let mut rig = Rig::new(ControllerSettings::default());
    rig.feed(ControllerEvent::Leads(false));
    rig.pass(Millis(60_000));
    assert_eq!((rig.done.len(), rig.state()), (0, None), "a follower writes nothing");
    rig.feed(ControllerEvent::Leads(true));
    assert_eq!(rig.state(), Some(DataCenterState::Active));
    let registered = rig.count(|action| matches!(action, ControllerAction::Register { .. }));
    assert_eq!((registered, rig.beats()), (1, 1));
    assert!(rig.controller.is_in_office());
}

/// Proves: R391, R395, R418
#[test]
fn heartbeats_go_on_every_ten_seconds_more_or_less() {
    let mut rig = Rig::in_office();
    let before = rig.beats();
    rig.pass(Millis(600_000));
    let beats = rig.beats() - before;
    assert!((54..=67).contains(&beats), "{beats} beats in ten minutes");
    assert_eq!(rig.state(), Some(DataCenterState::Active));
}

/// Proves: R344, R384, R389, R419, R423
#[test]
fn it_watches_and_polls_at_the_same_time() {
    let mut rig = Rig::in_office();
    assert!(rig.watching);
    rig.pass(Millis(100_000));
    let lists = rig.count(|action| matches!(action, ControllerAction::List { .. }));
    assert!((9..=14).contains(&lists), "{lists} listings in 100 s");
    let mut deaf = Rig::new(ControllerSettings { watch: false, ..ControllerSettings::default() });
    deaf.feed(ControllerEvent::Leads(true));
    deaf.other_beats("south");
    assert!(!deaf.watching);
    assert!(deaf.shown_as("south", DataCenterState::Active) <= Millis(11_000), "polling alone finds it");
}

/// Proves: R389
#[test]
fn a_poll_merges_while_the_watch_lives_and_replaces_otherwise() {
    let mut rig = Rig::in_office();
    rig.other_beats("south");
    let old = vec![rig.plane.get(info().id()).cloned().unwrap()];
    let epoch = Epoch(rig.epoch);
    let listing = Some((Revision(1), old));
    rig.feed(ControllerEvent::Listed { epoch, listing: listing.clone() });
    let entries = |rig: &Rig| rig.controller.snapshot(rig.now).unwrap().entries.len();
    assert_eq!(entries(&rig), 2, "an old listing does not take away what the watch told");
    rig.feed(ControllerEvent::WatchBroken);
    rig.feed(ControllerEvent::Listed { epoch, listing });
    assert_eq!(entries(&rig), 1);
}

/// Proves: R343, R393, R396
#[test]
fn a_datacenter_that_dies_is_out_within_its_lease_and_two_seconds() {
    for age in [0, 3_000, 9_999] {
        let mut rig = Rig::in_office();
        rig.other_beats("south");
        rig.pass(Millis(10_000 + age));
        rig.other_beats("south");
        rig.shown_as("south", DataCenterState::Active);
        let took = rig.shown_as("south", DataCenterState::Inactive);
        assert!(took >= TTL && took <= TTL + Millis(2_000), "{took}");
    }
}

/// Proves: R346, R440, R441
#[test]
fn an_outage_of_any_length_leaves_the_last_map_in_force() {
    let mut rig = Rig::in_office();
    rig.other_beats("south");
    rig.shown_as("south", DataCenterState::Active);
    rig.away = true;
    rig.pass(Millis(3_600_000));
    let snapshot = rig.controller.snapshot(rig.now).unwrap();
    assert!(snapshot.entries.iter().all(|entry| entry.standing == DataCenterState::Active));
    assert!(snapshot.age > Millis(3_500_000), "and says how old it is: {}", snapshot.age);
    rig.away = false;
    rig.pass(Millis(40_000));
    assert!(rig.controller.snapshot(rig.now).unwrap().age < Millis(11_000));
}

/// Proves: R424, R442
#[test]
fn requests_that_fail_are_repeated_ever_more_seldom() {
    let mut rig = Rig::in_office();
    rig.pass(Millis(20_000));
    rig.away = true;
    rig.pass(Millis(600_000));
    let before = (rig.beats(), rig.count(|action| matches!(action, ControllerAction::List { .. })));
    rig.pass(Millis(600_000));
    let after = (rig.beats(), rig.count(|action| matches!(action, ControllerAction::List { .. })));
    assert_eq!(after.1 - before.1, 20, "a listing every 30 s");
    assert_eq!(after.0 - before.0, 40, "a heartbeat every 15 s, half a lease");
}

#[test]
fn a_heartbeat_whose_answer_was_lost_is_no_conflict() {
    let mut rig = Rig::in_office();
    rig.mute = true;
    rig.pass(Millis(12_000));
    rig.mute = false;
    rig.pass(Millis(12_000));
    assert!(rig.controller.is_in_office());
    let seen = rig.controller.record().unwrap().version;
    assert_eq!(seen, rig.plane.get(info().id()).unwrap().version);
}

/// Proves: R397, C30
#[test]
fn a_new_leader_goes_on_with_a_record_that_stays_active_and_the_old_one_steps_down() {
    let mut old = Rig::in_office();
    let mut new = Rig::new(ControllerSettings::default());
    (new.plane, new.now, new.epoch) = (old.plane.clone(), old.now, 7);
    new.feed(ControllerEvent::Leads(true));
    assert_eq!(new.state(), Some(DataCenterState::Active));
    let states: Vec<_> = new.done.iter().filter_map(reported_state).collect();
    assert_eq!(states, [DataCenterState::Active], "it was never anything else");
    old.plane = new.plane.clone();
    old.pass(Millis(12_000));
    assert!(!old.controller.is_in_office());
    assert!(old.done.contains(&ControllerAction::ReleaseDuty));
    assert_eq!(old.plane.get(info().id()).unwrap().epoch, Epoch(8));
}

fn reported_state(action: &ControllerAction) -> Option<DataCenterState> {
    match action {
        ControllerAction::Report(ControllerReport::State(state)) => Some(*state),
        _ => None,
    }
}

/// Proves: R360, R363, R365, C29
#[test]
fn a_wish_drains_and_disables_and_nothing_brings_it_back() {
    let mut rig = Rig::in_office();
    rig.feed(ControllerEvent::Drain);
    assert_eq!(rig.state(), Some(DataCenterState::Draining));
    assert!(rig.controller.snapshot(rig.now).unwrap().draining);
    let before = rig.beats();
    rig.pass(Millis(60_000));
    assert!(
        rig.beats() > before && rig.state() == Some(DataCenterState::Draining),
        "it lives on while it drains"
    );
    rig.feed(ControllerEvent::Disable);
    assert_eq!(rig.state(), Some(DataCenterState::Inactive));
    rig.pass(Millis(60_000));
    rig.feed(ControllerEvent::Drain);
    assert_eq!(rig.state(), Some(DataCenterState::Inactive));
}

#[test]
fn the_last_node_disables_its_datacenter_also_without_the_duty() {
    let mut rig = Rig::new(ControllerSettings::default());
    rig.feed(ControllerEvent::Disable);
    assert_eq!(rig.state(), Some(DataCenterState::Inactive));
}

#[test]
fn what_an_earlier_life_left_is_put_in_order() {
    for left in [DataCenterState::Draining, DataCenterState::Inactive, DataCenterState::Registered] {
        let mut rig = Rig::in_office();
        let seen = rig.plane.get(info().id()).cloned().unwrap();
        rig.plane.put(DataCenterRecord { state: left, ..seen });
        let mut anew = Rig::new(ControllerSettings::default());
        (anew.plane, anew.epoch) = (rig.plane, 5);
        anew.feed(ControllerEvent::Leads(true));
        assert_eq!(anew.state(), Some(DataCenterState::Active), "left {left}");
    }
}

/// Proves: R355
#[test]
fn new_endpoints_are_told_while_the_record_stays_active() {
    let mut rig = Rig::in_office();
    let endpoints = vec![NodeAddress::new("north-1", 4710).unwrap()];
    let with = info().with_endpoints(endpoints.clone()).unwrap();
    rig.feed(ControllerEvent::Describe(with));
    let record = rig.plane.get(info().id()).unwrap();
    assert_eq!((record.info.endpoints(), record.state), (&endpoints[..], DataCenterState::Active));
    let states: Vec<_> = rig.done.iter().filter_map(reported_state).collect();
    assert_eq!(states, [DataCenterState::Registered, DataCenterState::Active]);
}

// ---- chance ----

#[derive(Clone, Debug)]
enum Step {
    Pass(u64),
    Away(bool),
    Mute(bool),
    /// The engine deletes the record.
    Forget,
    /// Another leader takes over, and is gone again.
    Usurp,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u64..20_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Away),
        1 => any::<bool>().prop_map(Step::Mute),
        1 => Just(Step::Forget),
        1 => Just(Step::Usurp),
    ]
}

proptest! {
    /// Whatever happens to its requests and to its record: the record is never drained or disabled without a wish, no epoch
    /// falls, and once all is well the datacenter is active again.
    #[test]
    fn a_controller_recovers_from_everything(steps in proptest::collection::vec(step(), 1..40)) {
        let mut rig = Rig::in_office();
        let mut epoch = Epoch(0);
        for step in steps {
            match step {
                Step::Pass(millis) => rig.pass(Millis(millis)),
                Step::Away(away) => rig.away = away,
                Step::Mute(mute) => rig.mute = mute,
                Step::Forget => {
                    rig.plane.records.clear();
                    epoch = Epoch(0);
                }
                Step::Usurp => {
                    rig.epoch += 1;
                    rig.plane.register(&info(), Epoch(rig.epoch));
                }
            }
            rig.feed(ControllerEvent::Leads(true));
            let record = rig.plane.get(info().id());
            let state = record.map(|record| record.state);
            prop_assert!(!matches!(state, Some(DataCenterState::Draining | DataCenterState::Inactive)));
            let now = record.map_or(epoch, |record| record.epoch);
            prop_assert!(now >= epoch);
            epoch = now;
        }
        (rig.away, rig.mute) = (false, false);
        for _ in 0..20 {
            rig.pass(Millis(5_000));
            rig.feed(ControllerEvent::Leads(true));
        }
        prop_assert_eq!(rig.state(), Some(DataCenterState::Active));
        prop_assert!(rig.controller.is_in_office());
    }
}
