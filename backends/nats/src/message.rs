//! A record as a message: the value is the payload, all else is in headers.
//!
//! Every write names the message that it replaces, twice: for the server, which refuses it otherwise, and for watchers,
//! which find out by it whether they missed one.

use std::time::Duration;

use archipelago_directory::{Record, RecordId, Version, Write};
use archipelago_protocol::time::Millis;
use async_nats::{HeaderMap, HeaderValue};
use bytes::Bytes;

use crate::subject::{escape, unescape};

/// The message that a write must find as the newest of its subject, 0 = none, and what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replaces {
    pub(crate) seq: u64,
    /// Whether watchers must have seen it: not so if there is none, or if it only stood for an absence long known.
    pub(crate) told: bool,
    pub(crate) before: Before,
}

/// How long what stands there stays, if nothing replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    /// There is nothing, and nothing older.
    Nothing,
    /// It goes by itself, all before it too, within so many seconds of its writing.
    Goes(u64),
    /// For ever, or nobody knows.
    Stays,
    /// For ever: it is a delete marker, or came so soon after one that watches may still need both.
    Fresh,
}

/// When a message goes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    Never,
    /// After so many seconds.
    After(u64),
    /// After so many seconds, and all before it go at once.
    Alone(u64),
}

impl Expiry {
    /// A message that the server removes must leave nothing older behind, or the older one would be the newest again and
    /// the version would go back. So it goes by itself only after all before it, or removes them first (a roll-up); or,
    /// where watches may still need them, it stays for now, and a later one goes in its stead.
    pub(crate) const fn of(ttl: Option<u64>, before: Before) -> Self {
        match (ttl, before) {
            (None, _) | (Some(_), Before::Fresh) => Self::Never,
            (Some(ttl), Before::Nothing) => Self::After(ttl),
            (Some(ttl), Before::Goes(first)) if first <= ttl => Self::After(ttl),
            (Some(ttl), _) => Self::Alone(ttl),
        }
    }

    fn insert(self, headers: &mut HeaderMap) {
        let (Self::After(ttl) | Self::Alone(ttl)) = self else { return };
        headers.insert(TTL, format!("{ttl}s"));
        if matches!(self, Self::Alone(_)) {
            headers.insert("Nats-Rollup", "sub");
        }
    }
}

impl Replaces {
    pub(crate) const NOTHING: Self = Self { seq: 0, told: false, before: Before::Nothing };

    /// A record or a delete marker.
    pub(crate) const fn told(seq: u64, before: Before) -> Self {
        Self { seq, told: true, before }
    }

    /// The headers by which the server compares. Both are needed: alone, the first is compared with the newest message of
    /// the subject written to, and would stop doing so if that were ever to differ from the key's.
    fn headers(self, subject: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_SEQUENCE, HeaderValue::from(self.seq));
        headers.insert(EXPECTED_SUBJECT, subject);
        if self.told {
            headers.insert(REPLACED, HeaderValue::from(self.seq));
        }
        headers
    }
}

/// The headers of a write to `subject`.
pub(crate) fn headers(subject: &str, replaces: Replaces, write: &Write, expiry: Expiry) -> HeaderMap {
    let mut headers = replaces.headers(subject);
    match write {
        Write::Delete => headers.insert(KIND, DELETED),
        Write::Put { tag: Some(tag), .. } => headers.insert(TAG, escape(tag)),
        Write::Put { tag: None, .. } => {}
    }
    expiry.insert(&mut headers);
    headers
}

/// The headers of the message that takes the place of a delete marker, and soon goes by itself.
pub(crate) fn collect_headers(subject: &str, marker: u64, lasting: Duration) -> HeaderMap {
    let mut headers = Replaces { seq: marker, told: false, before: Before::Stays }.headers(subject);
    headers.insert(KIND, COLLECTED);
    // For a message that is a marker already, the server leaves none when it goes.
    headers.insert(MARKER, "Remove");
    Expiry::Alone(lasting.as_secs().max(1)).insert(&mut headers);
    headers
}

/// The server counts in whole seconds.
pub(crate) fn ttl_seconds(ttl: Millis) -> u64 {
    ttl.0.div_ceil(1_000).max(1)
}

/// A message of a record's subject, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) seq: u64,
    pub(crate) kind: StoredKind,
    /// What it replaced, if watchers must have seen that.
    pub(crate) replaced: Option<u64>,
    /// After how many seconds it goes by itself.
    pub(crate) ttl: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoredKind {
    /// A record.
    Put { tag: Option<String>, value: Bytes },
    /// The record was deleted.
    Deleted,
    /// It was deleted long ago; this message only clears up.
    Collected,
    /// The server removed it because its time to live was over.
    Expired,
}

impl Stored {
    pub(crate) fn new(seq: u64, headers: Option<&HeaderMap>, value: Bytes) -> Self {
        let header = |name: &str| headers.and_then(|headers| headers.get(name)).map(|value| value.as_str());
        let kind = match (header(KIND), header(MARKER)) {
            (Some(DELETED), _) => StoredKind::Deleted,
            (Some(_), _) => StoredKind::Collected,
            (None, Some(_)) => StoredKind::Expired,
            (None, None) => StoredKind::Put { tag: header(TAG).and_then(unescape), value },
        };
        let ttl = header(TTL).and_then(|text| text.trim_end_matches('s').parse().ok());
        Self { seq, kind, replaced: header(REPLACED).and_then(|text| text.parse().ok()), ttl }
    }

    /// What a write that replaces this message names.
    pub(crate) const fn replaces(&self) -> Replaces {
        let told = matches!(self.kind, StoredKind::Put { .. } | StoredKind::Deleted);
        let before = match (&self.kind, self.ttl) {
            (StoredKind::Deleted, _) => Before::Fresh,
            (_, Some(ttl)) => Before::Goes(ttl),
            (_, None) => Before::Stays,
        };
        Replaces { seq: self.seq, told, before }
    }

    /// The record, if it is one.
    pub(crate) fn record(self, id: &RecordId, version: Version) -> Option<Record> {
        match self.kind {
            StoredKind::Put { tag, value } => Some(Record { id: id.clone(), tag, value, version }),
            _ => None,
        }
    }
}

const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";
const EXPECTED_SUBJECT: &str = "Nats-Expected-Last-Subject-Sequence-Subject";
/// Set by the server on the message that it leaves in place of one that expired.
const MARKER: &str = "Nats-Marker-Reason";
const TTL: &str = "Nats-TTL";
const TAG: &str = "Archipelago-Tag";
const REPLACED: &str = "Archipelago-Replaced";
const KIND: &str = "Archipelago-Kind";
const DELETED: &str = "deleted";
const COLLECTED: &str = "collected";

#[cfg(test)]
mod tests {
    use super::*;

    const STAYS: Replaces = Replaces::told(7, Before::Stays);

    fn put(tag: Option<&str>) -> Write {
        Write::Put { tag: tag.map(Into::into), value: Bytes::from("v"), ttl: None }
    }

    fn read_back(headers: &HeaderMap) -> Stored {
        Stored::new(9, Some(headers), Bytes::from("v"))
    }

    #[test]
    fn every_tag_reads_back() {
        for tag in [None, Some(""), Some("00ab"), Some(" a b "), Some("ä\n")] {
            let stored = read_back(&headers("s", STAYS, &put(tag), Expiry::Never));
            let kind = StoredKind::Put { tag: tag.map(Into::into), value: Bytes::from("v") };
            assert_eq!(stored, Stored { seq: 9, kind, replaced: Some(7), ttl: None });
        }
    }

    #[test]
    fn a_write_names_its_predecessor_by_both_headers() {
        let headers = headers("p.own.k", Replaces::NOTHING, &put(None), Expiry::Never);
        let header = |name: &str| headers.get(name).map(|value| value.as_str().to_owned());
        assert_eq!(header(EXPECTED_SEQUENCE).as_deref(), Some("0"));
        assert_eq!(header(EXPECTED_SUBJECT).as_deref(), Some("p.own.k"));
    }

    #[test]
    fn what_the_server_may_remove_leaves_nothing_older_behind() {
        assert_eq!(Expiry::of(Some(5), Before::Nothing), Expiry::After(5));
        assert_eq!(Expiry::of(Some(5), Before::Goes(5)), Expiry::After(5));
        assert_eq!(Expiry::of(Some(5), Before::Goes(6)), Expiry::Alone(5));
        assert_eq!(Expiry::of(Some(5), Before::Stays), Expiry::Alone(5));
        assert_eq!(Expiry::of(Some(5), Before::Fresh), Expiry::Never);
        assert_eq!(Expiry::of(None, Before::Nothing), Expiry::Never);
    }

    #[test]
    fn only_who_goes_alone_rolls_up() {
        let sent = |expiry| headers("s", STAYS, &put(None), expiry);
        let rolls_up = |headers: &HeaderMap| headers.get("Nats-Rollup").is_some();
        assert!(
            rolls_up(&sent(Expiry::Alone(2))) && rolls_up(&collect_headers("s", 7, Duration::from_secs(2)))
        );
        assert!(!rolls_up(&sent(Expiry::After(2))) && !rolls_up(&sent(Expiry::Never)));
        assert_eq!(read_back(&sent(Expiry::After(2))).replaces().before, Before::Goes(2));
        assert_eq!(read_back(&sent(Expiry::Never)).replaces().before, Before::Stays);
    }

    #[test]
    fn absence_has_many_forms() {
        let deleted = read_back(&headers("s", STAYS, &Write::Delete, Expiry::Never));
        assert_eq!(
            (&deleted.kind, deleted.replaces()),
            (&StoredKind::Deleted, Replaces::told(9, Before::Fresh))
        );
        let collected = read_back(&collect_headers("s", 7, Duration::from_secs(2)));
        assert_eq!((&collected.kind, collected.replaces().told), (&StoredKind::Collected, false));
        let mut marker = HeaderMap::new();
        marker.insert(MARKER, "MaxAge");
        assert_eq!(read_back(&marker).kind, StoredKind::Expired);
    }
}
