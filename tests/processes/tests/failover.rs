//! A cluster of real processes on a real store: members are killed, frozen and asked to leave, and the actors answer.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on panics, waits, and measures real time"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use archipelago_process_tests::{
    Book, Calls, Fleet, Load, MachineWatch, Scale, Store, figure, on_own_machine,
};
use archipelago_protocol::identity::{NodeAddress, NodeId};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");

/// How long it took until all answered again, and whether the machine was there all that time.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    time: Duration,
    on_own_machine: bool,
}

/// The slowest recovery is measured against the promise, and each against what no load excuses. Only if processors were taken
/// away meanwhile it is the one in the middle, of two the slower one.
fn judge_times(store: &Store, scale: Scale, what: &str, recoveries: &[Recovery]) {
    let ttl = store.ttl(scale);
    let times: Vec<Duration> = recoveries.iter().map(|recovery| recovery.time).collect();
    figure(
        &format!("{} ttl {} s, {what}: answered again after", store.name(), ttl.as_secs()),
        format!("{times:.1?}"),
    );
    assert!(judged(recoveries) <= ttl + Duration::from_secs(2), "{recoveries:?}");
    assert!(times.iter().max().unwrap() <= &(ttl * 3), "{times:?}");
}

/// The recovery that counts.
fn judged(recoveries: &[Recovery]) -> Duration {
    let times: Vec<Duration> = recoveries.iter().map(|recovery| recovery.time).collect();
    let own = recoveries.iter().filter(|recovery| recovery.on_own_machine);
    // What took long although the machine was there has no excuse, whatever the others had.
    the_middle(&times).max(own.map(|recovery| recovery.time).max().unwrap_or_default())
}

#[test]
fn the_slowest_recovery_counts_unless_the_machine_was_away() {
    let recovery = |seconds, on_own_machine| Recovery { time: Duration::from_secs(seconds), on_own_machine };
    let own = [3, 9, 4].map(|seconds| recovery(seconds, true));
    assert_eq!(judged(&own), Duration::from_secs(9));
    assert_eq!(judged(&[own[0], recovery(9, false), own[2]]), Duration::from_secs(4));
    assert_eq!(judged(&[3, 9, 4].map(|seconds| recovery(seconds, false))), Duration::from_secs(4));
}

/// The one in the middle; of an even number the slower of the two.
fn the_middle(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

#[test]
fn the_middle_of_the_times_is_no_quicker_than_half_of_them() {
    let seconds =
        |times: &[u64]| the_middle(&times.iter().map(|n| Duration::from_secs(*n)).collect::<Vec<_>>());
    assert_eq!(seconds(&[7, 3, 4]), Duration::from_secs(4));
    assert_eq!(seconds(&[6, 4]), Duration::from_secs(6));
    assert_eq!(seconds(&[5]), Duration::from_secs(5));
}

/// Kills these members at once; how long it takes until all their actors answer from others.
async fn time_to_recover(fleet: &mut Fleet, victims: &BTreeSet<NodeId>) -> Recovery {
    let homes = fleet.homes().await;
    let accounts: Vec<usize> =
        victims.iter().filter_map(|victim| homes.get(victim)).flatten().copied().collect();
    assert!(accounts.len() > 5, "the victims have a share: {homes:?}");
    let (mut killed, others) =
        fleet.members.drain(..).partition::<Vec<_>, _>(|member| victims.contains(&member.node));
    fleet.members = others;
    let machine = MachineWatch::begin();
    killed.iter_mut().for_each(archipelago_process_tests::MemberProcess::kill);
    let time = fleet.time_until_answered(&accounts, victims).await;
    Recovery { time, on_own_machine: machine.was_own() }
}

async fn killed_members_are_replaced(store: &Store) {
    let scale = Scale::of_this_run();
    let mut fleet = Fleet::start(MEMBER, store.settings(scale), 3).await;
    let mut times = Vec::new();
    for _ in 0..3 {
        let victim = BTreeSet::from([fleet.members[0].node]);
        times.push(time_to_recover(&mut fleet, &victim).await);
        fleet.add();
        fleet.all_up().await;
    }
    judge_times(store, scale, "one of 3 killed", &times);
    assert!(fleet.judge(&Book::default()).await.handovers > 0);
    fleet.end().await;
}

/// The three members that come first, by what `order` says.
fn first_three<O: Ord>(fleet: &Fleet, order: impl Fn(NodeId, &NodeAddress) -> O) -> BTreeSet<NodeId> {
    let here = fleet.node.id();
    let mut members = fleet.node.members();
    members.retain(|member| member.info.id != here);
    members.sort_by_key(|member| order(member.info.id, &member.info.address));
    members.iter().take(3).map(|member| member.info.id).collect()
}

/// The leader is the lowest address, those who end sessions are the lowest ids: both are killed with whoever comes next. Each
/// time in a cluster of its own, because members that come later own nothing yet.
async fn leader_and_deputies_are_replaced(store: &Store) {
    let scale = Scale::of_this_run();
    let mut times = Vec::new();
    for by_address in [true, false] {
        let mut fleet = Fleet::start(MEMBER, store.settings(scale), 5).await;
        let victims = if by_address {
            let leading = first_three(&fleet, |_, address| (address.host().to_owned(), address.port()));
            assert!(leading.contains(&fleet.node.leader().unwrap()), "the leader is among the lowest");
            leading
        } else {
            first_three(&fleet, |id, _| id)
        };
        let load = Load::begin(&fleet.node, Calls::MayFail);
        times.push(time_to_recover(&mut fleet, &victims).await);
        let book = load.end().await;
        assert!(fleet.judge(&book).await.handovers > 0);
        fleet.end().await;
    }
    judge_times(store, scale, "leader and deputies of 5 killed", &times);
}

/// A member that is frozen for longer than its session lasts never answers for what others own by now, and comes back.
async fn frozen_members_answer_nothing_afterwards(store: &Store) {
    let scale = Scale::of_this_run();
    let mut fleet = Fleet::start(MEMBER, store.settings(scale), 3).await;
    fleet.homes().await;
    let load = Load::begin(&fleet.node, Calls::MayFail);
    for round in 0..scale.repetitions as usize {
        let frozen = &fleet.members[round % 3];
        frozen.freeze();
        wait(store.ttl(scale) * 2).await;
        frozen.thaw();
        fleet.noted("rejoined", round + 1).await;
        fleet.all_up().await;
    }
    let book = load.end().await;
    let verdict = fleet.judge(&book).await;
    assert!(verdict.handovers > 0, "{verdict:?}");
    let (acknowledged, unanswered) = (book.ledger.acknowledged(), book.ledger.unanswered());
    figure(
        &format!("{} frozen beyond the session, {} times", store.name(), scale.repetitions),
        format!(
            "{verdict:?}, {acknowledged} writes acknowledged, {unanswered} not, {} transfers",
            book.transfers
        ),
    );
    fleet.end().await;
}

/// Every member is replaced, one after the other, and no call fails.
async fn members_are_restarted_one_by_one(store: &Store) {
    let scale = Scale::of_this_run();
    let mut fleet = Fleet::start(MEMBER, store.settings(scale), 3).await;
    fleet.homes().await;
    let load = Load::begin(&fleet.node, Calls::AllAnswered);
    for _ in 0..3 {
        fleet.add();
        fleet.all_up().await;
        let mut old = fleet.members.remove(0);
        old.leave();
        let said = tokio::task::spawn_blocking(move || old.left()).await.unwrap();
        assert_eq!(said, "Ok(())");
        fleet.all_up().await;
    }
    wait(Duration::from_millis(500)).await;
    let book = load.end().await;
    assert_eq!(book.ledger.unanswered(), 0);
    assert!(fleet.judge(&book).await.handovers > 0);
    fleet.end().await;
}

async fn wait(length: Duration) {
    tokio::time::sleep(length).await;
}

mod etcd {
    use super::*;

    /// Proves: R273, R275, R453, R475
    #[actix::test]
    async fn killed_members_are_replaced_in_time() {
        on_own_machine(async || {
            let Some(store) = Store::etcd() else { return };
            killed_members_are_replaced(&store).await;
        })
        .await;
    }

    /// Proves: R453
    #[actix::test]
    async fn leader_and_deputies_killed_together_are_replaced_in_time() {
        on_own_machine(async || {
            let Some(store) = Store::etcd() else { return };
            leader_and_deputies_are_replaced(&store).await;
        })
        .await;
    }

    /// Proves: R273, R445, R475
    #[actix::test]
    async fn frozen_members_are_silent_afterwards() {
        on_own_machine(async || {
            let Some(store) = Store::etcd() else { return };
            frozen_members_answer_nothing_afterwards(&store).await;
        })
        .await;
    }

    /// Proves: R172
    #[actix::test]
    async fn rolling_restart_fails_no_call() {
        on_own_machine(async || {
            let Some(store) = Store::etcd() else { return };
            members_are_restarted_one_by_one(&store).await;
        })
        .await;
    }
}

mod on_jetstream {
    use super::*;

    #[actix::test]
    async fn killed_members_are_replaced_in_time() {
        on_own_machine(async || {
            let Some(store) = Store::nats() else { return };
            killed_members_are_replaced(&store).await;
        })
        .await;
    }

    #[actix::test]
    async fn leader_and_deputies_killed_together_are_replaced_in_time() {
        on_own_machine(async || {
            let Some(store) = Store::nats() else { return };
            leader_and_deputies_are_replaced(&store).await;
        })
        .await;
    }

    #[actix::test]
    async fn frozen_members_are_silent_afterwards() {
        on_own_machine(async || {
            let Some(store) = Store::nats() else { return };
            frozen_members_answer_nothing_afterwards(&store).await;
        })
        .await;
    }

    #[actix::test]
    async fn rolling_restart_fails_no_call() {
        on_own_machine(async || {
            let Some(store) = Store::nats() else { return };
            members_are_restarted_one_by_one(&store).await;
        })
        .await;
    }
}
