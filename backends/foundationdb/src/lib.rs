//! The FoundationDB backend of archipelago: a [`Store`](archipelago_directory::Store) in FoundationDB 7.3 or later.
//!
//! `FoundationDbStore::connect` (cargo feature `client`) reaches the database or says why not; [`directory`] makes a
//! directory of it. Everything but that one layer is written over [`Engine`], and is tested on [`MemoryEngine`], which keeps
//! FoundationDB's rules and breaks what FoundationDB may break.
//!
//! # What stands in FoundationDB
//!
//! Keys of the tuple layer, below one prefix:
//!
//! ```text
//! ("archipelago", "record", "own", "shard/Account/7")          stamp, nonce, tag, value
//! ("archipelago", "tag", "own", "00000000000000ab", "shard/Account/7")
//! ("archipelago", "log", "own", versionstamp)                  nonce, key, tag, value
//! ("archipelago", "last", "own")                               stamp of the newest change
//! ("archipelago", "cut", "own")                                version up to which the log has been cut off
//! ```
//!
//! A record, its entry under its tag, its change in the log and the stamp of the newest change are written by one
//! transaction. Nothing but archipelago should write here.
//!
//! # Why it is safe
//!
//! - Every write is one transaction, which reads the record, and the guard, and commits only if neither has changed since. Of
//!   several writers that expect the same, one wins.
//! - The version of a record is its commit version. Two transactions may share one, but then neither has read what the other
//!   wrote, so no two writes to one record do; and it never comes back, not even after a delete. A database that was
//!   restored to a cluster which counts from a lower version is refused at the start, until `advanceversion` in `fdbcli`
//!   has raised it.
//! - A commit without an answer (`commit_unknown_result`) is repeated with the same nonce, after the log was searched for it.
//!   So the write is applied at most once, and its answer is the true one, also if others have changed the record since. If
//!   the time is up before that is known, it is `Unknown`.
//! - Reads that decide anything are linearizable: FoundationDB's read versions are.
//! - Nothing waits for ever, and no transaction lasts longer than FoundationDB's five seconds, or grows beyond its ten million
//!   bytes, by design: listings and the log are read page by page and deletes written batch by batch, each in a transaction of
//!   its own; pages and batches that were too much all the same are halved. Names and values that are too long are refused
//!   before they are sent ([`TooLarge`]).
//! - A watch reads the log. That the space has changed is told by a watch of FoundationDB, set in the snapshot in which
//!   nothing new was found; and it looks by itself every `watch_poll`, for such a watch may be refused or lost.
//! - The log is cut off by writers, one write in 64: what is older than `history` goes. A watch from before is `Compacted`,
//!   and the directory lists and compares.
//! - FoundationDB deletes nothing by itself (`Write::Put`'s `ttl` is ignored): whatever the dead leave behind is evicted by
//!   those who observe their end.
//!
//! # Differences to the other backends
//!
//! Values are at most 90 000 bytes, so a routing table is smaller than elsewhere. Every put is stored twice for as long as
//! `history` lasts. All changes of a space write one key (`last`), and append to one end of the log: that is a few thousand
//! writes per second, not hundreds of thousands.
//!
//! # Settings
//!
//! See [`FoundationDbConfig`] for the names and defaults. TLS is set up as for every client of FoundationDB, with
//! `FDB_TLS_CERTIFICATE_FILE`, `FDB_TLS_KEY_FILE` and `FDB_TLS_CA_FILE`.
//!
//! # Building
//!
//! The feature `client` compiles the headers of FoundationDB, which are part of the crate `foundationdb-sys`: that needs
//! libclang (Debian: `libclang-dev`). Linking and running needs `libfdb_c` 7.3 or later, from FoundationDB's package
//! `foundationdb-clients`; where it is in an unusual place, `LIBRARY_PATH` and `LD_LIBRARY_PATH` name that.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use archipelago_directory::{
    ControlPlaneConfig, StoreControlPlane, StoreDirectory, StoreRoutingTable, Timer,
};

mod code;
mod config;
mod doubt;
mod engine;
mod jobs;
mod keys;
mod limits;
mod list;
mod memory;
mod read;
mod start;
mod store;
mod value;
mod watch;
mod write;

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "client")]
mod network;

pub use code::Code;
pub use config::{FoundationDbConfig, FoundationDbConfigError};
pub use engine::{Engine, Isolation, Page, Transaction, Uncommitted};
pub use limits::{TooLarge, TooLate};
pub use memory::{Breakage, MemoryEngine, Tally};
pub use store::{FoundationDbError, FoundationDbStore};

/// The directory of this backend.
pub type FoundationDbDirectory = StoreDirectory;
/// The routing table of this backend.
pub type FoundationDbRoutingTable = StoreRoutingTable;
/// The control plane of this backend.
pub type FoundationDbControlPlane = StoreControlPlane;

/// A directory above `store`.
pub fn directory(store: Arc<FoundationDbStore>, timer: Arc<dyn Timer>) -> FoundationDbDirectory {
    StoreDirectory::new(store, timer)
}

/// The routing tables above `store`.
pub fn routing_table(store: Arc<FoundationDbStore>, timer: Arc<dyn Timer>) -> FoundationDbRoutingTable {
    StoreRoutingTable::new(store, timer)
}

/// A control plane above `store`.
pub fn control_plane(
    store: Arc<FoundationDbStore>,
    timer: Arc<dyn Timer>,
    config: ControlPlaneConfig,
) -> FoundationDbControlPlane {
    StoreControlPlane::new(store, timer, config)
}
