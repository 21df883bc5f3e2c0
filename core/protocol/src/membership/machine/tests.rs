use alloc::vec;

use proptest::prelude::*;

use super::*;
use crate::membership::samples::info;
use crate::membership::{Delta, Digest, MemberWord, MembershipFrame};

fn node(id: u64) -> NodeId {
    NodeId::new(id)
}

fn started(id: u64) -> Membership {
    Membership::new(Millis(0), info(id), MembershipSettings::default()).0
}

/// A machine of node 1 that holds 1 to `count` up.
fn among(count: u64) -> Membership {
    let mut machine = started(1);
    let words = (1..=count).map(|id| word(id, MemberStatus::Up)).collect();
    machine.handle(Millis(0), received(2, MembershipFrame::Delta(delta(words))));
    machine
}

fn word(id: u64, status: MemberStatus) -> MemberWord {
    let member = Member { status, up_number: id, ..Member::joining(info(id)) };
    MemberWord { member, clock: 1, observed: 0, unreachable: vec![], load: None }
}

fn delta(members: Vec<MemberWord>) -> Delta {
    Delta { fingerprint: 0, parts: vec![0], members, tombstones: vec![], wants_answer: false }
}

fn received(from: u64, frame: MembershipFrame) -> MembershipEvent {
    MembershipEvent::Received { from: node(from), frame }
}

fn status_of(machine: &Membership, id: u64) -> Option<MemberStatus> {
    machine.view().member(node(id)).map(|member| member.status)
}

fn sent_to(actions: &[MembershipAction], id: u64) -> Vec<&MembershipFrame> {
    let frames = actions.iter().filter_map(|action| match action {
        MembershipAction::Send { to, frame } if *to == node(id) => Some(frame),
        _ => None,
    });
    frames.collect()
}

/// Proves: R160
#[test]
fn the_first_node_lets_itself_in_and_says_everything_once() {
    let mut machine = started(1);
    assert_eq!(machine.status(), MemberStatus::Joining);
    let actions = machine.handle(Millis(1), MembershipEvent::DirectoryListed);
    let up = machine.members().next().unwrap().clone();
    assert_eq!((up.status, up.up_number), (MemberStatus::Up, 1));
    let told = MembershipAction::Publish(MemberEvent::MemberUp(up));
    assert_eq!(actions.iter().filter(|action| **action == told).count(), 1);
    assert_eq!(machine.leader(), Some(node(1)));
    assert_eq!(machine.reachable(), BTreeSet::from([node(1)]));
    assert!(matches!(actions.last(), Some(MembershipAction::WakeAt(_))));
}

#[test]
fn a_node_that_knows_of_others_numbers_nobody_before_it_has_met_one() {
    let mut machine = started(2);
    machine.handle(Millis(0), MembershipEvent::Announced(info(3)));
    machine.handle(Millis(0), MembershipEvent::DirectoryListed);
    assert_eq!(
        (status_of(&machine, 2), status_of(&machine, 3)),
        (Some(MemberStatus::Joining), Some(MemberStatus::Joining))
    );
    let mut alone = started(2);
    alone.handle(Millis(0), MembershipEvent::JoinThrough(vec!["seed:1".parse().unwrap()]));
    alone.handle(Millis(0), MembershipEvent::DirectoryListed);
    assert_eq!(alone.status(), MemberStatus::Joining);
    (1..=5).for_each(|second| {
        drop(alone.handle(Millis(second * 1_000), MembershipEvent::Wake { random: second }))
    });
    assert_eq!(alone.status(), MemberStatus::Up, "its patience has an end");
}

#[test]
fn seeds_are_asked_until_one_answers() {
    let mut machine = started(1);
    let seed: NodeAddress = "seed:1".parse().unwrap();
    let asks = |actions: &[MembershipAction]| {
        actions
            .iter()
            .any(|action| matches!(action, MembershipAction::SendToAddress { to, .. } if *to == seed))
    };
    let own = machine.me.address.clone();
    let first = machine.handle(Millis(1), MembershipEvent::JoinThrough(vec![seed.clone(), own]));
    assert!(asks(&first));
    assert!(!first.iter().any(|action| {
        matches!(action, MembershipAction::SendToAddress { to, .. } if *to == machine.me.address)
    }));
    assert!(asks(&machine.handle(Millis(1_000), MembershipEvent::Wake { random: 1 })));
    machine
        .handle(Millis(1_500), received(2, MembershipFrame::Delta(delta(vec![word(2, MemberStatus::Up)]))));
    assert!(!asks(&machine.handle(Millis(2_000), MembershipEvent::Wake { random: 1 })));
}

/// Proves: R146, R147
#[test]
fn a_join_is_answered_with_the_view_and_only_for_oneself() {
    let mut machine = among(3);
    let actions = machine.handle(Millis(5), received(4, MembershipFrame::Join(info(4))));
    let frames = sent_to(&actions, 4);
    assert!(
        frames.iter().any(|frame| matches!(frame, MembershipFrame::Delta(delta) if delta.members.len() == 4))
    );
    machine.handle(Millis(6), received(4, MembershipFrame::Join(info(5))));
    assert_eq!(status_of(&machine, 5), None);
}

/// Proves: R203, C2, C6
#[test]
fn only_the_end_of_a_session_makes_a_member_down() {
    let mut machine = among(3);
    machine.handle(Millis(15_000), MembershipEvent::Unreachable(BTreeSet::from([node(3)])));
    assert!(machine.is_suspect(node(3)));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up));
    let actions = machine.handle(Millis(20_000), MembershipEvent::SessionEnded(node(3)));
    assert!(actions.iter().any(|action| {
        matches!(action, MembershipAction::Publish(MemberEvent::MemberDowned(member)) if member.id() == node(3))
    }));
}

/// Proves: R137
#[test]
fn each_second_one_peer_hears_of_the_view_and_chance_says_which() {
    let mut machine = among(5);
    let mut heard = BTreeSet::new();
    for second in 1..40 {
        let actions =
            machine.handle(Millis(second * 1_000), MembershipEvent::Wake { random: second * 8 + 3 });
        let to: Vec<NodeId> = actions
            .iter()
            .filter_map(|action| match action {
                MembershipAction::Send { to, frame: MembershipFrame::Digest(_) } => Some(*to),
                _ => None,
            })
            .collect();
        assert_eq!(to.len(), 1, "in second {second}");
        heard.extend(to);
    }
    assert_eq!(heard, (2..=5).map(node).collect());
}

#[test]
fn whom_the_heartbeats_lost_counts_only_while_present() {
    let mut machine = among(3);
    let lost = BTreeSet::from([node(3), node(7)]);
    let actions = machine.handle(Millis(1), MembershipEvent::Unreachable(lost));
    assert_eq!((machine.is_suspect(node(3)), machine.is_suspect(node(7))), (true, false));
    let watched = actions.iter().find_map(|action| match action {
        MembershipAction::Watch { present, suspected } => Some((present.clone(), suspected.clone())),
        _ => None,
    });
    let expected = (BTreeSet::from([node(1), node(2), node(3)]), BTreeSet::from([node(3)]));
    assert_eq!(watched, Some(expected));
    machine.handle(Millis(2), MembershipEvent::SessionEnded(node(3)));
    assert!(!machine.is_suspect(node(3)), "it is down, and nobody watches it any more");
}

#[test]
fn the_end_of_an_exiting_members_session_is_no_death() {
    let mut machine = among(3);
    machine
        .handle(Millis(1), received(2, MembershipFrame::Delta(delta(vec![word(3, MemberStatus::Exiting)]))));
    let actions = machine.handle(Millis(2), MembershipEvent::SessionEnded(node(3)));
    assert_eq!(status_of(&machine, 3), None);
    let downed =
        |action: &MembershipAction| matches!(action, MembershipAction::Publish(MemberEvent::MemberDowned(_)));
    assert!(!actions.iter().any(downed));
}

#[test]
fn ones_own_end_is_told_and_then_nothing_more() {
    let ends = [
        MembershipEvent::SessionEnded(node(1)),
        received(2, MembershipFrame::Gone),
        received(2, MembershipFrame::Delta(delta(vec![word(1, MemberStatus::Down)]))),
        received(
            2,
            MembershipFrame::Delta(Delta { tombstones: vec![(node(1), Millis(9))], ..delta(vec![]) }),
        ),
    ];
    for end in ends {
        let mut machine = among(3);
        let actions = machine.handle(Millis(5), end);
        assert_eq!(actions.iter().filter(|action| **action == MembershipAction::SelfDown).count(), 1);
        assert_eq!(machine.status(), MemberStatus::Removed);
        assert_eq!(machine.handle(Millis(6), MembershipEvent::Wake { random: 1 }), []);
    }
    let mut leaving = among(3);
    leaving.handle(Millis(5), MembershipEvent::LeaveRequested);
    let actions = leaving.handle(Millis(6), MembershipEvent::SessionEnded(node(1)));
    assert!(actions.contains(&MembershipAction::SelfLeft));
}

/// Proves: C39
#[test]
fn a_pruned_member_does_not_come_back_by_old_gossip() {
    let mut machine = among(3);
    machine
        .handle(Millis(1), received(2, MembershipFrame::Delta(delta(vec![word(3, MemberStatus::Exiting)]))));
    machine.handle(Millis(2), MembershipEvent::SessionEnded(node(3)));
    assert!(machine.view().is_buried(node(3)));
    let life = MembershipSettings::default().tombstone_life;
    machine.handle(life + Millis(10_000), MembershipEvent::Wake { random: 1 });
    assert!(!machine.view().is_buried(node(3)), "it is told to nobody any more");
    let old = delta(vec![word(3, MemberStatus::Up)]);
    machine.handle(life + Millis(10_001), received(2, MembershipFrame::Delta(old)));
    machine.handle(life + Millis(10_002), MembershipEvent::Announced(info(3)));
    assert_eq!(status_of(&machine, 3), None);
    let actions = machine.handle(life + Millis(10_003), received(3, MembershipFrame::Heartbeat));
    assert_eq!(sent_to(&actions, 3), [&MembershipFrame::Gone]);
}

#[test]
fn whoever_takes_an_address_over_replaces_who_stood_there() {
    let mut machine = among(3);
    let newcomer = NodeInfo { id: node(9), ..info(3) };
    let mut asked = machine.clone();
    machine.handle(Millis(1), MembershipEvent::Announced(newcomer.clone()));
    machine.handle(Millis(2), received(9, MembershipFrame::Heartbeat));
    asked.handle(Millis(1), received(9, MembershipFrame::Join(newcomer)));
    for machine in [machine, asked] {
        assert!(status_of(&machine, 3).is_none_or(|status| status == MemberStatus::Down));
        assert!(status_of(&machine, 9).is_some());
    }
}

/// It died while its announcement was under way, and the next life at the same port was up before the store wrote it down.
#[test]
fn a_late_poster_of_the_dead_throws_nobody_out() {
    let mut machine = among(3);
    let dead = NodeInfo { id: node(9), ..info(3) };
    machine.handle(Millis(1), MembershipEvent::Announced(dead));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up));
    machine.handle(Millis(2), received(3, MembershipFrame::Heartbeat));
    machine.handle(Millis(3), received(2, MembershipFrame::Heartbeat));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up), "the dead one says nothing");
    machine.handle(Millis(6_000), MembershipEvent::SessionEnded(node(9)));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up));
}

/// Whoever comes late reads posters of the dead and the living in one list, after it has heard of the living.
#[test]
fn a_poster_that_is_only_listed_replaces_nobody() {
    let mut machine = among(3);
    let old = NodeInfo { id: node(9), ..info(3) };
    machine.handle(Millis(1), MembershipEvent::Listed(old));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up));
    assert_eq!(
        status_of(&machine, 9),
        Some(MemberStatus::Joining),
        "until its session is known to have ended"
    );
    machine.handle(Millis(2), MembershipEvent::SessionEnded(node(9)));
    assert_eq!(status_of(&machine, 3), Some(MemberStatus::Up));
    assert!(status_of(&machine, 9).is_none_or(|status| status == MemberStatus::Down));
}

#[test]
fn a_poster_at_its_own_address_does_not_make_a_node_believe_that_it_is_gone() {
    let mut machine = among(3);
    let old = NodeInfo { id: node(9), ..info(1) };
    machine.handle(Millis(1), MembershipEvent::Announced(old));
    assert_eq!(machine.status(), MemberStatus::Up);
}

#[test]
fn equal_views_exchange_no_members() {
    let mut one = among(3);
    let mut two = one.clone();
    two.me = info(2);
    let digest = one.digest_for_tests();
    let actions = two.handle(Millis(1), received(1, MembershipFrame::Digest(digest)));
    assert!(
        !actions.iter().any(|action| {
            matches!(action, MembershipAction::Send { frame: MembershipFrame::Delta(_), .. })
        })
    );
    assert!(two.view().seen().contains(&node(1)));
}

#[test]
fn of_different_views_only_the_parts_that_differ_are_sent() {
    let mut one = among(400);
    let digest = one.digest_for_tests();
    assert_eq!(digest.parts.len(), 25);
    one.handle(Millis(1), MembershipEvent::Announced(info(5_000)));
    let actions = one.handle(Millis(2), received(2, MembershipFrame::Digest(digest)));
    let [MembershipFrame::Delta(delta)] = sent_to(&actions, 2)[..] else { panic!("one delta") };
    assert!(delta.members.iter().any(|word| word.member.id() == node(5_000)));
    assert!(delta.members.len() < 60, "{} of 401 members", delta.members.len());
}

#[test]
fn a_full_view_takes_no_more_from_gossip() {
    let mut machine = among(2);
    let many = GossipState::MAX_MEMBERS as u64;
    let words = (10..10 + many).map(|id| word(id, MemberStatus::Joining)).collect();
    machine.handle(Millis(1), received(2, MembershipFrame::Delta(delta(words))));
    assert_eq!(machine.members().count(), GossipState::MAX_MEMBERS);
    let actions = machine.handle(Millis(2), MembershipEvent::Announced(info(1_000_000)));
    assert!(actions.contains(&MembershipAction::Publish(MemberEvent::Refused(node(1_000_000)))));
}

impl Membership {
    fn digest_for_tests(&mut self) -> Digest {
        let actions = self.gossip(3);
        let digest = actions.into_iter().find_map(|action| match action {
            MembershipAction::Send { frame: MembershipFrame::Digest(digest), .. } => Some(digest),
            _ => None,
        });
        digest.unwrap()
    }
}

fn any_event() -> impl Strategy<Value = MembershipEvent> {
    let id = || 1..5u64;
    let status = proptest::sample::select(&MemberStatus::ALL[..4]);
    let frame = prop_oneof![
        id().prop_map(|id| MembershipFrame::Join(info(id))),
        Just(MembershipFrame::Heartbeat),
        Just(MembershipFrame::HeartbeatAnswer),
        id().prop_map(|id| MembershipFrame::ProbeRequest { subject: node(id) }),
        id().prop_map(|id| MembershipFrame::ProbeAnswer { subject: node(id) }),
        (any::<u64>(), any::<Vec<u8>>(), 1..4usize).prop_map(|(fingerprint, seen, parts)| {
            let parts = vec![0; parts];
            MembershipFrame::Digest(Digest { fingerprint, parts, seen, loads: vec![], is_answer: false })
        }),
        (id(), status, any::<bool>()).prop_map(|(id, status, wants_answer)| {
            MembershipFrame::Delta(Delta { wants_answer, ..delta(vec![word(id, status)]) })
        }),
    ];
    prop_oneof![
        3 => any::<u64>().prop_map(|random| MembershipEvent::Wake { random }),
        1 => id().prop_map(|id| MembershipEvent::Announced(info(id))),
        1 => id().prop_map(|id| MembershipEvent::Listed(info(id))),
        1 => (2..5u64).prop_map(|id| MembershipEvent::SessionEnded(node(id))),
        4 => (id(), frame).prop_map(|(from, frame)| received(from, frame)),
        1 => id().prop_map(|id| MembershipEvent::Unreachable(BTreeSet::from([node(id)]))),
        1 => Just(MembershipEvent::LeaveRequested),
        1 => Just(MembershipEvent::HandedOff),
    ]
}

/// Node 1 until the wake at which it judges that node 3 is lost; `seen_meanwhile` is somebody the directory shows just before.
fn judging_node_three(seen_meanwhile: Option<u64>) -> Vec<MembershipAction> {
    let mut machine = started(1);
    machine.handle(Millis(0), MembershipEvent::Announced(info(3)));
    machine.handle(Millis(0), MembershipEvent::Unreachable(BTreeSet::from([node(3)])));
    for second in 1..25 {
        machine.handle(Millis(second * 1_000), MembershipEvent::Wake { random: second });
    }
    // It let itself in when its patience ended, after five seconds, so the split is five seconds younger. The first listing has
    // not ended, so nothing follows from this before the next wake.
    if let Some(id) = seen_meanwhile {
        machine.handle(Millis(24_500), MembershipEvent::Listed(info(id)));
    }
    machine.handle(Millis(25_000), MembershipEvent::Wake { random: 25 })
}

#[test]
fn nobody_is_judged_lost_whom_a_member_just_seen_may_reach() {
    let revoked = MembershipAction::Revoke(node(3));
    assert!(judging_node_three(None).contains(&revoked));
    assert!(!judging_node_three(Some(2)).contains(&revoked));
}

proptest! {
    #[test]
    fn whatever_comes_the_machine_wakes_again_or_is_over(
        events in proptest::collection::vec((0..3_000u64, any_event()), 0..60),
    ) {
        let mut machine = started(1);
        let mut now = Millis(0);
        for (wait, event) in events {
            now = now + Millis(wait);
            let was_over = machine.is_over;
            let actions = machine.handle(now, event);
            let wakes: Vec<Millis> = actions.iter().filter_map(|action| match action {
                MembershipAction::WakeAt(at) => Some(*at),
                _ => None,
            }).collect();
            if machine.is_over {
                let is_end = |action: &MembershipAction| {
                    matches!(action, MembershipAction::SelfDown | MembershipAction::SelfLeft)
                };
                let is_told = was_over || actions.iter().any(is_end);
                prop_assert!(is_told);
            } else {
                prop_assert_eq!(wakes.len(), 1);
                prop_assert!(wakes[0] >= now && wakes[0] <= now + Millis(1_000));
            }
            let revokes = actions.iter().any(|action| matches!(action, MembershipAction::Revoke(_)));
            prop_assert!(!revokes || machine.split.due().is_some());
        }
    }
}
