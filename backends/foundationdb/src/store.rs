//! FoundationDB as a [`Store`].

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Timer, Write,
};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;

use crate::code::Code;
use crate::config::{FoundationDbConfig, FoundationDbConfigError};
use crate::engine::Engine;
use crate::jobs::{Cas, DeleteAll};
use crate::keys::Keys;
use crate::limits::{LONGEST_VALUE, check_sizes, was_too_much};
use crate::read::One;
use crate::value::Nonce;
use crate::{list, start, watch};

/// A store in FoundationDB. Checks guards in the transaction that they guard.
///
/// Every request ends within the request timeout, all attempts included; a listing, within one timeout per page. A write
/// whose outcome is unknown looks for its own effect and is repeated; it is answered as `Unknown` only if the time is up
/// before it is known. Values above 90 000 bytes, and keys or tags above 2 KiB, are `Fatal`, because of
/// [`TooLarge`](crate::TooLarge). What is repeated until the time is up is given up because of [`TooLate`](crate::TooLate), which
/// says why the last attempt failed.
pub struct FoundationDbStore {
    shared: Arc<Shared>,
}

/// What the store shares with its watches.
pub(crate) struct Shared {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) keys: Keys,
    pub(crate) timer: Arc<dyn Timer>,
    pub(crate) request_timeout: Millis,
    pub(crate) watch_poll: Millis,
    /// For how many versions changes are kept.
    pub(crate) history: u64,
    nonces: Nonces,
}

impl FoundationDbStore {
    /// A store above `engine`, once that one answers.
    ///
    /// # Errors
    ///
    /// - `Config`: a setting makes no sense.
    /// - `Unreachable`: no answer within the connect timeout. Waiting longer may help.
    /// - `Refused`: the engine says that waiting will not help.
    /// - `VersionsWentBack`: the database has been set back; what is written now would look older than what stands.
    pub async fn open(
        engine: Arc<dyn Engine>,
        config: &FoundationDbConfig,
        timer: Arc<dyn Timer>,
    ) -> Result<Self, FoundationDbError> {
        config.check()?;
        let shared = Arc::new(Shared {
            engine,
            keys: Keys::new(&config.prefix),
            timer,
            request_timeout: Millis::from_duration(config.request_timeout),
            watch_poll: Millis::from_duration(config.watch_poll),
            history: u64::try_from(config.history.as_micros()).unwrap_or(u64::MAX),
            nonces: Nonces::new(),
        });
        start::check(&shared, config).await?;
        Ok(Self { shared })
    }
}

#[async_trait]
impl Store for FoundationDbStore {
    fn name(&self) -> &'static str {
        "foundationdb"
    }

    fn checks_guards(&self) -> bool {
        true
    }

    /// FoundationDB takes 100 000 bytes, in which the log keeps names as well.
    fn max_value(&self) -> usize {
        LONGEST_VALUE
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        self.shared.read(read, &One { keys: &self.shared.keys, id }).await
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        check_sizes(id, &write)?;
        self.shared.write(&Cas { id, expect, write, guard }).await
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        list::list(&self.shared, space, tag).await
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        watch::open(Arc::clone(&self.shared), space, after).await
    }

    /// Batch by batch, so that no transaction becomes too large or too old; one that does all the same is divided.
    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let (mut parts, mut deleted, mut begun) = (parts(records), 0, false);
        while let Some(part) = parts.pop_front() {
            match self.shared.write(&DeleteAll(part)).await {
                Ok(count) => (deleted, begun) = (deleted + count, true),
                Err(error) if part.len() > 1 && was_too_much(&error) => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.push_front(second);
                    parts.push_front(first);
                }
                // Earlier parts are gone: nothing happened is not true any more.
                Err(StoreError::Unavailable { source }) if begun => {
                    return Err(StoreError::Unknown { source });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(deleted)
    }
}

/// The parts of a batch, each for one transaction: records of one space, and not too many.
fn parts(records: &[Record]) -> VecDeque<&[Record]> {
    let of_a_space = records.chunk_by(|one, next| one.id.space == next.id.space);
    of_a_space.flat_map(|records| records.chunks(BATCH)).collect()
}

/// Marks for writes. No two are the same: each store draws its beginning at random, and counts.
struct Nonces {
    store: u64,
    next: AtomicU64,
}

impl Nonces {
    #[expect(
        clippy::disallowed_methods,
        reason = "a store belongs to no node, and is not part of the simulation"
    )]
    fn new() -> Self {
        // The standard library's keys of hashes are random for each process and differ from call to call.
        Self { store: RandomState::new().hash_one(0), next: AtomicU64::new(0) }
    }
}

impl Shared {
    /// A new mark, and the number of the write that gets it.
    pub(crate) fn nonce(&self) -> (Nonce, u64) {
        let n = self.nonces.next.fetch_add(1, Ordering::Relaxed);
        let mut nonce = Nonce::default();
        nonce[..8].copy_from_slice(&self.nonces.store.to_be_bytes());
        nonce[8..].copy_from_slice(&n.to_be_bytes());
        (nonce, n)
    }
}

/// Why no store came about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoundationDbError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] FoundationDbConfigError),
    /// No answer in time. Waiting longer may help.
    #[error("no FoundationDB at {place} within {within}: {cause}")]
    Unreachable {
        /// Where it should be: the addresses of the cluster file, and that file.
        place: String,
        /// How long was waited.
        within: Millis,
        /// What is known.
        cause: String,
    },
    /// The client library is older than this build needs. Install a newer one.
    #[error("libfdb_c is too old: it speaks API version {speaks}, and {needed} is needed")]
    LibraryTooOld {
        /// The newest version that the library speaks.
        speaks: i32,
        /// The version that is needed.
        needed: i32,
    },
    /// The client or the database will not serve us. Waiting will not help.
    #[error("FoundationDB cannot be used: {message}")]
    Refused {
        /// The code.
        #[source]
        code: Code,
        /// What the client says about it.
        message: String,
    },
    /// The database was restored to a cluster that counts from a lower version. Raise it first.
    #[error(
        "the database counts at {cluster}, but records stand there from {stands}: \
         run `advanceversion {stands}` in fdbcli before nodes start"
    )]
    VersionsWentBack {
        /// The newest version that was written.
        stands: u64,
        /// The version that the database has come to.
        cluster: u64,
    },
}

/// Records per transaction of deletes.
const BATCH: usize = 100;
