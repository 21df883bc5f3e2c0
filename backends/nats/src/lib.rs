//! The NATS backend of archipelago: records in a JetStream stream, replaced by a compare-and-swap per subject.
//!
//! [`NatsStore::connect`] opens the stream, [`directory`] makes a directory of it.
//!
//! # Records in a stream
//!
//! A record lives on one subject, `{prefix}.{space}.{key}`, its tag in a header. The newest message of the subject is the
//! record; its sequence is the version, which therefore grows with every write to anything, also across deletes. A write
//! carries `Nats-Expected-Last-Subject-Sequence` and `Nats-Expected-Last-Subject-Sequence-Subject`, and the server stores
//! it only if the sequence named is that of the newest message. A delete is such a write as well: it leaves a marker, so
//! that there always is something to compare with, and no range is ever deleted.
//!
//! The tag could have been a part of the subject, so that the server finds all records of a node. But then a key would
//! have one subject per owner it ever had: the former owners' messages stay behind, must be left out of listings and be
//! purged after every transfer, and whenever the newest message goes, a former owner's is the newest again. With one
//! subject per key none of that can happen, a claim is one message, and a node needs the right to publish and no other.
//! The price: a listing by tag reads the whole space. It is needed when a node has died or a watch must begin anew.
//!
//! # Safety without transactions
//!
//! JetStream compares one subject per write, so guards are not checked ([`Store::checks_guards`] is `false`). Nothing in
//! the session protocol depends on them, because every fact that safety rests on is one record, and is changed only by a
//! write that names the version it replaces:
//!
//! - *Who owns a key* is the key's owner record. Of all writes that expect the same version one is stored, so no two nodes
//!   are ever answered "yours" for the same step, and each answer is a generation of its own.
//! - *Whether a session lives* is its lease record. A beat and an end replace the same version of it, so one of them
//!   fails; a session that has ended can never beat again.
//! - *Taking a key from another* needs that session's end, which was read, and is final. It cannot become untrue between
//!   the read and the write, so they need not be one transaction. If the owner changed meanwhile, the version did too.
//! - *A claim of a session that has just ended* is what a guard would refuse. Here it is stored, and leaves a record of a
//!   dead session; but its writer's gate is shut, by its own clock or by its lost lease, and never opens for it. Whoever
//!   wants the key finds an owner that has ended and replaces it.
//!
//! The protocol was model-checked with and without guards; they save orphan records, nothing else.
//!
//! # What a read promises
//!
//! [`Read::Linearizable`] asks the stream's leader. It shows every write that this leader has acknowledged; a leader that
//! has been replaced without knowing yet may still answer with what it had, because JetStream asks no quorum for a read.
//! [`Read::Any`] asks any replica. The session protocol treats every read as if it were stale.
//!
//! # Watches
//!
//! The stream keeps the last 8 messages of each key. A watch delivers them in order, and checks by the predecessor that
//! each message names that it has missed none; if it has, or if it begins at a position older than half of `history`, it
//! answers `Compacted`. It never mends itself: at a break of the connection, a missing message or a silent server it
//! ends, and whoever watches goes on after the last position.
//!
//! A record with a time to live (a lease) that replaces one which may outlive it removes all before it, because a message
//! that the server removes must leave nothing older behind. Only right after a delete, when watches may still need what
//! was before, it stays instead, and a later beat makes up for it. Message TTLs need server 2.11; an older one would silently ignore them, so it is refused.
//!
//! # What the servers must be told
//!
//! By default JetStream acknowledges a write before it is on disk, and syncs every two minutes: a power failure, or one
//! crashed machine at an unlucky moment, loses acknowledged writes, and with them the promise of one owner. Run three
//! servers, keep `replicas = 3`, and set in each of them:
//!
//! ```text
//! jetstream { store_dir: "/var/lib/nats", sync_interval: always }
//! ```
//!
//! A client cannot see that setting, so nobody can check it for you.
//!
//! # Versions that go back
//!
//! A stream restored from a backup gives versions again that it gave before, and late writes would match. A store that
//! sees it happen refuses everything from then on and writes it down in the stream, so that no node starts: with all nodes
//! stopped, an operator calls [`raise_base`]. After every restore do so before the first node starts. A stream that is
//! created anew begins above every earlier one, and grants nothing for `settle`, while nodes may still hold keys by leases
//! that it has never heard of.
//!
//! # Rights
//!
//! One credential per datacenter or node, with no more than this (`S` the stream, `P` the prefix):
//!
//! ```text
//! publish:   "P.META.>", "$JS.API.STREAM.INFO.S", "$JS.API.STREAM.MSG.GET.S", "$JS.API.DIRECT.GET.S.>",
//!            "$JS.API.CONSUMER.CREATE.S.>", "$JS.FC.>", and the records it may write, such as "P.dc.eu-west"
//! subscribe: "_INBOX.>"
//! ```
//!
//! and `$JS.API.STREAM.CREATE.S` for whoever creates the stream. A write without the right to it is refused as `Fatal`.
//!
//! # Late writes
//!
//! The client keeps what was handed to it when the connection broke, and sends it after the reconnect, though its caller
//! may have given up long ago. Such a write was answered `Unknown`, and is stored only if what it names still stands.
//!
//! [`Store::checks_guards`]: archipelago_directory::Store::checks_guards
//! [`Read::Linearizable`]: archipelago_directory::Read::Linearizable
//! [`Read::Any`]: archipelago_directory::Read::Any

#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::sync::Arc;

use archipelago_directory::{
    ControlPlaneConfig, StoreControlPlane, StoreDirectory, StoreRoutingTable, Timer,
};

mod cas;
mod clock;
mod config;
mod error;
mod gone;
mod lasting;
mod link;
mod list;
mod message;
mod reader;
mod recent;
mod store;
mod stream;
mod subject;
mod watch;

pub use config::{InvalidName, NatsConfig, NatsTls, Replicas, ServerUrl, StreamName, SubjectPrefix};
pub use error::StartError;
pub use store::NatsStore;
pub use stream::raise_base;

/// The directory of this backend.
pub type NatsDirectory = StoreDirectory;

/// A directory above `store`.
pub fn directory(store: Arc<NatsStore>, timer: Arc<dyn Timer>) -> NatsDirectory {
    StoreDirectory::new(store, timer)
}

/// The routing table of this backend.
pub type NatsRoutingTable = StoreRoutingTable;

/// The routing tables above `store`.
pub fn routing_table(store: Arc<NatsStore>, timer: Arc<dyn Timer>) -> NatsRoutingTable {
    StoreRoutingTable::new(store, timer)
}

/// The control plane of this backend.
pub type NatsControlPlane = StoreControlPlane;

/// A control plane above `store`.
pub fn control_plane(
    store: Arc<NatsStore>,
    timer: Arc<dyn Timer>,
    config: ControlPlaneConfig,
) -> NatsControlPlane {
    StoreControlPlane::new(store, timer, config)
}
