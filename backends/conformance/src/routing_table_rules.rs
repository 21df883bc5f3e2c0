//! The rules of [`RoutingTable`], each as a function that panics when it is broken.

use std::sync::Arc;

use archipelago_directory::{Store, StoreRoutingTable, Timer};
use archipelago_protocol::contract::{
    Epoch, PlacementDecision, RoutingTable, RoutingTableError, SavedTable, TableWatch,
};
use archipelago_protocol::identity::{
    ActorKey, Kind, NodeAddress, NodeId, OwnedKey, PartitionName, Placement,
};
use archipelago_protocol::ranges::{OwnerStatus, RangeTable, RouteOwner};

use crate::directory_rules::{Fixture, session};
use crate::waiting::next_of;

mod saving;
mod watching;

pub use saving::*;
pub use watching::*;

/// Fresh routing tables, and the directory above the same store.
#[derive(Clone)]
pub struct RoutingTableFixture {
    /// The tables under test.
    pub tables: Arc<dyn RoutingTable>,
    /// The directory, the store underneath and the clock.
    pub directory: Fixture,
}

impl RoutingTableFixture {
    /// The tables above `store`. A store behind a network needs a timer that really waits.
    pub fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>) -> Self {
        let tables = Arc::new(StoreRoutingTable::new(Arc::clone(&store), Arc::clone(&timer)));
        Self { tables, directory: Fixture::new(store, timer) }
    }

    pub(crate) async fn load(&self) -> Option<SavedTable> {
        self.tables.load(&kind()).await.expect("loads")
    }

    pub(crate) async fn save(&self, table: &RangeTable, expected: Option<&SavedTable>) -> SavedTable {
        self.try_save(table, expected, 1).await.expect("saves")
    }

    pub(crate) async fn try_save(
        &self,
        table: &RangeTable,
        expected: Option<&SavedTable>,
        epoch: u64,
    ) -> Result<SavedTable, RoutingTableError> {
        self.tables.save(&kind(), table, expected, Epoch(epoch)).await
    }

    pub(crate) async fn next(&self, watch: &mut TableWatch) -> Option<SavedTable> {
        next_of(&*self.directory.timer, watch).await
    }

    /// Claims a partition as the table says, and is placed.
    pub(crate) async fn place(&self, table: &RangeTable, partition: &str, id: u64) -> Placement {
        let parents = table.partition(&name(partition)).expect("in the table").parents.clone();
        let key = OwnedKey::range(kind(), partition).expect("valid");
        match self.directory.directory.claim_range(&key, &parents, session(id), None).await.expect("claims") {
            PlacementDecision::Placed(placement) => placement,
            other => panic!("{partition} for {id}: {other:?}"),
        }
    }
}

pub(crate) fn kind() -> Kind {
    Kind::new("Ledger").expect("valid")
}

pub(crate) fn name(text: &str) -> PartitionName {
    PartitionName::new(text).expect("valid")
}

pub(crate) fn owner(node: u64) -> RouteOwner {
    let address = NodeAddress::new("10.0.0.1", 4_710).expect("valid");
    RouteOwner { node: NodeId::new(node), address, status: OwnerStatus::Up }
}

pub(crate) fn whole(node: u64) -> RangeTable {
    RangeTable::whole(name("all"), owner(node))
}

/// `table` with `partition` divided at `at`; the children have its name with `1` and `2` behind it.
pub(crate) fn split(table: &RangeTable, partition: &str, at: &str) -> RangeTable {
    let child = |n: u32| (name(&format!("{partition}{n}")), owner(1));
    table.split(&name(partition), &ActorKey::new(at).expect("valid"), child(1), child(2)).expect("divides")
}

pub(crate) fn conflict<T: std::fmt::Debug>(answer: Result<T, RoutingTableError>) -> Option<SavedTable> {
    match answer {
        Err(RoutingTableError::Conflict { current }) => current.map(|current| *current),
        other => panic!("no conflict: {other:?}"),
    }
}

pub(crate) fn superseded<T: std::fmt::Debug>(answer: Result<T, RoutingTableError>) -> Epoch {
    match answer {
        Err(RoutingTableError::Superseded { by }) => by,
        other => panic!("not superseded: {other:?}"),
    }
}
