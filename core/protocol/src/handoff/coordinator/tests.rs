use alloc::vec;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::handoff::allocate::{LeastShards, version_of};
use crate::membership::MemberStatus;

mod loads;

const A: NodeId = NodeId::new(1);
const B: NodeId = NodeId::new(2);

fn hosts(statuses: &[(NodeId, MemberStatus)]) -> CoordinatorEvent {
    let host = |status| Host { status, version: version_of("1.0"), load: 0, measured: 0 };
    CoordinatorEvent::Hosts(statuses.iter().map(|(node, status)| (*node, host(*status))).collect())
}

fn record(shard: u32, owner: NodeId, generation: u64) -> CoordinatorEvent {
    let record = Some(Hint { owner, generation: Generation::new(generation) });
    CoordinatorEvent::Record { shard, record, ended: false }
}

/// Least shards, which notes how often and for how many moves it was asked.
#[derive(Debug, Default)]
struct Noting {
    plans: AtomicUsize,
    most: AtomicUsize,
}

impl AllocateShards for Noting {
    fn allocate(&self, allocations: &Allocations) -> Option<NodeId> {
        LeastShards.allocate(allocations)
    }

    fn rebalance(&self, allocations: &Allocations, most: usize) -> Vec<ShardMove> {
        self.plans.fetch_add(1, Relaxed);
        self.most.fetch_max(most, Relaxed);
        LeastShards.rebalance(allocations, most)
    }
}

fn tell(coordinator: &mut Coordinator, now: u64, event: CoordinatorEvent) -> Vec<CoordinatorAction> {
    let mut actions = coordinator.handle(Millis(now), event, &LeastShards);
    actions.retain(|action| !matches!(action, CoordinatorAction::WakeAt(_)));
    actions
}

/// A owns all of `shards`; B has just joined.
fn unbalanced(shards: u32) -> Coordinator {
    let mut coordinator = Coordinator::new(Millis(0), CoordinatorLimits::default());
    tell(&mut coordinator, 0, hosts(&[(A, MemberStatus::Up), (B, MemberStatus::Up)]));
    (0..shards).for_each(|shard| assert!(tell(&mut coordinator, 0, record(shard, A, 1)).is_empty()));
    coordinator
}

/// Proves: R284, R287, R302
#[test]
fn the_first_rebalance_comes_after_five_seconds_and_asks_within_limits() {
    let mut coordinator = unbalanced(40);
    assert!(tell(&mut coordinator, 4_999, CoordinatorEvent::WokeUp).is_empty());
    let orders = tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp);
    assert_eq!(orders.len(), 4, "four per target");
    let (shard, generation) = (0, Generation::new(1));
    assert_eq!(orders[0], CoordinatorAction::HandOff { shard, owner: A, generation, to: B });
    assert!(tell(&mut coordinator, 6_000, CoordinatorEvent::WokeUp).is_empty(), "four are open");
    assert_eq!(tell(&mut coordinator, 6_500, record(0, B, 2)).len(), 1, "one goes and the next begins");
    assert_eq!(coordinator.state(0), ShardState::Steady, "the record tells");
    assert!(tell(&mut coordinator, 7_000, CoordinatorEvent::WokeUp).is_empty(), "four are open");
}

#[test]
fn a_round_begins_no_more_moves_than_it_may_however_fast_they_end() {
    let mut coordinator = unbalanced(200);
    let begins = |actions: &[CoordinatorAction]| actions.len();
    let mut begun = begins(&tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp));
    for shard in 0..200 {
        if matches!(coordinator.state(shard), ShardState::Asked { .. }) {
            begun += begins(&tell(&mut coordinator, 5_100, record(shard, B, 2)));
        }
    }
    assert_eq!(begun, CoordinatorLimits::default().per_round);
    assert_eq!(tell(&mut coordinator, 6_000, CoordinatorEvent::WokeUp).len(), 4, "the next round");
}

#[test]
fn one_source_hands_over_eight_at_a_time() {
    let mut coordinator = unbalanced(60);
    let up = [A, B, NodeId::new(3), NodeId::new(4), NodeId::new(5)].map(|node| (node, MemberStatus::Up));
    tell(&mut coordinator, 0, hosts(&up));
    assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 8);
}

#[test]
fn an_order_without_result_is_repeated_after_growing_pauses() {
    let mut coordinator = unbalanced(2);
    let backoff = |until| ShardState::Backoff { until: Millis(until) };
    assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 1);
    let done = CoordinatorEvent::Done { shard: 0, generation: Generation::new(1), moved: None };
    tell(&mut coordinator, 6_000, done);
    assert_eq!(coordinator.state(0), backoff(16_000));
    tell(&mut coordinator, 16_000, CoordinatorEvent::WokeUp);
    assert!(matches!(coordinator.state(0), ShardState::Asked { .. }));
    tell(&mut coordinator, 21_000, CoordinatorEvent::WokeUp);
    assert_eq!(coordinator.state(0), backoff(41_000), "no answer in five seconds, twice the pause");
}

/// Proves: R285
#[test]
fn an_orphan_is_placed_at_once_and_the_next_node_is_asked_after_two_seconds() {
    let mut coordinator = unbalanced(0);
    let hint = Hint { owner: NodeId::new(9), generation: Generation::new(3) };
    let orphan = CoordinatorEvent::Record { shard: 7, record: Some(hint), ended: true };
    let allocate = |node, expect| CoordinatorAction::Allocate { shard: 7, node, expect };
    let expect = Some(Generation::new(3));
    assert_eq!(tell(&mut coordinator, 10, orphan), [allocate(A, expect)]);
    assert!(tell(&mut coordinator, 20, CoordinatorEvent::Wanted(7)).is_empty(), "one was asked");
    assert_eq!(tell(&mut coordinator, 2_010, CoordinatorEvent::WokeUp), [allocate(B, expect)]);
    tell(&mut coordinator, 2_020, record(7, B, 4));
    assert_eq!(coordinator.state(7), ShardState::Steady);
    assert!(tell(&mut coordinator, 2_030, CoordinatorEvent::Wanted(7)).is_empty(), "somebody owns it");
}

/// Proves: R292
#[test]
fn a_shard_without_a_record_is_placed_when_it_is_wanted() {
    let mut coordinator = unbalanced(0);
    let allocate = CoordinatorAction::Allocate { shard: 7, node: A, expect: None };
    assert_eq!(tell(&mut coordinator, 0, CoordinatorEvent::Wanted(7)), [allocate]);
}

#[test]
fn what_a_leaving_node_owns_goes_to_one_that_stays() {
    let mut coordinator = unbalanced(1);
    tell(&mut coordinator, 0, hosts(&[(A, MemberStatus::Leaving), (B, MemberStatus::Up)]));
    assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 1);
    let mut alone = unbalanced(1);
    tell(&mut alone, 0, hosts(&[(A, MemberStatus::Leaving), (B, MemberStatus::Joining)]));
    assert!(tell(&mut alone, 5_000, CoordinatorEvent::WokeUp).is_empty(), "nobody is up");
}

/// The record of a node may be seen before the node itself is.
#[test]
fn an_owner_that_is_there_after_all_keeps_its_shard_and_nobody_is_asked_again() {
    let mut coordinator = unbalanced(0);
    let hint = Hint { owner: B, generation: Generation::new(3) };
    let seen = |ended| CoordinatorEvent::Record { shard: 7, record: Some(hint), ended };
    assert_eq!(tell(&mut coordinator, 10, seen(true)).len(), 1, "it looks like an orphan");
    assert!(tell(&mut coordinator, 20, seen(false)).is_empty());
    assert_eq!(coordinator.state(7), ShardState::Steady);
    let late = coordinator.handle(Millis(4_000), CoordinatorEvent::WokeUp, &LeastShards);
    assert_eq!(late, [CoordinatorAction::WakeAt(Millis(5_000))], "nothing is due but the round");
    (0..3).for_each(|shard| assert!(tell(&mut coordinator, 4_000, record(shard, B, 1)).is_empty()));
    let orders = tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp);
    assert_eq!(orders.len(), 2, "it counts where it is, and is moved as others are");
}

#[test]
fn an_orphan_that_nobody_can_take_waits_for_a_node_and_not_for_the_clock() {
    let mut coordinator = Coordinator::new(Millis(0), CoordinatorLimits::default());
    let hint = Hint { owner: NodeId::new(9), generation: Generation::new(3) };
    let orphan = CoordinatorEvent::Record { shard: 7, record: Some(hint), ended: true };
    tell(&mut coordinator, 0, hosts(&[(A, MemberStatus::Up)]));
    assert_eq!(tell(&mut coordinator, 0, orphan).len(), 1);
    tell(&mut coordinator, 10, hosts(&[]));
    let woken = coordinator.handle(Millis(2_000), CoordinatorEvent::WokeUp, &LeastShards);
    assert_eq!(woken, [CoordinatorAction::WakeAt(Millis(5_000))], "nobody is there to be asked");
    let allocate = CoordinatorAction::Allocate { shard: 7, node: B, expect: Some(Generation::new(3)) };
    assert_eq!(tell(&mut coordinator, 2_500, hosts(&[(B, MemberStatus::Up)])), [allocate]);
}

#[test]
fn a_plan_is_made_for_as_many_moves_as_nodes_can_take_and_only_if_something_is_new() {
    let (mut coordinator, strategy) = (unbalanced(1_000), Noting::default());
    let orders = coordinator.handle(Millis(5_000), CoordinatorEvent::WokeUp, &strategy);
    assert_eq!(orders.len(), 5, "four orders and a wake: {orders:?}");
    let two_targets = 2 * CoordinatorLimits::default().per_target;
    assert_eq!(strategy.most.load(Relaxed), two_targets);
    (500..600).for_each(|shard| drop(coordinator.handle(Millis(5_100), record(shard, A, 1), &strategy)));
    assert_eq!(strategy.plans.load(Relaxed), 1, "the records say nothing new");
    let done = CoordinatorEvent::Done { shard: 0, generation: Generation::new(1), moved: None };
    assert_eq!(coordinator.handle(Millis(5_200), done, &strategy).len(), 2, "another takes its place");
    assert_eq!(strategy.most.load(Relaxed), two_targets + 4, "it is in the plan, too");
}

#[test]
fn shards_that_may_not_be_asked_for_now_do_not_keep_others_from_moving() {
    let mut coordinator = unbalanced(200);
    for _ in 0..30 {
        let asked = |shard: &u32| matches!(coordinator.state(*shard), ShardState::Asked { .. });
        let open: Vec<u32> = (0..200).filter(asked).collect();
        for shard in open {
            let done = CoordinatorEvent::Done { shard, generation: Generation::new(1), moved: None };
            tell(&mut coordinator, 5_000, done);
        }
        tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp);
    }
    let refused = (0..200).filter(|shard| matches!(coordinator.state(*shard), ShardState::Backoff { .. }));
    assert_eq!(refused.count(), CoordinatorLimits::default().per_round, "one round, all in vain");
    tell(&mut coordinator, 6_000, CoordinatorEvent::WokeUp);
    let asked = (0..200).filter(|shard| matches!(coordinator.state(*shard), ShardState::Asked { .. }));
    assert_eq!(asked.count(), 4, "the next round asks for others");
}

/// Whoever ends a session removes its records, most often before anybody has looked at them.
#[test]
fn a_shard_whose_record_went_with_its_owner_is_placed_and_one_that_was_given_up_is_not() {
    let removed = || CoordinatorEvent::Record { shard: 0, record: None, ended: false };
    let allocate = CoordinatorAction::Allocate { shard: 0, node: B, expect: None };
    let mut coordinator = unbalanced(1);
    assert!(tell(&mut coordinator, 10, removed()).is_empty(), "its owner is there and has given it up");
    let placed = tell(&mut coordinator, 20, hosts(&[(B, MemberStatus::Up)]));
    assert_eq!(placed, core::slice::from_ref(&allocate), "it was removed because its owner has gone");
    let mut coordinator = unbalanced(1);
    assert!(
        tell(&mut coordinator, 10, hosts(&[(B, MemberStatus::Up)])).is_empty(),
        "its owner may come back"
    );
    assert_eq!(tell(&mut coordinator, 20, removed()), [allocate]);
}

/// Limits of a node that moves nothing by itself.
fn without_rounds() -> CoordinatorLimits {
    CoordinatorLimits { per_round: 0, ..CoordinatorLimits::default() }
}

fn finish(coordinator: &mut Coordinator, now: u64, shards: u32) -> usize {
    let asked = |shard: &u32| matches!(coordinator.state(*shard), ShardState::Asked { .. });
    let open: Vec<u32> = (0..shards).filter(asked).collect();
    open.iter().map(|shard| tell(coordinator, now, record(*shard, B, 2)).len()).sum()
}

#[test]
fn a_demanded_rebalance_moves_what_rounds_may_not_and_then_no_more() {
    let mut coordinator = unbalanced(200);
    coordinator.limits = without_rounds();
    assert!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).is_empty(), "nothing moves by itself");
    assert_eq!(coordinator.imbalance(&LeastShards), Imbalance { under_way: 0, remaining: 100 });
    let mut begun = tell(&mut coordinator, 5_100, CoordinatorEvent::Rebalance).len();
    assert_eq!(begun, 4, "four per target");
    assert_eq!(coordinator.imbalance(&LeastShards), Imbalance { under_way: 4, remaining: 96 });
    for round in 0..20 {
        begun += finish(&mut coordinator, 6_000 + round, 200);
    }
    assert_eq!(begun, without_rounds().per_demand);
    assert!(tell(&mut coordinator, 9_000, CoordinatorEvent::WokeUp).is_empty(), "it was demanded once");
    assert_eq!(tell(&mut coordinator, 9_100, CoordinatorEvent::Rebalance).len(), 4, "and is again");
}

#[test]
fn a_demand_waits_until_the_orders_of_an_earlier_coordinator_have_run_out() {
    let mut coordinator = unbalanced(40);
    coordinator.limits = without_rounds();
    assert!(tell(&mut coordinator, 1_000, CoordinatorEvent::Rebalance).is_empty());
    assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 4);
}

#[test]
fn a_demand_ends_with_the_balance() {
    let mut coordinator = unbalanced(4);
    coordinator.limits = without_rounds();
    tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp);
    assert_eq!(tell(&mut coordinator, 5_100, CoordinatorEvent::Rebalance).len(), 2);
    finish(&mut coordinator, 5_200, 4);
    assert_eq!(coordinator.imbalance(&LeastShards), Imbalance::default());
    assert!(tell(&mut coordinator, 5_300, record(4, A, 1)).is_empty());
    assert!(tell(&mut coordinator, 5_400, record(5, A, 1)).is_empty(), "what comes later was not demanded");
}

/// What the owner says may be quicker than the watch, and the round goes on at once.
#[test]
fn a_shard_that_has_gone_is_not_ordered_away_again_before_its_record_comes() {
    let mut coordinator = unbalanced(20);
    assert_eq!(tell(&mut coordinator, 5_000, CoordinatorEvent::WokeUp).len(), 4);
    let moved = |number| {
        let (owner, generation) = (B, Generation::new(2));
        let moved = Some(Hint { owner, generation });
        CoordinatorEvent::Done { shard: number, generation: Generation::new(1), moved }
    };
    let shard_of = |action: &CoordinatorAction| match action {
        CoordinatorAction::HandOff { shard, .. } => *shard,
        other => panic!("an order: {other:?}"),
    };
    for gone in 0..4 {
        let next = tell(&mut coordinator, 5_100, moved(gone));
        assert_eq!(next.iter().map(shard_of).collect::<Vec<_>>(), [gone + 4], "the next takes its place");
    }
    assert!(tell(&mut coordinator, 5_200, record(0, A, 1)).is_empty(), "old news");
    assert!(tell(&mut coordinator, 5_200, record(0, B, 2)).is_empty(), "nothing new");
    assert_eq!(coordinator.state(0), ShardState::Steady);
}
