//! Writing: one transaction, repeated until it is known what became of it or the time is up.
//!
//! Every attempt bears the same nonce, in the record and in the log. After a commit without an answer the next attempt first
//! looks for the nonce in the log. If it is there, the write has been applied, whatever happened to the record since. If not,
//! the write is prepared anew from what stands now; the attempt without an answer may still arrive, but only as long as
//! nothing that it read has changed. So it either excludes the new attempt, which then finds the nonce, or is excluded by it.
//!
//! Invariant: of all attempts of one write at most one is applied, and the answer tells of that one.

use archipelago_directory::{Read, Space, Version};
use archipelago_protocol::contract::BoxError;
use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use crate::doubt::{Doubt, GivenUp};
use crate::engine::{Isolation, Transaction};
use crate::keys::{Keys, after, version_of};
use crate::store::Shared;
use crate::value::{self, Nonce};

/// A write to one space.
#[async_trait]
pub(crate) trait Job: Send + Sync {
    type Answer: Send;

    fn space(&self) -> Space;

    /// Reads what stands there and writes into the transaction what is to stand there.
    async fn prepare(&self, draft: &Draft<'_>) -> Result<Prepared<Self::Answer>, GivenUp>;

    /// Whether it can be done in parts: then one that is too much for a transaction is given up, for its caller to divide.
    fn is_divisible(&self) -> bool {
        false
    }

    /// What is answered once so many changes were applied as this version.
    fn applied(&self, version: Version, changes: usize) -> Self::Answer;
}

/// A transaction that a write is prepared in.
pub(crate) struct Draft<'a> {
    pub(crate) transaction: &'a dyn Transaction,
    pub(crate) keys: &'a Keys,
    pub(crate) nonce: Nonce,
}

/// What preparing came to.
pub(crate) enum Prepared<A> {
    /// There is nothing to write: this is the answer.
    Answer(A),
    /// So many changes are to be committed.
    Changes(usize),
}

enum Attempt<A> {
    Answer(A),
    Commit { changes: usize, read_version: u64 },
}

impl Shared {
    pub(crate) async fn write<J: Job>(
        &self,
        job: &J,
    ) -> Result<J::Answer, archipelago_directory::StoreError> {
        let mut doubt = Doubt::default();
        let deadline = self.timer.sleep(self.request_timeout);
        let ended = {
            let attempts = self.attempts(job, &mut doubt);
            pin_mut!(attempts);
            match select(attempts, deadline).await {
                Either::Left((answer, _)) => Some(answer),
                Either::Right(((), _)) => None,
            }
        };
        ended.unwrap_or_else(|| Err(self.too_late(&doubt))).map_err(|why| doubt.give_up(why))
    }

    async fn attempts<J: Job>(&self, job: &J, doubt: &mut Doubt) -> Result<J::Answer, GivenUp> {
        let (nonce, number) = self.nonce();
        let mut transaction = self.engine.begin(Read::Linearizable)?;
        loop {
            let draft = Draft { transaction: &*transaction, keys: &self.keys, nonce };
            let code = match self.attempt(job, &draft, number, doubt.since()).await {
                Ok(Attempt::Answer(answer)) => return Ok(answer),
                Ok(Attempt::Commit { changes, read_version }) => {
                    doubt.commit_leaves(read_version);
                    match transaction.commit().await {
                        Ok(version) => return Ok(job.applied(Version(version.unwrap_or_default()), changes)),
                        Err(uncommitted) => {
                            doubt.commit_failed(uncommitted.code);
                            transaction = uncommitted.transaction;
                            uncommitted.code
                        }
                    }
                }
                Err(GivenUp::Code(code)) => code,
                Err(other) => return Err(other),
            };
            if job.is_divisible() && code.asks_for_less() && doubt.since().is_none() {
                return Err(code.into());
            }
            tracing::debug!(%code, space = %job.space(), "write to FoundationDB begins anew");
            doubt.begins_anew(code);
            transaction = transaction.on_error(code).await?;
        }
    }

    /// All of an attempt but its commit.
    async fn attempt<J: Job>(
        &self,
        job: &J,
        draft: &Draft<'_>,
        number: u64,
        in_doubt_since: Option<u64>,
    ) -> Result<Attempt<J::Answer>, GivenUp> {
        let space = job.space();
        if let Some(since) = in_doubt_since
            && let Some((version, changes)) = own_effect(draft, space, since).await?
        {
            return Ok(Attempt::Answer(job.applied(Version(version), changes)));
        }
        let changes = match job.prepare(draft).await? {
            Prepared::Answer(answer) => return Ok(Attempt::Answer(answer)),
            Prepared::Changes(changes) => changes,
        };
        draft.transaction.set_versionstamped_value(&self.keys.last(space), &value::stamp());
        let read_version = draft.transaction.read_version().await?;
        if number.is_multiple_of(CUT_EVERY) {
            self.cut(draft.transaction, space, read_version.saturating_sub(self.history));
        }
        Ok(Attempt::Commit { changes, read_version })
    }

    /// Cuts the log off, without reading it.
    fn cut(&self, transaction: &dyn Transaction, space: Space, through: u64) {
        if through > 0 {
            let (begin, end) = self.keys.log_through(space, through);
            transaction.clear_range(&begin, &end);
            transaction.set_max(&self.keys.cut(space), &through.to_be_bytes());
        }
    }
}

/// The version and the number of the changes that bear our nonce, if any was committed after `since`.
///
/// The log is read without conflicts, or every writer of the space would be one. If our own effect comes after this
/// snapshot, it has changed what is read next, and the commit fails.
async fn own_effect(draft: &Draft<'_>, space: Space, since: u64) -> Result<Option<(u64, usize)>, GivenUp> {
    if cut_off(draft.transaction, draft.keys, space).await? > since {
        let why: BoxError = "the history does not reach back to the first attempt".into();
        return Err(GivenUp::Because(why));
    }
    let (mut begin, end) = draft.keys.log_after(space, since);
    let (mut version, mut changes) = (None, 0);
    loop {
        let page = draft.transaction.range(&begin, &end, PAGE, Isolation::Snapshot).await?;
        for (key, bytes) in &page.pairs {
            if value::read_logged(space, bytes)?.nonce == draft.nonce {
                version = draft.keys.version_in_log(space, key);
                changes += 1;
            }
        }
        match page.pairs.last() {
            Some((key, _)) if page.more => begin = after(key),
            _ => return Ok(version.map(|version| (version, changes))),
        }
    }
}

/// Up to which version the log has been cut off; 0 if it is whole.
pub(crate) async fn cut_off(
    transaction: &dyn Transaction,
    keys: &Keys,
    space: Space,
) -> Result<u64, GivenUp> {
    let cut = transaction.get(&keys.cut(space), Isolation::Snapshot).await?;
    Ok(cut.and_then(|bytes| version_of(&bytes)).unwrap_or_default())
}

/// One in so many writes cuts the log off.
const CUT_EVERY: u64 = 64;
/// Entries of the log per page.
const PAGE: usize = 500;
