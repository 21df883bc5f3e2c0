//! The store as a [`TableSource`]: for whoever may read it.

use std::sync::Arc;

use archipelago_protocol::contract::{RoutingTable, RoutingTableError, SavedTable, TableVersion};
use archipelago_protocol::identity::Kind;
use archipelago_protocol::ranges::{KnownTable, TableNews, TableSource};
use async_trait::async_trait;
use futures_util::StreamExt;

/// The tables as a watch of a [`RoutingTable`] tells them.
#[derive(Clone)]
pub struct StoredTables {
    tables: Arc<dyn RoutingTable>,
}

impl StoredTables {
    /// The tables that `tables` keeps.
    pub fn new(tables: Arc<dyn RoutingTable>) -> Self {
        Self { tables }
    }
}

#[async_trait]
impl TableSource for StoredTables {
    async fn watch_tables(&self, kind: &Kind) -> Result<TableNews, RoutingTableError> {
        let watch = self.tables.watch(kind).await?;
        let mut told = TableVersion(0);
        Ok(Box::pin(watch.filter_map(move |seen| std::future::ready(newer(&mut told, seen)))))
    }
}

/// What is new: a watch repeats itself, and a record may be sealed without a table.
fn newer(
    told: &mut TableVersion,
    seen: Result<Option<SavedTable>, RoutingTableError>,
) -> Option<Result<KnownTable, RoutingTableError>> {
    let known = match seen {
        Ok(saved) => KnownTable::of(saved?)?,
        Err(error) => return Some(Err(error)),
    };
    if known.version <= *told {
        return None;
    }
    *told = known.version;
    Some(Ok(known))
}
