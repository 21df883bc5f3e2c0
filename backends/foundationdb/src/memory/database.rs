//! Keys with their versions, and which commits exclude each other.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use bytes::Bytes;

use crate::code::Code;
use crate::engine::Page;
use crate::keys::{KeyRange, STAMP};

/// What a transaction hands in.
#[derive(Clone, Debug, Default)]
pub(super) struct Commit {
    /// None if it read nothing.
    pub(super) read_version: Option<u64>,
    /// What it read and must not have changed.
    pub(super) reads: Vec<KeyRange>,
    pub(super) writes: Vec<Mutation>,
    /// Why it cannot be committed: something that was to be written is too long.
    pub(super) refused: Option<Code>,
}

#[derive(Clone, Debug)]
pub(super) enum Mutation {
    Set(Vec<u8>, Bytes),
    Clear(KeyRange),
    Max(Vec<u8>, Bytes),
    StampedKey(Vec<u8>, Bytes),
    StampedValue(Vec<u8>, Bytes),
}

/// Invariant: `commits` holds what every commit of the last [`WINDOW`] versions wrote.
#[derive(Debug, Default)]
pub(super) struct Database {
    version: u64,
    /// How many commits have this version.
    order: u16,
    /// Whether a transaction reads at this version: then no other commit may have it.
    seen: bool,
    data: BTreeMap<Bytes, Vec<(u64, Option<Bytes>)>>,
    commits: VecDeque<(u64, Vec<KeyRange>)>,
}

impl Database {
    pub(super) fn read_version(&mut self) -> u64 {
        self.seen = true;
        self.version
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
        self.seen = true;
        for versions in self.data.values_mut() {
            versions.drain(..versions.len().saturating_sub(1));
            versions.iter_mut().for_each(|(at, _)| *at = version.min(*at));
        }
    }

    /// Versions count the time as well: a million are a second.
    pub(super) fn pass(&mut self, versions: u64) {
        if versions > 0 {
            self.version = self.version.saturating_add(versions);
            self.seen = true;
        }
    }

    pub(super) fn keys(&self) -> usize {
        self.data
            .values()
            .filter(|versions| versions.last().is_some_and(|(_, value)| value.is_some()))
            .count()
    }

    pub(super) fn get(&self, key: &[u8], at: u64) -> Result<Option<Bytes>, Code> {
        self.check_age(at)?;
        Ok(self.data.get(key).and_then(|versions| value_at(versions, at)))
    }

    /// What stands there now.
    pub(super) fn newest(&self, key: &[u8]) -> Option<Bytes> {
        self.data.get(key).and_then(|versions| value_at(versions, self.version))
    }

    pub(super) fn range(&self, begin: &[u8], end: &[u8], at: u64, limit: usize) -> Result<Page, Code> {
        self.check_age(at)?;
        let keys = self.within(begin, end);
        let mut pairs: Vec<_> = keys
            .filter_map(|(key, versions)| Some((key.clone(), value_at(versions, at)?)))
            .take(limit.saturating_add(1))
            .collect();
        let more = pairs.len() > limit;
        pairs.truncate(limit);
        Ok(Page { pairs, more })
    }

    /// Applies all of `commit` or nothing; answers its version, and whether another has it, too.
    pub(super) fn commit(&mut self, commit: &Commit, share: bool) -> Result<(u64, bool), Code> {
        let read_version = commit.read_version.unwrap_or(self.version);
        self.check_age(read_version)?;
        let later = self.commits.iter().rev().take_while(|(version, _)| *version > read_version);
        let mut written = later.flat_map(|(_, ranges)| ranges);
        if written.any(|write| commit.reads.iter().any(|read| overlap(read, write))) {
            return Err(Code::NOT_COMMITTED);
        }
        let shared = share && !self.seen && self.version > 0;
        self.order = if shared { self.order.saturating_add(1) } else { 0 };
        self.version += if shared { 0 } else { STEP };
        self.seen = false;
        let written = commit.writes.iter().map(|mutation| self.apply(mutation)).collect();
        self.commits.push_back((self.version, written));
        while self.commits.front().is_some_and(|(version, _)| version + WINDOW < self.version) {
            self.commits.pop_front();
        }
        Ok((self.version, shared))
    }

    fn apply(&mut self, mutation: &Mutation) -> KeyRange {
        match mutation {
            Mutation::Set(key, value) => self.put(key.clone(), Some(value.clone())),
            Mutation::StampedKey(key, value) => {
                let key = self.stamped(key);
                self.put(key, Some(value.clone()))
            }
            Mutation::StampedValue(key, value) => {
                let value = self.stamped(value);
                self.put(key.clone(), Some(value.into()))
            }
            Mutation::Max(key, value) => {
                let greatest = self.newest(key).unwrap_or_default().max(value.clone());
                self.put(key.clone(), Some(greatest))
            }
            Mutation::Clear((begin, end)) => {
                let keys: Vec<_> = self.within(begin, end).map(|(key, _)| key.to_vec()).collect();
                keys.into_iter().for_each(|key| {
                    self.put(key, None);
                });
                (begin.clone(), end.clone())
            }
        }
    }

    fn put(&mut self, key: Vec<u8>, value: Option<Bytes>) -> KeyRange {
        let (version, end) = (self.version, crate::keys::after(&key));
        let versions = self.data.entry(Bytes::from(key.clone())).or_default();
        versions.push((version, value));
        // Of those that are too old for every transaction, the newest is enough.
        let needed = versions.iter().rposition(|(at, _)| at + WINDOW < version).unwrap_or(0);
        versions.drain(..needed);
        (key, end)
    }

    /// Puts the stamp where the last four bytes say, and takes those off.
    fn stamped(&self, bytes: &[u8]) -> Vec<u8> {
        let (bytes, offset) = bytes.split_last_chunk().expect("ends with where the stamp goes");
        let (at, mut bytes) = (u32::from_le_bytes(*offset) as usize, bytes.to_vec());
        bytes[at..at + 8].copy_from_slice(&self.version.to_be_bytes());
        bytes[at + 8..at + STAMP].copy_from_slice(&self.order.to_be_bytes());
        bytes
    }

    fn within(&self, begin: &[u8], end: &[u8]) -> impl Iterator<Item = (&Bytes, &Vec<(u64, Option<Bytes>)>)> {
        let empty = begin >= end;
        let bounds = if empty {
            (Bound::Unbounded, Bound::Unbounded)
        } else {
            (Bound::Included(begin), Bound::Excluded(end))
        };
        self.data.range::<[u8], _>(bounds).take(if empty { 0 } else { usize::MAX })
    }

    /// Whether a transaction that reads at this version may go on.
    pub(super) fn check_age(&self, at: u64) -> Result<(), Code> {
        if at + WINDOW < self.version { Err(Code::TRANSACTION_TOO_OLD) } else { Ok(()) }
    }
}

fn value_at(versions: &[(u64, Option<Bytes>)], at: u64) -> Option<Bytes> {
    versions.iter().rev().find(|(version, _)| *version <= at).and_then(|(_, value)| value.clone())
}

fn overlap(one: &KeyRange, other: &KeyRange) -> bool {
    one.0 < other.1 && other.0 < one.1
}

/// Versions between two commits: FoundationDB counts a million per second, so this is a commit every ten milliseconds.
const STEP: u64 = 10_000;
/// For how many versions snapshots are kept: five seconds.
const WINDOW: u64 = 5_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &'static str) -> Mutation {
        Mutation::Set(key.into(), Bytes::from(value))
    }

    fn reading(database: &mut Database, key: &str, write: Mutation) -> Commit {
        let reads = vec![(key.into(), crate::keys::after(key.as_bytes()))];
        Commit { read_version: Some(database.read_version()), reads, writes: vec![write], refused: None }
    }

    #[test]
    fn what_was_read_and_has_changed_refuses_the_commit_and_nothing_is_applied() {
        let mut database = Database::default();
        let (one, other) =
            (reading(&mut database, "k", set("k", "1")), reading(&mut database, "k", set("k", "2")));
        let blind = Commit { reads: Vec::new(), ..other.clone() };
        assert!(database.commit(&one, false).is_ok());
        assert_eq!(database.commit(&other, false), Err(Code::NOT_COMMITTED));
        assert_eq!(database.newest(b"k").as_deref(), Some(&b"1"[..]));
        assert!(database.commit(&blind, false).is_ok(), "who has read nothing conflicts with nobody");
        let cleared = reading(&mut database, "k", set("x", "1"));
        let clear = Commit { writes: vec![Mutation::Clear((b"a".into(), b"z".into()))], ..Commit::default() };
        assert!(database.commit(&clear, false).is_ok());
        assert_eq!(database.commit(&cleared, false), Err(Code::NOT_COMMITTED), "a range covers its keys");
    }

    #[test]
    fn a_snapshot_stays_as_it_was_until_it_is_too_old() {
        let mut database = Database::default();
        let first = reading(&mut database, "k", set("k", "1"));
        database.commit(&first, false).unwrap();
        let snapshot = database.read_version();
        let write = Commit { writes: vec![set("k", "2"), set("l", "2")], ..Commit::default() };
        for _ in 0..WINDOW / STEP {
            database.commit(&write, false).unwrap();
            assert_eq!(database.get(b"k", snapshot).unwrap().as_deref(), Some(&b"1"[..]));
            assert_eq!(database.range(b"a", b"z", snapshot, 9).unwrap().pairs.len(), 1);
        }
        database.commit(&write, false).unwrap();
        assert_eq!(database.get(b"k", snapshot), Err(Code::TRANSACTION_TOO_OLD));
        let old = Commit { read_version: Some(snapshot), ..write };
        assert_eq!(database.commit(&old, false), Err(Code::TRANSACTION_TOO_OLD));
    }

    #[test]
    fn commits_share_a_version_only_if_neither_saw_the_other() {
        let mut database = Database::default();
        let [one, two] = ["k", "l"].map(|key| reading(&mut database, key, set(key, "1")));
        let again = reading(&mut database, "k", set("k", "2"));
        let (first, _) = database.commit(&one, true).unwrap();
        assert_eq!(database.commit(&two, true), Ok((first, true)));
        assert_eq!(database.commit(&again, true), Err(Code::NOT_COMMITTED));
        let later = reading(&mut database, "k", set("k", "2"));
        assert_eq!(database.commit(&later, true), Ok((first + STEP, false)));
    }

    #[test]
    fn stamps_hold_the_version_and_the_order_within_it() {
        let mut database = Database::default();
        let key = [b"a".as_slice(), &[0; STAMP], b"z", &1_u32.to_le_bytes()].concat();
        let write = Commit { writes: vec![Mutation::StampedKey(key, Bytes::new())], ..Commit::default() };
        let (version, _) = database.commit(&write, false).unwrap();
        database.commit(&write, true).unwrap();
        let at = database.read_version();
        let keys = database.range(b"a", b"b", at, 9).unwrap().pairs;
        let expected = |order: u8| [b"a".as_slice(), &version.to_be_bytes(), &[0, order], b"z"].concat();
        assert_eq!([&keys[0].0[..], &keys[1].0[..]], [&expected(0)[..], &expected(1)[..]]);
    }

    #[test]
    fn the_greatest_value_stays() {
        let mut database = Database::default();
        for value in ["b", "c", "a"] {
            let max = Mutation::Max(b"k".into(), Bytes::from(value));
            database.commit(&Commit { writes: vec![max], ..Commit::default() }, false).unwrap();
        }
        assert_eq!(database.newest(b"k").as_deref(), Some(&b"c"[..]));
    }
}
