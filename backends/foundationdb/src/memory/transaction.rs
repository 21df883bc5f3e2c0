//! A transaction in memory, and its watches.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::future::BoxFuture;

use super::MemoryEngine;
use super::database::{Commit, Mutation};
use crate::code::Code;
use crate::engine::{Isolation, Page, Transaction, Uncommitted};
use crate::keys::after;

pub(super) struct MemoryTransaction {
    engine: MemoryEngine,
    draft: Mutex<Commit>,
}

impl MemoryTransaction {
    pub(super) fn new(engine: MemoryEngine) -> Self {
        Self { engine, draft: Mutex::default() }
    }

    fn draft(&self) -> MutexGuard<'_, Commit> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, mutation: Mutation) {
        self.draft().write(mutation);
    }

    /// The snapshot, taken with the first read.
    fn snapshot(&self) -> Result<u64, Code> {
        let mut draft = self.draft();
        if let Some(code) = draft.refused {
            return Err(code);
        }
        if let Some(version) = draft.read_version {
            return Ok(version);
        }
        let mut state = self.engine.lock();
        let behind = state.breakage.future_version;
        if state.chance(behind) {
            return Err(Code::FUTURE_VERSION);
        }
        Ok(*draft.read_version.insert(state.database.read_version()))
    }

    /// The snapshot, for a read that may fail.
    fn reads(&self) -> Result<u64, Code> {
        let version = self.snapshot()?;
        let mut state = self.engine.lock();
        let too_old = state.breakage.too_old;
        if state.chance(too_old) {
            state.tally.too_old += 1;
            return Err(Code::TRANSACTION_TOO_OLD);
        }
        Ok(version)
    }

    fn has_read(&self, begin: &[u8], end: Vec<u8>, isolation: Isolation) {
        if isolation == Isolation::Serializable {
            self.draft().reads.push((begin.to_vec(), end));
        }
    }

    /// Lets others have their turn, sometimes; then waits for servers that are away, and answers whether they were.
    async fn pause(&self) -> bool {
        let mut waits = {
            let mut state = self.engine.lock();
            let waits = state.breakage.waits;
            state.chance(waits)
        };
        poll_fn(|context| {
            if std::mem::take(&mut waits) {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        self.engine.is_back().await
    }
}

#[async_trait]
impl Transaction for MemoryTransaction {
    async fn read_version(&self) -> Result<u64, Code> {
        self.pause().await;
        self.snapshot()
    }

    async fn get(&self, key: &[u8], isolation: Isolation) -> Result<Option<Bytes>, Code> {
        self.pause().await;
        let at = self.reads()?;
        let found = self.engine.lock().database.get(key, at)?;
        self.engine.takes_time(1, at)?;
        self.has_read(key, after(key), isolation);
        Ok(found)
    }

    async fn range(
        &self,
        begin: &[u8],
        end: &[u8],
        limit: usize,
        isolation: Isolation,
    ) -> Result<Page, Code> {
        self.pause().await;
        let at = self.reads()?;
        let page = {
            let mut state = self.engine.lock();
            let short = state.breakage.short_page;
            let limit = if state.chance(short) { limit.min(1 + state.below(2) as usize) } else { limit };
            state.database.range(begin, end, at, limit)?
        };
        self.engine.takes_time(page.pairs.len(), at)?;
        let end = page.pairs.last().filter(|_| page.more).map_or_else(|| end.to_vec(), |(key, _)| after(key));
        self.has_read(begin, end, isolation);
        Ok(page)
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.write(Mutation::Set(key.to_vec(), Bytes::copy_from_slice(value)));
    }

    fn clear(&self, key: &[u8]) {
        self.clear_range(key, &after(key));
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.write(Mutation::Clear((begin.to_vec(), end.to_vec())));
    }

    fn set_max(&self, key: &[u8], value: &[u8]) {
        self.write(Mutation::Max(key.to_vec(), Bytes::copy_from_slice(value)));
    }

    fn set_versionstamped_key(&self, key: &[u8], value: &[u8]) {
        self.write(Mutation::StampedKey(key.to_vec(), Bytes::copy_from_slice(value)));
    }

    fn set_versionstamped_value(&self, key: &[u8], value: &[u8]) {
        self.write(Mutation::StampedValue(key.to_vec(), Bytes::copy_from_slice(value)));
    }

    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<(), Code>> {
        let at = self.snapshot();
        let mut state = self.engine.lock();
        let (refused, deaf) = (state.breakage.watch_refused, state.breakage.watch_deaf);
        if state.chance(refused) {
            return Box::pin(async { Err(Code::TOO_MANY_WATCHES) });
        }
        if state.chance(deaf) {
            return Box::pin(std::future::pending());
        }
        match at.and_then(|at| state.database.get(key, at)) {
            Ok(was) => {
                let (engine, key, life) = (self.engine.clone(), key.to_vec(), state.life);
                Box::pin(MemoryWatch { engine, key, was, life, slot: None })
            }
            Err(code) => Box::pin(async move { Err(code) }),
        }
    }

    async fn commit(self: Box<Self>) -> Result<Option<u64>, Uncommitted> {
        let was_away = self.pause().await;
        let draft = std::mem::take(&mut *self.draft());
        if draft.writes.is_empty() && draft.refused.is_none() {
            return Ok(None);
        }
        let (answer, sleepers) = {
            let mut state = self.engine.lock();
            let answer = if was_away { state.lose() } else { state.commit(draft) };
            (answer, std::mem::take(&mut state.sleepers))
        };
        // Woken without the lock: a waker may run its task on the spot.
        sleepers.into_values().for_each(Waker::wake);
        answer.map(Some).map_err(|code| Uncommitted { code, transaction: self })
    }

    async fn on_error(self: Box<Self>, code: Code) -> Result<Box<dyn Transaction>, Code> {
        self.pause().await;
        if code.is_retryable() { Ok(Box::new(self.engine.transaction())) } else { Err(code) }
    }
}

/// Completes when a key has another value than it had.
struct MemoryWatch {
    engine: MemoryEngine,
    key: Vec<u8>,
    was: Option<Bytes>,
    /// In which life of the database it was set.
    life: u32,
    slot: Option<u64>,
}

impl Future for MemoryWatch {
    type Output = Result<(), Code>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mut state = this.engine.lock();
        if state.life != this.life {
            return Poll::Ready(Err(Code::OPERATION_CANCELLED));
        }
        if state.database.newest(&this.key) != this.was {
            return Poll::Ready(Ok(()));
        }
        let slot = *this.slot.get_or_insert_with(|| {
            state.next_sleeper += 1;
            state.next_sleeper
        });
        state.sleepers.insert(slot, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            self.engine.lock().sleepers.remove(&slot);
        }
    }
}
