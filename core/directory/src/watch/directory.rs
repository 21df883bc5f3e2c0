//! The scopes of the directory as views.

use archipelago_protocol::contract::{Entry, EntryId, Revision, WatchEvent, WatchScope, WatchStream};

use super::{Told, View, Watcher};
use crate::directory::StoreDirectory;
use crate::record::{Record, RecordId, Space};
use crate::value::{OwnerState, decode_lease, decode_node, decode_owner_state};

/// Watches a scope of `directory`.
pub(crate) fn watch_scope(
    directory: &StoreDirectory,
    scope: WatchScope,
    from: Option<Revision>,
) -> WatchStream {
    let (store, timer) = (directory.store.clone(), directory.timer.clone());
    let failed = directory.clone();
    Box::pin(Watcher::new(store, timer, scope, from).into_stream(event, move |error| failed.error(error)))
}

fn event(told: Told<WatchScope>) -> WatchEvent {
    match told {
        Told::Snapshot { revision, entries } => WatchEvent::Snapshot { revision, entries },
        Told::Put { revision, entry } => WatchEvent::Put { revision, entry },
        Told::Gone { revision, id } => WatchEvent::Gone { revision, id },
    }
}

impl View for WatchScope {
    type Entry = Entry;
    type Id = EntryId;

    fn space(&self) -> Space {
        match self {
            Self::Nodes => Space::NODES,
            Self::Leases => Space::LEASES,
            Self::Owners | Self::OwnedBy(_) => Space::OWNERS,
        }
    }

    fn tag(&self) -> Option<String> {
        match self {
            Self::OwnedBy(node) => Some(node.to_string()),
            _ => None,
        }
    }

    fn entry(&self, record: &Record) -> Option<Entry> {
        let decoded = match self {
            Self::Nodes => decode_node(record).map(Entry::Node).map(Some),
            Self::Leases => decode_lease(record).map(Entry::Lease).map(Some),
            Self::Owners | Self::OwnedBy(_) => {
                decode_owner_state(record).map(|state| OwnerState::owned(state).map(Entry::Owner))
            }
        };
        let entry =
            decoded.inspect_err(|error| tracing::warn!(record = %record.id, %error, "unreadable record"));
        let mine = |entry: &Entry| match (self, entry) {
            (Self::OwnedBy(node), Entry::Owner(record)) => record.placement.node == *node,
            _ => true,
        };
        entry.ok().flatten().filter(mine)
    }

    fn id(&self, id: &RecordId) -> Option<EntryId> {
        match self {
            Self::Nodes => id.key.parse().ok().map(EntryId::Node),
            Self::Leases => id.key.parse().ok().map(EntryId::Lease),
            Self::Owners | Self::OwnedBy(_) => id.key.parse().ok().map(EntryId::Owner),
        }
    }
}
