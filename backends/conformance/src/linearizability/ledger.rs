//! Pairs of writers that race for one new record after another, and what they were answered.
//!
//! No record is ever replaced or removed, so the books must balance in the end: of two writers one was granted the record,
//! what was acknowledged stands at the version that was answered, and what was refused left no trace.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use archipelago_directory::{CasAnswer, Expect, Record, RecordId, Space, Store, StoreError, Version, Write};
use bytes::Bytes;
use futures_util::future::join;

/// What the writers were answered, by record.
#[derive(Default)]
pub(super) struct Ledger {
    entries: Mutex<BTreeMap<RecordId, Vec<Entry>>>,
}

struct Entry {
    writer: String,
    answer: Answer,
}

#[derive(Debug)]
enum Answer {
    Granted(Version),
    /// Another's record stands there.
    Shown(Record),
    Unknown,
    /// Certainly nothing was written.
    Refused,
}

/// A record is not what its writers were answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    /// The record.
    pub id: RecordId,
    /// What is wrong with it, for people.
    pub why: String,
}

impl fmt::Display for BrokenPromise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.why)
    }
}

impl std::error::Error for BrokenPromise {}

impl Ledger {
    /// Two writers race for one new record; whether both were answered.
    pub(super) async fn race(&self, stores: [&dyn Store; 2], name: &str) -> bool {
        let id = RecordId::new(Space::OWNERS, format!("{PREFIX}{name}"));
        let write = async |store: &dyn Store, writer: &str| {
            let value = Bytes::from_static(b"{}");
            let put = Write::Put { tag: Some(writer.into()), value, ttl: None };
            let answer = Answer::of(store.cas(&id, Expect::Absent, put, None).await);
            Entry { writer: writer.to_owned(), answer }
        };
        let (one, two) = join(write(stores[0], "one"), write(stores[1], "two")).await;
        let answered = |entry: &Entry| matches!(entry.answer, Answer::Granted(_) | Answer::Shown(_));
        let both = answered(&one) && answered(&two);
        self.lock().insert(id, vec![one, two]);
        both
    }

    /// Compares what was answered with what stands there; answers how many writes were acknowledged.
    pub(super) async fn check(&self, store: &dyn Store) -> Result<usize, LedgerError> {
        let listed = store.list(Space::OWNERS, None).await.map_err(LedgerError::Unreadable)?;
        let standing: BTreeMap<RecordId, Record> =
            listed.records.into_iter().map(|record| (record.id.clone(), record)).collect();
        let entries = self.lock();
        let mut granted = 0;
        for (id, entries) in entries.iter() {
            let broken = |why| LedgerError::Broken(BrokenPromise { id: id.clone(), why });
            judge(entries, standing.get(id)).map_err(broken)?;
            granted += entries.iter().filter(|entry| matches!(entry.answer, Answer::Granted(_))).count();
        }
        Ok(granted)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RecordId, Vec<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) enum LedgerError {
    Broken(BrokenPromise),
    Unreadable(StoreError),
}

impl Answer {
    fn of(answer: Result<CasAnswer, StoreError>) -> Self {
        match answer {
            Ok(CasAnswer::Applied(version)) => Self::Granted(version),
            Ok(CasAnswer::Conflict(Some(record))) => Self::Shown(record),
            // It was there when the write was refused, and nobody removes it: the engine contradicts itself.
            Ok(CasAnswer::Conflict(None) | CasAnswer::GuardFailed) => {
                panic!("a new record was refused without cause")
            }
            Err(StoreError::Unknown { .. }) => Self::Unknown,
            Err(StoreError::Unavailable { .. }) => Self::Refused,
            Err(other) => panic!("a new record: {other:?}"),
        }
    }

    /// The record that this answer says is there for good.
    fn promises(&self, writer: &str) -> Option<(Version, String)> {
        match self {
            Self::Granted(version) => Some((*version, writer.to_owned())),
            Self::Shown(record) => Some((record.version, record.tag.clone().unwrap_or_default())),
            Self::Unknown | Self::Refused => None,
        }
    }
}

fn judge(entries: &[Entry], stands: Option<&Record>) -> Result<(), String> {
    let granted = entries.iter().filter(|entry| matches!(entry.answer, Answer::Granted(_)));
    if granted.count() > 1 {
        return Err("was granted to both".to_owned());
    }
    let now = stands.map(|record| (record.version, record.tag.clone().unwrap_or_default()));
    for entry in entries {
        let promised = entry.answer.promises(&entry.writer);
        if promised.is_some() && promised != now {
            return Err(format!(
                "{} was answered {:?}, but {now:?} stands there",
                entry.writer, entry.answer
            ));
        }
    }
    let Some((_, writer)) = &now else { return Ok(()) };
    let may_have = |entry: &Entry| matches!(entry.answer, Answer::Granted(_) | Answer::Unknown);
    if entries.iter().any(|entry| entry.writer == *writer && may_have(entry)) {
        return Ok(());
    }
    Err(format!("{writer} was told that nothing was written, but it stands there"))
}

/// No directory calls a key so.
const PREFIX: &str = "ledger-";

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(writer: &str, answer: Answer) -> Entry {
        Entry { writer: writer.to_owned(), answer }
    }

    fn record(version: u64, writer: &str) -> Record {
        let id = RecordId::new(Space::OWNERS, "ledger-1");
        Record { id, tag: Some(writer.into()), value: Bytes::new(), version: Version(version) }
    }

    #[test]
    fn books_that_balance_are_content() {
        let granted = || entry("one", Answer::Granted(Version(4)));
        let shown = || entry("two", Answer::Shown(record(4, "one")));
        let lost = |writer| entry(writer, Answer::Unknown);
        assert_eq!(judge(&[granted(), shown()], Some(&record(4, "one"))), Ok(()));
        assert_eq!(judge(&[lost("one"), shown()], Some(&record(4, "one"))), Ok(()));
        assert_eq!(judge(&[lost("one"), lost("two")], None), Ok(()));
        assert_eq!(judge(&[lost("one"), lost("two")], Some(&record(9, "two"))), Ok(()));
        assert_eq!(judge(&[entry("one", Answer::Refused), lost("two")], None), Ok(()));
    }

    #[test]
    fn every_kind_of_broken_promise_is_named() {
        let granted = |writer| entry(writer, Answer::Granted(Version(4)));
        let refused = |writer| entry(writer, Answer::Refused);
        let said = |entries: &[Entry], stands: Option<&Record>| judge(entries, stands).unwrap_err();
        assert!(said(&[granted("one"), granted("two")], Some(&record(4, "one"))).contains("both"));
        assert!(said(&[granted("one"), refused("two")], None).contains("None stands there"));
        assert!(said(&[granted("one"), refused("two")], Some(&record(5, "one"))).contains("stands there"));
        assert!(
            said(&[granted("one"), entry("two", Answer::Unknown)], Some(&record(4, "two")))
                .contains("one was")
        );
        assert!(
            said(&[refused("one"), refused("two")], Some(&record(4, "two"))).contains("nothing was written")
        );
    }
}
