//! A store with as many nodes as a cluster may have, and who writes what about them.
#![allow(clippy::unwrap_used)]

mod through;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::ImmediateTimer;
use archipelago_directory::{
    CasAnswer, Expect, Guard, RecordId, Space, Store, StoreDirectory, StoreError, StoreRoutingTable, Write,
    node_record_id,
};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::contract::{Directory, Entry, Epoch, RoutingTable, WatchEvent, WatchScope};
use archipelago_protocol::identity::{Kind, NodeAddress, NodeId, NodeInfo, OwnedKey, PartitionName};
use archipelago_protocol::ranges::{OwnerStatus, RangeTable, RouteOwner};
use archipelago_protocol::session::{EndReason, Session};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::{FutureExt, StreamExt};
use through::{Hand, Through};

/// Every one of a thousand nodes watches members and table by itself, and each is told of each.
///
/// Proves: R335
#[test]
fn a_thousand_nodes_may_each_watch_the_store() {
    at_once(async {
        let store: Arc<dyn Store> = Arc::new(EmbeddedStore::default());
        let (directory, tables) = above(&store);
        let mut watches = Vec::new();
        for id in 1..=NODES {
            join(&directory, id).await;
            let mut members = directory.watch(WatchScope::Nodes, None).await.unwrap();
            let Some(Ok(WatchEvent::Snapshot { entries, .. })) = members.next().await else { panic!("{id}") };
            assert_eq!(entries.len() as u64, id, "whoever comes later sees all who came before");
            let mut table = tables.watch(&kind()).await.unwrap();
            assert_eq!(table.next().await.unwrap().unwrap(), None);
            watches.push((id, members, table));
        }
        let saved = tables.save(&kind(), &table(), None, Epoch(1)).await.unwrap();
        for (id, mut members, mut table) in watches {
            assert_eq!(table.next().await.unwrap().unwrap().as_ref(), Some(&saved), "node {id}");
            for later in id + 1..=NODES {
                let Some(Ok(WatchEvent::Put { entry, .. })) = members.next().await else { panic!("{id}") };
                assert_eq!(entry, Entry::Node(info(later)), "told to node {id}");
            }
        }
    });
}

/// Proves: R174
#[test]
fn a_poster_is_written_by_its_node_and_whoever_manages_only_reads_it() {
    at_once(async {
        let noted = Arc::new(Through::new(Noted::default()));
        let store: Arc<dyn Store> = Arc::clone(&noted) as _;
        let (directory, tables) = above(&store);
        join(&directory, 1).await;
        join(&directory, 2).await;
        let posters = BTreeSet::from([1, 2].map(|id| node_record_id(NodeId::new(id))));
        assert_eq!(noted.hand.posters(), posters, "each by its own node");
        noted.hand.forget();
        manage(&directory, &tables).await;
        assert_eq!(noted.hand.posters(), BTreeSet::new(), "nobody else touches them");
        let lease = directory.lease(NodeId::new(1)).await.unwrap().unwrap();
        directory.end_session(lease.id, lease.version, NodeId::new(2), EndReason::Silent).await.unwrap();
        assert_eq!(directory.sessions().await.unwrap().records, [info(2)], "until its session has ended");
    });
}

/// Everything that a leader, a table's manager and a monitor do about nodes whose sessions have not ended.
async fn manage(directory: &StoreDirectory, tables: &StoreRoutingTable) {
    assert_eq!(directory.sessions().await.unwrap().records, [info(1), info(2)]);
    let mut watch = directory.watch(WatchScope::Nodes, None).await.unwrap();
    let seen = watch.next().await;
    assert!(
        matches!(&seen, Some(Ok(WatchEvent::Snapshot { entries, .. })) if entries.len() == 2),
        "{seen:?}"
    );
    let sealed = tables.seal(&kind(), Epoch(1)).await.unwrap();
    tables.save(&kind(), &table(), Some(&sealed), Epoch(1)).await.unwrap();
    directory.claim(&OwnedKey::shard(kind(), 1), session(1), None).await.unwrap();
    let lease = directory.lease(NodeId::new(1)).await.unwrap().unwrap();
    directory.revoke(&lease, NodeId::new(2)).await.unwrap();
}

/// Notes what is written.
#[derive(Default)]
struct Noted {
    written: Mutex<Vec<RecordId>>,
}

impl Noted {
    fn posters(&self) -> BTreeSet<RecordId> {
        let written = self.written.lock().unwrap();
        written.iter().filter(|id| id.space == Space::NODES).cloned().collect()
    }

    fn forget(&self) {
        self.written.lock().unwrap().clear();
    }
}

#[async_trait]
impl Hand for Noted {
    async fn cas(
        &self,
        behind: &dyn Store,
        id: &RecordId,
        (expect, write, guard): (Expect, Write, Option<Guard>),
    ) -> Result<CasAnswer, StoreError> {
        self.written.lock().unwrap().push(id.clone());
        behind.cas(id, expect, write, guard).await
    }
}

fn above(store: &Arc<dyn Store>) -> (StoreDirectory, StoreRoutingTable) {
    let directory = StoreDirectory::new(Arc::clone(store), Arc::new(ImmediateTimer));
    (directory, StoreRoutingTable::new(Arc::clone(store), Arc::new(ImmediateTimer)))
}

/// What a node does at its start.
async fn join(directory: &StoreDirectory, id: u64) {
    directory.open_session(session(id), 1).await.unwrap();
    directory.announce(&info(id)).await.unwrap();
}

/// The embedded store never makes anybody wait.
fn at_once(work: impl Future<Output = ()>) {
    work.now_or_never().expect("the store answers at once");
}

fn session(id: u64) -> Session {
    Session { id: NodeId::new(id), ttl: Millis(6_000) }
}

fn info(id: u64) -> NodeInfo {
    NodeInfo {
        id: NodeId::new(id),
        name: format!("node-{id}"),
        address: NodeAddress::new("10.0.0.1", 4_710).unwrap(),
        roles: BTreeSet::new(),
        version: "0.1.0".into(),
        kinds: BTreeSet::new(),
    }
}

fn kind() -> Kind {
    Kind::new("Ledger").unwrap()
}

fn table() -> RangeTable {
    let address = NodeAddress::new("10.0.0.1", 4_710).unwrap();
    let owner = RouteOwner { node: NodeId::new(1), address, status: OwnerStatus::Up };
    RangeTable::whole(PartitionName::new("all").unwrap(), owner)
}

/// As many nodes as the seeds aim at.
const NODES: u64 = 1_000;
