//! Two datacenters of one node each, over real QUIC.
#![expect(clippy::disallowed_methods, reason = "a test waits in real time")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago::datacenter::{
    ControlPlane, DataCenterId, DataCenterInfo, DataCenterMap, DataCenterState, Epoch, HomeByKey, MapEntry,
    Reach,
};
use archipelago::embedded::{EmbeddedStore, control_plane};
use archipelago::prelude::*;
use archipelago::{Builder, Error, PlaceError, StartError};

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

/// A node whose control plane is this object.
async fn registered(name: &str, certificates: &str, plane: &Arc<dyn ControlPlane>) -> Node {
    settings(name, certificates, plane).start().await.expect("a node on loopback starts")
}

fn settings(name: &str, certificates: &str, plane: &Arc<dyn ControlPlane>) -> Builder {
    Node::builder()
        .set("transport.kind", "quic")
        .set("transport.development", certificates)
        .set("transport.bind", "127.0.0.1:0")
        .set("datacenter.name", name)
        .set("datacenter.refresh", "200ms")
        .set("datacenter.leader_check", "200ms")
        .set("node.data_arbiters", "1")
        .control_plane(Arc::clone(plane))
        .actor::<Sum>()
}

/// Proves: C55
#[actix::test]
async fn kinds_that_no_other_datacenter_finds_are_told_so_when_the_node_starts() {
    for divided in ["actors", "ranges"] {
        let wide = [Reach::Discover, Reach::Home(Arc::new(HomeByKey))];
        for reach in wide {
            let node =
                Node::builder().set("actors.kinds.Sum.divided", divided).actor::<Sum>().reach::<Sum>(reach);
            let refused = node.start().await.map(|_| ()).unwrap_err();
            let why = match &refused {
                Error::Start(StartError::ReachNotLocal { kind, .. }) => kind.as_str(),
                other => panic!("{other}"),
            };
            assert_eq!(why, "Sum");
        }
        let node = Node::builder()
            .set("actors.kinds.Sum.divided", divided)
            .actor::<Sum>()
            .reach::<Sum>(Reach::Local);
        node.start().await.expect("it is local").stop().await.expect("it stops");
    }
}

/// What would be written about the home of such an actor would hold for nobody.
///
/// Proves: C55
#[actix::test]
async fn an_actor_of_a_local_kind_is_placed_at_home_alone() {
    let certificates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("local_kind");
    let certificates = certificates.to_str().expect("the directory of tests is plain text");
    let plane = control_plane(Arc::new(EmbeddedStore::default()), Duration::from_secs(30));
    let local = |builder: Builder| builder.reach::<Sum>(Reach::Local);
    let east =
        local(settings("east", certificates, &plane)).start().await.expect("a node on loopback starts");
    let west =
        local(settings("west", certificates, &plane)).start().await.expect("a node on loopback starts");
    until_active(&east, "east").await;
    until_active(&east, "west").await;
    let refused = east.spawn_in("west", Sum::KIND, "a").await.unwrap_err();
    assert!(matches!(&refused, PlaceError::NeverAbroad { kind } if kind == "Sum"), "{refused}");
    let placed = east.spawn_in("east", Sum::KIND, "a").await.expect("home is home");
    assert_eq!(placed.datacenter, id("east"));
    assert_eq!(east.actor::<Sum>("a").send(Add(1)).await, Ok(1));
    assert_eq!(west.actor::<Sum>("a").send(Add(1)).await, Ok(1), "each datacenter has its own");
    east.stop().await.expect("it stops");
    west.stop().await.expect("it stops");
}

/// Messages go where the key says, whatever else is written about a home.
///
/// Proves: C55
#[actix::test]
async fn an_actor_whose_key_says_its_home_is_placed_nowhere_else() {
    let certificates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("home_kind");
    let certificates = certificates.to_str().expect("the directory of tests is plain text");
    let plane = control_plane(Arc::new(EmbeddedStore::default()), Duration::from_secs(30));
    let by_key = |name| settings(name, certificates, &plane).reach::<Sum>(Reach::Home(Arc::new(HomeByKey)));
    let east = by_key("east").start().await.expect("a node on loopback starts");
    let west = by_key("west").start().await.expect("a node on loopback starts");
    for (node, name) in [(&east, "west"), (&west, "east"), (&east, "east"), (&west, "west")] {
        until_active(node, name).await;
    }
    let (mut taken, mut refused) = (0, 0);
    for key in (0..16).map(|n| n.to_string()) {
        match east.spawn_in("west", Sum::KIND, &key).await {
            Ok(placed) => {
                assert_eq!(placed.datacenter, id("west"));
                taken += 1;
            }
            Err(PlaceError::HomedElsewhere { datacenter }) => {
                assert_eq!(datacenter, id("east"));
                refused += 1;
            }
            Err(other) => panic!("{other}"),
        }
        assert_eq!(east.actor::<Sum>(&key).send(Add(1)).await, Ok(1));
        assert_eq!(west.actor::<Sum>(&key).send(Add(1)).await, Ok(2), "{key} lives once");
    }
    assert!(taken > 0 && refused > 0, "{taken} taken, {refused} refused");
    east.stop().await.expect("it stops");
    west.stop().await.expect("it stops");
}

async fn until_active(node: &Node, name: &str) {
    let began = Instant::now();
    while node.datacenters().get(&id(name)).map(|entry| entry.standing) != Some(DataCenterState::Active) {
        assert!(began.elapsed() < Duration::from_secs(20), "{name} is not active: {:?}", node.datacenters());
        actix::clock::sleep(Duration::from_millis(20)).await;
    }
}

/// The west is alive and within reach all the time; only what the registry says decides whether the east asks it.
///
/// Proves: R341, R427
#[actix::test]
async fn who_is_called_is_what_the_registry_says_and_the_registry_is_an_object() {
    let certificates = Path::new(env!("CARGO_TARGET_TMPDIR")).join("registry");
    let certificates = certificates.to_str().expect("the directory of tests is plain text");
    let new_plane = || control_plane(Arc::new(EmbeddedStore::default()), Duration::from_secs(30));
    let (plane, other) = (new_plane(), new_plane());
    let east = registered("east", certificates, &plane).await;
    let west = registered("west", certificates, &other).await;
    until_active(&east, "east").await;
    until_active(&west, "west").await;
    for key in ["a", "b"] {
        assert_eq!(west.actor::<Sum>(key).send(Add(5)).await, Ok(5));
    }
    assert_eq!(east.actor::<Sum>("a").send(Add(1)).await, Ok(1), "nobody but the registry tells of the west");
    let info = DataCenterInfo::new("west", "", "").and_then(|info| info.with_endpoints(vec![west.address()]));
    let info = info.expect("the metadata is plain");
    let written = plane.register(&info, Epoch(1), 0).await.expect("the registry takes it");
    plane.heartbeat(&written, Epoch(1), 0).await.expect("the registry takes it");
    until_active(&east, "west").await;
    assert_eq!(east.actor::<Sum>("b").send(Add(1)).await, Ok(6), "it lives in the west");
    east.stop().await.expect("it stops");
    west.stop().await.expect("it stops");
}
