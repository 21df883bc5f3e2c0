//! Watching the directory: one contract for everything that changes in it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::pin::Pin;

use futures_core::Stream;

use crate::contract::{DirectoryError, OwnerRecord};
use crate::identity::{NodeId, NodeInfo, OwnedKey};
use crate::session::LeaseSeen;

/// A point in the history of the store. Grows; comparable within one datacenter only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// What to watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// The nodes that announced themselves.
    Nodes,
    /// All leases; only monitors watch these, because every beat is a change.
    Leases,
    /// All owner records.
    Owners,
    /// The owner records of one node (MY-RECORDS); a record that moves to another node counts as gone.
    OwnedBy(NodeId),
}

/// Something that the directory holds, as watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A node's poster.
    Node(NodeInfo),
    /// A lease.
    Lease(LeaseSeen),
    /// An owner record.
    Owner(OwnerRecord),
}

/// The name of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryId {
    /// A node's poster.
    Node(NodeId),
    /// A lease.
    Lease(NodeId),
    /// An owner record.
    Owner(OwnedKey),
}

impl Entry {
    /// The entry's name.
    pub fn id(&self) -> EntryId {
        match self {
            Self::Node(info) => EntryId::Node(info.id),
            Self::Lease(seen) => EntryId::Lease(seen.id),
            Self::Owner(record) => EntryId::Owner(record.placement.key.clone()),
        }
    }
}

/// One change. Delivered at least once and in order, so it may repeat what is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchEvent {
    /// Everything there is at `revision`; replaces all that was known.
    Snapshot {
        /// The point in history that the snapshot shows.
        revision: Revision,
        /// All entries of the scope.
        entries: Vec<Entry>,
    },
    /// An entry is new or has changed.
    Put {
        /// The point in history of the change.
        revision: Revision,
        /// The entry as it stands.
        entry: Entry,
    },
    /// An entry is gone.
    Gone {
        /// The point in history of the change.
        revision: Revision,
        /// Which one.
        id: EntryId,
    },
}

impl WatchEvent {
    /// The point in history up to which the watcher knows everything, once it has taken this event in.
    pub const fn revision(&self) -> Revision {
        match self {
            Self::Snapshot { revision, .. } | Self::Put { revision, .. } | Self::Gone { revision, .. } => {
                *revision
            }
        }
    }
}

/// The changes of a [`WatchScope`]; ends only when dropped, or after an error that no retry can mend.
pub type WatchStream = Pin<Box<dyn Stream<Item = Result<WatchEvent, DirectoryError>> + Send>>;
