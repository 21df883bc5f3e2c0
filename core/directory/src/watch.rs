//! The watch contract above a store's own watch: a snapshot, then every change after it, whatever breaks underneath.
//!
//! [`Watcher`] remembers which versions it has told of. A broken store watch is taken up again after the last position;
//! one that was compacted is replaced by a listing, and the difference is told. What is watched, and what it is called,
//! is for a [`View`] to say. Invariant: whoever takes in all events holds what the store held at the last event's
//! revision.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use archipelago_protocol::contract::Revision;
use archipelago_protocol::time::Millis;
use futures_core::Stream;
use futures_util::StreamExt;
use futures_util::stream;

use crate::record::{Position, Record, RecordId, Space, Version};
use crate::store::{Change, Records, Store, StoreError, StoreWatch};
use crate::timer::Timer;

mod directory;

pub(crate) use directory::watch_scope;

/// What somebody watches.
pub(crate) trait View: Send + Sync + 'static {
    /// A record as the watcher understands it.
    type Entry: Send;
    /// The name of an entry.
    type Id: Ord + Clone + Send;

    fn space(&self) -> Space;

    /// The tag of the records to list; `None` = all.
    fn tag(&self) -> Option<String> {
        None
    }

    /// The record as an entry; `None` if it is none of this view's, or cannot be read: it must not stop the others.
    fn entry(&self, record: &Record) -> Option<Self::Entry>;

    fn id(&self, id: &RecordId) -> Option<Self::Id>;
}

/// One change of a view.
pub(crate) enum Told<V: View> {
    Snapshot { revision: Revision, entries: Vec<V::Entry> },
    Put { revision: Revision, entry: V::Entry },
    Gone { revision: Revision, id: V::Id },
}

/// One watch of a view, over as many store watches as it takes.
pub(crate) struct Watcher<V: View> {
    store: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    view: V,
    /// Where the next store watch starts; `None` = list first.
    after: Option<Position>,
    /// What was told, by name; `None` while nothing is known about the time before `after`.
    told: Option<BTreeMap<V::Id, Version>>,
    changes: Option<StoreWatch>,
    ready: VecDeque<Told<V>>,
    failures: u32,
}

impl<V: View> Watcher<V> {
    pub(crate) fn new(store: Arc<dyn Store>, timer: Arc<dyn Timer>, view: V, from: Option<Revision>) -> Self {
        let after = from.map(|revision| Position(revision.0));
        Self { store, timer, view, after, told: None, changes: None, ready: VecDeque::new(), failures: 0 }
    }

    /// The changes, each as `event` makes it of what was told; ends after an error that no retry can mend.
    pub(crate) fn into_stream<T, E>(
        self,
        event: impl Fn(Told<V>) -> T + Send + 'static,
        failed: impl Fn(StoreError) -> E + Send + 'static,
    ) -> impl Stream<Item = Result<T, E>> + Send
    where
        T: Send + 'static,
        E: Send + 'static,
    {
        let told = stream::unfold(Some(self), |watcher| async {
            let mut watcher = watcher?;
            match watcher.next().await {
                Ok(told) => Some((Ok(told), Some(watcher))),
                Err(error) => Some((Err(error), None)),
            }
        });
        told.map(move |told| told.map(&event).map_err(&failed))
    }

    async fn next(&mut self) -> Result<Told<V>, StoreError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            match self.advance().await {
                Ok(()) => self.failures = 0,
                Err(StoreError::Compacted) => (self.changes, self.after) = (None, None),
                Err(error @ StoreError::Fatal { .. }) => return Err(error),
                Err(error) => self.back_off(error).await,
            }
        }
    }

    /// One step: takes a change, or takes the store watch up again, or lists.
    async fn advance(&mut self) -> Result<(), StoreError> {
        match (&mut self.changes, self.after) {
            (Some(changes), _) => match changes.next().await {
                Some(change) => self.on_change(change?),
                None => return Err(StoreError::Unavailable { source: "the watch ended".into() }),
            },
            (None, Some(after)) => self.changes = Some(self.store.watch(self.view.space(), after).await?),
            (None, None) => {
                let tag = self.view.tag();
                let listed = self.store.list(self.view.space(), tag.as_deref()).await?;
                self.on_listed(&listed);
            }
        }
        Ok(())
    }

    async fn back_off(&mut self, error: StoreError) {
        self.changes = None;
        self.failures = (self.failures + 1).min(MAX_DOUBLINGS);
        tracing::debug!(space = %self.view.space(), %error, "watch broke");
        self.timer.sleep(Millis(FIRST_PAUSE.0 << self.failures)).await;
    }

    fn on_change(&mut self, change: Change) {
        let position = change.position();
        if self.after.is_some_and(|after| position < after) {
            return;
        }
        self.after = Some(position);
        let revision = Revision(position.0);
        match change {
            Change::Put { record, .. } => match self.view.entry(&record) {
                Some(entry) => self.tell_put(revision, entry, &record),
                None => self.tell_gone(revision, &record.id),
            },
            Change::Deleted { id, .. } => self.tell_gone(revision, &id),
        }
    }

    fn tell_put(&mut self, revision: Revision, entry: V::Entry, record: &Record) {
        if let (Some(told), Some(id)) = (&mut self.told, self.view.id(&record.id)) {
            told.insert(id, record.version);
        }
        self.ready.push_back(Told::Put { revision, entry });
    }

    /// Told of what was known, and of what may have been before this watch began.
    fn tell_gone(&mut self, revision: Revision, id: &RecordId) {
        let Some(id) = self.view.id(id) else { return };
        if self.told.as_mut().is_none_or(|told| told.remove(&id).is_some()) {
            self.ready.push_back(Told::Gone { revision, id });
        }
    }

    fn on_listed(&mut self, listed: &Records) {
        let entries = listed
            .records
            .iter()
            .filter_map(|record| Some((self.view.id(&record.id)?, record.version, self.view.entry(record)?)));
        let entries: Vec<(V::Id, Version, V::Entry)> = entries.collect();
        let revision = Revision(listed.position.0);
        let now = entries.iter().map(|(id, version, _)| (id.clone(), *version)).collect();
        match self.told.replace(now) {
            None => {
                let entries = entries.into_iter().map(|(_, _, entry)| entry).collect();
                self.ready.push_back(Told::Snapshot { revision, entries });
            }
            Some(before) => self.tell_difference(revision, before, entries),
        }
        self.after = Some(listed.position);
    }

    fn tell_difference(
        &mut self,
        revision: Revision,
        mut before: BTreeMap<V::Id, Version>,
        entries: Vec<(V::Id, Version, V::Entry)>,
    ) {
        let mut changed = Vec::new();
        for (id, version, entry) in entries {
            if before.remove(&id) != Some(version) {
                changed.push(Told::Put { revision, entry });
            }
        }
        self.ready.extend(before.into_keys().map(|id| Told::Gone { revision, id }));
        self.ready.extend(changed);
    }
}

/// Doubled with every failure in a row, up to 3.2 s.
const FIRST_PAUSE: Millis = Millis(50);
const MAX_DOUBLINGS: u32 = 6;
