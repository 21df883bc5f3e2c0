//! The store itself is paused, killed and restarted under a cluster that works.
#![expect(clippy::disallowed_methods, reason = "a test waits and measures real time")]

use std::time::{Duration, Instant};

use archipelago_process_tests::{Calls, Fleet, Load, Scale, Store, figure, on_own_machine};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const MEMBERS: usize = 3;

/// How the store goes away.
#[derive(Clone, Copy, Debug)]
enum Outage {
    /// Stopped: connections stay, nothing is answered.
    Pause,
    /// Killed, and restarted on its data.
    Kill,
}

impl Outage {
    async fn happen(self, store: &mut Store, length: Duration) {
        match self {
            Self::Pause => store.server().pause(),
            Self::Kill => store.server().kill(),
        }
        tokio::time::sleep(length).await;
        match self {
            Self::Pause => store.server().resume(),
            Self::Kill => store.server().restart(),
        }
    }
}

/// Shorter than what is left of any session: nobody loses it.
async fn short_outages_cost_no_session(store: &mut Store, fleet: &Fleet, ttl: Duration) {
    for outage in [Outage::Pause, Outage::Kill] {
        outage.happen(store, ttl / 6).await;
        tokio::time::sleep(ttl).await;
    }
    assert_eq!(fleet.journals().events_like("lost"), 0, "{:?}", fleet.journals().events);
}

/// Longer than any session: every member fences itself, and comes back when the store does.
async fn members_fence_themselves_and_come_back(store: &mut Store, fleet: &mut Fleet, ttl: Duration) {
    for (round, outage) in [Outage::Pause, Outage::Kill].into_iter().enumerate() {
        outage.happen(store, ttl * 2).await;
        let back = Instant::now();
        fleet.noted("lost", MEMBERS * (round + 1)).await;
        fleet.noted("rejoined", MEMBERS * (round + 1)).await;
        let accounts: Vec<usize> = (0..archipelago_process_tests::ACCOUNTS).collect();
        fleet.time_until_answered(&accounts, &std::collections::BTreeSet::new()).await;
        figure(
            &format!("{} {outage:?} for {:?}: all answer after", store.name(), ttl * 2),
            format!("{:.1?}", back.elapsed()),
        );
        fleet.all_up().await;
    }
}

async fn outages_are_survived(mut store: Store) {
    let scale = Scale::of_this_run();
    let ttl = store.ttl(scale);
    let mut fleet = Fleet::start(MEMBER, store.settings(scale), MEMBERS).await;
    fleet.homes().await;
    let load = Load::begin(&fleet.node, Calls::MayFail);
    short_outages_cost_no_session(&mut store, &fleet, ttl).await;
    members_fence_themselves_and_come_back(&mut store, &mut fleet, ttl).await;
    let book = load.end().await;
    let verdict = fleet.judge(&book).await;
    assert!(verdict.handovers > 0, "{verdict:?}");
    figure(&format!("{} away 4 times", store.name()), format!("{verdict:?}"));
    fleet.end().await;
}

/// Proves: R454
#[actix::test]
async fn etcd_paused_killed_and_restarted_costs_time_and_nothing_else() {
    on_own_machine(async || {
        let Some(store) = Store::etcd() else { return };
        outages_are_survived(store).await;
    })
    .await;
}

#[actix::test]
async fn jetstream_paused_killed_and_restarted_costs_time_and_nothing_else() {
    on_own_machine(async || {
        let Some(store) = Store::nats() else { return };
        outages_are_survived(store).await;
    })
    .await;
}
