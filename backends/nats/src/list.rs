//! Listing a space: the newest message of every subject, up to a barrier.
//!
//! A consumer may read from a replica that is behind, so nothing that it shows proves that it has shown everything. The
//! listing therefore writes a message, the barrier, and reads until that comes out: then it has seen whatever was
//! stored before, and the barrier's sequence is the position to watch from.
//!
//! The barrier is written when the consumer stands. If it were before, a record that is replaced between the two would have
//! its newest message behind the barrier and no older one, and would be missing although it was there all the time.

use std::collections::BTreeMap;
use std::time::Duration;

use archipelago_directory::{Record, Records, Space, StoreError};
use bytes::Bytes;

use crate::clock::Deadline;
use crate::error::LinkError;
use crate::message::{StoredKind, collect_headers};
use crate::reader::{Delivered, From, Pulse, Reader};
use crate::store::Inner;

pub(crate) async fn list(inner: &Inner, space: Space, tag: Option<&str>) -> Result<Records, StoreError> {
    let deadline = Deadline::after(inner.config.list_timeout);
    let subjects = [inner.subjects.space(space), inner.subjects.barrier()];
    let stream = inner.config.stream.as_str();
    let pulse = Pulse::new(inner.remembered);
    let asked = inner.link.deadline();
    let mut reader = Reader::open(&inner.link, stream, &subjects, From::Newest, pulse, asked).await?;
    let barrier = inner.write_barrier().await?;
    let mut listing = Listing { space, tag, records: BTreeMap::new(), markers: Vec::new() };
    let end = loop {
        let next = deadline.limit(reader.next()).await;
        let next = next.ok_or_else(|| LinkError::NotTaken("the listing took too long".into()))??;
        if next.subject == subjects[1] && next.stored.seq >= barrier {
            break next;
        }
        listing.take(inner, next);
    };
    listing.clear_up(inner, end.at).await;
    let records = listing.records.into_values().collect();
    Ok(Records { records, position: inner.position(end.stored.seq) })
}

impl Inner {
    /// Writes the barrier; everything stored before has a smaller sequence.
    async fn write_barrier(&self) -> Result<u64, StoreError> {
        let subject = self.subjects.barrier();
        match self.store_message(&subject, None, Bytes::new(), self.link.deadline()).await? {
            Ok(seq) => Ok(seq),
            Err(error) => Err(StoreError::Unavailable { source: Box::new(error) }),
        }
    }
}

struct Listing<'a> {
    space: Space,
    tag: Option<&'a str>,
    records: BTreeMap<String, Record>,
    /// Delete markers: subject, sequence, and when they were stored.
    markers: Vec<(String, u64, Duration)>,
}

impl Listing<'_> {
    /// A key may come more than once, newer each time.
    fn take(&mut self, inner: &Inner, Delivered { subject, stored, at }: Delivered) {
        let Some(id) = inner.subjects.parse(self.space, &subject) else { return };
        inner.note_read(&subject, &stored);
        let (version, seq) = (inner.version(stored.seq), stored.seq);
        if stored.kind == StoredKind::Deleted && self.markers.len() < CLEARED_AT_ONCE {
            self.markers.push((subject, seq, at));
        }
        match stored.record(&id, version).filter(|record| self.is_wanted(record)) {
            Some(record) => drop(self.records.insert(id.key, record)),
            None => drop(self.records.remove(&id.key)),
        }
    }

    fn is_wanted(&self, record: &Record) -> bool {
        self.tag.is_none() || record.tag.as_deref() == self.tag
    }

    /// Clears up delete markers that no watch can need any more: those that the process which wrote them has not.
    async fn clear_up(&self, inner: &Inner, now: Duration) {
        let keep = inner.remembered;
        for (subject, seq, at) in &self.markers {
            if now.saturating_sub(*at) > keep {
                let headers = collect_headers(subject, *seq, keep);
                inner.link.fire(subject.clone(), headers, inner.link.deadline()).await;
            }
        }
    }
}

const CLEARED_AT_ONCE: usize = 1_024;
