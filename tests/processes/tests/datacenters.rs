//! Datacenters of real processes on real stores: how they find each other, and what happens when one of them, its leader, or
//! the registry goes away.
#![expect(clippy::disallowed_methods, reason = "a test waits and measures real time")]

use std::net::Ipv4Addr;
use std::ops::Range;
use std::time::{Duration, Instant};

use archipelago::datacenter::DataCenterState::{Active, Inactive};
use archipelago_process_tests::{
    DataCenter, Followed, Gateway, LEASE, Scale, Store, figure, settings_of, until,
};
use archipelago_protocol::identity::NodeId;

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const PATIENCE: Duration = Duration::from_secs(20);

/// How long the registry is away: longer than a lease, and a minute in a long run.
fn away() -> Duration {
    if Scale::of_this_run().long { Duration::from_secs(60) } else { LEASE + Duration::from_secs(2) }
}

/// Starts datacenters of two nodes each, all at once, with the directory of each in `directory`.
fn start(directory: &Store, registry: &Store, names: &[(&'static str, &str)]) -> Vec<DataCenter> {
    let one = |name: &'static str, tier: &str| {
        let mut settings = settings_of(name, directory, registry);
        settings.push(("datacenter.labels.tier".into(), tier.into()));
        DataCenter::start(MEMBER, name, &settings, 2)
    };
    let mut all: Vec<DataCenter> = std::thread::scope(|scope| {
        let started: Vec<_> = names.iter().map(|(name, tier)| scope.spawn(|| one(name, tier))).collect();
        started.into_iter().map(|thread| thread.join().expect("it starts")).collect()
    });
    until("every node knows all datacenters as active", PATIENCE, || {
        all.iter_mut().all(|one| names.iter().all(|(name, _)| one.sees(name, Active)))
    });
    all
}

fn ids(datacenter: &DataCenter) -> Vec<NodeId> {
    datacenter.nodes.iter().map(|node| node.node).collect()
}

/// Accounts come to life in a datacenter when its own nodes visit them.
fn settle(datacenter: &mut DataCenter, accounts: Range<u64>) {
    let ids = ids(datacenter);
    for (account, by) in accounts.zip((0..ids.len()).cycle()) {
        let heard = datacenter.nodes[by].visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
        assert_eq!(heard.visits, 1, "nobody was here before");
        assert!(ids.contains(&heard.node), "account {account} lives in {}", datacenter.name);
    }
}

/// Every node of every datacenter reaches the same accounts, and each visit is counted once.
fn visit_from_everywhere(all: &mut [DataCenter], settled: &[Range<u64>]) {
    let places: Vec<_> = all.iter().map(ids).collect();
    let callers = all.iter_mut().flat_map(|one| &mut one.nodes);
    for (visits, caller) in (2..).zip(callers) {
        for (place, accounts) in places.iter().zip(settled) {
            for account in accounts.clone() {
                let heard = caller.visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
                assert_eq!(heard.visits, visits, "account {account}");
                assert!(place.contains(&heard.node), "account {account} is where it was");
            }
        }
    }
}

/// An account that is placed by label lives there for everybody.
fn place_by_label(all: &mut [DataCenter], account: u64) {
    assert_eq!(all[0].nodes[0].place("tier=gold", account), Ok("west".to_owned()));
    let west = ids(&all[2]);
    for caller in all.iter_mut().flat_map(|one| &mut one.nodes) {
        let heard = caller.visit(account).expect("it lives");
        assert!(west.contains(&heard.node), "{heard:?}");
    }
}

/// The leader that speaks for the second datacenter is killed: what is not on it answers all the time, and nobody takes the datacenter for
/// anything but active.
fn lose_a_leader(store: &Store, all: &mut [DataCenter], accounts: Range<u64>) {
    let [north, south, ..] = all else { panic!("there are several") };
    let followed = Followed::begin(store, "south");
    until("the record is followed", PATIENCE, || followed.newest().is_some());
    let before = followed.newest().expect("it is followed").epoch;
    let mut leader = south.take_leader();
    let on_leader = |account: &u64| north.nodes[0].visit(*account).expect("it answers").node == leader.node;
    let (lost, kept): (Vec<u64>, Vec<u64>) = accounts.partition(on_leader);
    assert!(!lost.is_empty() && !kept.is_empty(), "both nodes have some");
    leader.kill();
    let (killed, mut answered) = (Instant::now(), 0);
    let takeover = until("another node takes over", PATIENCE, || {
        for account in &kept {
            north.nodes[0].visit(*account).unwrap_or_else(|error| panic!("{account}: {error}"));
            answered += 1;
        }
        followed.newest().is_some_and(|newest| newest.epoch > before)
    });
    until("what was on the leader answers abroad", PATIENCE, || {
        lost.iter().all(|account| north.nodes[1].visit(*account).is_ok())
    });
    let (moved, records) = (killed.elapsed(), followed.records());
    assert!(answered > 0 && records.iter().all(|record| record.state == Active), "{records:?}");
    for one in [north, south] {
        assert_eq!(one.journals().events_like("down"), 0, "{}: {:?}", one.name, one.journals().events);
    }
    figure(
        &format!("{}: leader killed", store.name()),
        format!(
            "next after {takeover:.1?}, {answered} visits meanwhile, its accounts abroad within {moved:.1?}"
        ),
    );
}

/// A whole datacenter is killed: within its lease and 2 s nobody routes to it any more, and the others go on.
fn lose_a_datacenter(store: &Store, all: &mut Vec<DataCenter>, placed: u64, lived: u64) {
    let mut west = all.pop().expect("there are three");
    west.kill();
    let out = until("it is out of every map", PATIENCE, || {
        let [north, south] = &mut all[..] else { panic!("two are left") };
        north.nodes[0].visit(1_100).expect("the south answers the north");
        south.nodes[0].visit(1_000).expect("the north answers the south");
        all.iter_mut().all(|one| one.sees("west", Inactive))
    });
    figure(&format!("{}: datacenter killed, out after", store.name()), format!("{out:.1?}"));
    assert!(out <= LEASE + Duration::from_secs(2), "out of routing after {out:?}");
    let north = &mut all[0].nodes[0];
    let refused = north.place("tier=gold", 9_001).expect_err("nobody takes it");
    assert!(refused.contains("active"), "{refused}");
    let began = Instant::now();
    north.visit(placed).expect_err("who was placed there does not live elsewhere");
    assert!(began.elapsed() < Duration::from_secs(4));
    let heard = north.visit(lived).expect("who merely lived there comes to life at home");
    assert_eq!(heard.visits, 1);
}

fn three_datacenters_live_and_die(store: &Store) {
    let mut all = start(store, store, &[("north", "silver"), ("south", "silver"), ("west", "gold")]);
    let settled = [1_000..1_012, 1_100..1_112, 1_200..1_212];
    settled.iter().zip(&mut all).for_each(|(accounts, one)| settle(one, accounts.clone()));
    visit_from_everywhere(&mut all, &settled);
    place_by_label(&mut all, 9_000);
    lose_a_leader(store, &mut all, settled[1].clone());
    lose_a_datacenter(store, &mut all, 9_000, 1_200);
}

/// The registry, on a server of its own, stands still for longer than a lease.
fn the_registry_is_away(directory: &Store, mut registry: Store) {
    let mut all = start(directory, &registry, &[("north", "silver"), ("south", "silver")]);
    let settled = [1_000..1_006, 1_100..1_106];
    settled.iter().zip(&mut all).for_each(|(accounts, one)| settle(one, accounts.clone()));
    let away = away();
    registry.server().pause();
    let (paused, mut slowest) = (Instant::now(), Duration::ZERO);
    for round in 0.. {
        slowest = slowest.max(visit_all(&mut all, &settled, 5_000 + 10 * round));
        if paused.elapsed() > away {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(all.iter_mut().all(|one| one.all(|report| report.map.stale)), "all know that the map is old");
    assert!(all.iter_mut().all(|one| one.sees("north", Active) && one.sees("south", Active)));
    let refused = all[0].nodes[0].place("south", 9_000).expect_err("nothing is placed by an old map");
    assert!(refused.contains("stale"), "{refused}");
    registry.server().resume();
    let back = until("the map is fresh again", PATIENCE, || {
        all.iter_mut().all(|one| one.all(|report| !report.map.stale))
    });
    for one in &mut all {
        assert!(one.sees("north", Active) && one.sees("south", Active));
        let noted = one.journals();
        assert_eq!((noted.events_like("down"), noted.events_like("lost")), (0, 0), "{:?}", noted.events);
    }
    figure(
        &format!("{}: registry away for {away:?}", directory.name()),
        format!("slowest visit {slowest:.1?}, fresh again {back:.1?} after it was back"),
    );
}

/// Every node visits all accounts, and one that lives nowhere, which comes to life at home; how long the slowest took.
fn visit_all(all: &mut [DataCenter], settled: &[Range<u64>], mut fresh: u64) -> Duration {
    let places: Vec<_> = all.iter().map(ids).collect();
    let mut slowest = 0;
    for (own, one) in places.iter().zip(all) {
        for caller in &mut one.nodes {
            for (place, accounts) in places.iter().zip(settled) {
                for account in accounts.clone() {
                    let heard = caller.visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
                    assert!(place.contains(&heard.node), "account {account} is where it was");
                    slowest = slowest.max(heard.micros);
                }
            }
            fresh += 1;
            let heard = caller.visit(fresh).expect("who lives nowhere comes to life");
            assert!(own.contains(&heard.node) && heard.visits == 1, "at home: {heard:?}");
            slowest = slowest.max(heard.micros);
        }
    }
    Duration::from_micros(slowest)
}

/// Proves: R372, R373, R478
#[test]
fn datacenters_on_etcd_find_each_other_and_outlive_a_leader_and_one_of_them() {
    let Some(store) = Store::etcd() else { return };
    three_datacenters_live_and_die(&store);
}

/// Proves: R372, R373, R478
#[test]
fn datacenters_on_nats_find_each_other_and_outlive_a_leader_and_one_of_them() {
    let Some(store) = Store::nats() else { return };
    three_datacenters_live_and_die(&store);
}

/// Proves: R346, R440, R441
#[test]
fn registry_in_etcd_that_stands_still_for_longer_than_a_lease_stops_no_call() {
    let (Some(directory), Some(registry)) = (Store::etcd(), Store::etcd()) else { return };
    the_registry_is_away(&directory, registry);
}

/// Proves: R346, R440, R441
#[test]
fn registry_in_nats_that_stands_still_for_longer_than_a_lease_stops_no_call() {
    let (Some(directory), Some(registry)) = (Store::nats(), Store::nats()) else { return };
    the_registry_is_away(&directory, registry);
}

/// Starts a datacenter of one node with settings that win over the usual ones.
fn start_one(store: &Store, name: &'static str, more: &[(&str, &str)]) -> DataCenter {
    let mut settings = settings_of(name, store, store);
    settings.extend(more.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    DataCenter::start(MEMBER, name, &settings, 1)
}

/// Somebody with the same registry and another namespace is listed, and refused at every door.
fn another_namespace_is_refused(store: &Store) {
    let mut north = start_one(store, "north", &[]);
    let mut stranger = start_one(store, "stranger", &[("namespace", "mine")]);
    until("both know each other", PATIENCE, || {
        north.sees("stranger", Active) && stranger.sees("north", Active)
    });
    let (north, stranger) = (&mut north.nodes[0], &mut stranger.nodes[0]);
    assert_eq!(north.visit(1).map(|heard| heard.visits), Ok(1));
    let heard = stranger.visit(1).expect("there is one of the same name at home");
    assert_eq!((heard.node, heard.visits), (stranger.node, 1), "and not the other");
    let refused = north.place("stranger", 2).expect_err("it is let in nowhere");
    assert!(refused.contains("namespace"), "{refused}");
    let refused = stranger.place("north", 2).expect_err("it is let in nowhere");
    assert!(refused.contains("namespace"), "{refused}");
}

/// One datacenter is dialled at an address that it tells and does not listen at; the other through a gateway of its own.
fn addresses_that_are_told_are_dialled(store: &Store) {
    let everywhere = ("transport.bind", "0.0.0.0:0");
    let gateway = Gateway::at(Ipv4Addr::new(127, 0, 0, 8));
    let endpoints = format!("[\"{}\"]", gateway.address);
    let mut north = start_one(store, "north", &[everywhere, ("transport.advertise", "127.0.0.2")]);
    let more = [everywhere, ("transport.advertise", "127.0.0.3"), ("datacenter.endpoints", &endpoints)];
    let mut south = start_one(store, "south", &more);
    let inside = south.nodes[0].report().address;
    gateway.lead_to((Ipv4Addr::LOCALHOST, inside.port()).into());
    until("both know each other", PATIENCE, || north.sees("south", Active) && south.sees("north", Active));
    let told = |one: &mut DataCenter, of: &str| {
        let map = one.nodes[0].report().map;
        let entry = map.entries.iter().find(|entry| entry.id().as_str() == of).expect("it is known");
        entry.info.endpoints().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut north, "south"), [gateway.address.to_string()]);
    assert_eq!(told(&mut south, "north"), [format!("127.0.0.2:{}", north.nodes[0].report().address.port())]);
    assert_eq!(inside.host().to_string(), "127.0.0.3");
    let (north, south) = (&mut north.nodes[0], &mut south.nodes[0]);
    assert_eq!(south.visit(1).map(|heard| heard.visits), Ok(1));
    assert_eq!(
        north.visit(1).map(|heard| (heard.node, heard.visits)),
        Ok((south.node, 2)),
        "through the gateway"
    );
    assert!(gateway.passed() > 0);
    assert_eq!(north.visit(2).map(|heard| heard.visits), Ok(1));
    assert_eq!(
        south.visit(2).map(|heard| (heard.node, heard.visits)),
        Ok((north.node, 2)),
        "where it says it is"
    );
}

#[test]
fn datacenter_of_another_namespace_is_refused_on_etcd() {
    let Some(store) = Store::etcd() else { return };
    another_namespace_is_refused(&store);
}

#[test]
fn datacenter_of_another_namespace_is_refused_on_nats() {
    let Some(store) = Store::nats() else { return };
    another_namespace_is_refused(&store);
}

/// Proves: R354
#[test]
fn datacenters_on_etcd_are_dialled_where_they_say_and_not_where_they_listen() {
    let Some(store) = Store::etcd() else { return };
    addresses_that_are_told_are_dialled(&store);
}

#[test]
fn datacenters_on_nats_are_dialled_where_they_say_and_not_where_they_listen() {
    let Some(store) = Store::nats() else { return };
    addresses_that_are_told_are_dialled(&store);
}
