//! A compare-and-swap as one transaction of etcd.
//!
//! The record's version is its modification revision: greater with every write to any key, so it never comes back, not
//! even after a delete. In the same transaction the guard is looked at, and the entry under the tag follows the record.

use std::collections::BTreeSet;

use archipelago_directory::{CasAnswer, Expect, Guard, Record, RecordId, Version, Write};
use etcd_client::{
    Compare, CompareOp, GetOptions, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use crate::keys::Keys;
use crate::value::{decode, encode};

/// The transaction that writes if the record is as expected and the guard holds, and reads the record otherwise. `lease`
/// is what the record hangs on, 0 for nothing.
pub(crate) fn cas(
    keys: &Keys,
    id: &RecordId,
    expect: &Expect,
    write: &Write,
    guard: Option<&Guard>,
    lease: i64,
) -> Txn {
    let key = keys.record(id);
    let mut compares = vec![Compare::mod_revision(key.as_str(), CompareOp::Equal, expected_revision(expect))];
    compares.extend(guard.map(|guard| holds(keys, guard)));
    let read = TxnOp::get(key.as_str(), None);
    Txn::new().when(compares).and_then(effects(keys, id, expect, write, lease)).or_else([read])
}

/// What the transaction came to.
pub(crate) fn cas_answer(id: &RecordId, expect: &Expect, response: &TxnResponse) -> CasAnswer {
    if response.succeeded() {
        return CasAnswer::Applied(Version(revision_of(response)));
    }
    let found = response.op_responses().into_iter().find_map(|response| match response {
        TxnOpResponse::Get(found) => found.kvs().first().map(|pair| record(id.clone(), pair)),
        _ => None,
    });
    let as_expected = match (expect, &found) {
        (Expect::Absent, None) => true,
        (Expect::At(seen), Some(found)) => found.version == seen.version,
        _ => false,
    };
    if as_expected { CasAnswer::GuardFailed } else { CasAnswer::Conflict(found) }
}

/// One transaction that deletes all of `records` if all still are as given, and reads them otherwise.
///
/// It is flat on purpose: servers that have not fixed GHSA-rfx7-8w68-q57q check no permissions in nested transactions.
pub(crate) fn delete_together(keys: &Keys, records: &[Record]) -> Txn {
    let revision = |record: &Record| expected_revision(&record.expect());
    let unchanged =
        |record: &Record| Compare::mod_revision(keys.record(&record.id), CompareOp::Equal, revision(record));
    let delete = |record: &Record| effects(keys, &record.id, &record.expect(), &Write::Delete, 0);
    let read =
        |record: &Record| TxnOp::get(keys.record(&record.id), Some(GetOptions::new().with_keys_only()));
    Txn::new()
        .when(records.iter().map(unchanged).collect::<Vec<_>>())
        .and_then(records.iter().flat_map(delete).collect::<Vec<_>>())
        .or_else(records.iter().map(read).collect::<Vec<_>>())
}

/// Those of `records` that a transaction of [`delete_together`] has found as they were.
pub(crate) fn still_there(keys: &Keys, records: &[Record], response: &TxnResponse) -> Vec<Record> {
    let responses = response.op_responses();
    let found = responses.iter().filter_map(|response| match response {
        TxnOpResponse::Get(found) => found.kvs().first(),
        _ => None,
    });
    let found: BTreeSet<(&[u8], u64)> =
        found.map(|pair| (pair.key(), unsigned(pair.mod_revision()))).collect();
    let stands = |record: &&Record| found.contains(&(keys.record(&record.id).as_bytes(), record.version.0));
    records.iter().filter(stands).cloned().collect()
}

/// A pair of etcd as a record.
pub(crate) fn record(id: RecordId, pair: &KeyValue) -> Record {
    let (tag, value) = decode(pair.value());
    Record { id, tag, value, version: Version(unsigned(pair.mod_revision())) }
}

/// Revisions are never negative.
pub(crate) fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

fn revision_of(response: &TxnResponse) -> u64 {
    unsigned(response.header().map_or(0, |header| header.revision()))
}

/// Absence is revision 0 to etcd. A version that no record can have must not look like that.
fn expected_revision(expect: &Expect) -> i64 {
    match expect {
        Expect::Absent => 0,
        Expect::At(seen) => {
            i64::try_from(seen.version.0).ok().filter(|revision| *revision > 0).unwrap_or(i64::MAX)
        }
    }
}

/// A record with a tag has an entry under it; one that must have none must at least stand.
fn holds(keys: &Keys, guard: &Guard) -> Compare {
    let key = match &guard.tag {
        Some(tag) => keys.tagged(&guard.id, tag),
        None => keys.record(&guard.id),
    };
    Compare::create_revision(key, CompareOp::Greater, 0)
}

/// What changes: the record, and the entry under its tag. No key may occur twice.
fn effects(keys: &Keys, id: &RecordId, expect: &Expect, write: &Write, lease: i64) -> Vec<TxnOp> {
    let old_tag = match expect {
        Expect::Absent => None,
        Expect::At(seen) => seen.tag.as_deref(),
    };
    let (new_tag, change) = match write {
        Write::Put { tag, value, .. } => (tag.as_deref(), Some(encode(tag.as_deref(), value))),
        Write::Delete => (None, None),
    };
    let put = |key: String, value: &[u8]| TxnOp::put(key, value, put_options(lease));
    let mut effects = match &change {
        Some(value) => vec![put(keys.record(id), value)],
        None => vec![TxnOp::delete(keys.record(id), None)],
    };
    if let Some(old) = old_tag.filter(|old| Some(*old) != new_tag) {
        effects.push(TxnOp::delete(keys.tagged(id, old), None));
    }
    if let (Some(new), Some(value)) = (new_tag, &change) {
        effects.push(put(keys.tagged(id, new), value));
    }
    effects
}

fn put_options(lease: i64) -> Option<PutOptions> {
    (lease != 0).then(|| PutOptions::new().with_lease(lease))
}
