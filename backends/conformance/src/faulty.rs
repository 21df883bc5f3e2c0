//! The simulated store: a real one behind a network that may do anything an engine's network does.
//!
//! [`FaultyStore`] delays, refuses, loses replies, shows old states to readers, breaks watches, and keeps writes back
//! to apply them later: the caller has been told `Unknown` and may long be dead. What it never does is break the inner
//! store's compare-and-swap, so every failure of a rule above it is the rule's own. Everything is drawn from one seed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Timer, Write,
};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use futures_util::{StreamExt, stream};

use crate::rng::Rng;

/// How often what goes wrong, per thousand requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Requests refused before they reach the store.
    pub unavailable: u32,
    /// Writes applied whose reply is lost; reads without answer.
    pub lost_reply: u32,
    /// Writes kept back: the caller gets `Unknown`, the write is applied by [`FaultyStore::apply_late`]. So is every write
    /// whose caller stopped waiting before it arrived.
    pub late: u32,
    /// Reads that show an older state.
    pub stale: u32,
    /// Watch items in place of which the watch breaks.
    pub watch_break: u32,
    /// The longest delay on the way to the store, and back.
    pub max_delay: Millis,
}

/// A store in front of which everything may go wrong.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    timer: Arc<dyn Timer>,
    state: Arc<Mutex<State>>,
}

struct State {
    rng: Rng,
    faults: Faults,
    late: Vec<LateWrite>,
    /// Earlier states of each record, for stale reads.
    past: BTreeMap<RecordId, Vec<Option<Record>>>,
}

#[derive(Clone)]
struct LateWrite {
    id: RecordId,
    expect: Expect,
    write: Write,
    guard: Option<Guard>,
}

/// A write on its way. Dropped before it arrives, it may still arrive later: that is what clients that reconnect do.
struct Underway {
    state: Arc<Mutex<State>>,
    write: Option<LateWrite>,
}

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(write) = self.write.take() {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).late.push(write);
        }
    }
}

enum Fate {
    Refused,
    Served,
    ReplyLost,
    Late,
}

impl FaultyStore {
    /// Puts faults in front of `inner`, drawn from `seed`.
    pub fn new(inner: Arc<dyn Store>, timer: Arc<dyn Timer>, seed: u64, faults: Faults) -> Self {
        let state = State { rng: Rng::new(seed), faults, late: Vec::new(), past: BTreeMap::new() };
        Self { inner, timer, state: Arc::new(Mutex::new(state)) }
    }

    /// Changes what goes wrong from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// How many writes are kept back.
    pub fn late_writes(&self) -> usize {
        self.lock().late.len()
    }

    /// Applies one write that was kept back, any of them; `false` if there is none.
    pub async fn apply_late(&self) -> bool {
        let Some(write) = self.lock().take_late() else { return false };
        let LateWrite { id, expect, write, guard } = write;
        self.remember(&id).await;
        // Nobody waits for the answer any more.
        drop(self.inner.cas(&id, expect, write, guard).await);
        true
    }

    /// Applies everything that was kept back, in any order.
    pub async fn flush_late(&self) {
        while self.apply_late().await {}
    }

    async fn travel(&self) {
        let delay = self.lock().delay();
        if delay > Millis::ZERO {
            self.timer.sleep(delay).await;
        }
    }

    /// Keeps the present state of a record before it changes.
    async fn remember(&self, id: &RecordId) {
        if let Ok(now) = self.inner.get(id, Read::Linearizable).await {
            let mut state = self.lock();
            let past = state.past.entry(id.clone()).or_default();
            if past.last() != Some(&now) {
                past.push(now);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for FaultyStore {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn checks_guards(&self) -> bool {
        self.inner.checks_guards()
    }

    fn max_value(&self) -> usize {
        self.inner.max_value()
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.travel().await;
        match self.lock().read_fate() {
            Fate::Refused => return Err(unavailable()),
            Fate::ReplyLost | Fate::Late => return Err(unknown()),
            Fate::Served => {}
        }
        if let Some(old) = self.lock().stale(id) {
            return Ok(old);
        }
        let answer = self.inner.get(id, read).await;
        self.travel().await;
        answer
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        let late = LateWrite { id: id.clone(), expect, write, guard };
        let mut underway = Underway { state: Arc::clone(&self.state), write: Some(late) };
        self.travel().await;
        let fate = self.lock().write_fate();
        let Some(write) = underway.write.take() else { return Err(unknown()) };
        match fate {
            Fate::Refused => return Err(unavailable()),
            Fate::Late => {
                self.lock().late.push(write);
                self.travel().await;
                return Err(unknown());
            }
            Fate::Served | Fate::ReplyLost => {}
        }
        self.remember(id).await;
        let LateWrite { id, expect, write, guard } = write;
        let answer = self.inner.cas(&id, expect, write, guard).await;
        self.travel().await;
        if matches!(fate, Fate::ReplyLost) { Err(unknown()) } else { answer }
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        self.travel().await;
        match self.lock().read_fate() {
            Fate::Refused => return Err(unavailable()),
            Fate::ReplyLost | Fate::Late => return Err(unknown()),
            Fate::Served => {}
        }
        let answer = self.inner.list(space, tag).await;
        self.travel().await;
        answer
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        self.travel().await;
        if matches!(self.lock().read_fate(), Fate::Refused) {
            return Err(unavailable());
        }
        let changes = self.inner.watch(space, after).await?;
        let state = Arc::clone(&self.state);
        let breaking = changes.map(move |change| {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.break_watch().map_or(change, Err)
        });
        // What follows an error would be a gap: the watch ends with it.
        Ok(Box::pin(stream::unfold(Some(breaking), |changes| async {
            let mut changes = changes?;
            let item = changes.next().await?;
            let rest = item.is_ok().then_some(changes);
            Some((item, rest))
        })))
    }
}

impl State {
    fn delay(&mut self) -> Millis {
        Millis(self.rng.below(self.faults.max_delay.0 + 1))
    }

    fn read_fate(&mut self) -> Fate {
        if self.rng.chance(self.faults.unavailable) {
            return Fate::Refused;
        }
        if self.rng.chance(self.faults.lost_reply) { Fate::ReplyLost } else { Fate::Served }
    }

    fn write_fate(&mut self) -> Fate {
        match self.read_fate() {
            Fate::Served if self.rng.chance(self.faults.late) => Fate::Late,
            fate => fate,
        }
    }

    fn stale(&mut self, id: &RecordId) -> Option<Option<Record>> {
        if !self.rng.chance(self.faults.stale) {
            return None;
        }
        let past = self.past.get(id).filter(|past| !past.is_empty())?;
        Some(past[self.rng.index(past.len())].clone())
    }

    fn break_watch(&mut self) -> Option<StoreError> {
        let broken = self.rng.chance(self.faults.watch_break);
        broken.then(|| if self.rng.chance(300) { StoreError::Compacted } else { unavailable() })
    }

    fn take_late(&mut self) -> Option<LateWrite> {
        let count = self.late.len();
        (count > 0).then(|| self.late.swap_remove(self.rng.index(count)))
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable { source: "refused by the simulated store".into() }
}

fn unknown() -> StoreError {
    StoreError::Unknown { source: "no reply from the simulated store".into() }
}
