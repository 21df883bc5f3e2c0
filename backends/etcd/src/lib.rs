//! The etcd backend of archipelago: a [`Store`](archipelago_directory::Store) in etcd 3.4 or later.
//!
//! [`EtcdStore::connect`] reaches etcd or says why not; [`directory`] makes a directory of it.
//!
//! # What stands in etcd
//!
//! ```text
//! /archipelago/node/00000000000000ab                   {"tag":"00000000000000ab","id":"00000000000000ab","name":"a-1",...}
//! /archipelago/lease/00000000000000ab                  {"state":"live","seq":3,"nonce":4,"ttl_ms":6000}
//! /archipelago/own/shard/Account/7                     {"tag":"00000000000000ab","session":"00000000000000ab","ttl_ms":6000}
//! /archipelago/by-tag/own/00000000000000ab/shard/...   the same value again
//! ```
//!
//! Keys are paths and values are JSON, so `etcdctl get --prefix /archipelago/` shows the cluster. A record with a tag (the
//! node that holds it) stands twice, once under its key and once under its tag, so that everything a node holds is one
//! range. Both are written by one transaction and bear the same revision. Nothing but archipelago should write here; a
//! record that is deleted by hand counts as expired, which is never unsafe.
//!
//! # Why it is safe
//!
//! - Every write is one transaction. It compares the record's modification revision, or that there is none; it looks at the
//!   guard (that the claimer's poster stands under its tag); and it writes the record and the entry under its tag. Of several
//!   writers that expect the same, one wins.
//! - The version of a record is its modification revision. etcd counts one revision for all keys, so a version never comes
//!   back, not even after a delete. An etcd that was restored from a backup counts from an old revision again: raise it
//!   (`etcdutl snapshot restore --bump-revision N --mark-compacted`) before nodes start.
//! - Reads that decide anything are linearizable.
//! - A write is `Unavailable` only if it never left, or if etcd refused it before doing anything. Only such a write is offered
//!   to the next member. All else without an answer is `Unknown`.
//! - Nothing waits for ever. Every request has a deadline. A connection on which one passed without an answer is given
//!   up, for it may be dead without anybody knowing; the next request makes a new one. A watch on which nothing comes asks
//!   for a sign of life, and ends if there is none in time.
//! - A watch tells every change after a revision. If etcd has compacted the history since, or has never come so far, it says
//!   `Compacted`, and the directory lists and compares.
//! - Leases of etcd are only attached to what may vanish when nobody is left (see `Write::Put`), for twice the time asked
//!   for. Whether a session lives is never asked of them.
//!
//! # Settings
//!
//! See [`EtcdConfig`] for the names and defaults. All members belong into `endpoints`: one is used at a time, the next one
//! when it fails. TLS needs `tls.ca_file`, and a certificate and key where etcd asks for them (`--client-cert-auth`). A user
//! needs a `password_file`. A role of etcd that may read and write below the prefix is enough; one that may write single keys
//! only (`etcdctl role grant-permission east readwrite /archipelago/dc/east`, and `read --prefix /archipelago/dc/`) confines a
//! credential to its own record: whatever else it tries is refused as `Fatal`. Against somebody who has stolen it, that
//! holds on etcd 3.4.44, 3.5.30, 3.6.11 and later: earlier servers let nested transactions (GHSA-rfx7-8w68-q57q) and leases
//! inside transactions (CVE-2026-44283) pass unchecked.
//!
//! etcd keeps all history until told otherwise: run it with `--auto-compaction-mode=periodic --auto-compaction-retention=1h`
//! or the like. Three or five members, on disks that sync: a claim is answered when most of them have it on disk.
//!
//! # Building
//!
//! `etcd-client` compiles protocol files: `protoc` and its include files must be installed (Debian: `protobuf-compiler` and
//! `libprotobuf-dev`), or named by `PROTOC` and `PROTOC_INCLUDE`.

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use archipelago_directory::{
    ControlPlaneConfig, StoreControlPlane, StoreDirectory, StoreRoutingTable, Timer,
};

mod config;
mod endpoint;
mod failure;
mod keys;
mod start;
mod store;
mod ttl;
mod txn;
mod value;
mod watch;
mod wires;

pub use config::{EtcdConfig, EtcdConfigError, EtcdTls};
pub use store::{EtcdError, EtcdStore};

/// The directory of this backend.
pub type EtcdDirectory = StoreDirectory;
/// The routing table of this backend.
pub type EtcdRoutingTable = StoreRoutingTable;
/// The control plane of this backend.
pub type EtcdControlPlane = StoreControlPlane;

/// A directory above `store`.
pub fn directory(store: Arc<EtcdStore>, timer: Arc<dyn Timer>) -> EtcdDirectory {
    StoreDirectory::new(store, timer)
}

/// The routing tables above `store`.
pub fn routing_table(store: Arc<EtcdStore>, timer: Arc<dyn Timer>) -> EtcdRoutingTable {
    StoreRoutingTable::new(store, timer)
}

/// A control plane above `store`.
pub fn control_plane(
    store: Arc<EtcdStore>,
    timer: Arc<dyn Timer>,
    config: ControlPlaneConfig,
) -> EtcdControlPlane {
    StoreControlPlane::new(store, timer, config)
}
