//! Datacenters without any server: one node of each serves the directory of its own to the others, and one of them the registry
//! of all.
#![expect(clippy::disallowed_methods, reason = "a test waits and measures real time")]

use std::time::{Duration, Instant};

use archipelago::CallError;
use archipelago::datacenter::DataCenterState::Active;
use archipelago_process_tests::{DataCenter, Settings, VISIT_LIMIT, figure, plain_settings, until};
use archipelago_protocol::identity::{NodeAddress, NodeId};

const MEMBER: &str = env!("CARGO_BIN_EXE_archipelago-test-member");
const PATIENCE: Duration = Duration::from_secs(20);

/// What a call may take beyond its deadline before the test has heard of it.
const SLACK: Duration = Duration::from_millis(500);

fn pairs(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Starts a datacenter of two nodes: the first serves its directory, the second joins that. The registry is served by the first
/// one, too, or joined by both.
fn start(name: &'static str, registry: Option<&NodeAddress>) -> (DataCenter, NodeAddress) {
    let mut settings = plain_settings(name);
    settings.extend(pairs(&[
        ("session.ttl", "3s"),
        ("session.heartbeat", "900ms"),
        ("control_plane.kind", "embedded"),
        ("backend.embedded.serve", "true"),
    ]));
    settings.push(match registry {
        Some(address) => ("control_plane.embedded.join".to_owned(), address.to_string()),
        None => ("control_plane.embedded.serve".to_owned(), "true".to_owned()),
    });
    let mut datacenter = DataCenter::start(MEMBER, name, &settings, 1);
    let server = datacenter.nodes[0].report().address;
    let mut joining = pairs(&[("backend.embedded.serve", "false")]);
    joining.push(("backend.embedded.join".to_owned(), server.to_string()));
    if registry.is_none() {
        joining.push(("control_plane.embedded.serve".to_owned(), "false".to_owned()));
        joining.push(("control_plane.embedded.join".to_owned(), server.to_string()));
    }
    datacenter.add_with(&joining);
    until("both nodes see each other", PATIENCE, || datacenter.is_whole());
    (datacenter, server)
}

fn ids(datacenter: &DataCenter) -> Vec<NodeId> {
    datacenter.nodes.iter().map(|node| node.node).collect()
}

/// Each datacenter is home of some accounts, and every node reaches all of them.
fn call_each_other(north: &mut DataCenter, south: &mut DataCenter) {
    for account in 0..6 {
        assert_eq!(south.nodes[0].place("north", account), Ok("north".to_owned()));
        assert_eq!(north.nodes[0].place("south", 10 + account), Ok("south".to_owned()));
    }
    let homes = [ids(north), ids(south)];
    let callers = north.nodes.iter_mut().chain(&mut south.nodes);
    for (visits, caller) in (1..).zip(callers) {
        for account in (0..6).chain(10..16) {
            let heard = caller.visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
            assert_eq!(heard.visits, visits, "account {account}");
            assert!(homes[usize::from(account >= 10)].contains(&heard.node), "account {account} is at home");
        }
    }
}

/// The one process that served the registry and the north's directory is gone. The south has all it needs: its own accounts
/// answer, new ones come to life, and who lives in the north is not brought to life elsewhere.
fn lose_the_registry(north: &mut DataCenter, south: &mut DataCenter) {
    north.nodes[0].kill();
    let killed = Instant::now();
    let ids = ids(south);
    for round in 0.. {
        for caller in &mut south.nodes {
            for account in (10..16).chain([100 + round]) {
                let heard = caller.visit(account).unwrap_or_else(|error| panic!("{account}: {error}"));
                assert!(ids.contains(&heard.node), "account {account} is at home");
            }
        }
        if killed.elapsed() > Duration::from_secs(5) {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    until("the south knows that its map is old", PATIENCE, || south.all(|report| report.map.stale));
    let began = Instant::now();
    let lost = south.nodes[1].visit(0).expect_err("its datacenter is gone");
    assert!(began.elapsed() <= VISIT_LIMIT + SLACK, "it took {:?}", began.elapsed());
    let says_why = matches!(lost, CallError::Timeout { .. } | CallError::Unreachable { .. });
    assert!(says_why, "{lost:?}");
    assert_eq!(south.journals().events_like("lost"), 0, "{:?}", south.journals().events);
}

#[test]
fn datacenters_that_serve_their_own_directories_call_each_other_and_outlive_the_registry() {
    let began = Instant::now();
    let (mut north, registry) = start("north", None);
    let (mut south, _) = start("south", Some(&registry));
    until("both know each other", PATIENCE, || {
        [&mut north, &mut south].into_iter().all(|one| one.sees("north", Active) && one.sees("south", Active))
    });
    figure("no store: two datacenters know each other after", format!("{:.1?}", began.elapsed()));
    call_each_other(&mut north, &mut south);
    lose_the_registry(&mut north, &mut south);
}
