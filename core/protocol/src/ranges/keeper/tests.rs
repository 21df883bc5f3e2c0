use alloc::vec;

use super::super::table::tests::{at, name, owner};
use super::*;
use crate::contract::Epoch;
use crate::ranges::RangeTable;

const NOW: Millis = Millis(10_000);

fn known(version: u64, table: RangeTable) -> KeeperEvent {
    KeeperEvent::Table(KnownTable { version: TableVersion(version), epoch: Epoch(1), table })
}

fn keeper() -> RangeKeeper {
    RangeKeeper::new(NodeId::new(1), KeeperLimits::DEFAULT)
}

fn whole(node: u64) -> RangeTable {
    RangeTable::whole(name("all"), owner(node))
}

fn halves() -> RangeTable {
    whole(1).split(&name("all"), &at("m"), (name("low"), owner(1)), (name("high"), owner(2))).unwrap()
}

fn claimed(partition: &str, outcome: PartitionClaim) -> KeeperEvent {
    KeeperEvent::Claimed { partition: name(partition), outcome }
}

fn let_go(partition: &str, outcome: LetGoOutcome) -> KeeperEvent {
    KeeperEvent::LetGo { partition: name(partition), outcome }
}

fn claim(partition: &str, parents: &[&str]) -> KeeperAction {
    KeeperAction::Claim { partition: name(partition), parents: parents.iter().map(|one| name(one)).collect() }
}

fn is_let_go(action: &KeeperAction, retired: bool) -> bool {
    matches!(action, KeeperAction::LetGo { retire, .. } if *retire == retired)
}

/// A keeper that serves everything at generation 5.
fn serving() -> RangeKeeper {
    let mut keeper = keeper();
    assert_eq!(keeper.handle(NOW, known(1, whole(1))), vec![claim("all", &[])]);
    let actions = keeper.handle(NOW, claimed("all", PartitionClaim::Placed(Generation::new(5))));
    assert!(matches!(actions[..], [KeeperAction::Serve { .. }]));
    keeper
}

#[test]
fn what_a_table_gives_to_this_node_is_claimed_and_served() {
    let keeper = serving();
    let served: Vec<_> =
        keeper.served().map(|(name, generation)| (name.as_str(), generation.as_u64())).collect();
    assert_eq!(served, [("all", 5)]);
}

#[test]
fn what_a_table_gives_to_another_is_not_claimed() {
    let mut keeper = keeper();
    assert_eq!(keeper.handle(NOW, known(1, whole(2))), vec![]);
    assert!(keeper.has_nothing());
}

#[test]
fn a_partition_that_was_divided_is_emptied_and_then_retired() {
    let mut keeper = serving();
    let actions = keeper.handle(NOW, known(2, halves()));
    assert!(
        actions.iter().any(
            |action| matches!(action, KeeperAction::Empty { partition, .. } if *partition == name("all"))
        )
    );
    assert!(
        actions.contains(&claim("low", &["all"])),
        "the directory refuses it until the parent is retired"
    );
    assert!(!actions.iter().any(|action| is_let_go(action, true)), "its actors run");
    let actions = keeper.handle(NOW, claimed("low", PartitionClaim::NotRetired));
    assert!(actions.iter().all(|action| matches!(action, KeeperAction::WakeAt(_))));
    let actions = keeper.handle(NOW, KeeperEvent::Emptied(name("all")));
    assert!(actions.iter().any(|action| is_let_go(action, true)));
    let actions = keeper.handle(NOW, let_go("all", LetGoOutcome::Done));
    assert!(actions.contains(&claim("low", &["all"])), "nobody waits longer than need be");
}

#[test]
fn a_partition_that_goes_to_another_node_is_emptied_and_then_released() {
    let mut keeper = serving();
    let actions = keeper.handle(NOW, known(2, whole(2)));
    assert!(matches!(actions[..], [KeeperAction::Empty { .. }, KeeperAction::WakeAt(_)]));
    let actions = keeper.handle(NOW, KeeperEvent::Emptied(name("all")));
    assert!(matches!(&actions[..], [action] if is_let_go(action, false)));
    let actions = keeper.handle(NOW, let_go("all", LetGoOutcome::Done));
    assert_eq!(actions, vec![KeeperAction::Forget(name("all"))]);
    assert!(keeper.has_nothing());
}

#[test]
fn a_node_that_leaves_releases_what_the_table_still_gives_it() {
    let mut keeper = serving();
    assert!(matches!(keeper.handle(NOW, KeeperEvent::Leave)[0], KeeperAction::Empty { .. }));
    let actions = keeper.handle(NOW, KeeperEvent::Emptied(name("all")));
    assert!(matches!(&actions[..], [action] if is_let_go(action, false)));
    keeper.handle(NOW, let_go("all", LetGoOutcome::Done));
    assert!(keeper.has_nothing());
    assert_eq!(keeper.handle(NOW, known(2, whole(1))), vec![], "whatever the tables say");
}

/// The record may still name this node: then nobody else could ever claim it.
#[test]
fn a_release_without_an_answer_is_made_certain_by_a_claim() {
    let mut keeper = serving();
    keeper.handle(NOW, known(2, whole(2)));
    keeper.handle(NOW, KeeperEvent::Emptied(name("all")));
    let actions = keeper.handle(NOW, let_go("all", LetGoOutcome::Unknown));
    assert!(actions.contains(&KeeperAction::Forget(name("all"))), "the generation is dead");
    let later = NOW + KeeperLimits::DEFAULT.retry.1;
    assert!(keeper.handle(later, KeeperEvent::WokeUp).contains(&claim("all", &[])));
    let actions = keeper.handle(later, claimed("all", PartitionClaim::Placed(Generation::new(9))));
    assert!(
        matches!(&actions[..], [action] if is_let_go(action, false)),
        "it is given up, never served: {actions:?}"
    );
    keeper.handle(later, let_go("all", LetGoOutcome::Done));
    assert!(keeper.has_nothing());
}

#[test]
fn a_claim_without_an_answer_is_repeated_even_if_it_is_not_wanted_any_more() {
    let mut keeper = keeper();
    keeper.handle(NOW, known(1, whole(1)));
    keeper.handle(NOW, claimed("all", PartitionClaim::Unanswered));
    keeper.handle(NOW, known(2, whole(2)));
    let later = NOW + KeeperLimits::DEFAULT.retry.1;
    assert!(keeper.handle(later, KeeperEvent::WokeUp).contains(&claim("all", &[])));
    let actions = keeper.handle(later, claimed("all", PartitionClaim::Placed(Generation::new(9))));
    assert!(matches!(&actions[..], [action] if is_let_go(action, false)), "{actions:?}");
}

/// The claim may be applied when the other node has given the partition up: nobody could claim it then.
#[test]
fn a_partition_whose_claim_may_still_be_applied_is_never_forgotten() {
    let mut keeper = keeper();
    keeper.handle(NOW, known(1, whole(1)));
    keeper.handle(NOW, claimed("all", PartitionClaim::Unanswered));
    keeper.handle(NOW, known(2, whole(2)));
    let mut now = NOW;
    for _ in 0..5 {
        now = now + KeeperLimits::DEFAULT.stray;
        assert!(keeper.handle(now, KeeperEvent::WokeUp).contains(&claim("all", &[])));
        let next = keeper.handle(now, claimed("all", PartitionClaim::Taken));
        assert_eq!(next, vec![KeeperAction::WakeAt(now + KeeperLimits::DEFAULT.stray)], "not in a hurry");
    }
    now = now + KeeperLimits::DEFAULT.stray;
    keeper.handle(now, KeeperEvent::WokeUp);
    let actions = keeper.handle(now, claimed("all", PartitionClaim::Placed(Generation::new(9))));
    assert!(matches!(&actions[..], [action] if is_let_go(action, false)), "it has come: {actions:?}");
    keeper.handle(now, let_go("all", LetGoOutcome::Done));
    assert!(!keeper.has_nothing(), "there may be a second one");
}

#[test]
fn a_claim_that_another_one_answered_for_sure_leaves_nothing_behind() {
    let mut keeper = keeper();
    keeper.handle(NOW, known(1, whole(1)));
    keeper.handle(NOW, known(2, whole(2)));
    keeper.handle(NOW, claimed("all", PartitionClaim::Taken));
    assert!(keeper.has_nothing());
}

#[test]
fn a_partition_that_is_retired_is_forgotten_whatever_is_on_its_way() {
    let mut keeper = keeper();
    keeper.handle(NOW, known(1, whole(1)));
    keeper.handle(NOW, claimed("all", PartitionClaim::Unanswered));
    let later = NOW + KeeperLimits::DEFAULT.retry.1;
    keeper.handle(later, KeeperEvent::WokeUp);
    keeper.handle(later, claimed("all", PartitionClaim::Retired));
    assert!(keeper.has_nothing());
}

#[test]
fn actors_that_do_not_end_go_on_and_are_asked_again_later() {
    let mut keeper = serving();
    keeper.handle(NOW, known(2, whole(2)));
    let late = NOW + KeeperLimits::DEFAULT.empty;
    assert!(matches!(keeper.handle(late, KeeperEvent::WokeUp)[0], KeeperAction::Serve { .. }));
    assert_eq!(
        keeper.handle(late, KeeperEvent::Emptied(name("all"))).len(),
        1,
        "an answer that is late says nothing"
    );
    let again = late + KeeperLimits::DEFAULT.rest;
    assert!(matches!(keeper.handle(again, KeeperEvent::WokeUp)[0], KeeperAction::Empty { .. }));
}

#[test]
fn an_older_table_changes_nothing() {
    let mut keeper = serving();
    keeper.handle(NOW, known(3, whole(1)));
    assert_eq!(keeper.handle(NOW, known(2, whole(2))), vec![]);
    assert_eq!(keeper.served().count(), 1);
}

#[test]
fn nothing_is_written_after_the_session_is_over() {
    let mut keeper = keeper();
    keeper.handle(NOW, known(1, whole(1)));
    keeper.handle(NOW, claimed("all", PartitionClaim::SessionLost));
    assert_eq!(keeper.handle(NOW, known(2, halves())), vec![]);
}
