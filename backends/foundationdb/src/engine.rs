//! The narrow view of FoundationDB that the store is written over: transactions on ordered bytes.
//!
//! An [`Engine`] begins transactions. Two exist: the real client (cargo feature `client`), a thin layer without decisions
//! of its own, and the [`MemoryEngine`](crate::MemoryEngine), which keeps the same rules in memory and breaks whatever
//! FoundationDB may break. What is asked of both:
//!
//! - Reads of a transaction show one snapshot: everything committed at or before its read version, and nothing later.
//!   Everything committed before the transaction began is in it (unless it was begun for [`Read::Any`]).
//! - A transaction commits only if nothing that it read under [`Isolation::Serializable`] was written since. Two of them
//!   may share a commit version, but then neither has read what the other wrote.
//! - Ten bytes of a *versionstamped* key or value are replaced at the commit: eight of the commit version, two of the order
//!   within it, both big-endian. Where they stand is said by four bytes at the end, little-endian.
//! - The store never reads what its own transaction wrote.

use archipelago_directory::Read;
use async_trait::async_trait;
use bytes::Bytes;
use futures_core::future::BoxFuture;

use crate::code::Code;

/// Begins transactions.
pub trait Engine: Send + Sync + 'static {
    /// A transaction. Its read version is fetched with its first read.
    ///
    /// # Errors
    ///
    /// Those of the engine; nothing has happened.
    fn begin(&self, read: Read) -> Result<Box<dyn Transaction>, Code>;
}

/// A transaction of FoundationDB. Dropping it, or any of its futures, abandons it; a commit under way may still happen.
#[async_trait]
pub trait Transaction: Send + Sync {
    /// The version that it reads at.
    async fn read_version(&self) -> Result<u64, Code>;

    /// Reads a key.
    async fn get(&self, key: &[u8], isolation: Isolation) -> Result<Option<Bytes>, Code>;

    /// Reads the keys from `begin` up to, not including, `end`, in order: at most `limit`, and fewer if the engine likes.
    async fn range(&self, begin: &[u8], end: &[u8], limit: usize, isolation: Isolation)
    -> Result<Page, Code>;

    /// Writes a key.
    fn set(&self, key: &[u8], value: &[u8]);

    /// Removes a key.
    fn clear(&self, key: &[u8]);

    /// Removes the keys from `begin` up to, not including, `end`.
    fn clear_range(&self, begin: &[u8], end: &[u8]);

    /// Writes a key unless a greater value stands there already, without reading it.
    fn set_max(&self, key: &[u8], value: &[u8]);

    /// Writes a key that holds the versionstamp.
    fn set_versionstamped_key(&self, key: &[u8], value: &[u8]);

    /// Writes a value that holds the versionstamp.
    fn set_versionstamped_value(&self, key: &[u8], value: &[u8]);

    /// Completes some time after the key has another value than the transaction read; begins with the commit. May fail, and
    /// may complete for nothing.
    fn watch(&self, key: &[u8]) -> BoxFuture<'static, Result<(), Code>>;

    /// Commits, and answers the commit version; none if there was nothing to write.
    async fn commit(self: Box<Self>) -> Result<Option<u64>, Uncommitted>;

    /// Waits as long as the engine thinks best after `code`, and begins anew.
    ///
    /// # Errors
    ///
    /// The code, if trying again will not help.
    async fn on_error(self: Box<Self>, code: Code) -> Result<Box<dyn Transaction>, Code>;
}

/// Whether what is read must not change until the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isolation {
    /// If it is written by somebody else before the commit, the commit fails.
    Serializable,
    /// It may.
    Snapshot,
}

/// A part of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Keys and values, in order.
    pub pairs: Vec<(Bytes, Bytes)>,
    /// Whether there may be more.
    pub more: bool,
}

/// A commit that did not answer well.
pub struct Uncommitted {
    /// Why.
    pub code: Code,
    /// To begin anew with.
    pub transaction: Box<dyn Transaction>,
}
