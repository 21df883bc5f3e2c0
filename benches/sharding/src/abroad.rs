//! Calls to actors of another datacenter whose place is known, against calls to a node whose address is known.
//!
//! Each datacenter is a process with a store of its own; the parent is the west and serves the control plane, the host is the east.

use std::time::{Duration, Instant};

use archipelago::datacenter::{DataCenterId, DataCenterState};
use archipelago::prelude::*;
use futures_util::StreamExt;

use crate::cluster::{Host, caller_of};
use crate::load::{KEYS, Mix, one_by_one, throughput};
use crate::node::{Target, Where, free_address, host};

/// What a call abroad costs, as a multiple of what a direct one does.
pub(crate) struct Costs {
    /// The time per call, with many under way.
    pub(crate) many: Vec<f64>,
    /// The median time of one call at a time.
    pub(crate) one: Vec<f64>,
}

/// Lets both have their turn, so many times, with so many calls each time.
pub(crate) async fn compare(rounds: usize, asks: usize) -> Costs {
    let alone = Host::alone();
    let caller = caller_of(&alone).await;
    let (west, _east) = two_datacenters().await;
    settle(&west).await;
    for node in [&caller, &west] {
        throughput(node, Mix::Uniform, asks / 5).await;
    }
    let mut costs = Costs { many: Vec::new(), one: Vec::new() };
    for _ in 0..rounds {
        let direct = throughput(&caller, Mix::Uniform, asks).await;
        let abroad = throughput(&west, Mix::Uniform, asks).await;
        let (one_direct, one_abroad) =
            (one_by_one(&caller, asks / 20).await, one_by_one(&west, asks / 20).await);
        println!(
            "abroad   direct {direct:>9.0}/s p50 {one_direct:>6.1} µs   another datacenter {abroad:>9.0}/s p50 \
             {one_abroad:>6.1} µs"
        );
        costs.many.push(direct / abroad);
        costs.one.push(one_abroad / one_direct);
    }
    // Their hosts are stopped by force.
    let _ = west.stop().await;
    let _ = caller.stop().await;
    costs
}

/// The parent's datacenter, and another one in a process of its own.
async fn two_datacenters() -> (Node, Host) {
    let address = free_address();
    let settings = |name: &str, plane: &str, value: &str| {
        [
            ("datacenter.name", name),
            ("datacenter.refresh", "1s"),
            ("datacenter.leader_check", "200ms"),
            ("control_plane.kind", "embedded"),
            (plane, value),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
    };
    let west = host(&address, &settings("west", "control_plane.embedded.serve", "true"));
    let west = west.start().await.expect("the west starts");
    let east = Host::start(&free_address(), &settings("east", "control_plane.embedded.join", &address));
    let (id, begun) = (DataCenterId::new("east").expect("a plain name is an id"), Instant::now());
    while west.datacenters().get(&id).map(|entry| entry.standing) != Some(DataCenterState::Active) {
        assert!(begun.elapsed() < Duration::from_secs(60), "a datacenter that starts is active soon");
        actix::clock::sleep(Duration::from_millis(10)).await;
    }
    (west, east)
}

/// Gives all actors their home in the east.
async fn settle(west: &Node) {
    let places = (0..KEYS).map(|key| async move {
        let placed = west.send_in::<Target, _>("east", &key.to_string(), Where).await;
        placed.expect("the east takes it");
    });
    futures_util::stream::iter(places).buffer_unordered(64).collect::<Vec<()>>().await;
}
