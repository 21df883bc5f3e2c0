//! The tables of range-partitioned kinds.

use alloc::boxed::Box;
use core::pin::Pin;

use async_trait::async_trait;
use futures_core::Stream;

use super::{BoxError, Epoch};
use crate::identity::{Kind, PartitionName};
use crate::ranges::RangeTable;

/// Keeps one table per range-partitioned kind: advice on where each key belongs. The owner records grant.
///
/// Tables are written by the holder of the manager's role and read by everybody. They are never deleted.
///
/// # Every implementation
///
/// - *load_of_nothing_is_none*: a kind without a table is no error.
/// - *save_names_its_version*: a table replaces exactly the one that the caller saw, or nothing if it saw none.
/// - *table_version_grows*: every saved table of a kind has a greater version than all before.
/// - *save_is_exclusive*: of concurrent saves over one version one is applied.
/// - *stale_manager_is_refused*: a writer whose epoch is smaller than the record's changes nothing (EPOCH).
/// - *seal_fences_earlier_managers*: after a seal no save of an earlier epoch is applied, and what a seal answers is the
///   last word of all earlier ones (SEAL); sealing nothing is possible.
/// - *save_keeps_ranges_apart*: no table is saved that could let two partitions with a key in common be owned at once
///   ([`RangeTable::succeed`]).
/// - *split_waits_for_retired_parents*: nor one that divides, merges or makes independent a partition whose parents have
///   not been retired.
/// - *a_split_hands_the_keys_to_the_children*: with both, a split goes through: its children are claimed after the parent's
///   owner has stopped and retired it, and a dead owner does not stop them.
/// - *table_watch_starts_with_the_current_table*: the first item is the table as it stands, or none.
/// - *table_watch_tells_every_table*, *table_watch_survives_compaction*: then every later table, in order, at least once;
///   after a break the newest one.
/// - *kinds_are_apart*: a table of one kind is nothing to another.
/// - *table_is_json*: people can read what the store holds.
/// - *table_size_is_bounded*: a table that a store could not hold is refused.
///
/// Dropping a future may or may not have written, now or later; it corrupts nothing (*routing_table_is_cancel_safe*).
#[async_trait]
pub trait RoutingTable: Send + Sync + 'static {
    /// The table of `kind`, with what the next save must name; `None` if nothing was ever written.
    async fn load(&self, kind: &Kind) -> Result<Option<SavedTable>, RoutingTableError>;

    /// Replaces the table that the caller last saw; answers the table as saved.
    ///
    /// # Errors
    ///
    /// - `NotRetired`: a parent still stands in the way; nothing was written.
    async fn save(
        &self,
        kind: &Kind,
        table: &RangeTable,
        expected: Option<&SavedTable>,
        epoch: Epoch,
    ) -> Result<SavedTable, RoutingTableError>;

    /// Writes the caller's epoch into the record of `kind`, the table unchanged (SEAL). The first thing that a manager
    /// does when it takes office; it decides nothing from what it read before.
    async fn seal(&self, kind: &Kind, epoch: Epoch) -> Result<SavedTable, RoutingTableError>;

    /// Watches the table of `kind`: the first item is what stands there now, so no load is needed before.
    async fn watch(&self, kind: &Kind) -> Result<TableWatch, RoutingTableError>;
}

/// A table as the store holds it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SavedTable {
    /// Counts the writes to the table of this kind; orders tables.
    pub version: TableVersion,
    /// The store's own version of the record: what the next save replaces.
    pub record: RecordVersion,
    /// The epoch of the manager that wrote it.
    pub epoch: Epoch,
    /// The table; `None` if the record was sealed before there was one.
    pub table: Option<RangeTable>,
}

/// Counts the tables of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableVersion(pub u64);

/// The store's own version of a record: grows with every write to it, also across deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordVersion(pub u64);

/// The tables of one kind as they come; ends only when dropped, or after an error that no retry can mend.
pub type TableWatch = Pin<Box<dyn Stream<Item = Result<Option<SavedTable>, RoutingTableError>> + Send>>;

/// Why an operation of the [`RoutingTable`] did not come to its result, sorted by what the caller does next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoutingTableError {
    /// The table is not the one the caller saw; nothing was written. Decide anew from `current`, if its epoch allows.
    #[error("the routing table has changed")]
    Conflict {
        /// What stands there now.
        current: Option<Box<SavedTable>>,
    },
    /// Another manager has written since; nothing was written. Step down.
    #[error("a manager of epoch {by} has taken over")]
    Superseded {
        /// The epoch in the record.
        by: Epoch,
    },
    /// A partition on which the change depends has not been retired; nothing was written. Try again once it has.
    #[error("partition {partition} has not been retired")]
    NotRetired {
        /// Which one.
        partition: PartitionName,
    },
    /// The store did not take the request: certainly not applied. Try again later.
    #[error("{backend} is unavailable")]
    Unavailable {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// No answer came: may be applied now or later. Load before you decide again.
    #[error("the outcome of a write to {backend} is unknown")]
    Unknown {
        /// Which backend.
        backend: &'static str,
        /// What its client said.
        source: BoxError,
    },
    /// The table cannot be saved as it is, or a stored one cannot be read; nothing was written. Repeating it will not
    /// help.
    #[error("invalid: {what}")]
    Invalid {
        /// What is wrong.
        what: &'static str,
        /// The underlying error, if there is one.
        source: Option<BoxError>,
    },
}
