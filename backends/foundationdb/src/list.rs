//! Listing: page by page, each in a transaction of its own, so that none becomes too old.
//!
//! Later pages show a later state than earlier ones. The position is that of the first page: whatever changed since comes
//! through the watch, also if a later page shows it already.

use archipelago_directory::{Position, Read, Record, Records, Space, StoreError};
use async_trait::async_trait;
use futures_util::future::try_join_all;

use crate::code::Code;
use crate::doubt::GivenUp;
use crate::engine::{Isolation, Transaction};
use crate::keys::{Keys, after};
use crate::limits::PageSize;
use crate::read::{Look, record};
use crate::store::Shared;
use crate::value;

/// The records of a space, or those of a tag.
pub(crate) async fn list(shared: &Shared, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
    let (mut begin, end) = match tag {
        None => shared.keys.records(space),
        Some(tag) => shared.keys.all_tagged(space, tag),
    };
    let (mut records, mut position, size) = (Vec::new(), None, PageSize::new(PAGE));
    loop {
        let page = PageOf { keys: &shared.keys, space, tag, begin: &begin, end: &end, size: &size };
        let seen = shared.read(Read::Linearizable, &page).await?;
        records.extend(seen.records);
        let position = *position.get_or_insert(seen.read_version);
        match seen.next {
            Some(next) => begin = next,
            None => return Ok(Records { records, position: Position(position) }),
        }
    }
}

struct PageOf<'a> {
    keys: &'a Keys,
    space: Space,
    tag: Option<&'a str>,
    begin: &'a [u8],
    end: &'a [u8],
    size: &'a PageSize,
}

struct Seen {
    records: Vec<Record>,
    read_version: u64,
    /// Where the next page begins, if there is one.
    next: Option<Vec<u8>>,
}

#[async_trait]
impl Look for PageOf<'_> {
    type Seen = Seen;

    async fn look(&self, transaction: &dyn Transaction) -> Result<Seen, GivenUp> {
        let read_version = transaction.read_version().await?;
        let page = transaction.range(self.begin, self.end, self.size.now(), Isolation::Snapshot).await?;
        let next = page.pairs.last().filter(|_| page.more).map(|(key, _)| after(key));
        let records = match self.tag {
            None => self.records(&page.pairs)?,
            Some(tag) => self.tagged(transaction, tag, &page.pairs).await?,
        };
        Ok(Seen { records, read_version, next })
    }

    fn begins_anew(&self, code: Code) {
        self.size.failed(code);
    }
}

type Pair = (bytes::Bytes, bytes::Bytes);

impl PageOf<'_> {
    fn records(&self, pairs: &[Pair]) -> Result<Vec<Record>, GivenUp> {
        let named =
            pairs.iter().filter_map(|(key, bytes)| Some((self.keys.id_of_record(self.space, key)?, bytes)));
        named.map(|(id, bytes)| Ok(value::read_record(id, bytes)?)).collect()
    }

    /// The index holds names alone; the records are read in the same snapshot.
    async fn tagged(
        &self,
        transaction: &dyn Transaction,
        tag: &str,
        pairs: &[Pair],
    ) -> Result<Vec<Record>, GivenUp> {
        let ids: Vec<_> =
            pairs.iter().filter_map(|(key, _)| self.keys.id_of_tagged(self.space, tag, key)).collect();
        let found = ids.iter().map(|id| record(transaction, self.keys, id, Isolation::Snapshot));
        Ok(try_join_all(found).await?.into_iter().flatten().collect())
    }
}

/// Records per page, at most.
const PAGE: usize = 250;
