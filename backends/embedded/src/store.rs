//! The store itself: one map, one lock, one counter.
//!
//! The counter numbers every write to any record and is never set back, so it is version and position at once.
//! Invariant: `history` holds the last writes without a gap, the newest numbered `clock`.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use archipelago_directory::{
    CasAnswer, Change, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Timer, Version, Write,
};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;

use crate::config::EmbeddedConfig;
use crate::quiet::Quiet;
use crate::watch::EmbeddedWatch;

/// A linearizable store in memory. Share it as an `Arc` among the nodes of one process.
#[derive(Debug)]
pub struct EmbeddedStore {
    shared: Arc<Shared>,
}

impl EmbeddedStore {
    /// An empty store.
    pub fn new(config: EmbeddedConfig) -> Self {
        Self::with_version_base(config, 0)
    }

    /// An empty store whose versions and positions are all greater than `base`.
    ///
    /// A store that is served to other processes must never give a version that an earlier one at its place has given: a
    /// late write would match, and storages would refuse the generations. So `base` is the wall time in microseconds
    /// since 1970; no store writes once per microsecond for as long as it lives.
    pub fn with_version_base(config: EmbeddedConfig, base: u64) -> Self {
        let log = Log {
            records: BTreeMap::new(),
            clock: base,
            history: VecDeque::new(),
            limit: config.history.get(),
            sleepers: BTreeMap::new(),
            next_sleeper: 0,
            quiet: None,
        };
        Self { shared: Arc::new(Shared { log: Mutex::new(log) }) }
    }

    /// Grants nothing for `length` from now on, to nobody.
    pub(crate) fn keep_quiet(&self, timer: Arc<dyn Timer>, length: Millis) {
        self.shared.lock().quiet = Some(Quiet::new(timer, length));
    }

    pub(crate) fn watch_after(&self, space: Space, after: Position) -> Result<EmbeddedWatch, StoreError> {
        if self.shared.lock().is_compacted(after) {
            return Err(StoreError::Compacted);
        }
        Ok(EmbeddedWatch::new(Arc::clone(&self.shared), space, after))
    }

    /// The records of a space after a key, in order, as long as they fit; and whether there are more.
    pub(crate) fn page(
        &self,
        space: Space,
        tag: Option<&str>,
        after_key: Option<&str>,
        fits: impl FnMut(&Record) -> bool,
    ) -> (Records, bool) {
        self.shared.lock().page(space, tag, after_key, fits)
    }
}

impl Default for EmbeddedStore {
    fn default() -> Self {
        Self::new(EmbeddedConfig::default())
    }
}

#[async_trait]
impl Store for EmbeddedStore {
    fn name(&self) -> &'static str {
        "embedded"
    }

    fn checks_guards(&self) -> bool {
        true
    }

    async fn get(&self, id: &RecordId, _read: Read) -> Result<Option<Record>, StoreError> {
        Ok(self.shared.lock().records.get(id).cloned())
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        let (answer, sleepers) = {
            let mut log = self.shared.lock();
            log.check_quiet([id])?;
            log.cas(id, &expect, write, guard.as_ref())
        };
        // Woken without the lock: a waker may run its task on the spot.
        sleepers.into_values().for_each(Waker::wake);
        Ok(answer)
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        Ok(self.page(space, tag, None, |_| true).0)
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        Ok(Box::pin(self.watch_after(space, after)?))
    }

    /// In one step: if any of the deletes is refused, none has happened.
    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let (deleted, sleepers) = {
            let mut log = self.shared.lock();
            log.check_quiet(records.iter().map(|record| &record.id))?;
            log.delete_all(records)
        };
        sleepers.into_values().for_each(Waker::wake);
        Ok(deleted)
    }
}

#[derive(Debug)]
pub(crate) struct Shared {
    log: Mutex<Log>,
}

impl Shared {
    /// No step leaves the map half changed, so a panic elsewhere under the lock does not spoil it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Log {
    records: BTreeMap<RecordId, Record>,
    clock: u64,
    history: VecDeque<Change>,
    limit: usize,
    /// Watches that wait for the next write.
    sleepers: BTreeMap<u64, Waker>,
    next_sleeper: u64,
    /// While it lasts, nothing is granted.
    quiet: Option<Quiet>,
}

impl Log {
    fn check_quiet<'a>(&mut self, ids: impl IntoIterator<Item = &'a RecordId>) -> Result<(), StoreError> {
        self.quiet.take_if(|quiet| quiet.is_over());
        self.quiet.as_ref().map_or(Ok(()), |quiet| quiet.check(ids))
    }

    fn cas(
        &mut self,
        id: &RecordId,
        expect: &Expect,
        write: Write,
        guard: Option<&Guard>,
    ) -> (CasAnswer, BTreeMap<u64, Waker>) {
        let current = self.records.get(id);
        let expected = match (expect, current) {
            (Expect::Absent, None) => true,
            (Expect::At(seen), Some(record)) => seen.version == record.version,
            _ => false,
        };
        if !expected {
            return (CasAnswer::Conflict(current.cloned()), BTreeMap::new());
        }
        if guard.is_some_and(|guard| !self.holds(guard)) {
            return (CasAnswer::GuardFailed, BTreeMap::new());
        }
        let version = self.apply(id, write);
        (CasAnswer::Applied(version), std::mem::take(&mut self.sleepers))
    }

    fn holds(&self, guard: &Guard) -> bool {
        self.records.get(&guard.id).is_some_and(|record| record.tag == guard.tag)
    }

    fn apply(&mut self, id: &RecordId, write: Write) -> Version {
        self.clock += 1;
        let (version, position) = (Version(self.clock), Position(self.clock));
        let change = match write {
            Write::Put { tag, value, .. } => {
                let record = Record { id: id.clone(), tag, value, version };
                self.records.insert(id.clone(), record.clone());
                Change::Put { position, record }
            }
            Write::Delete => {
                self.records.remove(id);
                Change::Deleted { position, id: id.clone() }
            }
        };
        self.history.push_back(change);
        while self.history.len() > self.limit {
            self.history.pop_front();
        }
        version
    }

    fn delete_all(&mut self, records: &[Record]) -> (usize, BTreeMap<u64, Waker>) {
        let mut woken = BTreeMap::new();
        let mut deleted = 0;
        for record in records {
            let (answer, sleepers) = self.cas(&record.id, &record.expect(), Write::Delete, None);
            deleted += usize::from(matches!(answer, CasAnswer::Applied(_)));
            woken.extend(sleepers);
        }
        (deleted, woken)
    }

    fn page(
        &self,
        space: Space,
        tag: Option<&str>,
        after_key: Option<&str>,
        mut fits: impl FnMut(&Record) -> bool,
    ) -> (Records, bool) {
        let from = match after_key {
            None => Bound::Included(RecordId::new(space, "")),
            Some(key) => Bound::Excluded(RecordId::new(space, key)),
        };
        let later = self.records.range((from, Bound::Unbounded)).map(|(_, record)| record);
        let of_space = later.take_while(|record| record.id.space == space);
        let matching = of_space.filter(|record| tag.is_none() || record.tag.as_deref() == tag);
        let mut matching = matching.peekable();
        let mut records = Vec::new();
        while let Some(record) = matching.next_if(|record| fits(record)) {
            records.push(record.clone());
        }
        let more = matching.peek().is_some();
        (Records { records, position: Position(self.clock) }, more)
    }

    /// Whether a change after `after` has been forgotten, or `after` lies in the future: it is of another store.
    pub(crate) fn is_compacted(&self, after: Position) -> bool {
        let oldest = self.clock - self.history.len() as u64;
        after.0 < oldest || after.0 > self.clock
    }

    /// The first change of `space` after `after`; the position up to which there is none otherwise.
    pub(crate) fn next_change(&self, space: Space, after: Position) -> Result<Change, Position> {
        let oldest = self.clock - self.history.len() as u64;
        let skip = usize::try_from(after.0.saturating_sub(oldest)).unwrap_or(usize::MAX);
        let later = self.history.iter().skip(skip);
        later.into_iter().find(|change| change.id().space == space).cloned().ok_or(Position(self.clock))
    }

    /// Wakes `waker` at the next write; `slot` is the caller's from its last call.
    pub(crate) fn sleep(&mut self, slot: &mut Option<u64>, waker: &Waker) {
        let id = *slot.get_or_insert_with(|| {
            self.next_sleeper += 1;
            self.next_sleeper
        });
        self.sleepers.insert(id, waker.clone());
    }

    pub(crate) fn forget(&mut self, slot: u64) {
        self.sleepers.remove(&slot);
    }
}
