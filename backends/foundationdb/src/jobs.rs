//! The two writes that there are: a compare-and-swap, and a batch of deletes.

use archipelago_directory::{CasAnswer, Expect, Guard, Record, RecordId, Space, Version, Write};
use async_trait::async_trait;
use futures_util::future::try_join_all;

use crate::doubt::GivenUp;
use crate::engine::Isolation;
use crate::read::record;
use crate::value;
use crate::write::{Draft, Job, Prepared};

/// A compare-and-swap.
pub(crate) struct Cas<'a> {
    pub(crate) id: &'a RecordId,
    pub(crate) expect: Expect,
    pub(crate) write: Write,
    pub(crate) guard: Option<Guard>,
}

#[async_trait]
impl Job for Cas<'_> {
    type Answer = CasAnswer;

    fn space(&self) -> Space {
        self.id.space
    }

    async fn prepare(&self, draft: &Draft<'_>) -> Result<Prepared<CasAnswer>, GivenUp> {
        let current = draft.record(self.id).await?;
        if !is_expected(&self.expect, current.as_ref()) {
            return Ok(Prepared::Answer(CasAnswer::Conflict(current)));
        }
        if let Some(guard) = &self.guard {
            let guarding = draft.record(&guard.id).await?;
            if guarding.is_none_or(|record| record.tag != guard.tag) {
                return Ok(Prepared::Answer(CasAnswer::GuardFailed));
            }
        }
        draft.replace(self.id, current.as_ref(), &self.write, 0);
        Ok(Prepared::Changes(1))
    }

    fn applied(&self, version: Version, _changes: usize) -> CasAnswer {
        CasAnswer::Applied(version)
    }
}

/// Deletes of records of one space, each only of the version that it names.
pub(crate) struct DeleteAll<'a>(pub(crate) &'a [Record]);

#[async_trait]
impl Job for DeleteAll<'_> {
    type Answer = usize;

    fn space(&self) -> Space {
        self.0[0].id.space
    }

    async fn prepare(&self, draft: &Draft<'_>) -> Result<Prepared<usize>, GivenUp> {
        let current = try_join_all(self.0.iter().map(|named| draft.record(&named.id))).await?;
        let mut deleted = 0;
        for (n, (named, current)) in self.0.iter().zip(current).enumerate() {
            // A record named twice is deleted once.
            let again = self.0[..n].iter().any(|earlier| earlier.id == named.id);
            if !again && current.as_ref().is_some_and(|current| current.version == named.version) {
                draft.replace(&named.id, current.as_ref(), &Write::Delete, deleted);
                deleted += 1;
            }
        }
        let deleted = usize::from(deleted);
        Ok(if deleted == 0 { Prepared::Answer(0) } else { Prepared::Changes(deleted) })
    }

    fn is_divisible(&self) -> bool {
        self.0.len() > 1
    }

    fn applied(&self, _version: Version, changes: usize) -> usize {
        changes
    }
}

impl Draft<'_> {
    /// The record that stands there, which must not change before the commit.
    async fn record(&self, id: &RecordId) -> Result<Option<Record>, GivenUp> {
        record(self.transaction, self.keys, id, Isolation::Serializable).await
    }

    /// The record, its entry under its tag, and the change in the log: all three, or none.
    fn replace(&self, id: &RecordId, current: Option<&Record>, write: &Write, n: u16) {
        let (transaction, keys) = (self.transaction, self.keys);
        let (old, new) = (current.and_then(|record| record.tag.as_deref()), tag_of(write));
        if let Some(old) = old.filter(|_| old != new) {
            transaction.clear(&keys.tagged(id, old));
        }
        if let Some(new) = new.filter(|_| old != new) {
            transaction.set(&keys.tagged(id, new), &[]);
        }
        let logged = match write {
            Write::Put { tag, value, .. } => {
                let bytes = value::record(self.nonce, tag.as_deref(), value);
                transaction.set_versionstamped_value(&keys.record(id), &bytes);
                value::logged_put(self.nonce, &id.key, tag.as_deref(), value)
            }
            Write::Delete => {
                transaction.clear(&keys.record(id));
                value::logged_delete(self.nonce, &id.key)
            }
        };
        transaction.set_versionstamped_key(&keys.new_in_log(id.space, n), &logged);
    }
}

fn tag_of(write: &Write) -> Option<&str> {
    match write {
        Write::Put { tag, .. } => tag.as_deref(),
        Write::Delete => None,
    }
}

fn is_expected(expect: &Expect, current: Option<&Record>) -> bool {
    match (expect, current) {
        (Expect::Absent, None) => true,
        (Expect::At(seen), Some(record)) => seen.version == record.version,
        _ => false,
    }
}
