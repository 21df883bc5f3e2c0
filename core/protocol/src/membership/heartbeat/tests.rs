use alloc::collections::BTreeSet;

use super::*;

const ME: u64 = 1;

fn node(id: u64) -> NodeId {
    NodeId::new(id)
}

fn nodes(ids: impl IntoIterator<Item = u64>) -> BTreeSet<NodeId> {
    ids.into_iter().map(NodeId::new).collect()
}

/// A machine of node 1 among `count`, driven at the times it asks for; the others answer if `answers` says so.
struct Bench {
    machine: HeartbeatMachine,
    now: Millis,
    said: Vec<(Millis, HeartbeatAction)>,
}

impl Bench {
    fn new(count: u64) -> Self {
        let mut machine = HeartbeatMachine::new(Millis(0), node(ME), HeartbeatSettings::default());
        let event = HeartbeatEvent::Nodes { present: nodes(1..=count), suspected: BTreeSet::new() };
        machine.handle(Millis(0), event);
        Self { machine, now: Millis(0), said: Vec::new() }
    }

    fn take(&mut self, event: HeartbeatEvent) -> Vec<HeartbeatAction> {
        let actions = self.machine.handle(self.now, event);
        self.said.extend(actions.iter().cloned().map(|action| (self.now, action)));
        actions
    }

    /// Runs until `until`; each heartbeat to a node that `answers` is answered at once.
    fn run(&mut self, until: u64, answers: impl Fn(NodeId) -> bool) {
        while self.now < Millis(until) {
            self.now = self.now + Millis(50);
            if self.machine.asked_to_wake.is_some_and(|at| at <= self.now) {
                for action in self.take(HeartbeatEvent::Wake { random: self.now.0 }) {
                    if let HeartbeatAction::SendHeartbeat(to) = action
                        && answers(to)
                    {
                        self.take(HeartbeatEvent::Answered(to));
                    }
                }
            }
        }
    }

    fn said(&self, wanted: impl Fn(&HeartbeatAction) -> bool) -> Vec<Millis> {
        self.said.iter().filter(|(_, action)| wanted(action)).map(|(at, _)| *at).collect()
    }

    fn unreachable_at(&self, id: u64) -> Vec<Millis> {
        self.said(|action| *action == HeartbeatAction::Unreachable(node(id)))
    }
}

/// Proves: R190, R195, R201, R429, R439
#[test]
fn everybody_is_beaten_once_a_period() {
    let mut bench = Bench::new(4);
    bench.run(10_000, |_| true);
    for id in 2..=4 {
        let beats = bench.said(|action| *action == HeartbeatAction::SendHeartbeat(node(id)));
        assert_eq!(beats.len(), 10);
        assert!(beats.windows(2).all(|pair| pair[1].since(pair[0]) == Millis(1_000)));
    }
    assert!(bench.said(|action| *action == HeartbeatAction::SendHeartbeat(node(ME))).is_empty());
}

/// Proves: R191, R192, R193, R196, R200, R462
#[test]
fn the_silent_one_is_reported_after_two_others_were_asked() {
    let mut bench = Bench::new(5);
    bench.run(10_000, |_| true);
    bench.run(20_000, |to| to != node(3));
    let asked = bench
        .said(|action| matches!(action, HeartbeatAction::AskProbe { subject, .. } if *subject == node(3)));
    let reported = bench.unreachable_at(3);
    assert_eq!((asked.len(), reported.len()), (2, 1));
    assert!(reported[0].since(asked[0]) >= Millis(1_000), "the probes had their time");
    assert!(reported[0] <= Millis(10_000 + 1_000 + 1_563 + 250 + 1_000 + 250 + 100), "at {}", reported[0]);
    assert_eq!(bench.machine.unreachable(), nodes([3]));
    assert!([2, 4, 5].iter().all(|id| bench.unreachable_at(*id).is_empty()));
}

/// Proves: R194, R199
#[test]
fn a_suspect_that_answers_is_reachable_again() {
    let mut bench = Bench::new(3);
    bench.run(10_000, |to| to != node(3));
    assert_eq!(bench.unreachable_at(3).len(), 1, "also one that never answered");
    bench.run(20_000, |_| true);
    assert_eq!(bench.said(|action| *action == HeartbeatAction::ReachableAgain(node(3))).len(), 1);
    assert_eq!(bench.machine.unreachable(), BTreeSet::new());
}

/// Proves: C50, R464
#[test]
fn a_node_that_others_vouch_for_is_not_reported() {
    let mut bench = Bench::new(4);
    for second in 1..60 {
        bench.run(second * 500, |to| to != node(3));
        let is_asked = bench.said.iter().any(|(at, action)| {
            bench.now.since(*at) <= Millis(500) && matches!(action, HeartbeatAction::AskProbe { .. })
        });
        if is_asked {
            bench.take(HeartbeatEvent::ProbeAnswered { by: node(2), subject: node(3) });
        }
    }
    assert_eq!(bench.unreachable_at(3), []);
}

#[test]
fn any_traffic_counts_as_life() {
    let mut bench = Bench::new(3);
    for second in 1..60 {
        bench.run(second * 500, |to| to != node(3));
        bench.take(HeartbeatEvent::Life(node(3)));
    }
    assert_eq!(bench.unreachable_at(3), []);
}

#[test]
fn whoever_was_away_itself_reports_nobody() {
    let mut bench = Bench::new(5);
    bench.run(10_000, |_| true);
    bench.now = Millis(40_000);
    bench.run(40_050, |_| false);
    assert!(bench.machine.lateness() >= Millis(29_000));
    bench.run(41_900, |_| false);
    assert!((2..=5).all(|id| bench.unreachable_at(id).is_empty()), "answers may lie unread");
    bench.run(60_000, |_| true);
    assert!((2..=5).all(|id| bench.unreachable_at(id).is_empty()));
}

#[test]
fn lateness_fades_so_that_the_dead_are_found_in_the_end() {
    let mut bench = Bench::new(3);
    bench.run(10_000, |_| true);
    bench.now = Millis(14_000);
    bench.run(60_000, |to| to != node(3));
    assert_eq!(bench.machine.lateness(), Millis::ZERO);
    assert_eq!(bench.unreachable_at(3).len(), 1);
}

#[test]
fn a_helper_answers_once_the_subject_has_answered_it() {
    let mut bench = Bench::new(4);
    let request = HeartbeatEvent::ProbeRequested { by: node(2), subject: node(3) };
    assert_eq!(bench.take(request), [HeartbeatAction::SendHeartbeat(node(3))]);
    assert_eq!(bench.take(HeartbeatEvent::Life(node(3))), [], "what comes from it proves only one way");
    let answer = HeartbeatAction::AnswerProbe { to: node(2), subject: node(3) };
    assert_eq!(bench.take(HeartbeatEvent::Answered(node(3))), [answer]);
    assert_eq!(bench.take(HeartbeatEvent::Answered(node(3))), []);
}

#[test]
fn nobody_probes_strangers_itself_or_without_bound() {
    let mut bench = Bench::new(400);
    let request = |by, subject| HeartbeatEvent::ProbeRequested { by: node(by), subject: node(subject) };
    for (by, subject) in [(2, ME), (2, 999), (999, 2), (2, 2)] {
        assert_eq!(bench.take(request(by, subject)), []);
    }
    let accepted = (0..400).filter(|by| !bench.take(request(by + 1, 400)).is_empty()).count();
    assert_eq!(accepted, HeartbeatMachine::MAX_ASKED);
}

/// Proves: C50
#[test]
fn in_a_great_cluster_ten_neighbours_are_beaten() {
    let mut bench = Bench::new(200);
    assert_eq!(bench.machine.watched().collect::<BTreeSet<_>>(), nodes(2..=11));
    bench.run(2_000, |_| true);
    assert_eq!(bench.said(|action| matches!(action, HeartbeatAction::SendHeartbeat(_))).len(), 20);
}

#[test]
fn the_unreachable_stay_watched_when_the_ring_moves() {
    let tens = || (1..=100).map(|ten| ten * 10).chain([ME]);
    let mut bench = Bench::new(1);
    bench.take(HeartbeatEvent::Nodes { present: nodes(tens()), suspected: nodes([]) });
    bench.run(20_000, |to| to != node(100));
    assert_eq!(bench.machine.unreachable(), nodes([100]));
    bench.take(HeartbeatEvent::Nodes { present: nodes(tens().chain(2..=9)), suspected: nodes([]) });
    assert_eq!(bench.machine.watched().collect::<BTreeSet<_>>(), nodes((2..=10).chain([20, 100])));
    let without = nodes(tens().filter(|id| *id != 100));
    bench.take(HeartbeatEvent::Nodes { present: without, suspected: nodes([]) });
    assert!(bench.machine.watched().all(|watched| watched != node(100)), "the gone are not");
    assert_eq!(bench.machine.unreachable(), nodes([]));
}

#[test]
fn whoever_is_present_is_answered_and_others_are_left_to_the_view() {
    let mut bench = Bench::new(3);
    assert_eq!(bench.take(HeartbeatEvent::Asked(node(2))), [HeartbeatAction::AnswerHeartbeat(node(2))]);
    assert_eq!(bench.take(HeartbeatEvent::Asked(node(9))), [HeartbeatAction::StrangerAsks(node(9))]);
}

#[test]
fn each_frame_is_a_sign_of_life_of_its_sender() {
    let frames = [
        MembershipFrame::Heartbeat,
        MembershipFrame::HeartbeatAnswer,
        MembershipFrame::ProbeRequest { subject: node(2) },
        MembershipFrame::ProbeAnswer { subject: node(2) },
        MembershipFrame::Gone,
    ];
    for frame in frames {
        let mut bench = Bench::new(3);
        bench.run(30_000, |id| id != node(3));
        assert_eq!(bench.machine.unreachable(), nodes([3]));
        let actions = bench.take(HeartbeatEvent::of_frame(node(3), &frame));
        assert!(actions.contains(&HeartbeatAction::ReachableAgain(node(3))), "{frame:?}");
    }
}
