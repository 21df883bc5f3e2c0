//! Reading: a look at one snapshot, repeated until it succeeds or the time is up.

use archipelago_directory::{Read, Record, RecordId, StoreError};
use async_trait::async_trait;
use futures_util::future::{Either, select};
use futures_util::pin_mut;

use crate::code::Code;
use crate::doubt::{Doubt, GivenUp};
use crate::engine::{Isolation, Transaction};
use crate::keys::Keys;
use crate::limits::TooLate;
use crate::store::Shared;
use crate::value;

/// Something that is read in one transaction. May be repeated.
#[async_trait]
pub(crate) trait Look: Send + Sync {
    type Seen: Send;

    async fn look(&self, transaction: &dyn Transaction) -> Result<Self::Seen, GivenUp>;

    /// An attempt has failed with `code`, and another is made.
    fn begins_anew(&self, _code: Code) {}

    /// Whether the transaction has to be committed: watches begin only then.
    fn commits(&self) -> bool {
        false
    }
}

/// Reads one record.
pub(crate) struct One<'a> {
    pub(crate) keys: &'a Keys,
    pub(crate) id: &'a RecordId,
}

#[async_trait]
impl Look for One<'_> {
    type Seen = Option<Record>;

    async fn look(&self, transaction: &dyn Transaction) -> Result<Option<Record>, GivenUp> {
        record(transaction, self.keys, self.id, Isolation::Snapshot).await
    }
}

/// The record of this name.
pub(crate) async fn record(
    transaction: &dyn Transaction,
    keys: &Keys,
    id: &RecordId,
    isolation: Isolation,
) -> Result<Option<Record>, GivenUp> {
    let found = transaction.get(&keys.record(id), isolation).await?;
    Ok(found.map(|bytes| value::read_record(id.clone(), &bytes)).transpose()?)
}

impl Shared {
    /// What `look` sees. Nothing is changed, so whatever fails may be repeated.
    pub(crate) async fn read<L: Look>(&self, read: Read, look: &L) -> Result<L::Seen, StoreError> {
        let mut doubt = Doubt::default();
        let deadline = self.timer.sleep(self.request_timeout);
        let ended = {
            let attempts = self.looks(read, look, &mut doubt);
            pin_mut!(attempts);
            match select(attempts, deadline).await {
                Either::Left((seen, _)) => Some(seen),
                Either::Right(((), _)) => None,
            }
        };
        ended.unwrap_or_else(|| Err(self.too_late(&doubt))).map_err(|why| doubt.give_up(why))
    }

    /// The time is up.
    pub(crate) fn too_late(&self, doubt: &Doubt) -> GivenUp {
        GivenUp::Because(TooLate { within: self.request_timeout, last: doubt.last() }.into())
    }

    async fn looks<L: Look>(&self, read: Read, look: &L, doubt: &mut Doubt) -> Result<L::Seen, GivenUp> {
        let mut transaction = self.engine.begin(read)?;
        loop {
            let code = match look.look(&*transaction).await {
                Ok(seen) if !look.commits() => return Ok(seen),
                Ok(seen) => match transaction.commit().await {
                    Ok(_) => return Ok(seen),
                    Err(uncommitted) => {
                        transaction = uncommitted.transaction;
                        uncommitted.code
                    }
                },
                Err(GivenUp::Code(code)) => code,
                Err(other) => return Err(other),
            };
            doubt.begins_anew(code);
            look.begins_anew(code);
            transaction = transaction.on_error(code).await?;
        }
    }
}
