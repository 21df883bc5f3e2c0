//! A store that another process serves.
//!
//! [`ServedStore`] turns each call into a request to a [`StoreServer`](crate::StoreServer) and its answer into what a store
//! in this process would have said. It keeps one thing: the instance that it has met. Listing is in `list`, the long poll
//! of a watch in `changes`. Invariant: a write is sent only to the instance that this client knows, and `Unavailable` is
//! said of it only if it was certainly not carried out.

use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Timer, Version, Write,
};
use archipelago_protocol::contract::BoxError;
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use bytes::Bytes;

use crate::courier::{CarryError, Courier};
use crate::wire::{self, Answer, Cas, Id, Item, MAX_MESSAGE, Op, Outcome, Request, WireError};

mod changes;
mod instance;
mod list;

use changes::Changes;
use instance::{Met, NewInstance};

/// The store of another process, reached through a [`Courier`]. Checks guards, as the store itself does.
///
/// Once it has met an instance of the server it works with that one only. When it meets another, the records are gone and
/// with them the session of this node: it calls who asked for it by [`on_new_instance`](Self::on_new_instance), and every
/// call from then on ends in `Fatal`. A node goes on only with a new session above a new `ServedStore`.
///
/// Values may be up to [`MAX_VALUE`](crate::MAX_VALUE) bytes long, keys and tags up to 1 KiB; longer ones are `Fatal`.
pub struct ServedStore {
    remote: Arc<Remote>,
}

impl ServedStore {
    /// The store that `courier` reaches; `timer` paces a watch that has lost its connection.
    pub fn new(courier: Arc<dyn Courier>, timer: Arc<dyn Timer>) -> Self {
        Self { remote: Arc::new(Remote { courier, timer, met: Met::default() }) }
    }

    /// Calls `callback` when another instance of the server is met, once, before the call that met it returns; at once if
    /// that has happened already. The node shuts its gate there: whatever it holds may be granted anew.
    pub fn on_new_instance(&self, callback: Box<dyn Fn() + Send + Sync>) {
        self.remote.met.on_new_instance(callback);
    }
}

#[async_trait]
impl Store for ServedStore {
    fn name(&self) -> &'static str {
        "served embedded"
    }

    fn checks_guards(&self) -> bool {
        true
    }

    /// Always linearizable.
    async fn get(&self, id: &RecordId, _read: Read) -> Result<Option<Record>, StoreError> {
        let read = |outcome: Outcome<'_>| match outcome {
            Outcome::Found(item) => item.map(Item::read).transpose(),
            _ => Err(UNASKED),
        };
        self.remote.ask(Op::Get(Id::of(id)), ANSWER_TIMEOUT, read).await.map_err(Failed::of_read)
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        let op = Op::Cas(Cas::of(id, &expect, &write, guard.as_ref()));
        let read = |outcome: Outcome<'_>| match outcome {
            Outcome::Applied(version) => Ok(CasAnswer::Applied(Version(version))),
            Outcome::Conflict(current) => Ok(CasAnswer::Conflict(current.map(Item::read).transpose()?)),
            Outcome::GuardFailed => Ok(CasAnswer::GuardFailed),
            _ => Err(UNASKED),
        };
        self.remote.ask(op, ANSWER_TIMEOUT, read).await.map_err(Failed::of_write)
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        list::list(&self.remote, space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        let changes = Changes::start(Arc::clone(&self.remote), space, after).await?;
        Ok(changes.into_stream())
    }

    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for (n, batch) in batches(records).enumerate() {
            let op = Op::DeleteAll(batch.iter().map(|r| (Id::of(&r.id), r.version.0)).collect());
            let read = |outcome: Outcome<'_>| match outcome {
                Outcome::Deleted(count) => usize::try_from(count).map_err(|_| UNASKED),
                _ => Err(UNASKED),
            };
            let answer = self.remote.ask(op, ANSWER_TIMEOUT, read).await;
            deleted += answer.map_err(|failed| match failed.of_write() {
                // Earlier batches are gone: nothing happened is not true any more.
                StoreError::Unavailable { source } if n > 0 => StoreError::Unknown { source },
                error => error,
            })?;
        }
        Ok(deleted)
    }
}

struct Remote {
    courier: Arc<dyn Courier>,
    timer: Arc<dyn Timer>,
    met: Met,
}

impl Remote {
    /// Sends `op` to the instance that this client knows, and lets `read` look at the result.
    async fn ask<T>(
        &self,
        op: Op<'_>,
        timeout: Millis,
        read: impl FnOnce(Outcome<'_>) -> Result<T, WireError> + Send,
    ) -> Result<T, Failed> {
        let instance = self.instance().await?;
        let request = wire::encode(&Request { instance: Some(instance), op });
        if request.len() > MAX_MESSAGE {
            let source = Box::new(WireError::TooLong { length: request.len() });
            return Err(Failed::Refused(StoreError::Fatal { source }));
        }
        let answer = self.carry(request, timeout).await?;
        read(result(self.meet(&answer)?)?).map_err(Failed::Garbled)
    }

    /// The instance to name in requests; asks for it first if none is known, so that no write goes to an unknown one.
    async fn instance(&self) -> Result<u64, Failed> {
        if let Some(instance) = self.met.known()? {
            return Ok(instance);
        }
        let request = wire::encode(&Request { instance: None, op: Op::Instance });
        // Whatever goes wrong here, what the caller wants has not been sent.
        let first = async {
            let answer = self.carry(request, ANSWER_TIMEOUT).await?;
            result(self.meet(&answer)?)?;
            self.met.known()?.ok_or(Failed::Garbled(UNASKED))
        };
        first.await.map_err(|failed: Failed| Failed::Refused(failed.of_read()))
    }

    async fn carry(&self, request: Bytes, timeout: Millis) -> Result<Bytes, Failed> {
        Ok(self.courier.carry(request, timeout).await?)
    }

    /// Reads an answer, and notes who gave it.
    fn meet<'a>(&self, answer: &'a [u8]) -> Result<Outcome<'a>, Failed> {
        let Answer { instance, outcome } = wire::decode(answer).map_err(Failed::Garbled)?;
        self.met.meet(instance)?;
        Ok(outcome)
    }
}

/// The result among the outcomes; all others are why there is none.
fn result(outcome: Outcome<'_>) -> Result<Outcome<'_>, Failed> {
    let refused = match outcome {
        Outcome::Unavailable(why) => StoreError::Unavailable { source: said(why) },
        Outcome::Unknown(why) => StoreError::Unknown { source: said(why) },
        Outcome::Compacted => StoreError::Compacted,
        Outcome::Fatal(why) => StoreError::Fatal { source: said(why) },
        Outcome::Malformed(why) => {
            StoreError::Fatal { source: format!("the server cannot read the request: {why}").into() }
        }
        // Who says so has the instance that was named.
        Outcome::OtherInstance => return Err(Failed::Garbled(UNASKED)),
        result => return Ok(result),
    };
    Err(Failed::Refused(refused))
}

fn said(why: &str) -> BoxError {
    why.chars().take(MAX_WHY).collect::<String>().into()
}

/// Why a request has no result.
#[derive(Debug)]
enum Failed {
    /// It never left.
    NotSent(CarryError),
    /// It may be carried out now or later.
    NoAnswer(CarryError),
    /// It was answered, but how cannot be understood.
    Garbled(WireError),
    /// The server, or this side in its place, said no.
    Refused(StoreError),
    /// The server is not the one that it was.
    NewInstance(NewInstance),
}

impl Failed {
    /// Nothing was to be written: all that counts is whether asking again may help.
    fn of_read(self) -> StoreError {
        match self {
            Self::NotSent(error) | Self::NoAnswer(error) => StoreError::Unavailable { source: error.into() },
            Self::Garbled(error) => StoreError::Fatal { source: error.into() },
            Self::Refused(StoreError::Unknown { source }) => StoreError::Unavailable { source },
            Self::Refused(error) => error,
            Self::NewInstance(error) => StoreError::Fatal { source: error.into() },
        }
    }

    fn of_write(self) -> StoreError {
        match self {
            Self::NotSent(error) => StoreError::Unavailable { source: error.into() },
            Self::NoAnswer(error) => StoreError::Unknown { source: error.into() },
            Self::Garbled(error) => StoreError::Unknown { source: error.into() },
            Self::Refused(error) => error,
            Self::NewInstance(error) => StoreError::Fatal { source: error.into() },
        }
    }
}

impl From<CarryError> for Failed {
    fn from(error: CarryError) -> Self {
        match error {
            CarryError::NotSent { .. } => Self::NotSent(error),
            CarryError::Unknown { .. } => Self::NoAnswer(error),
        }
    }
}

impl From<NewInstance> for Failed {
    fn from(error: NewInstance) -> Self {
        Self::NewInstance(error)
    }
}

/// Runs of records whose names fit into one message.
fn batches(records: &[Record]) -> impl Iterator<Item = &[Record]> {
    let mut rest = records;
    std::iter::from_fn(move || {
        let mut size = 0;
        let fit = rest.iter().take_while(|record| {
            size += wire::id_size(&record.id);
            size <= MAX_BATCH
        });
        // The first always goes along: if it is too long, the request is refused by its length.
        let (batch, later) = rest.split_at(fit.count().max(1).min(rest.len()));
        rest = later;
        (!batch.is_empty()).then_some(batch)
    })
}

const UNASKED: WireError = WireError::Nonsense("the answer is none to this request");
/// How long an answer is waited for that should come at once.
const ANSWER_TIMEOUT: Millis = Millis(2_000);
/// Bytes of names in one batch of deletes.
const MAX_BATCH: usize = 512 << 10;
/// How much of the server's own words is kept.
const MAX_WHY: usize = 1_000;
