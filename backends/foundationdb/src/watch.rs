//! Watching a space: its log from a version on, read again whenever its newest change is another.
//!
//! If the log holds nothing new, the engine is asked in the same snapshot to tell when the `last` key of the space changes, so
//! no change falls between. The engine's watches are only a hint, and may be lost or refused: the log is also read
//! every so often without.
//!
//! Invariant: whoever watches again after the position of any change misses nothing. Several changes may be committed at one
//! version, so all but the last of them bear the position before it.

use std::collections::VecDeque;
use std::sync::Arc;

use archipelago_directory::{Change, Position, Read, Record, Space, StoreError, StoreWatch, Version};
use async_trait::async_trait;
use bytes::Bytes;
use futures_core::future::BoxFuture;
use futures_util::future::{Either, select};
use futures_util::{StreamExt, stream};

use crate::code::Code;
use crate::doubt::GivenUp;
use crate::engine::{Isolation, Transaction};
use crate::keys::{Keys, after};
use crate::limits::PageSize;
use crate::read::Look;
use crate::store::Shared;
use crate::value::{self, Logged};
use crate::write::cut_off;

/// Opens a watch, once the log is known to reach back so far.
pub(crate) async fn open(
    shared: Arc<Shared>,
    space: Space,
    position: Position,
) -> Result<StoreWatch, StoreError> {
    let begin = shared.keys.log_after(space, position.0).0;
    let (complete_to, ready) = (position.0, VecDeque::new());
    let size = PageSize::new(PAGE);
    let mut watching = Watching { shared, space, begin, complete_to, ready, held: None, signal: None, size };
    let first = watching.read().await?;
    if first.read_version < position.0 {
        // The database has never come so far: the position is of another history.
        return Err(StoreError::Compacted);
    }
    watching.take_in(first)?;
    Ok(watching.into_stream())
}

struct Watching {
    shared: Arc<Shared>,
    space: Space,
    /// Where in the log to go on.
    begin: Vec<u8>,
    /// Every change up to this version has been taken in.
    complete_to: u64,
    ready: VecDeque<Change>,
    /// The last entry of a page that was not the last.
    held: Option<Entry>,
    /// Completes when there is something new.
    signal: Option<Signal>,
    size: PageSize,
}

type Signal = BoxFuture<'static, Result<(), Code>>;

impl Watching {
    fn into_stream(self) -> StoreWatch {
        let steps = stream::unfold(Some(self), |watching| async {
            let mut watching = watching?;
            match watching.next().await {
                Ok(change) => Some((Ok(change), Some(watching))),
                Err(error) => Some((Err(error), None)),
            }
        });
        steps.boxed()
    }

    async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return Ok(change);
            }
            self.wait().await;
            let news = self.read().await?;
            self.take_in(news)?;
        }
    }

    /// Waits for the engine's signal, and without one as long as it takes to look again.
    async fn wait(&mut self) {
        let Some(signal) = self.signal.take() else { return };
        let poll = self.shared.timer.sleep(self.shared.watch_poll);
        if let Either::Left((Err(code), poll)) = select(signal, poll).await {
            tracing::debug!(%code, space = %self.space, "watch of FoundationDB lost, polling instead");
            poll.await;
        }
    }

    async fn read(&mut self) -> Result<News, StoreError> {
        let (space, begin, size) = (self.space, &self.begin, &self.size);
        let look = LogFrom { keys: &self.shared.keys, space, begin, size };
        self.shared.read(Read::Linearizable, &look).await
    }

    fn take_in(&mut self, news: News) -> Result<(), StoreError> {
        if news.cut > self.complete_to {
            return Err(StoreError::Compacted);
        }
        let entries = self.held.take().into_iter().chain(news.entries);
        let mut entries = entries.peekable();
        while let Some(entry) = entries.next() {
            self.begin = after(&entry.key);
            let last_of_version = match entries.peek() {
                Some(next) => next.version != entry.version,
                None if news.more => {
                    // Whether it is the last of its version is seen when the next page has been read.
                    self.held = Some(entry);
                    break;
                }
                None => true,
            };
            let position = entry.version.saturating_sub(u64::from(!last_of_version));
            self.complete_to = self.complete_to.max(position);
            self.ready.push_back(change(entry, Position(position)));
        }
        if !news.more {
            self.complete_to = self.complete_to.max(news.read_version);
            self.size.caught_up();
        }
        self.signal = news.signal;
        Ok(())
    }
}

fn change(entry: Entry, position: Position) -> Change {
    let Logged { id, put, .. } = entry.logged;
    match put {
        Some((tag, value)) => {
            Change::Put { position, record: Record { id, tag, value, version: Version(entry.version) } }
        }
        None => Change::Deleted { position, id },
    }
}

/// Reads a page of the log; if it is empty, asks for a signal.
struct LogFrom<'a> {
    keys: &'a Keys,
    space: Space,
    begin: &'a [u8],
    size: &'a PageSize,
}

struct News {
    entries: Vec<Entry>,
    more: bool,
    read_version: u64,
    cut: u64,
    signal: Option<Signal>,
}

struct Entry {
    key: Bytes,
    version: u64,
    logged: Logged,
}

#[async_trait]
impl Look for LogFrom<'_> {
    type Seen = News;

    async fn look(&self, transaction: &dyn Transaction) -> Result<News, GivenUp> {
        let end = self.keys.log_after(self.space, u64::MAX).1;
        let read_version = transaction.read_version().await?;
        let cut = cut_off(transaction, self.keys, self.space).await?;
        let page = transaction.range(self.begin, &end, self.size.now(), Isolation::Snapshot).await?;
        let mut entries = Vec::with_capacity(page.pairs.len());
        for (key, bytes) in page.pairs {
            let Some(version) = self.keys.version_in_log(self.space, &key) else { continue };
            entries.push(Entry { version, logged: value::read_logged(self.space, &bytes)?, key });
        }
        let nothing_new = entries.is_empty() && !page.more;
        let signal = nothing_new.then(|| transaction.watch(&self.keys.last(self.space)));
        Ok(News { entries, more: page.more, read_version, cut, signal })
    }

    fn begins_anew(&self, code: Code) {
        self.size.failed(code);
    }

    fn commits(&self) -> bool {
        true
    }
}

/// Entries per page, at most.
const PAGE: usize = 250;
