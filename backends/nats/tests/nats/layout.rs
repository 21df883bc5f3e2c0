//! What stands in the stream.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use archipelago_directory::ControlPlaneConfig;
use archipelago_nats::{control_plane, directory, routing_table};
use archipelago_protocol::contract::{ControlPlane, Directory, Epoch, RoutingTable};
use archipelago_protocol::datacenter::DataCenterInfo;
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey, PartitionName};
use archipelago_protocol::ranges::{OwnerStatus, RangeTable, RouteOwner};
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;
use archipelago_test_servers::{ServerProcess, nats};
use serde_json::Value;

use crate::rig::{self, with_server};

/// The value and the tag of the newest message of a subject, read without our store.
async fn stands(server: &ServerProcess, subject: &str) -> (Value, Option<String>) {
    let client = async_nats::connect(nats::url(server)).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("archipelago").await.unwrap();
    let message = stream.get_last_raw_message_by_subject(subject).await.unwrap_or_else(|error| {
        panic!("{subject}: {error}");
    });
    let tag = message.headers.get("Archipelago-Tag").map(ToString::to_string);
    (serde_json::from_slice(&message.payload).unwrap(), tag)
}

/// Proves: R173, R321, R489
#[test]
fn people_can_read_the_subjects_and_values() {
    with_server(async |server| {
        let (store, timer) = (rig::store(&server).await, rig::RealTimer::start());
        let directory = directory(store.clone(), timer.clone());
        let session = Session { id: NodeId::new(0xab), ttl: Millis(6_000) };
        directory.open_session(session, 7).await.unwrap();
        let address = NodeAddress::new("10.0.0.1", 4_700).unwrap();
        let info = NodeInfo {
            id: session.id,
            name: "a-1".into(),
            address: address.clone(),
            roles: BTreeSet::new(),
            version: "0.1.0".into(),
            kinds: Default::default(),
        };
        directory.announce(&info).await.unwrap();
        let kind = Kind::new("Account").unwrap();
        directory.claim(&OwnedKey::shard(kind.clone(), 7), session, None).await.unwrap();

        let node = "00000000000000ab";
        let (poster, tag) = stands(&server, &format!("archipelago.node.{node}")).await;
        assert_eq!(serde_json::from_value::<NodeInfo>(poster).unwrap(), info);
        assert_eq!(tag.as_deref(), Some(node));
        let (lease, _) = stands(&server, &format!("archipelago.lease.{node}")).await;
        assert_eq!((&lease["state"], &lease["ttl_ms"]), (&"live".into(), &6_000.into()), "{lease}");
        let (owner, tag) = stands(&server, "archipelago.own.shard/Account/7").await;
        assert_eq!((&owner["session"], tag.as_deref()), (&node.into(), Some(node)), "{owner}");

        let owner = RouteOwner { node: session.id, address, status: OwnerStatus::Up };
        let table = RangeTable::whole(PartitionName::new("all").unwrap(), owner);
        routing_table(store.clone(), timer.clone()).save(&kind, &table, None, Epoch(1)).await.unwrap();
        let (table, _) = stands(&server, "archipelago.routing.Account").await;
        assert_eq!(table["entries"][0]["partitionId"], "all", "{table}");

        let config = ControlPlaneConfig { lease_ttl_ms: NonZeroU64::new(30_000).unwrap() };
        let east = DataCenterInfo::new("east", "", "").unwrap();
        control_plane(store, timer, config).register(&east, Epoch(1), 1_700_000_000_000).await.unwrap();
        let (east, _) = stands(&server, "archipelago.dc.east").await;
        assert_eq!((&east["name"], &east["state"]), (&"east".into(), &"registered".into()), "{east}");
    });
}
