//! Two datacenters of one node each, over real QUIC.
#![expect(clippy::disallowed_methods, reason = "a test waits in real time")]

use std::path::Path;
use std::time::Duration;

use archipelago::datacenter::{DataCenterId, DataCenterInfo, DataCenterMap, DataCenterState, MapEntry};
use archipelago::prelude::*;

#[remote(u32)]
struct Add(u32);

#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Add))]
struct Sum(u32);

impl Actor for Sum {
    type Context = Context<Self>;
}

impl Handler<Add> for Sum {
    type Result = u32;
    fn handle(&mut self, Add(number): Add, _: &mut Context<Self>) -> u32 {
        self.0 += number;
        self.0
    }
}

fn id(name: &str) -> DataCenterId {
    DataCenterId::new(name).expect("a plain name is an id")
}

async fn datacenter(name: &str, certificates: &str) -> Node {
    Node::builder()
        .set("transport.kind", "quic")
        .set("transport.development", certificates)
        .set("transport.bind", "127.0.0.1:0")
        .set("datacenter.name", name)
        .set("node.data_arbiters", "1")
        .datacenters(DataCenterMap::new(Some(id(name)), Vec::new()))
        .actor::<Sum>()
        .start()
        .await
        .expect("a node on loopback starts")
}

fn entry(name: &str, node: &Node) -> MapEntry {
    let info = DataCenterInfo::new(name, "", "").and_then(|info| info.with_endpoints(vec![node.address()]));
    MapEntry { info: info.expect("the metadata is plain"), standing: DataCenterState::Active }
}

/// Proves: R398, R399, R405, R492
#[actix::test]
async fn calls_between_datacenters_go_over_quic() {
    let certificates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("two_datacenters");
    let certificates = certificates.to_str().expect("the directory of tests is plain text");
    let (east, west) = (datacenter("east", certificates).await, datacenter("west", certificates).await);
    let entries = vec![entry("east", &east), entry("west", &west)];
    east.show_datacenters(DataCenterMap::new(Some(id("east")), entries.clone()));
    west.show_datacenters(DataCenterMap::new(Some(id("west")), entries));
    assert_eq!(west.actor::<Sum>("s").send(Add(1)).await, Ok(1), "it comes to life in the west");
    let sum = east.actor::<Sum>("s");
    for number in 0..100 {
        sum.tell(Add(number)).expect("there is room");
    }
    let asked = actix::clock::timeout(Duration::from_secs(10), sum.send(Add(0))).await;
    assert_eq!(asked.expect("no call outlives its deadline"), Ok(4_951));
    assert_eq!(east.actor::<Sum>("other").send(Add(5)).await, Ok(5), "what is nowhere begins at home");
    assert_eq!(west.actor::<Sum>("other").send(Add(5)).await, Ok(10));
    east.stop().await.expect("it stops");
    west.stop().await.expect("it stops");
}
