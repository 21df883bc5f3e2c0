//! The embedded backend of archipelago: a linearizable store in memory, shared by the nodes of one process.
//!
//! Every node gets a directory above the same [`EmbeddedStore`]. Nothing is kept on disk; records are gone with the
//! process. It is deterministic, and needs no clock: the engine's own time to live is ignored, as any engine may.
//!
//! # Several processes
//!
//! One node may serve its store to other processes: its [`StoreServer`] answers the requests that the [`ServedStore`]s of
//! the others send through a [`Courier`]. It is a single point of failure, meant for development: when the serving process
//! dies, the cluster has lost its memory, and all nodes must start anew. Three rules keep that safe:
//!
//! - each start of the server is an *instance* of its own, named in every request and answer, so that no request of one
//!   is carried out by another, and a client that meets another instance knows at once that its session is gone;
//! - versions begin above those of every earlier instance ([`EmbeddedStore::with_version_base`]);
//! - a server that has just started grants nothing until the leases it cannot know of have run out
//!   ([`StoreServer::new`]).
//!
//! At most one process serves a cluster's store; that is for whoever writes the addresses into the configuration.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use archipelago_directory::{
    ControlPlaneConfig, StoreControlPlane, StoreDirectory, StoreRoutingTable, StoreStateStore, Timer,
};

mod client;
mod config;
mod courier;
mod quiet;
mod serve;
mod store;
mod watch;
mod wire;

pub use client::ServedStore;
pub use config::EmbeddedConfig;
pub use courier::{CarryError, Courier};
pub use serve::StoreServer;
pub use store::EmbeddedStore;
pub use wire::{MAX_MESSAGE, MAX_VALUE};

/// The directory of this backend.
pub type EmbeddedDirectory = StoreDirectory;

/// A directory above `store`; all nodes of the process use the same store, each may have a directory of its own.
pub fn directory(store: Arc<EmbeddedStore>, timer: Arc<dyn Timer>) -> EmbeddedDirectory {
    StoreDirectory::new(store, timer)
}

/// The routing tables of this backend.
pub type EmbeddedRoutingTable = StoreRoutingTable;

/// The routing tables above `store`: the one in which the directory keeps the owner records.
pub fn routing_table(store: Arc<EmbeddedStore>, timer: Arc<dyn Timer>) -> EmbeddedRoutingTable {
    StoreRoutingTable::new(store, timer)
}

/// The control plane of this backend.
pub type EmbeddedControlPlane = StoreControlPlane;

/// A control plane above `store`, for datacenters within one process: tests, and trying things out.
pub fn control_plane(
    store: Arc<EmbeddedStore>,
    timer: Arc<dyn Timer>,
    config: ControlPlaneConfig,
) -> EmbeddedControlPlane {
    StoreControlPlane::new(store, timer, config)
}

/// The states of actors of this backend.
pub type EmbeddedStateStore = StoreStateStore;

/// The states of actors above `store`: as lasting as the process.
pub fn state_store(store: Arc<EmbeddedStore>) -> EmbeddedStateStore {
    StoreStateStore::new(store)
}
