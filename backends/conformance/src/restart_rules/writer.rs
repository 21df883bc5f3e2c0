//! Somebody who writes while the server restarts, and knows in the end what was applied, in which order.

use archipelago_directory::{CasAnswer, Expect, RecordId, StoreError, Version, Write};

use super::{LIMIT, PAUSE, RestartFixture};
use crate::store_rules::{at, owner, put};

/// A change as a watch shows it: which record, and what stood there afterwards.
pub(crate) type Shown = (String, Option<String>);

/// Writes records that nobody else writes, one after the other.
pub(crate) struct Writer<'a> {
    f: &'a RestartFixture,
    made: Vec<Shown>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(f: &'a RestartFixture) -> Self {
        Self { f, made: Vec::new() }
    }

    /// A record that comes, changes its tag and goes, and one called `name` that stays.
    pub(crate) async fn changes(&mut self, name: &str) {
        let passing = owner(&format!("{name}, passing"));
        let version = self.put(&passing, Expect::Absent, "a", "one").await;
        let version = self.put(&passing, at(version, "a"), "b", "two").await;
        settle(self.f, &passing, at(version, "b"), Write::Delete).await;
        self.made.push((passing.key, None));
        self.put(&owner(name), Expect::Absent, "a", "stays").await;
    }

    /// The record that was written last.
    pub(crate) fn newest(&self) -> &str {
        self.made.last().map_or("", |(key, _)| key)
    }

    /// Every change so far.
    pub(crate) fn made(&self) -> &[Shown] {
        &self.made
    }

    async fn put(&mut self, id: &RecordId, expect: Expect, tag: &str, value: &str) -> Version {
        let version = settle(self.f, id, expect, put(tag, value)).await;
        self.made.push((id.key.clone(), Some(value.to_owned())));
        version
    }
}

/// Repeats a write until it is known that it was applied. Nobody else writes this record, and no value is written twice:
/// if the outcome was unknown, what stands there tells it.
pub(crate) async fn settle(f: &RestartFixture, id: &RecordId, expect: Expect, write: Write) -> Version {
    let (until, mut in_doubt) = (f.timer.now() + LIMIT, false);
    loop {
        match f.store.cas(id, expect.clone(), write.clone(), None).await {
            Ok(CasAnswer::Applied(version)) => return version,
            Ok(CasAnswer::Conflict(found)) if in_doubt => match (&write, found) {
                (Write::Delete, None) => return Version(0),
                (Write::Put { value, .. }, Some(record)) if record.value == *value => return record.version,
                (_, found) => panic!("{id}: an acknowledged write is gone, found {found:?}"),
            },
            Err(StoreError::Unknown { .. }) => in_doubt = true,
            Err(StoreError::Unavailable { .. }) => {}
            other => panic!("{id}: {other:?}"),
        }
        assert!(f.timer.now() < until, "{id}: not settled within {LIMIT}");
        f.timer.sleep(PAUSE).await;
    }
}
