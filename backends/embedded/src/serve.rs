//! Serving an [`EmbeddedStore`] to other processes: reads a request, runs it, writes the answer.
//!
//! [`StoreServer`] keeps nothing about its clients, so that any number of them may come, go, and repeat themselves; how
//! bytes travel is the caller's. Invariant: a request is carried out only by the instance it names, and an answer is
//! never longer than [`MAX_MESSAGE`].

use std::pin::pin;
use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Change, Position, Read, Record, RecordId, Store, StoreError, Timer, Version,
};
use archipelago_protocol::time::Millis;
use bytes::Bytes;
use futures_util::future::{self, BoxFuture, Either, FutureExt};
use futures_util::stream::StreamExt;

use crate::store::EmbeddedStore;
use crate::watch::EmbeddedWatch;
use crate::wire::{self, Answer, Cas, Event, Id, Item, MAX_MESSAGE, Op, Outcome, Request, WireError};

/// Answers the requests of [`ServedStore`](crate::ServedStore)s. Clones serve the same store.
#[derive(Clone)]
pub struct StoreServer {
    served: Arc<Served>,
}

struct Served {
    store: Arc<EmbeddedStore>,
    instance: u64,
    timer: Arc<dyn Timer>,
}

impl StoreServer {
    /// Serves `store` as the instance `instance`, a number drawn anew with each start of the process.
    ///
    /// Make it before anybody uses `store`, and give `store` a version base. For `quiet` from now on, measured by `timer`,
    /// the store grants nothing to anybody, neither to remote nodes nor to those of this process that use `store` directly:
    /// every write but to leases and posters is refused as `Unavailable`, while reads and sessions work. A node may still
    /// serve keys by a lease that an earlier instance gave, and this one cannot know. So `quiet` is W, the
    /// [`observer_wait`](archipelago_protocol::session::times::observer_wait) of the longest time to live that any session
    /// of the cluster has. The very first start waits as well: it cannot know that it is the first. Zero is safe only
    /// where no node can have outlived an earlier instance, as in a test.
    pub fn new(store: Arc<EmbeddedStore>, instance: u64, timer: Arc<dyn Timer>, quiet: Millis) -> Self {
        if quiet > Millis::ZERO {
            store.keep_quiet(Arc::clone(&timer), quiet);
        }
        Self { served: Arc::new(Served { store, instance, timer }) }
    }

    /// The instance that every answer names.
    pub fn instance(&self) -> u64 {
        self.served.instance
    }

    /// Carries out one request and answers it; whatever the bytes are, there is an answer.
    ///
    /// Takes up to 2 s for a request that waits for changes, and no time for all others. A dropped future stops waiting;
    /// what it has written stays.
    pub fn serve(&self, request: Bytes) -> BoxFuture<'static, Bytes> {
        let served = Arc::clone(&self.served);
        Box::pin(async move {
            let answer = served.carry_out(&request).await;
            answer.unwrap_or_else(|refused| served.refuse(&refused))
        })
    }
}

impl Served {
    async fn carry_out(&self, request: &[u8]) -> Result<Bytes, Refused> {
        let Request { instance, op } = wire::decode(request)?;
        match (instance, &op) {
            (None, Op::Instance) => return Ok(self.answer(Outcome::Instance)),
            (None, _) => return Err(WireError::Nonsense("the request names no instance").into()),
            (Some(instance), _) if instance != self.instance => {
                return Ok(self.answer(Outcome::OtherInstance));
            }
            (Some(_), _) => {}
        }
        match op {
            Op::Instance => Ok(self.answer(Outcome::Instance)),
            Op::Get(id) => self.get(id).await,
            Op::Cas(cas) => self.cas(cas).await,
            Op::List { space, tag, after_key, max_bytes } => self.list(space, tag, after_key, max_bytes),
            Op::Watch { space, after, wait, max } => {
                let watch = self.store.watch_after(wire::space(space)?, Position(after))?;
                self.wait_for_changes(watch, wait.min(MAX_WAIT), max).await
            }
            Op::DeleteAll(records) => self.delete_all(records).await,
        }
    }

    async fn get(&self, id: Id<'_>) -> Result<Bytes, Refused> {
        let found = self.store.get(&id.read()?, Read::Linearizable).await?;
        Ok(self.answer(Outcome::Found(found.as_ref().map(Item::of))))
    }

    async fn cas(&self, cas: Cas<'_>) -> Result<Bytes, Refused> {
        let (id, expect, write, guard) = cas.read()?;
        let answer = self.store.cas(&id, expect, write, guard).await?;
        Ok(self.answer(match &answer {
            CasAnswer::Applied(version) => Outcome::Applied(version.0),
            CasAnswer::Conflict(current) => Outcome::Conflict(current.as_ref().map(Item::of)),
            CasAnswer::GuardFailed => Outcome::GuardFailed,
        }))
    }

    fn list(
        &self,
        space: &str,
        tag: Option<&str>,
        after_key: Option<&str>,
        max_bytes: u32,
    ) -> Result<Bytes, Refused> {
        let (space, after_key) = (wire::space(space)?, after_key.map(wire::text).transpose()?);
        let mut room = Room::new(max_bytes);
        let fits = |record: &Record| room.takes(Item::size(record));
        let (page, more) = self.store.page(space, tag, after_key, fits);
        if more && page.records.is_empty() {
            return Err(too_large().into());
        }
        let records = page.records.iter().map(Item::of).collect();
        Ok(self.answer(Outcome::Page { records, position: page.position.0, more }))
    }

    /// Waits for a first change, and takes what has come by then.
    async fn wait_for_changes(
        &self,
        mut watch: EmbeddedWatch,
        wait: Millis,
        max: u32,
    ) -> Result<Bytes, Refused> {
        let mut searched_to = watch.searched_to();
        let mut room = Room::new(u32::MAX);
        let mut changes: Vec<Change> = Vec::new();
        let mut next = self.first_change(&mut watch, wait).await;
        while let Some(change) = next {
            let change = change?;
            if !room.takes(Event::size(&change)) {
                if changes.is_empty() {
                    return Err(too_large().into());
                }
                return Ok(self.changes(&changes, searched_to));
            }
            searched_to = change.position();
            changes.push(change);
            if changes.len() >= MAX_CHANGES.min(max as usize) {
                return Ok(self.changes(&changes, searched_to));
            }
            next = watch.next().now_or_never().flatten();
        }
        Ok(self.changes(&changes, watch.searched_to()))
    }

    async fn first_change(
        &self,
        watch: &mut EmbeddedWatch,
        wait: Millis,
    ) -> Option<Result<Change, StoreError>> {
        if wait == Millis::ZERO {
            return watch.next().now_or_never().flatten();
        }
        match future::select(pin!(watch.next()), self.timer.sleep(wait)).await {
            Either::Left((change, _)) => change,
            Either::Right(_) => None,
        }
    }

    fn changes(&self, changes: &[Change], searched_to: Position) -> Bytes {
        let changes = changes.iter().map(Event::of).collect();
        self.answer(Outcome::Changes { changes, searched_to: searched_to.0 })
    }

    async fn delete_all(&self, records: Vec<(Id<'_>, u64)>) -> Result<Bytes, Refused> {
        let records = records.into_iter().map(|(id, version)| Ok(at_version(id.read()?, version)));
        let records = records.collect::<Result<Vec<Record>, WireError>>()?;
        let deleted = self.store.delete_all(&records).await?;
        Ok(self.answer(Outcome::Deleted(deleted as u64)))
    }

    /// A record of this process may be longer than a message: that must not go unnoticed, nor stop the server.
    fn answer(&self, outcome: Outcome<'_>) -> Bytes {
        let answer = wire::encode(&Answer { instance: self.instance, outcome });
        if answer.len() <= MAX_MESSAGE { answer } else { self.refuse(&too_large().into()) }
    }

    fn refuse(&self, refused: &Refused) -> Bytes {
        match refused {
            Refused::Unread(error) => self.answer(Outcome::Malformed(&error.to_string())),
            Refused::Store(StoreError::Unavailable { source }) => {
                self.answer(Outcome::Unavailable(&source.to_string()))
            }
            Refused::Store(StoreError::Compacted) => self.answer(Outcome::Compacted),
            Refused::Store(StoreError::Fatal { source }) => self.answer(Outcome::Fatal(&source.to_string())),
            Refused::Store(other) => self.answer(Outcome::Unknown(&other.to_string())),
        }
    }
}

/// Why a request has no result.
enum Refused {
    Unread(WireError),
    Store(StoreError),
}

impl From<WireError> for Refused {
    fn from(error: WireError) -> Self {
        Self::Unread(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// How much of an answer is left.
struct Room {
    asked: usize,
    left: usize,
}

impl Room {
    fn new(asked: u32) -> Self {
        Self { asked: asked as usize, left: MAX_MESSAGE - HEAD }
    }

    /// Takes one more if it fits. The first may be longer than was asked for, or its reader would never get past it.
    fn takes(&mut self, size: usize) -> bool {
        let used = MAX_MESSAGE - HEAD - self.left;
        if size > self.left || (used > 0 && used + size > self.asked) {
            return false;
        }
        self.left -= size;
        true
    }
}

fn at_version(id: RecordId, version: u64) -> Record {
    Record { id, tag: None, value: Bytes::new(), version: Version(version) }
}

fn too_large() -> StoreError {
    StoreError::Fatal { source: "a record is too large to be carried to another process".into() }
}

/// More than an answer holds besides its records.
const HEAD: usize = 64;
/// How long a request may wait for changes.
const MAX_WAIT: Millis = Millis(2_000);
const MAX_CHANGES: usize = 1_024;
