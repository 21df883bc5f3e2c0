use alloc::collections::BTreeSet;
use alloc::format;
use alloc::vec;

use proptest::prelude::*;

use super::super::super::{DataCenterInfo, DataCenterState, MapEntry};
use super::*;
use crate::identity::NodeAddress;

type Machine = Discovery<u8, u32>;
type Event<'a> = DiscoveryEvent<'a, u8, u32>;
type Action = DiscoveryAction<u8, u32>;

fn id(name: &str) -> DataCenterId {
    DataCenterId::new(name).unwrap()
}

fn entry(name: &str, standing: DataCenterState) -> MapEntry {
    let endpoints = (1..=3).map(|n| NodeAddress::new(name, n).unwrap()).collect();
    let info = DataCenterInfo::new(name, "", "").unwrap().with_endpoints(endpoints).unwrap();
    MapEntry { info, standing }
}

fn one_endpoint(name: &str) -> DataCenterInfo {
    let endpoints = vec![NodeAddress::new(name, 1).unwrap()];
    DataCenterInfo::new(name, "", "").unwrap().with_endpoints(endpoints).unwrap()
}

fn map(names: &[&str]) -> DataCenterMap {
    let own = entry("home", DataCenterState::Active);
    let others = names.iter().map(|name| entry(name, DataCenterState::Active));
    DataCenterMap::new(Some(id("home")), others.chain([own]).collect())
}

struct Bed {
    machine: Machine,
    map: DataCenterMap,
    seekers: u64,
}

impl Bed {
    fn new(names: &[&str]) -> Self {
        Self { machine: Discovery::new(DiscoverySettings::default()), map: map(names), seekers: 0 }
    }

    fn seek(&mut self, now: u64, key: u8) -> Vec<Action> {
        self.seek_until(now, key, Millis::MAX)
    }

    fn seek_until(&mut self, now: u64, key: u8, deadline: Millis) -> Vec<Action> {
        self.seekers += 1;
        let seeker = SeekerId(self.seekers);
        let map = self.map.clone();
        self.machine.handle(Millis(now), Event::Seek { seeker, key, deadline, map: &map, random: 5 })
    }

    fn answer(&mut self, now: u64, ask: AskId, answer: FarAnswer<u32>) -> Vec<Action> {
        self.machine.handle(Millis(now), Event::Answered { ask, answer })
    }

    fn wake(&mut self, now: u64) -> Vec<Action> {
        self.machine.handle(Millis(now), Event::WokeUp)
    }
}

fn asked(actions: &[Action]) -> Vec<(AskId, DataCenterId)> {
    let ask = |action: &Action| match action {
        Action::Ask { ask, datacenter, .. } => Some((*ask, datacenter.clone())),
        _ => None,
    };
    actions.iter().filter_map(ask).collect()
}

fn told(actions: &[Action]) -> Vec<(u64, Discovered<u32>)> {
    let tell = |action: &Action| match action {
        Action::Tell(seeker, outcome) => Some((seeker.0, outcome.clone())),
        _ => None,
    };
    actions.iter().filter_map(tell).collect()
}

fn cancelled(actions: &[Action]) -> Vec<AskId> {
    let cancel = |action: &Action| match action {
        Action::Cancel(ask) => Some(*ask),
        _ => None,
    };
    actions.iter().filter_map(cancel).collect()
}

fn silent(name: &str) -> Discovered<u32> {
    Discovered::Unreachable { silent: vec![id(name)], undecided: Vec::new() }
}

fn undecided(name: &str) -> Discovered<u32> {
    Discovered::Unreachable { silent: Vec::new(), undecided: vec![id(name)] }
}

/// Proves: R401, R402, R403, R404, R455, C48
#[test]
fn one_endpoint_of_each_datacenter_is_asked_and_the_first_that_has_it_wins() {
    let mut bed = Bed::new(&["a", "b", "c"]);
    let asks = asked(&bed.seek(0, 1));
    assert_eq!(asks.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(told(&bed.answer(3, asks[0].0, FarAnswer::No)), []);
    let done = bed.answer(9, asks[1].0, FarAnswer::Yes(42));
    assert_eq!(told(&done), [(1, Discovered::Found { datacenter: id("b"), place: 42 })]);
    assert_eq!(cancelled(&done), [asks[2].0], "the slowest is not waited for, and is told so");
    assert_eq!(bed.machine.searches(), 0);
    assert_eq!(bed.answer(10, asks[2].0, FarAnswer::Yes(7)), [], "a late answer changes nothing");
}

/// Proves: R415, R416
#[test]
fn only_active_and_draining_datacenters_are_asked() {
    use DataCenterState::{Draining, Inactive, Registered};
    let mut bed = Bed::new(&["a"]);
    bed.map.entries.extend([entry("d", Draining), entry("i", Inactive), entry("r", Registered)]);
    let asks = asked(&bed.seek(0, 1));
    assert_eq!(asks.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["a", "d"]);
}

#[test]
fn not_found_is_what_all_have_said_and_unreachable_what_some_have_not() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek(0, 1));
    bed.answer(1, asks[0].0, FarAnswer::No);
    assert_eq!(told(&bed.answer(2, asks[1].0, FarAnswer::No)), [(1, Discovered::NotFound)]);
    let asks = asked(&bed.seek(10, 2));
    bed.answer(11, asks[0].0, FarAnswer::No);
    bed.wake(200);
    let ended = bed.wake(5_010);
    assert_eq!(told(&ended), [(2, silent("b"))]);
    assert_eq!(cancelled(&ended).len(), 2, "the endpoint and its hedge");
}

/// Proves: R407
#[test]
fn a_search_ends_after_five_seconds_and_a_seeker_never_waits_beyond_its_own_deadline() {
    let mut bed = Bed::new(&["a"]);
    let began = bed.seek_until(0, 1, Millis(300));
    assert!(began.contains(&Action::WakeAt(Millis(100))));
    bed.seek(0, 1);
    bed.wake(100);
    assert_eq!(told(&bed.wake(299)), []);
    assert_eq!(told(&bed.wake(300)), [(1, silent("a"))]);
    assert_eq!(told(&bed.wake(4_999)), [], "the other seeker has more time");
    assert_eq!(told(&bed.wake(5_000)), [(2, silent("a"))]);
}

#[test]
fn a_second_endpoint_is_asked_after_a_while_and_a_third_never() {
    let mut bed = Bed::new(&["a"]);
    let first = bed.seek(0, 1);
    assert_eq!(asked(&bed.wake(99)), []);
    let second = asked(&bed.wake(100));
    assert_eq!(second.len(), 1);
    assert_eq!(asked(&bed.wake(1_000)), []);
    let done = bed.answer(1_001, second[0].0, FarAnswer::Yes(1));
    assert_eq!(cancelled(&done), [asked(&first)[0].0]);
}

/// Proves: C48
#[test]
fn the_hedge_comes_after_what_all_but_one_of_twenty_answers_take() {
    let mut bed = Bed::new(&["a"]);
    for (n, key) in (0_u64..).zip(0_u8..20) {
        let asks = asked(&bed.seek(n * 1_000, key));
        bed.answer(n * 1_000 + 20, asks[0].0, FarAnswer::No);
    }
    assert_eq!(bed.machine.round_trip(&id("a")), Some(Millis(20)));
    bed.wake(40_000);
    let began = bed.seek(50_000, 99);
    assert!(began.contains(&Action::WakeAt(Millis(50_020))), "{began:?}");
}

#[test]
fn an_endpoint_that_fails_is_followed_by_the_next_and_the_last_failure_makes_the_datacenter_silent() {
    let mut bed = Bed::new(&["a"]);
    let mut asks = asked(&bed.seek(0, 1));
    for _ in 0..2 {
        asks = asked(&bed.answer(1, asks[0].0, FarAnswer::Failed));
        assert_eq!(asks.len(), 1);
    }
    let ended = bed.answer(2, asks[0].0, FarAnswer::Failed);
    assert_eq!(told(&ended), [(1, silent("a"))]);
}

#[test]
fn a_silent_datacenter_is_left_alone_for_five_seconds_and_then_asked_by_one_search() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek(0, 1));
    bed.answer(1, asks[1].0, FarAnswer::No);
    bed.wake(5_000);
    let asks = asked(&bed.seek(5_001, 2));
    assert_eq!(asks.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["b"], "a is skipped");
    let ended = bed.answer(5_002, asks[0].0, FarAnswer::No);
    assert_eq!(told(&ended), [(2, silent("a"))], "and nobody waits for it");
    let probing = asked(&bed.seek(10_000, 3));
    assert_eq!(probing.len(), 2);
    assert_eq!(asked(&bed.seek(10_001, 4)).len(), 1, "one search finds out for all");
    bed.answer(10_002, probing[0].0, FarAnswer::No);
    assert_eq!(asked(&bed.seek(10_003, 5)).len(), 2, "it answers again");
}

#[test]
fn whoever_was_silent_until_the_time_of_a_seeker_ran_out_is_left_alone_too() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek_until(0, 1, Millis(2_500)));
    bed.answer(1, asks[0].0, FarAnswer::No);
    assert_eq!(told(&bed.wake(2_500)), [(1, silent("b"))]);
    assert_eq!(asked(&bed.seek(2_501, 2)).len(), 1, "b is skipped");
    let mut bed = Bed::new(&["a"]);
    bed.seek_until(0, 1, Millis(500));
    bed.wake(500);
    assert_eq!(asked(&bed.seek(501, 2)).len(), 1, "half a second proves nothing");
}

#[test]
fn whoever_cannot_say_is_asked_again_and_is_never_taken_for_a_no() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek(0, 1));
    bed.answer(1, asks[1].0, FarAnswer::No);
    let waits = bed.answer(10, asks[0].0, FarAnswer::Unsettled);
    assert_eq!(waits, [Action::WakeAt(Millis(30))], "nobody is told anything yet");
    let again = asked(&bed.wake(30));
    assert_eq!(again.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["a"]);
    bed.answer(31, again[0].0, FarAnswer::Unsettled);
    assert_eq!(asked(&bed.wake(70)), [], "each time later");
    let again = asked(&bed.wake(71));
    let done = bed.answer(72, again[0].0, FarAnswer::Yes(9));
    assert_eq!(told(&done), [(1, Discovered::Found { datacenter: id("a"), place: 9 })]);
    assert_eq!(bed.machine.searches(), 0);
}

#[test]
fn whoever_cannot_say_until_the_end_has_not_said_no_and_is_asked_by_the_next_search() {
    let mut bed = Bed::new(&["a"]);
    bed.map.entries[0] = MapEntry { info: one_endpoint("a"), standing: DataCenterState::Active };
    let (mut asks, mut now) = (asked(&bed.seek(0, 1)), 0);
    let mut questions = 0;
    while now < 5_000 {
        for (ask, _) in core::mem::take(&mut asks) {
            questions += 1;
            assert_eq!(told(&bed.answer(now, ask, FarAnswer::Unsettled)), []);
        }
        now += 10;
        let actions = bed.wake(now);
        asks.extend(asked(&actions));
        if now >= 5_000 {
            assert_eq!(told(&actions), [(1, undecided("a"))]);
        }
    }
    assert!((10..40).contains(&questions), "not in a hurry: {questions}");
    assert_eq!(asked(&bed.seek(5_001, 1)).len(), 1, "nothing is remembered, and nobody is left alone");
}

#[test]
fn an_endpoint_that_fails_does_not_end_the_wait_for_one_that_cannot_say_yet() {
    let mut bed = Bed::new(&["a"]);
    let first = asked(&bed.seek(0, 1));
    bed.answer(99, first[0].0, FarAnswer::Unsettled);
    let hedge = asked(&bed.wake(100));
    let third = asked(&bed.answer(101, hedge[0].0, FarAnswer::Failed));
    assert_eq!(told(&bed.answer(102, third[0].0, FarAnswer::Failed)), []);
    let again = asked(&bed.wake(119));
    let done = bed.answer(120, again[0].0, FarAnswer::No);
    assert_eq!(told(&done), [(1, Discovered::NotFound)]);
}

#[test]
fn an_endpoint_that_refuses_is_followed_by_the_next_and_asked_again() {
    let mut bed = Bed::new(&["a"]);
    let first = asked(&bed.seek(0, 1));
    let second = bed.answer(10, first[0].0, FarAnswer::Refused);
    assert_eq!((told(&second), asked(&second).len()), (vec![], 1), "another endpoint may know");
    let done = bed.answer(12, asked(&second)[0].0, FarAnswer::No);
    assert_eq!(told(&done), [(1, Discovered::NotFound)], "and what it says counts");
    let first = asked(&bed.seek(2_000, 2));
    let second = asked(&bed.answer(2_001, first[0].0, FarAnswer::Refused));
    let third = asked(&bed.answer(2_002, second[0].0, FarAnswer::Failed));
    assert_eq!(told(&bed.answer(2_003, third[0].0, FarAnswer::Failed)), [], "the first one has answered");
    let again = asked(&bed.wake(2_021));
    assert_eq!(again.len(), 1, "so it is asked again");
    let done = bed.answer(2_022, again[0].0, FarAnswer::Yes(4));
    assert_eq!(told(&done), [(2, Discovered::Found { datacenter: id("a"), place: 4 })]);
}

#[test]
fn whoever_refuses_until_the_end_has_not_said_no_and_is_told_apart_from_the_silent() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek_until(0, 1, Millis(2_000)));
    bed.answer(1, asks[0].0, FarAnswer::Refused);
    let ended = bed.wake(2_000);
    let both = Discovered::Unreachable { silent: vec![id("b")], undecided: vec![id("a")] };
    assert_eq!(told(&ended), [(1, both)]);
    let next = asked(&bed.seek(2_001, 2));
    assert_eq!(next.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["a"], "who answers is asked");
}

#[test]
fn many_seekers_of_one_key_share_a_search_and_its_answer() {
    let mut bed = Bed::new(&["a"]);
    let asks = asked(&bed.seek(0, 1));
    assert_eq!(bed.seek(1, 1), []);
    let found = Discovered::Found { datacenter: id("a"), place: 6 };
    let done = bed.answer(2, asks[0].0, FarAnswer::Yes(6));
    assert_eq!(told(&done), [(1, found.clone()), (2, found.clone())]);
    assert_eq!(told(&bed.seek(10_001, 1)), [(3, found)], "and what was found is remembered");
    assert_eq!(asked(&bed.seek(10_002, 1)).len(), 1, "for a while");
}

#[test]
fn that_nobody_has_it_is_remembered_for_a_shorter_time() {
    let mut bed = Bed::new(&["a"]);
    let asks = asked(&bed.seek(0, 1));
    bed.answer(1, asks[0].0, FarAnswer::No);
    assert_eq!(told(&bed.seek(1_000, 1)), [(2, Discovered::NotFound)]);
    assert_eq!(asked(&bed.seek(1_001, 1)).len(), 1);
}

#[test]
fn what_was_found_in_a_datacenter_that_has_gone_is_looked_for_anew() {
    let mut bed = Bed::new(&["a", "b"]);
    let asks = asked(&bed.seek(0, 1));
    bed.answer(1, asks[0].0, FarAnswer::Yes(1));
    bed.map.entries[0].standing = DataCenterState::Inactive;
    let asks = asked(&bed.seek(2, 1));
    assert_eq!(asks.iter().map(|(_, dc)| dc.as_str()).collect::<Vec<_>>(), ["b"]);
}

/// Proves: R408, C33
#[test]
fn an_old_map_is_used_unless_that_is_forbidden() {
    let mut bed = Bed::new(&["a"]);
    bed.map.stale = true;
    assert_eq!(asked(&bed.seek(0, 1)).len(), 1);
    bed.machine =
        Discovery::new(DiscoverySettings { on_stale: OnStale::Fail, ..DiscoverySettings::default() });
    assert_eq!(told(&bed.seek(0, 1)), [(2, Discovered::Stale)]);
}

#[test]
fn a_search_that_nobody_waits_for_is_cancelled_and_blames_nobody() {
    let mut bed = Bed::new(&["a"]);
    let asks = asked(&bed.seek(0, 1));
    let ended = bed.machine.handle(Millis(1), Event::GaveUp(SeekerId(1)));
    assert_eq!(cancelled(&ended), [asks[0].0]);
    assert_eq!(asked(&bed.seek(2, 2)).len(), 1);
}

#[test]
fn searches_and_memories_are_bounded() {
    let mut bed = Bed::new(&["a"]);
    let settings = DiscoverySettings { searches: 2, remembered: 3, ..DiscoverySettings::default() };
    bed.machine = Discovery::new(settings);
    bed.seek(0, 1);
    bed.seek(0, 2);
    assert_eq!(told(&bed.seek(0, 3)), [(3, Discovered::Full)]);
    bed.machine = Discovery::new(settings);
    for key in 0..50 {
        let asks = asked(&bed.seek(0, key));
        bed.answer(0, asks[0].0, FarAnswer::Yes(1));
    }
    assert_eq!(bed.machine.remembered(), 3);
}

/// A timer that was overtaken by an earlier one asks for no other, or there would be more and more of them.
#[test]
fn wake_ups_do_not_multiply() {
    let mut bed = Bed::new(&["a", "b", "c"]);
    let (mut timers, mut moments, mut overtaken, mut now) = (Vec::new(), BTreeSet::new(), 0, 0);
    let mut actions = bed.seek(now, 1);
    loop {
        for (ask, _) in asked(&actions) {
            actions.extend(bed.answer(now, ask, FarAnswer::Unsettled));
        }
        timers.extend(actions.iter().filter_map(|action| match action {
            Action::WakeAt(at) => Some(at.0),
            _ => None,
        }));
        timers.sort_unstable_by(|one, other| other.cmp(one));
        let Some(next) = timers.pop() else { break };
        now = next;
        actions = bed.wake(now);
        if !moments.insert(now) {
            overtaken += 1;
            assert_eq!(actions, [], "what was due at {now} is done");
        }
    }
    assert_eq!(bed.machine.searches(), 0);
    assert!(overtaken > 0, "more than one timer stood for the same moment");
}

#[test]
fn nothing_is_kept_of_datacenters_that_are_in_the_map_no_more() {
    let mut bed = Bed::new(&[]);
    for n in 0..20 {
        bed.map = map(&[&format!("dc{n}")]);
        let asks = asked(&bed.seek(n * 100, 1));
        bed.answer(n * 100, asks[0].0, FarAnswer::Yes(1));
    }
    assert!(bed.machine.trips.len() <= 2 && bed.machine.breakers.len() <= 2);
    assert_eq!(bed.machine.round_trip(&id("dc0")), None);
}

proptest! {
    /// Absence is concluded from what everybody has said, and from nothing else.
    #[test]
    fn not_found_is_told_only_if_the_last_word_of_every_datacenter_was_no(
        steps in proptest::collection::vec((0_u8..6, 0_usize..6, 0_u64..400), 1..60),
        until in 100_u64..6_000,
    ) {
        let mut bed = Bed::new(&["a", "b", "c"]);
        let mut open = asked(&bed.seek_until(0, 1, Millis(until)));
        let mut said: BTreeSet<DataCenterId> = BTreeSet::new();
        let mut now = 0;
        let mut outcomes = Vec::new();
        for (step, which, later) in steps {
            now += later;
            let actions = if step == 0 || open.is_empty() {
                bed.wake(now)
            } else {
                let (ask, datacenter) = open.remove(which % open.len());
                let answers = [FarAnswer::No, FarAnswer::No, FarAnswer::Failed, FarAnswer::Refused, FarAnswer::Unsettled];
                let answer = answers[usize::from(step) - 1].clone();
                if answer == FarAnswer::No {
                    said.insert(datacenter);
                }
                bed.answer(now, ask, answer)
            };
            let gone = cancelled(&actions);
            open.extend(asked(&actions));
            open.retain(|(ask, _)| !gone.contains(ask));
            outcomes.extend(told(&actions));
        }
        outcomes.extend(told(&bed.wake(now + 6_000)));
        prop_assert_eq!(outcomes.len(), 1);
        match &outcomes[0].1 {
            Discovered::NotFound => prop_assert_eq!(said.len(), 3),
            Discovered::Unreachable { silent, undecided } => {
                prop_assert_eq!(silent.len() + undecided.len() + said.len(), 3);
                prop_assert!(silent.iter().chain(undecided).all(|id| !said.contains(id)));
            }
            other => prop_assert!(false, "{}", format!("{other:?}")),
        }
    }

    /// Whatever the others do and whenever they answer: each seeker is told once, by its deadline or that of its search, and
    /// at the end nothing is asked any more.
    #[test]
    fn every_seeker_is_told_once_and_nothing_is_left_asked(
        steps in proptest::collection::vec((0_u8..7, 0_u8..3, 0_usize..6, 0_u64..400), 1..80),
    ) {
        let mut bed = Bed::new(&["a", "b", "c"]);
        let mut open: Vec<AskId> = Vec::new();
        let mut waits: BTreeMap<u64, u64> = BTreeMap::new();
        let mut now = 0;
        for (step, key, which, later) in steps {
            now += later;
            let actions = match step {
                0 => {
                    waits.insert(bed.seekers + 1, now + 5_000);
                    bed.seek(now, key)
                }
                1 => bed.wake(now),
                _ if open.is_empty() => continue,
                _ => {
                    let ask = open.remove(which % open.len());
                    let answer = [FarAnswer::Yes(1), FarAnswer::No, FarAnswer::Failed, FarAnswer::Unsettled, FarAnswer::Refused]
                        [usize::from(step) - 2]
                        .clone();
                    bed.answer(now, ask, answer)
                }
            };
            open.extend(asked(&actions).into_iter().map(|(ask, _)| ask));
            for ask in cancelled(&actions) {
                prop_assert!(open.contains(&ask), "{}", format!("{ask:?} was not asked"));
                open.retain(|other| *other != ask);
            }
            for (seeker, _) in told(&actions) {
                prop_assert!(waits.remove(&seeker).is_some(), "told twice");
            }
        }
        let actions = bed.wake(now + 5_000);
        for (seeker, _) in told(&actions) {
            prop_assert!(waits.remove(&seeker).is_some());
        }
        prop_assert!(waits.is_empty(), "nobody waits past the deadline of its search");
        prop_assert_eq!(bed.machine.searches(), 0);
        for ask in cancelled(&actions) {
            open.retain(|other| *other != ask);
        }
        prop_assert!(open.is_empty(), "nothing is left asked");
        prop_assert!(bed.machine.by_ask.is_empty() && bed.machine.by_seeker.is_empty());
    }
}
