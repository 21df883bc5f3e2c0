//! Kinds whose actors are placed by ranges of their keys: which partition a key lies in, and who should own it.
//!
//! A [`RangeTable`] divides all keys of one kind into partitions. It is advice for routing: what grants is the owner
//! record of each partition in the directory. A table changes by splitting and merging; [`RangeTable::succeed`] decides
//! whether one table may follow another, so that two partitions whose ranges overlap are never owned at once: the new
//! one names the old ones as its parents, and is claimed only after each of them has been retired.

mod keeper;
mod key_range;
mod known;
mod manager;
mod source;
mod succession;
mod table;

pub use keeper::{KeeperAction, KeeperEvent, KeeperLimits, LetGoOutcome, PartitionClaim, RangeKeeper};
pub use key_range::KeyRange;
pub use known::KnownTableError;
pub use manager::{
    ChangeOutcome, ChangeRefusal, ManagerAction, ManagerEvent, ManagerLimits, RangeChange, RangeHost,
    RangeManager, RequestId, SaveFailure,
};
pub use source::{KnownTable, TableNews, TableSource};
pub use succession::{SuccessionError, Successor};
pub use table::{OwnerStatus, RangeTable, RouteEntry, RouteOwner, TableError};
