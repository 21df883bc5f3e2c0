//! The rules of [`Store`], each as a function that panics when it is broken.

use std::sync::Arc;

use archipelago_directory::{
    CasAnswer, Change, Expect, Guard, Read, Record, RecordId, Seen, Space, Store, StoreWatch, Version, Write,
};
use bytes::Bytes;
use futures_util::future::{FutureExt, join_all};
use futures_util::{StreamExt, pin_mut};

mod races;
mod records;

pub use races::*;
pub use records::*;

/// Of several writes that expect the same, at most one is applied.
///
/// Proves: R208, R212, R221
pub async fn cas_is_exclusive(store: Arc<dyn Store>) {
    for round in 0..10 {
        let id = owner("contested");
        let expect = current(&*store, &id).await.map_or(Expect::Absent, |record| record.expect());
        let writes = (0..8).map(|n| store.cas(&id, expect.clone(), put("a", &format!("{round}-{n}")), None));
        let answers = join_all(writes).await;
        let applied = answers.iter().filter(|answer| matches!(answer, Ok(CasAnswer::Applied(_)))).count();
        assert_eq!(applied, 1, "round {round}: {answers:?}");
    }
}

/// A write that expects something else is not applied, and shows what stands there.
///
/// Proves: R212
pub async fn conflict_changes_nothing(store: Arc<dyn Store>) {
    let id = owner("k");
    let first = write(&*store, &id, Expect::Absent, put("a", "one")).await;
    let wrong = [Expect::Absent, at(Version(first.0 + 1), "a"), at(Version(first.0.saturating_sub(1)), "a")];
    for expect in wrong {
        let answer = store.cas(&id, expect.clone(), put("b", "two"), None).await.expect("answers");
        let CasAnswer::Conflict(Some(found)) = answer else { panic!("{expect:?}: {answer:?}") };
        assert_eq!((found.version, &found.value[..]), (first, &b"one"[..]));
    }
    let other = owner("never written");
    let answer = store.cas(&other, at(first, "a"), put("b", "two"), None).await.expect("answers");
    assert_eq!(answer, CasAnswer::Conflict(None));
    assert_eq!(current(&*store, &id).await.expect("stands").value, "one");
}

/// Every write to a key has a greater version than all before, and the record shows it.
///
/// Proves: R230
pub async fn version_grows(store: Arc<dyn Store>) {
    let (id, mut last) = (owner("k"), Version(0));
    for n in 0..5 {
        let expect = current(&*store, &id).await.map_or(Expect::Absent, |record| record.expect());
        let version = write(&*store, &id, expect, put("a", &n.to_string())).await;
        assert!(version > last, "{version:?} after {last:?}");
        assert_eq!(current(&*store, &id).await.map(|record| record.version), Some(version));
        last = version;
    }
}

/// A record that is created again after a delete has a greater version than it ever had.
///
/// Proves: R230
pub async fn version_grows_across_deletes(store: Arc<dyn Store>) {
    let (id, mut last) = (owner("k"), Version(0));
    for _ in 0..4 {
        let version = write(&*store, &id, Expect::Absent, put("a", "here")).await;
        assert!(version > last, "{version:?} after {last:?}");
        write(&*store, &id, at(version, "a"), Write::Delete).await;
        last = version;
    }
    let answer = store.cas(&id, at(last, "a"), put("a", "from the dead"), None).await.expect("answers");
    assert_eq!(answer, CasAnswer::Conflict(None), "a version never comes back");
}

/// A linearizable read shows every write answered before.
///
/// Proves: R208
pub async fn reads_own_writes(store: Arc<dyn Store>) {
    let id = owner("k");
    assert_eq!(current(&*store, &id).await, None);
    let version = write(&*store, &id, Expect::Absent, put("a", "one")).await;
    let expected = Record { id: id.clone(), tag: Some("a".into()), value: Bytes::from("one"), version };
    assert_eq!(current(&*store, &id).await, Some(expected));
    write(&*store, &id, at(version, "a"), Write::Delete).await;
    assert_eq!(current(&*store, &id).await, None);
}

/// A delete removes the version it names and no other.
///
/// Proves: R222
pub async fn delete_names_its_version(store: Arc<dyn Store>) {
    let id = owner("k");
    let old = write(&*store, &id, Expect::Absent, put("a", "one")).await;
    let new = write(&*store, &id, at(old, "a"), put("b", "two")).await;
    let answer = store.cas(&id, at(old, "a"), Write::Delete, None).await.expect("answers");
    assert!(matches!(answer, CasAnswer::Conflict(Some(_))), "{answer:?}");
    assert_eq!(current(&*store, &id).await.map(|record| record.version), Some(new));
    write(&*store, &id, at(new, "b"), Write::Delete).await;
    assert_eq!(current(&*store, &id).await, None);
}

/// A batch of deletes leaves every record that has changed since it was listed (H9).
pub async fn delete_all_spares_newer_records(store: Arc<dyn Store>) {
    for key in ["k1", "k2", "k3"] {
        write(&*store, &owner(key), Expect::Absent, put("a", key)).await;
    }
    let listed = store.list(Space::OWNERS, Some("a")).await.expect("lists").records;
    let changed = listed.iter().find(|record| record.id == owner("k2")).expect("listed").expect();
    let newer = write(&*store, &owner("k2"), changed, put("b", "newer")).await;
    assert_eq!(store.delete_all(&listed).await.expect("deletes"), 2);
    assert_eq!(current(&*store, &owner("k1")).await, None);
    assert_eq!(current(&*store, &owner("k2")).await.map(|record| record.version), Some(newer));
}

/// A listing by tag holds exactly the records whose newest version has that tag.
pub async fn list_by_tag(store: Arc<dyn Store>) {
    for (key, tag) in [("k1", "a"), ("k2", "b"), ("k3", "a")] {
        write(&*store, &owner(key), Expect::Absent, put(tag, key)).await;
    }
    write(&*store, &RecordId::new(Space::NODES, "k4"), Expect::Absent, put("a", "another space")).await;
    assert_eq!(keys(&*store, Some("a")).await, ["k1", "k3"]);
    let moved = current(&*store, &owner("k1")).await.expect("stands");
    write(&*store, &owner("k1"), moved.expect(), put("b", "moved")).await;
    let gone = current(&*store, &owner("k3")).await.expect("stands");
    write(&*store, &owner("k3"), gone.expect(), Write::Delete).await;
    assert_eq!(keys(&*store, Some("a")).await, [""; 0]);
    assert_eq!(keys(&*store, Some("b")).await, ["k1", "k2"]);
    assert_eq!(keys(&*store, None).await, ["k1", "k2"]);
}

/// A watch after a listing delivers every later change, in order, with the record as that change left it.
pub async fn list_then_watch_misses_nothing(store: Arc<dyn Store>) {
    let first = write(&*store, &owner("k"), Expect::Absent, put("a", "before")).await;
    let position = store.list(Space::OWNERS, None).await.expect("lists").position;
    let second = write(&*store, &owner("k"), at(first, "a"), put("b", "between")).await;
    let mut watch = store.watch(Space::OWNERS, position).await.expect("watches");
    write(&*store, &owner("k"), at(second, "b"), Write::Delete).await;
    write(&*store, &owner("k"), Expect::Absent, put("c", "after")).await;
    let changes = [next(&mut watch).await, next(&mut watch).await, next(&mut watch).await];
    let shown: Vec<Option<&[u8]>> = changes.iter().map(shown).collect();
    assert_eq!(shown, [Some(&b"between"[..]), None, Some(&b"after"[..])]);
    assert!(changes.is_sorted_by_key(Change::position));
    assert!(changes[0].position() > position);
    let mut again = store.watch(Space::OWNERS, changes[0].position()).await.expect("watches");
    assert_eq!(next(&mut again).await, changes[1], "a watch can be taken up after any change");
}

/// A watch delivers no change of another space.
pub async fn watch_ignores_other_spaces(store: Arc<dyn Store>) {
    let position = store.list(Space::OWNERS, None).await.expect("lists").position;
    write(&*store, &RecordId::new(Space::LEASES, "k"), Expect::Absent, put("a", "lease")).await;
    write(&*store, &owner("k"), Expect::Absent, put("a", "owner")).await;
    let mut watch = store.watch(Space::OWNERS, position).await.expect("watches");
    assert_eq!(next(&mut watch).await.id(), &owner("k"));
}

/// Where guards are checked, a write is applied only while the guarded record stands with its tag.
pub async fn guard_holds(store: Arc<dyn Store>) {
    let id = RecordId::new(Space::NODES, "me");
    let guard = || Some(Guard { id: id.clone(), tag: Some("me".into()) });
    if !store.checks_guards() {
        let answer =
            store.cas(&owner("k"), Expect::Absent, put("me", "mine"), guard()).await.expect("answers");
        assert!(
            matches!(answer, CasAnswer::Applied(_)),
            "a guard that cannot be checked is ignored: {answer:?}"
        );
        return;
    }
    let refused = store.cas(&owner("k"), Expect::Absent, put("me", "early"), guard()).await.expect("answers");
    assert_eq!(refused, CasAnswer::GuardFailed);
    let version = write(&*store, &id, Expect::Absent, put("me", "here")).await;
    let applied = store.cas(&owner("k"), Expect::Absent, put("me", "mine"), guard()).await.expect("answers");
    assert!(matches!(applied, CasAnswer::Applied(_)), "{applied:?}");
    write(&*store, &id, at(version, "me"), put("you", "another tag")).await;
    let refused = store.cas(&owner("l"), Expect::Absent, put("me", "late"), guard()).await.expect("answers");
    assert_eq!(refused, CasAnswer::GuardFailed);
    assert_eq!(keys(&*store, None).await, ["k"]);
}

/// A dropped write may or may not have happened, but the record stays one that can be replaced.
///
/// Proves: R227
pub async fn cancel_safe(store: Arc<dyn Store>) {
    for round in 0..10 {
        let id = owner(&format!("k{round}"));
        {
            let dropped = store.cas(&id, Expect::Absent, put("a", "dropped"), None);
            pin_mut!(dropped);
            let _ = dropped.as_mut().now_or_never();
        }
        loop {
            let expect = current(&*store, &id).await.map_or(Expect::Absent, |record| record.expect());
            match store.cas(&id, expect, put("b", "kept"), None).await.expect("answers") {
                CasAnswer::Applied(_) => break,
                CasAnswer::Conflict(_) => continue,
                CasAnswer::GuardFailed => panic!("no guard was asked for"),
            }
        }
        let record = current(&*store, &id).await.expect("stands");
        assert_eq!((record.tag.as_deref(), &record.value[..]), (Some("b"), &b"kept"[..]));
    }
}

pub(crate) fn owner(key: &str) -> RecordId {
    RecordId::new(Space::OWNERS, key)
}

pub(crate) fn put(tag: &str, value: &str) -> Write {
    Write::Put { tag: Some(tag.into()), value: Bytes::from(value.to_owned()), ttl: None }
}

pub(crate) fn at(version: Version, tag: &str) -> Expect {
    Expect::At(Seen { version, tag: Some(tag.into()) })
}

pub(crate) async fn current(store: &dyn Store, id: &RecordId) -> Option<Record> {
    store.get(id, Read::Linearizable).await.expect("reads")
}

pub(crate) async fn write(store: &dyn Store, id: &RecordId, expect: Expect, write: Write) -> Version {
    match store.cas(id, expect, write, None).await.expect("answers") {
        CasAnswer::Applied(version) => version,
        other => panic!("{id}: {other:?}"),
    }
}

pub(crate) async fn keys(store: &dyn Store, tag: Option<&str>) -> Vec<String> {
    let records = store.list(Space::OWNERS, tag).await.expect("lists").records;
    let mut keys: Vec<String> = records.into_iter().map(|record| record.id.key).collect();
    keys.sort();
    keys
}

pub(crate) async fn next(watch: &mut StoreWatch) -> Change {
    watch.next().await.expect("the watch goes on").expect("the watch holds")
}

fn shown(change: &Change) -> Option<&[u8]> {
    match change {
        Change::Put { record, .. } => Some(&record.value),
        Change::Deleted { .. } => None,
    }
}
