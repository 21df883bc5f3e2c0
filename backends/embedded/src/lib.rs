//! The embedded backend of archipelago: a linearizable store in memory, shared by the nodes of one process.
//!
//! Every node gets a directory above the same [`EmbeddedStore`]. Nothing is kept on disk and nothing reaches other
//! processes; records are gone with the process. It is deterministic, and needs no clock: the engine's own time to
//! live is ignored, as any engine may.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use archipelago_directory::{StoreDirectory, Timer};

mod config;
mod store;
mod watch;

pub use config::EmbeddedConfig;
pub use store::EmbeddedStore;

/// The directory of this backend.
pub type EmbeddedDirectory = StoreDirectory;

/// A directory above `store`; all nodes of the process use the same store, each may have a directory of its own.
pub fn directory(store: Arc<EmbeddedStore>, timer: Arc<dyn Timer>) -> EmbeddedDirectory {
    StoreDirectory::new(store, timer)
}
