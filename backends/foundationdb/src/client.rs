//! The real client of FoundationDB, mapped call by call. Decides nothing.

use std::path::Path;
use std::sync::Arc;

use archipelago_directory::{Read, Timer};
use async_trait::async_trait;
use bytes::Bytes;
use foundationdb::options::{MutationType, StreamingMode, TransactionOption};
use foundationdb::{Database, FdbError, RangeOption, TransactionCommitError};
use futures_core::future::BoxFuture;

use crate::code::Code;
use crate::config::{FoundationDbConfig, FoundationDbConfigError};
use crate::engine::{Engine, Isolation, Page, Transaction, Uncommitted};
use crate::network;
use crate::store::{FoundationDbError, FoundationDbStore};

impl FoundationDbStore {
    /// Connects to FoundationDB, and waits until it answers. The first store of a process starts the client's network
    /// thread, which runs until the process ends.
    ///
    /// # Errors
    ///
    /// - `Config`: a setting makes no sense, or the cluster file cannot be read.
    /// - `LibraryTooOld`: the `libfdb_c` of this machine cannot do what is needed.
    /// - `Refused`: the client cannot be started, or the database does not serve us. Waiting will not help.
    /// - `Unreachable`: no answer within the connect timeout.
    /// - `VersionsWentBack`: the database has been set back.
    pub async fn connect(
        config: &FoundationDbConfig,
        timer: Arc<dyn Timer>,
    ) -> Result<Self, FoundationDbError> {
        config.check()?;
        let engine = ClientEngine::new(config)?;
        Self::open(Arc::new(engine), config, timer).await
    }
}

struct ClientEngine {
    database: Database,
}

impl ClientEngine {
    fn new(config: &FoundationDbConfig) -> Result<Self, FoundationDbError> {
        let path = config.cluster_file.as_deref().map(cluster_file).transpose()?;
        network::start()?;
        let database = Database::new(path).map_err(refused)?;
        Ok(Self { database })
    }
}

/// Looked at here, because the client would wait for a file that is not there.
fn cluster_file(path: &Path) -> Result<&str, FoundationDbConfigError> {
    let setting = "cluster_file";
    let unreadable = |source| FoundationDbConfigError::Unreadable { setting, path: path.to_owned(), source };
    std::fs::File::open(path).map_err(unreadable)?;
    let text = path.to_str().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| FoundationDbConfigError::Invalid {
        setting,
        problem: format!("{} is no text", path.display()),
    })
}

pub(crate) fn refused(error: FdbError) -> FoundationDbError {
    FoundationDbError::Refused {
        code: code(error),
        message: format!("{} ({})", error.message(), error.code()),
    }
}

fn code(error: FdbError) -> Code {
    Code(error.code())
}

impl Engine for ClientEngine {
    fn begin(&self, read: Read) -> Result<Box<dyn Transaction>, Code> {
        let transaction = self.database.create_trx().map_err(code)?;
        if read == Read::Any {
            transaction.set_option(TransactionOption::CausalReadRisky).map_err(code)?;
        }
        Ok(Box::new(ClientTransaction::Open(transaction)))
    }
}

enum ClientTransaction {
    Open(foundationdb::Transaction),
    /// Only to begin anew with.
    Failed(TransactionCommitError),
}

impl ClientTransaction {
    fn open(&self) -> Result<&foundationdb::Transaction, Code> {
        match self {
            Self::Open(transaction) => Ok(transaction),
            Self::Failed(error) => Err(Code(error.code())),
        }
    }

    /// Writes into a transaction that has failed go nowhere, as it will be begun anew.
    fn change(&self, write: impl FnOnce(&foundationdb::Transaction)) {
        if let Self::Open(transaction) = self {
            write(transaction);
        }
    }
}

#[async_trait]
impl Transaction for ClientTransaction {
    async fn read_version(&self) -> Result<u64, Code> {
        let version = self.open()?.get_read_version().await.map_err(code)?;
        Ok(version.max(0).unsigned_abs())
    }

    async fn get(&self, key: &[u8], isolation: Isolation) -> Result<Option<Bytes>, Code> {
        let found = self.open()?.get(key, isolation == Isolation::Snapshot).await.map_err(code)?;
        Ok(found.map(|value| Bytes::copy_from_slice(&value)))
    }

    async fn range(
        &self,
        begin: &[u8],
        end: &[u8],
        limit: usize,
        isolation: Isolation,
    ) -> Result<Page, Code> {
        if begin >= end {
            return Ok(Page { pairs: Vec::new(), more: false });
        }
        let range = RangeOption {
            limit: Some(limit),
            mode: StreamingMode::WantAll,
            ..RangeOption::from((begin, end))
        };
        let found =
            self.open()?.get_range(&range, 1, isolation == Isolation::Snapshot).await.map_err(code)?;
        let pairs = found
            .iter()
            .map(|pair| (Bytes::copy_from_slice(pair.key()), Bytes::copy_from_slice(pair.value())));
        Ok(Page { pairs: pairs.collect(), more: found.more() })
    }

    fn set(&self, key: &[u8], value: &[u8]) {
        self.change(|transaction| transaction.set(key, value));
    }

    fn clear(&self, key: &[u8]) {
        self.change(|transaction| transaction.clear(key));
    }

    fn clear_range(&self, begin: &[u8], end: &[u8]) {
        self.change(|transaction| transaction.clear_range(begin, end));
    }

    fn set_max(&self, key: &[u8], value: &[u8]) {
        self.change(|transaction| transaction.atomic_op(key, value, MutationType::ByteMax));
    }

    fn set_versionstamped_key(&self, key: &[u8], value: &[u8]) {
        self.change(|transaction| transaction.atomic_op(key, value, MutationType::SetVersionstampedKey));
    }

    fn set_versionstamped_value(&self, key: &[u8], value: &[u8]) {
        self.change(|transaction| transaction.atomic_op(key, value, MutationType::SetVersionstampedValue));
    }

    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<(), Code>> {
        match self.open() {
            Ok(transaction) => {
                let told = transaction.watch(key);
                Box::pin(async move { told.await.map_err(code) })
            }
            Err(code) => Box::pin(async move { Err(code) }),
        }
    }

    async fn commit(self: Box<Self>) -> Result<Option<u64>, Uncommitted> {
        let transaction = match *self {
            Self::Open(transaction) => transaction,
            Self::Failed(error) => return Err(uncommitted(error)),
        };
        let committed = transaction.commit().await.map_err(uncommitted)?;
        let version = committed.committed_version();
        // Committed, but as which version is unknown: the next attempt finds it out.
        let version = version.map_err(|_| Uncommitted {
            code: Code::COMMIT_UNKNOWN_RESULT,
            transaction: Box::new(Self::Open(committed.reset())),
        })?;
        Ok(u64::try_from(version).ok())
    }

    async fn on_error(self: Box<Self>, failed: Code) -> Result<Box<dyn Transaction>, Code> {
        let fresh = match *self {
            Self::Open(transaction) => transaction.on_error(FdbError::from_code(failed.0)).await,
            Self::Failed(error) => error.on_error().await,
        };
        Ok(Box::new(Self::Open(fresh.map_err(code)?)))
    }
}

fn uncommitted(error: TransactionCommitError) -> Uncommitted {
    Uncommitted { code: Code(error.code()), transaction: Box::new(ClientTransaction::Failed(error)) }
}
