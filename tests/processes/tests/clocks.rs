//! Datacenters whose wall clocks differ by hours: leases are judged by clocks that only count, so nobody notices.
#![expect(clippy::disallowed_methods, reason = "a test measures real time")]

use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState::{Active, Inactive};
use archipelago_process_tests::{
    DataCenter, Followed, LEASE, Store, WrongClocks, figure, on_own_machine, settings_of, until,
};
use archipelago_protocol::call::CallError;

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const PATIENCE: Duration = Duration::from_secs(20);
const HOUR: i64 = 3_600;

fn two_datacenters_hours_apart(store: &Store, clocks: &WrongClocks) {
    let one = |name, ahead| {
        let settings = settings_of(name, store, store);
        DataCenter::start_in(&clocks.ahead_by(ahead), MEMBER, name, &settings, 2)
    };
    let (mut north, mut south) = (one("north", HOUR), one("south", -HOUR));
    until("they know each other", PATIENCE, || north.sees("south", Active) && south.sees("north", Active));
    let (ahead, behind) = (Followed::begin(store, "north"), Followed::begin(store, "south"));
    until("their records are read", PATIENCE, || ahead.newest().is_some() && behind.newest().is_some());
    let expiry = |followed: &Followed| followed.newest().map_or(0, |record| record.lease_expiry_ms);
    let apart = expiry(&ahead).abs_diff(expiry(&behind)) / 1_000;
    assert!(apart.abs_diff(2 * HOUR.unsigned_abs()) < 60, "their clocks are {apart} s apart");
    assert_eq!(south.nodes[0].visit(1).map(|heard| heard.visits), Ok(1));
    let (began, mut visits) = (Instant::now(), 1);
    while began.elapsed() < LEASE + Duration::from_secs(2) {
        for caller in north.nodes.iter_mut().chain(&mut south.nodes) {
            visits += 1;
            assert_eq!(caller.visit(1).map(|heard| heard.visits), Ok(visits));
        }
        assert!(north.sees("south", Active) && south.sees("north", Active));
    }
    assert_eq!(north.nodes[0].place("south", 2), Ok("south".to_owned()));
    south.kill();
    let out = until("it is out of the map", PATIENCE, || north.sees("south", Inactive));
    assert!(out <= LEASE + Duration::from_secs(2), "out of routing after {out:?}");
    assert!(out >= LEASE / 2, "its lease was counted from its last heartbeat: {out:?}");
    for caller in &mut north.nodes {
        let refused = caller.visit(2).expect_err("who was placed there does not live elsewhere");
        assert!(matches!(refused, CallError::Unreachable { .. }), "also if nobody else is left: {refused:?}");
    }
    let events = north.journals();
    assert_eq!((events.events_like("down"), events.events_like("lost")), (2, 0), "{:?}", events.events);
    figure(
        &format!("{}: clocks {apart} s apart", store.name()),
        format!("{visits} visits, out after {out:.1?}"),
    );
}

#[actix::test]
async fn datacenters_on_etcd_whose_clocks_are_hours_apart_judge_each_other_rightly() {
    on_own_machine(async || {
        let (Some(store), Some(clocks)) = (Store::etcd(), WrongClocks::make()) else { return };
        two_datacenters_hours_apart(&store, &clocks);
    })
    .await;
}

#[actix::test]
async fn datacenters_on_nats_whose_clocks_are_hours_apart_judge_each_other_rightly() {
    on_own_machine(async || {
        let (Some(store), Some(clocks)) = (Store::nats(), WrongClocks::make()) else { return };
        two_datacenters_hours_apart(&store, &clocks);
    })
    .await;
}
