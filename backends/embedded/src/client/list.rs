//! A listing, page by page.
//!
//! Records change while the pages come, so the pages alone show no one point in history. The changes since the first page
//! are laid over them; what results is exactly what stood at the position where that ends.

use std::collections::BTreeMap;

use archipelago_directory::{Change, Position, Record, Records, Space, StoreError};
use archipelago_protocol::time::Millis;

use super::{ANSWER_TIMEOUT, Failed, Remote, UNASKED};
use crate::wire::{Item, MAX_MESSAGE, Op, Outcome, WireError};

pub(super) async fn list(remote: &Remote, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
    for _ in 0..ROUNDS {
        match attempt(remote, space, tag).await.map_err(Failed::of_read) {
            Err(StoreError::Compacted) => {}
            answer => return answer,
        }
    }
    Err(StoreError::Unavailable { source: "the records change faster than they can be listed".into() })
}

async fn attempt(remote: &Remote, space: Space, tag: Option<&str>) -> Result<Records, Failed> {
    let mut page = remote.page(space, tag, None).await?;
    if !page.more {
        return Ok(page.listed);
    }
    let first = page.listed.position;
    let mut listing = Listing { space, tag, records: BTreeMap::new(), bytes: 0 };
    loop {
        let last_key = page.listed.records.last().map(|record| record.id.key.clone());
        let (reached, more) = (page.listed.position, page.more);
        page.listed.records.into_iter().try_for_each(|record| listing.put(record))?;
        if !more {
            return listing.catch_up(remote, first, reached).await;
        }
        page = remote.page(space, tag, last_key.as_deref()).await?;
    }
}

struct Page {
    listed: Records,
    more: bool,
}

struct Listing<'a> {
    space: Space,
    tag: Option<&'a str>,
    records: BTreeMap<String, Record>,
    bytes: usize,
}

impl Listing<'_> {
    /// Lays the changes after `from` over the pages, at least up to `to`.
    async fn catch_up(
        mut self,
        remote: &Remote,
        mut from: Position,
        to: Position,
    ) -> Result<Records, Failed> {
        while from < to {
            let polled = remote.changes(self.space, from, Millis::ZERO).await?;
            if polled.searched_to == from {
                return Err(Failed::Garbled(UNASKED));
            }
            polled.changes.into_iter().try_for_each(|change| self.change(change))?;
            from = polled.searched_to;
        }
        Ok(Records { records: self.records.into_values().collect(), position: from })
    }

    fn change(&mut self, change: Change) -> Result<(), Failed> {
        match change {
            Change::Put { record, .. } if self.tag.is_none() || record.tag.as_deref() == self.tag => {
                self.put(record)?;
            }
            Change::Put { record: Record { id, .. }, .. } | Change::Deleted { id, .. } => {
                self.records.remove(&id.key);
            }
        }
        Ok(())
    }

    fn put(&mut self, record: Record) -> Result<(), Failed> {
        self.bytes += Item::size(&record);
        if self.bytes > MAX_LISTED {
            let source = format!("a listing of space {} takes more than {MAX_LISTED} bytes", self.space);
            return Err(Failed::Refused(StoreError::Fatal { source: source.into() }));
        }
        self.records.insert(record.id.key.clone(), record);
        Ok(())
    }
}

impl Remote {
    async fn page(&self, space: Space, tag: Option<&str>, after_key: Option<&str>) -> Result<Page, Failed> {
        let op = Op::List { space: space.as_str(), tag, after_key, max_bytes: MAX_MESSAGE as u32 };
        let read = |outcome: Outcome<'_>| match outcome {
            Outcome::Page { records, position, more } => {
                let records = records.into_iter().map(Item::read).collect::<Result<Vec<_>, _>>()?;
                let page = Page { listed: Records { records, position: Position(position) }, more };
                page.follows(space, after_key).then_some(page).ok_or(OUT_OF_ORDER)
            }
            _ => Err(UNASKED),
        };
        self.ask(op, ANSWER_TIMEOUT, read).await
    }
}

impl Page {
    /// Whether it goes on after `after_key`: a listing comes to its end only if every page does.
    fn follows(&self, space: Space, after_key: Option<&str>) -> bool {
        let records = &self.listed.records;
        let first = records.first().map(|record| record.id.key.as_str());
        records.iter().all(|record| record.id.space == space)
            && records.is_sorted_by(|one, next| one.id.key < next.id.key)
            && first.map_or(!self.more, |first| after_key.is_none_or(|after| first > after))
    }
}

const OUT_OF_ORDER: WireError = WireError::Nonsense("the page is not the one that was asked for");
/// How often a listing begins anew because the history does not reach back to its first page.
const ROUNDS: usize = 3;
/// The most that a listing may hold.
const MAX_LISTED: usize = 256 << 20;
