//! The watch contract above a store's own watch: a snapshot, then every change after it, whatever breaks underneath.
//!
//! [`Watcher`] remembers which versions it has told of. A broken store watch is taken up again after the last position;
//! one that was compacted is replaced by a listing, and the difference is told. Invariant: whoever takes in all events
//! holds what the store held at the last event's revision.

use std::collections::{BTreeMap, VecDeque};

use archipelago_protocol::contract::{
    DirectoryError, Entry, EntryId, Revision, WatchEvent, WatchScope, WatchStream,
};
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use futures_util::stream;

use crate::directory::StoreDirectory;
use crate::record::{Position, Record, RecordId, Space, Version};
use crate::store::{Change, Records, StoreError, StoreWatch};
use crate::value::{decode_lease, decode_node, decode_owner};

/// One watch of a scope, over as many store watches as it takes.
pub(crate) struct Watcher {
    directory: StoreDirectory,
    scope: WatchScope,
    /// Where the next store watch starts; `None` = list first.
    after: Option<Position>,
    /// What was told, by name; `None` while nothing is known about the time before `after`.
    told: Option<BTreeMap<EntryId, Version>>,
    changes: Option<StoreWatch>,
    ready: VecDeque<WatchEvent>,
    failures: u32,
}

impl Watcher {
    pub(crate) fn new(directory: StoreDirectory, scope: WatchScope, from: Option<Revision>) -> Self {
        let after = from.map(|revision| Position(revision.0));
        Self { directory, scope, after, told: None, changes: None, ready: VecDeque::new(), failures: 0 }
    }

    pub(crate) fn into_stream(self) -> WatchStream {
        Box::pin(stream::unfold(Some(self), |watcher| async {
            let mut watcher = watcher?;
            match watcher.next().await {
                Ok(event) => Some((Ok(event), Some(watcher))),
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn next(&mut self) -> Result<WatchEvent, DirectoryError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.advance().await {
                Ok(()) => self.failures = 0,
                Err(StoreError::Compacted) => (self.changes, self.after) = (None, None),
                Err(error @ StoreError::Fatal { .. }) => return Err(self.directory.error(error)),
                Err(error) => self.back_off(error).await,
            }
        }
    }

    /// One step: takes a change, or takes the store watch up again, or lists.
    async fn advance(&mut self) -> Result<(), StoreError> {
        let store = self.directory.store.clone();
        match (&mut self.changes, self.after) {
            (Some(changes), _) => match changes.next().await {
                Some(change) => self.on_change(change?),
                None => return Err(StoreError::Unavailable { source: "the watch ended".into() }),
            },
            (None, Some(after)) => self.changes = Some(store.watch(self.space(), after).await?),
            (None, None) => {
                let listed = store.list(self.space(), self.tag().as_deref()).await?;
                self.on_listed(&listed);
            }
        }
        Ok(())
    }

    async fn back_off(&mut self, error: StoreError) {
        self.changes = None;
        self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
        tracing::debug!(scope = ?self.scope, %error, "watch broke");
        self.directory.timer.sleep(Millis(FIRST_PAUSE.0 << self.failures)).await;
    }

    fn on_change(&mut self, change: Change) {
        let position = change.position();
        if self.after.is_some_and(|after| position < after) {
            return;
        }
        self.after = Some(position);
        let revision = Revision(position.0);
        match change {
            Change::Put { record, .. } => match self.entry(&record) {
                Some(entry) => self.tell_put(revision, entry, record.version),
                None => self.tell_gone(revision, &record.id),
            },
            Change::Deleted { id, .. } => self.tell_gone(revision, &id),
        }
    }

    fn tell_put(&mut self, revision: Revision, entry: Entry, version: Version) {
        if let Some(told) = &mut self.told {
            told.insert(entry.id(), version);
        }
        self.ready.push_back(WatchEvent::Put { revision, entry });
    }

    /// Told of what was known, and of what may have been before this watch began.
    fn tell_gone(&mut self, revision: Revision, id: &RecordId) {
        let Some(id) = self.entry_id(id) else { return };
        if self.told.as_mut().is_none_or(|told| told.remove(&id).is_some()) {
            self.ready.push_back(WatchEvent::Gone { revision, id });
        }
    }

    fn on_listed(&mut self, listed: &Records) {
        let entries = listed.records.iter().filter_map(|record| Some((self.entry(record)?, record.version)));
        let entries: Vec<(Entry, Version)> = entries.collect();
        let revision = Revision(listed.position.0);
        let now: BTreeMap<EntryId, Version> = entries.iter().map(|(e, version)| (e.id(), *version)).collect();
        match self.told.replace(now.clone()) {
            None => {
                let entries = entries.into_iter().map(|(entry, _)| entry).collect();
                self.ready.push_back(WatchEvent::Snapshot { revision, entries });
            }
            Some(before) => self.tell_difference(revision, &before, &now, entries),
        }
        self.after = Some(listed.position);
    }

    fn tell_difference(
        &mut self,
        revision: Revision,
        before: &BTreeMap<EntryId, Version>,
        now: &BTreeMap<EntryId, Version>,
        entries: Vec<(Entry, Version)>,
    ) {
        let gone = before.keys().filter(|id| !now.contains_key(id)).cloned();
        self.ready.extend(gone.map(|id| WatchEvent::Gone { revision, id }));
        let changed = entries.into_iter().filter(|(entry, version)| before.get(&entry.id()) != Some(version));
        self.ready.extend(changed.map(|(entry, _)| WatchEvent::Put { revision, entry }));
    }

    fn space(&self) -> Space {
        match self.scope {
            WatchScope::Nodes => Space::NODES,
            WatchScope::Leases => Space::LEASES,
            WatchScope::Owners | WatchScope::OwnedBy(_) => Space::OWNERS,
        }
    }

    fn tag(&self) -> Option<String> {
        match self.scope {
            WatchScope::OwnedBy(node) => Some(node.to_string()),
            _ => None,
        }
    }

    /// The record as an entry of this scope. One that cannot be read is left out: it must not stop the others.
    fn entry(&self, record: &Record) -> Option<Entry> {
        let decoded = match self.scope {
            WatchScope::Nodes => decode_node(record).map(Entry::Node),
            WatchScope::Leases => decode_lease(record).map(Entry::Lease),
            WatchScope::Owners | WatchScope::OwnedBy(_) => decode_owner(record).map(Entry::Owner),
        };
        let entry =
            decoded.inspect_err(|error| tracing::warn!(record = %record.id, %error, "unreadable record"));
        let mine = |entry: &Entry| match (&self.scope, entry) {
            (WatchScope::OwnedBy(node), Entry::Owner(record)) => record.placement.node == *node,
            _ => true,
        };
        entry.ok().filter(mine)
    }

    fn entry_id(&self, id: &RecordId) -> Option<EntryId> {
        match self.scope {
            WatchScope::Nodes => id.key.parse().ok().map(EntryId::Node),
            WatchScope::Leases => id.key.parse().ok().map(EntryId::Lease),
            WatchScope::Owners | WatchScope::OwnedBy(_) => id.key.parse().ok().map(EntryId::Owner),
        }
    }
}

/// Doubled with every failure in a row, up to 3.2 s.
const FIRST_PAUSE: Millis = Millis(50);
const MAX_DOUBLINGS: u32 = 6;
