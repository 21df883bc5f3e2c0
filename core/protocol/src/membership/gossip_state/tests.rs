use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::membership::samples::info;

fn node(id: u64) -> NodeId {
    NodeId::new(id)
}

fn nodes(ids: &[u64]) -> BTreeSet<NodeId> {
    ids.iter().copied().map(NodeId::new).collect()
}

/// A view of nodes 1 to `count`, all up, seen by nobody.
fn up(count: u64) -> GossipState {
    let mut state = GossipState::new();
    (1..=count).for_each(|id| _ = state.enter(&info(id)));
    (1..=count).for_each(|id| _ = state.let_in(node(1), node(id)));
    state
}

fn merged(a: &GossipState, b: &GossipState) -> GossipState {
    let mut both = a.clone();
    both.merge(b);
    both
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u64),
    Status(u64, u64, MemberStatus),
    LetIn(u64, u64),
    Observe(u64, Vec<u64>),
    Bury(u64, u64),
    See(u64),
    Load(u64, u32),
    HandOff(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = || 1..6u64;
    let status = proptest::sample::select(&MemberStatus::ALL[..5]);
    prop_oneof![
        4 => id().prop_map(Step::Enter),
        3 => (id(), id(), status).prop_map(|(by, id, status)| Step::Status(by, id, status)),
        3 => (id(), id()).prop_map(|(by, id)| Step::LetIn(by, id)),
        3 => (id(), proptest::collection::vec(1..6u64, 0..3)).prop_map(|(by, ids)| Step::Observe(by, ids)),
        1 => (id(), 1..100u64).prop_map(|(id, until)| Step::Bury(id, until)),
        3 => id().prop_map(Step::See),
        2 => (id(), 0..5u32).prop_map(|(id, counter)| Step::Load(id, counter)),
        1 => id().prop_map(Step::HandOff),
    ]
}

fn apply(state: &mut GossipState, step: &Step) {
    match step {
        Step::Enter(id) => {
            _ = state.enter(&info(*id));
        }
        Step::Status(by, id, status) if state.member(node(*by)).is_some() => {
            _ = state.step_by(node(*by), node(*id), *status);
        }
        Step::LetIn(by, id) if state.member(node(*by)).is_some() => {
            _ = state.let_in(node(*by), node(*id));
        }
        Step::Observe(by, ids) if state.member(node(*by)).is_some() => {
            let known = nodes(ids).into_iter().filter(|id| state.member(*id).is_some()).collect();
            state.observe(node(*by), known);
        }
        Step::Bury(id, until) => state.bury(node(*id), Millis(*until)),
        Step::See(id) => {
            _ = state.see(node(*id));
        }
        Step::Load(id, counter) => {
            _ = state.note_load(node(*id), NodeLoad { counter: *counter, ..NodeLoad::default() });
        }
        Step::HandOff(id) => {
            _ = state.hand_off(node(*id));
        }
        Step::Status(..) | Step::LetIn(..) | Step::Observe(..) => {}
    }
}

fn any_state() -> impl Strategy<Value = GossipState> {
    proptest::collection::vec(any_step(), 0..40).prop_map(|steps| {
        let mut state = GossipState::new();
        steps.iter().for_each(|step| apply(&mut state, step));
        state
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    /// Proves: R135, R138, C39
    #[test]
    fn merge_is_commutative_associative_and_idempotent(a in any_state(), b in any_state(), c in any_state()) {
        let both = merged(&a, &b);
        prop_assert_eq!(&both, &merged(&b, &a));
        prop_assert_eq!(merged(&both, &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a.clone());
        prop_assert_eq!(&merged(&both, &a), &both);
    }

    /// The same from one common past, where views agree in part and somebody has seen them.
    #[test]
    fn merge_keeps_its_laws_after_a_common_past(
        past in any_state(), news in proptest::array::uniform3(proptest::collection::vec(any_step(), 0..4)),
    ) {
        let [a, b, c] = news.map(|steps| {
            let mut state = past.clone();
            steps.iter().for_each(|step| apply(&mut state, step));
            state
        });
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(&merged(&merged(&a, &b), &b), &merged(&a, &b));
    }

    /// Proves: C39
    #[test]
    fn a_merge_loses_nothing(a in any_state(), b in any_state()) {
        let both = merged(&a, &b);
        for one in [&a, &b] {
            prop_assert!(one.tombstones.keys().all(|id| both.is_buried(*id)));
            for member in one.members().filter(|member| !both.is_buried(member.id())) {
                prop_assert!(both.member(member.id()).is_some_and(|found| found.status >= member.status));
                prop_assert!(both.clock.count(member.id()) >= one.clock.count(member.id()));
            }
        }
        prop_assert!(both.members().all(|member| !both.is_buried(member.id())));
        prop_assert!(both.seen.iter().all(|id| both.member(*id).is_some()));
    }

    #[test]
    fn the_fingerprint_at_hand_is_that_of_the_view(a in any_state(), b in any_state(), now in 0..100u64) {
        let mut both = merged(&a, &b);
        prop_assert_eq!(both.fingerprint(), both.summed());
        both.prune(Millis(now));
        prop_assert_eq!(both.fingerprint(), both.summed());
    }

    #[test]
    fn fingerprints_differ_exactly_where_views_do(a in any_state(), b in any_state(), parts in 1..9usize) {
        prop_assert_eq!(a.fingerprint() == b.fingerprint(), a.says_the_same(&b));
        let (of_a, of_b) = (a.fingerprints(parts), b.fingerprints(parts));
        prop_assert_eq!(of_a.whole, a.summed());
        prop_assert_eq!(of_a.parts == of_b.parts, a.says_the_same(&b));
    }
}

#[test]
fn an_observers_newer_word_wins_in_either_order() {
    let mut old = up(3);
    old.observe(node(1), nodes(&[2, 3]));
    let mut new = old.clone();
    new.observe(node(1), nodes(&[3]));
    assert!(!merged(&old, &new).is_marked_by(node(1), node(2)));
    assert_eq!(merged(&old, &new), merged(&new, &old));
    assert!(merged(&old, &new).is_marked_by(node(1), node(3)));
}

#[test]
fn what_is_no_news_is_no_word() {
    let mut state = up(2);
    let before = state.clone();
    assert!(!state.observe(node(1), BTreeSet::new()));
    assert!(!state.hand_off(node(9)));
    assert_eq!(state, before);
}

/// Proves: C39
#[test]
fn the_removed_do_not_come_back_by_old_gossip() {
    let old = up(3);
    let mut new = old.clone();
    new.bury(node(3), Millis(100));
    let both = merged(&new, &old);
    assert!(both.member(node(3)).is_none() && both.is_buried(node(3)));
    assert_eq!(both.clock.count(node(3)), 0);
    let mut entered = both;
    assert_eq!(entered.enter(&info(3)), Entered::Gone);
}

/// Proves: C39
#[test]
fn tombstones_are_pruned_in_time_and_within_their_bound() {
    let mut state = up(1);
    (10..20).for_each(|id| state.bury(node(id), Millis(id)));
    assert_eq!(state.prune(Millis(12)), nodes(&[10, 11, 12]));
    let many = GossipState::MAX_TOMBSTONES as u64;
    (100..100 + many).for_each(|id| _ = state.tombstones.insert(node(id), Millis(1_000)));
    state.whole = state.summed();
    assert_eq!(state.prune(Millis(12)), nodes(&[13, 14, 15, 16, 17, 18, 19]), "the soonest first");
    assert_eq!(state.tombstones.len(), GossipState::MAX_TOMBSTONES);
}

#[test]
fn a_full_view_refuses_and_says_so() {
    let mut state = GossipState::new();
    let last = GossipState::MAX_MEMBERS as u64;
    (0..last).for_each(|id| assert_eq!(state.enter(&info(id)), Entered::New));
    assert_eq!(state.enter(&info(last)), Entered::Refused);
    assert_eq!(state.enter(&info(0)), Entered::Known);
}

/// Proves: R139
#[test]
fn a_view_is_converged_once_all_with_a_say_who_can_be_reached_have_seen_it() {
    let mut state = up(3);
    state.enter(&info(4));
    state.see(node(1));
    state.see(node(2));
    assert!(!state.is_converged(node(1)));
    state.see(node(3));
    assert!(state.is_converged(node(1)), "the joining have no say");
    state.step_by(node(2), node(2), MemberStatus::Leaving);
    assert!(!state.is_converged(node(1)), "a new word has to be seen anew");
    state.observe(node(1), nodes(&[3]));
    [1, 2].iter().for_each(|id| _ = state.see(node(*id)));
    assert!(state.is_converged(node(1)), "the suspected are not waited for");
}

#[test]
fn before_anybody_is_up_the_joining_must_agree() {
    let mut state = GossipState::new();
    [1, 2].iter().for_each(|id| _ = state.enter(&info(*id)));
    state.see(node(1));
    assert!(!state.is_converged(node(1)));
    state.see(node(2));
    assert!(state.is_converged(node(1)));
}

#[test]
fn marks_by_those_one_does_not_reach_do_not_count() {
    let mut state = up(4);
    state.observe(node(4), nodes(&[1, 2, 3]));
    assert_eq!(state.suspects(node(1)), nodes(&[2, 3]));
    state.observe(node(1), nodes(&[4]));
    assert_eq!(state.suspects(node(1)), nodes(&[4]), "in a split both sides say it of each other");
    assert_eq!(state.suspects(node(4)), nodes(&[1, 2, 3]));
}

/// Proves: R239
#[test]
fn of_two_loads_the_newer_counts() {
    let mut state = up(2);
    let load = |counter, waiting| NodeLoad { counter, waiting, ..NodeLoad::default() };
    assert!(state.note_load(node(2), load(2, 7)));
    assert!(!state.note_load(node(2), load(1, 9)), "it was overtaken");
    assert!(!state.note_load(node(9), load(1, 9)), "nobody knows it");
    assert_eq!(state.load(node(2)), Some(load(2, 7)));
}

#[test]
fn numbers_follow_the_order_of_letting_in() {
    let state = up(3);
    assert_eq!(state.members().map(|member| member.up_number).collect::<Vec<_>>(), [1, 2, 3]);
}
