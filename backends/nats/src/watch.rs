//! Watching a space: its messages in order, each checked against the one it replaced.
//!
//! The stream keeps the last few messages of every subject, so a reader that falls behind on a key may find some of them
//! gone. Every message names the one it replaced, and what came after the start of this watch must have been delivered
//! by it; if not, the watch says `Compacted`. A key that was deleted so long ago that even its delete marker is gone would
//! not show at all: therefore a watch begins only after a recent position, and a reader never stays out of touch for long.

use std::collections::VecDeque;
use std::sync::Arc;

use archipelago_directory::{Change, Position, Space, StoreError, StoreWatch};
use futures_util::stream;
use serde_json::json;

use crate::error::LinkError;
use crate::message::{Stored, StoredKind};
use crate::reader::{Delivered, From, Pulse, Reader};
use crate::store::Inner;
use crate::stream::StreamInfo;

pub(crate) async fn watch(
    inner: Arc<Inner>,
    space: Space,
    after: Position,
) -> Result<StoreWatch, StoreError> {
    let after = inner.sequence(after.0).ok_or(StoreError::Compacted)?;
    if !inner.is_recent(after) || inner.last_sequence().await? < after {
        return Err(StoreError::Compacted);
    }
    let subjects = [inner.subjects.space(space)];
    let (stream, pulse) = (inner.config.stream.as_str(), Pulse::new(inner.remembered));
    let (from, deadline) = (From::Sequence(after + 1), inner.link.deadline());
    let reader = Reader::open(&inner.link, stream, &subjects, from, pulse, deadline).await?;
    let watch = Watch { inner, space, reader, told: Told::new(after) };
    Ok(Box::pin(stream::unfold(Some(watch), |watch| async {
        let mut watch = watch?;
        match watch.next().await {
            Ok(change) => Some((Ok(change), Some(watch))),
            Err(error) => Some((Err(error), None)),
        }
    })))
}

impl Inner {
    /// The last sequence of the stream, as its leader knows it.
    async fn last_sequence(&self) -> Result<u64, StoreError> {
        let subject = format!("STREAM.INFO.{}", self.config.stream);
        let info = self.link.api::<StreamInfo>(&subject, &json!({}), self.link.deadline()).await?;
        let info = info.map_err(|error| LinkError::NotTaken(Box::new(error)))?;
        Ok(info.state.last_seq)
    }
}

struct Watch {
    inner: Arc<Inner>,
    space: Space,
    reader: Reader,
    told: Told,
}

impl Watch {
    async fn next(&mut self) -> Result<Change, StoreError> {
        loop {
            let Delivered { subject, stored, .. } = self.reader.next().await?;
            match self.told.check(&stored) {
                Check::Old => continue,
                Check::Sound => {}
                Check::Missed => return Err(StoreError::Compacted),
                // What is still there was there all the time, so it was delivered.
                Check::TooLongAgo(replaced) if self.inner.is_kept(replaced).await? => {}
                Check::TooLongAgo(_) => return Err(StoreError::Compacted),
            }
            self.told.note(stored.seq);
            self.inner.note_read(&subject, &stored);
            let Some(id) = self.inner.subjects.parse(self.space, &subject) else { continue };
            let (position, version) = (self.inner.position(stored.seq), self.inner.version(stored.seq));
            match stored.kind {
                StoredKind::Collected => continue,
                StoredKind::Deleted | StoredKind::Expired => return Ok(Change::Deleted { position, id }),
                StoredKind::Put { .. } => {}
            }
            if let Some(record) = stored.record(&id, version) {
                return Ok(Change::Put { position, record });
            }
        }
    }
}

/// Which messages this watch was given: all up to `from`, and the last few thousand by name.
#[derive(Debug)]
struct Told {
    from: u64,
    last: VecDeque<u64>,
    /// The greatest that has been dropped from `last`.
    dropped: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// From before the watch, or given already.
    Old,
    /// Nothing is missing before it.
    Sound,
    /// What it replaced was not given to this watch.
    Missed,
    /// What it replaced came so long ago that it cannot be told.
    TooLongAgo(u64),
}

impl Told {
    fn new(from: u64) -> Self {
        Self { from, last: VecDeque::new(), dropped: 0 }
    }

    fn check(&self, stored: &Stored) -> Check {
        if stored.seq <= self.from.max(self.last.back().copied().unwrap_or_default()) {
            return Check::Old;
        }
        match stored.replaced {
            None => Check::Sound,
            Some(replaced) if replaced <= self.from || self.last.binary_search(&replaced).is_ok() => {
                Check::Sound
            }
            Some(replaced) if replaced <= self.dropped => Check::TooLongAgo(replaced),
            Some(_) => Check::Missed,
        }
    }

    fn note(&mut self, seq: u64) {
        self.last.push_back(seq);
        if self.last.len() > REMEMBERED {
            self.dropped = self.last.pop_front().unwrap_or(self.dropped);
        }
    }
}

const REMEMBERED: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(seq: u64, replaced: Option<u64>) -> Stored {
        Stored { seq, kind: StoredKind::Deleted, replaced, ttl: None }
    }

    #[test]
    fn a_message_whose_predecessor_was_not_given_is_a_gap() {
        let mut told = Told::new(10);
        assert_eq!(told.check(&stored(10, None)), Check::Old);
        assert_eq!(told.check(&stored(12, Some(9))), Check::Sound);
        told.note(12);
        assert_eq!(told.check(&stored(12, Some(9))), Check::Old, "a reader that starts again repeats itself");
        assert_eq!(told.check(&stored(15, Some(12))), Check::Sound);
        assert_eq!(told.check(&stored(15, Some(14))), Check::Missed);
        assert_eq!(told.check(&stored(15, None)), Check::Sound);
    }

    #[test]
    fn what_was_given_long_ago_is_not_taken_for_a_gap() {
        let mut told = Told::new(0);
        (1..=20_000).for_each(|seq| told.note(seq));
        assert_eq!(told.last.len(), REMEMBERED);
        assert_eq!(told.check(&stored(20_001, Some(5))), Check::TooLongAgo(5));
        assert_eq!(told.check(&stored(20_001, Some(19_999))), Check::Sound);
    }
}
