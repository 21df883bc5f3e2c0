//! Where nodes and clients learn the tables of range-partitioned kinds from.

use alloc::boxed::Box;
use core::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use super::RangeTable;
use crate::contract::{Epoch, RoutingTableError, SavedTable, TableVersion};
use crate::identity::Kind;

/// Tells the tables of range-partitioned kinds as they change, wherever they come from: a watch of the store, or a node
/// that passes on what it knows.
///
/// A table is advice on where to route. An old one costs a detour, never safety: the owner records grant.
///
/// # Every implementation
///
/// - *source_tells_the_current_table_first*: the first item is the newest table that the source knows, as soon as it
///   knows one.
/// - *source_never_goes_back*: the versions that one watch tells grow strictly. Tables may be left out, never the last.
/// - *kinds_are_apart*: a table of one kind is nothing to another.
///
/// Dropping a watch ends it and changes nothing else.
#[async_trait]
pub trait TableSource: Send + Sync + 'static {
    /// Watches the table of `kind`.
    ///
    /// # Errors
    ///
    /// No watch was begun; as [`RoutingTableError`] says, it may help to try again.
    async fn watch_tables(&self, kind: &Kind) -> Result<TableNews, RoutingTableError>;
}

/// The tables of one kind as they come; ends only when dropped, or after an error that no retry can mend.
pub type TableNews = Pin<Box<dyn Stream<Item = Result<KnownTable, RoutingTableError>> + Send>>;

/// A table as everybody but its manager needs it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownTable {
    /// Orders the tables of one kind.
    pub version: TableVersion,
    /// The epoch of the manager that wrote it.
    pub epoch: Epoch,
    /// The table.
    pub table: RangeTable,
}

impl KnownTable {
    /// What a saved table says; `None` if its record was sealed before there was one.
    pub fn of(saved: SavedTable) -> Option<Self> {
        let SavedTable { version, epoch, table, .. } = saved;
        Some(Self { version, epoch, table: table? })
    }
}
