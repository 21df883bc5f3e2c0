//! etcd as a [`Store`].

use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Expect, Guard, Position, Read, Record, RecordId, Records, Space, Store, StoreError,
    StoreWatch, Timer, Write,
};
use archipelago_protocol::time::Millis;
use async_trait::async_trait;
use etcd_client::{GetOptions, GetResponse, Txn, TxnResponse};
use tokio::runtime::Handle;

use crate::config::{EtcdConfig, EtcdConfigError, invalid};
use crate::endpoint::{Connection, Endpoint};
use crate::failure::{Failure, unavailable};
use crate::keys::{Keys, end_of};
use crate::ttl::EngineLeases;
use crate::wires::Wires;
use crate::{start, txn, watch};

/// A store in etcd. Checks guards in the transaction that they guard.
///
/// Every request ends within the request timeout. A write whose answer did not come is `Unknown`; one that never left, or
/// that etcd refused before it did anything, is `Unavailable`, and was offered to every member by then. Credentials that
/// are refused, and values that are too large, are `Fatal`.
pub struct EtcdStore {
    pub(crate) wires: Arc<Wires>,
    pub(crate) keys: Keys,
    leases: EngineLeases,
    watch_idle: Millis,
}

impl EtcdStore {
    /// Connects to etcd, and waits until it answers. The connections' own tasks run on the tokio runtime of the caller;
    /// the store may be used from anywhere.
    ///
    /// # Errors
    ///
    /// - `Config`: a setting makes no sense, or there is no tokio runtime.
    /// - `Unreachable`: no member answered within the connect timeout; names each and why.
    /// - `Refused`: etcd answered, but does not want us; waiting will not help.
    pub async fn connect(config: &EtcdConfig, timer: Arc<dyn Timer>) -> Result<Self, EtcdError> {
        let store = Self::prepare(config, timer)?;
        start::wait_until_reached(&store, config).await?;
        Ok(store)
    }

    fn prepare(config: &EtcdConfig, timer: Arc<dyn Timer>) -> Result<Self, EtcdConfigError> {
        let checked = config.check()?;
        let home = Handle::try_current().map_err(|error| invalid("endpoints", error.to_string()))?;
        let members = u32::try_from(config.endpoints.len()).unwrap_or(u32::MAX);
        // So that all can be dialled in vain before the time is up.
        let dial_timeout = config.request_timeout / members.saturating_add(1);
        let endpoint = |address: &String| Endpoint::new(address, &checked, dial_timeout, home.clone());
        let endpoints = config.endpoints.iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            wires: Arc::new(Wires::new(endpoints, timer, Millis::from_duration(config.request_timeout))),
            keys: Keys::new(&config.prefix),
            leases: EngineLeases::default(),
            watch_idle: Millis::from_duration(config.watch_idle),
        })
    }

    async fn transact(&self, txn: &Txn, until: Millis) -> Result<TxnResponse, Failure> {
        let request = |mut connection: Connection| {
            let txn = txn.clone();
            async move { connection.kv.txn(txn).await }
        };
        self.wires.call_until(until, request).await
    }

    pub(crate) async fn read(&self, key: &[u8], options: GetOptions) -> Result<GetResponse, Failure> {
        let request = |mut connection: Connection| {
            let options = options.clone();
            async move { connection.kv.get(key, Some(options)).await }
        };
        self.wires.call(request).await
    }

    /// Writes, with the record hanging on an engine lease. One that the server has lost is replaced.
    async fn cas_with_ttl(
        &self,
        ttl: Millis,
        cas: impl Fn(i64) -> Txn + Send,
    ) -> Result<TxnResponse, Failure> {
        let until = self.wires.deadline();
        let lease = self.leases.lasting(&self.wires, ttl, until).await?;
        match self.transact(&cas(lease), until).await {
            Err(Failure::LeaseGone { .. }) => {
                self.leases.forget(ttl, lease);
                let lease = self.leases.lasting(&self.wires, ttl, until).await?;
                self.transact(&cas(lease), until).await
            }
            result => result,
        }
    }

    /// Deletes those of `batch` that still are as given, together. Versions never come back, so whatever has changed is left
    /// out for good, and every round has fewer than the one before.
    async fn delete_batch(&self, batch: &[Record]) -> Result<usize, Failure> {
        let until = self.wires.deadline();
        let mut rest = batch.to_vec();
        while !rest.is_empty() {
            let response = self.transact(&txn::delete_together(&self.keys, &rest), until).await?;
            if response.succeeded() {
                break;
            }
            rest = txn::still_there(&self.keys, &rest, &response);
        }
        Ok(rest.len())
    }

    /// One page of a listing, as of `revision`; 0 = now.
    async fn page(&self, from: &[u8], end: &[u8], revision: i64) -> Result<GetResponse, Failure> {
        let options = GetOptions::new().with_range(end).with_limit(PAGE).with_revision(revision);
        self.read(from, options).await
    }

    /// All pages as of the first one's revision, so that the listing is one moment of the store.
    async fn pages(&self, space: Space, tag: Option<&str>) -> Result<Records, Failure> {
        let start = self.keys.space(space, tag);
        let (mut from, end) = (start.clone().into_bytes(), end_of(&start));
        let mut records = Vec::new();
        let mut revision = 0;
        loop {
            let page = self.page(&from, &end, revision).await?;
            if revision == 0 {
                revision = page.header().map_or(0, |header| header.revision());
            }
            let named = page.kvs().iter().map(|pair| (Keys::id(space, &start, pair.key()), pair));
            records.extend(named.filter_map(|(id, pair)| Some(txn::record(id?, pair))));
            match page.kvs().last().filter(|_| page.more()) {
                Some(last) => from = [last.key(), &[0]].concat(),
                None => return Ok(Records { records, position: Position(txn::unsigned(revision)) }),
            }
        }
    }
}

#[async_trait]
impl Store for EtcdStore {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn checks_guards(&self) -> bool {
        true
    }

    async fn get(&self, id: &RecordId, read: Read) -> Result<Option<Record>, StoreError> {
        let key = self.keys.record(id);
        let options = match read {
            Read::Linearizable => GetOptions::new(),
            Read::Any => GetOptions::new().with_serializable(),
        };
        let found = self.read(key.as_bytes(), options).await.map_err(Failure::of_read)?;
        Ok(found.kvs().first().map(|pair| txn::record(id.clone(), pair)))
    }

    async fn cas(
        &self,
        id: &RecordId,
        expect: Expect,
        write: Write,
        guard: Option<Guard>,
    ) -> Result<CasAnswer, StoreError> {
        let cas = |lease| txn::cas(&self.keys, id, &expect, &write, guard.as_ref(), lease);
        let response = match write {
            Write::Put { ttl: Some(ttl), .. } => self.cas_with_ttl(ttl, cas).await,
            _ => self.transact(&cas(NO_LEASE), self.wires.deadline()).await,
        };
        Ok(txn::cas_answer(id, &expect, &response.map_err(Failure::of_write)?))
    }

    async fn list(&self, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
        for _ in 0..LIST_ROUNDS {
            match self.pages(space, tag).await {
                // The history was cut while we read: the next listing begins after the cut.
                Err(Failure::Compacted) => continue,
                result => return result.map_err(Failure::of_read),
            }
        }
        Err(unavailable("the history was compacted again and again during a listing"))
    }

    async fn watch(&self, space: Space, after: Position) -> Result<StoreWatch, StoreError> {
        watch::open(self, space, after, self.watch_idle).await
    }

    async fn delete_all(&self, records: &[Record]) -> Result<usize, StoreError> {
        let mut deleted = 0;
        for (n, batch) in records.chunks(BATCH).enumerate() {
            deleted += self.delete_batch(batch).await.map_err(|failure| match failure.of_write() {
                // Earlier batches are gone: nothing happened is not true any more.
                StoreError::Unavailable { source } if n > 0 => StoreError::Unknown { source },
                error => error,
            })?;
        }
        Ok(deleted)
    }

    /// The request holds the value, twice if it has a tag, and twice as long if it is no JSON object.
    fn max_value(&self) -> usize {
        MAX_VALUE
    }
}

/// Why no store came about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// A setting cannot be used.
    #[error(transparent)]
    Config(#[from] EtcdConfigError),
    /// No member answered in time. Waiting longer may help.
    #[error("no etcd within {within}: {causes}")]
    Unreachable {
        /// How long was waited.
        within: Millis,
        /// Each member, and why it could not be used.
        causes: String,
    },
    /// A member answered, and does not let us in or cannot serve us. Waiting will not help.
    #[error("{cause}")]
    Refused {
        /// The member, and what it said.
        cause: String,
    },
}

const NO_LEASE: i64 = 0;
/// Records per page of a listing.
const PAGE: i64 = 500;
/// A listing that loses against compaction this often loses for another reason.
const LIST_ROUNDS: usize = 4;
/// Records per transaction of deletes. etcd allows 128 operations, and each record may need two.
const BATCH: usize = 60;
/// A quarter of the 1.5 MiB that etcd takes at once, less what names need.
const MAX_VALUE: usize = 360 << 10;
