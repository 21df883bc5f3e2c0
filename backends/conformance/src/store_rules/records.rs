//! Rules about what a record may hold, and how its changes are told.

use std::sync::Arc;

use archipelago_directory::{Change, Expect, Position, Space, Store, Write};
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use super::{at, current, keys, next, owner, put, write};

/// Keys are any text: those that look alike, or mean something to an engine, are different records.
pub async fn keys_are_told_apart(store: Arc<dyn Store>) {
    let long = "x".repeat(1_000);
    let odd = [
        "a",
        "A",
        "a ",
        "a.b",
        "a.b.c",
        "a/b",
        "a/b/",
        "a*",
        "*",
        ">",
        "a.>",
        "a%2Fb",
        "a%252Fb",
        "ä",
        "a\u{308}",
        "_",
        "$",
        "a:b",
        "a\\b",
        "\"",
        "🦀",
        "actor/bank::Account/a%20b",
        "..",
        ".",
        &long,
    ];
    for key in odd {
        write(&*store, &owner(key), Expect::Absent, put("a", key)).await;
    }
    for key in odd {
        assert_eq!(current(&*store, &owner(key)).await.expect("stands").value, key.as_bytes());
    }
    let mut expected = odd.map(str::to_owned);
    expected.sort();
    assert_eq!(keys(&*store, Some("a")).await, expected);
    let removed = current(&*store, &owner("a.b")).await.expect("stands");
    write(&*store, &owner("a.b"), removed.expect(), Write::Delete).await;
    assert_eq!(keys(&*store, None).await.len(), expected.len() - 1, "and only that one goes");
}

/// Values are any bytes, none included, up to the length that the store promises.
pub async fn values_are_kept_as_they_are(store: Arc<dyn Store>) {
    let every_byte: Vec<u8> = (0..=255).collect();
    let longest: Vec<u8> = (0..store.max_value()).map(|n| (n % 251) as u8).collect();
    for (n, value) in [vec![], every_byte, longest].into_iter().enumerate() {
        let (id, value) = (owner(&format!("k{n}")), Bytes::from(value));
        let put = Write::Put { tag: None, value: value.clone(), ttl: None };
        write(&*store, &id, Expect::Absent, put).await;
        let record = current(&*store, &id).await.expect("stands");
        assert!(record.value == value, "{n}: {} bytes became {}", value.len(), record.value.len());
        assert_eq!(record.tag, None);
    }
    let listed = store.list(Space::OWNERS, None).await.expect("lists").records;
    assert_eq!(listed.len(), 3);
}

/// A time to live that has not come changes nothing, and the next write may take it away or set another.
///
/// Proves: R168
pub async fn a_time_to_live_is_only_a_hint(store: Arc<dyn Store>) {
    let id = owner("k");
    let mut expect = Expect::Absent;
    for (n, ttl) in [Some(Millis(3_600_000)), None, Some(Millis(7_200_000))].into_iter().enumerate() {
        let value = Bytes::from(n.to_string());
        let version = write(&*store, &id, expect, Write::Put { tag: Some("a".into()), value, ttl }).await;
        let record = current(&*store, &id).await.expect("stands");
        assert_eq!((record.version, record.value), (version, Bytes::from(n.to_string())));
        expect = at(version, "a");
    }
    assert_eq!(keys(&*store, Some("a")).await, ["k"]);
    write(&*store, &id, expect, Write::Delete).await;
    assert_eq!(current(&*store, &id).await, None);
}

/// A watch can be taken up after any change, and tells the same changes again, in the same order.
///
/// Proves: R379
pub async fn a_watch_resumes_after_any_change(store: Arc<dyn Store>) {
    let start = store.list(Space::OWNERS, None).await.expect("lists").position;
    for n in 0..3 {
        let id = owner(&format!("k{n}"));
        let version = write(&*store, &id, Expect::Absent, put("a", "one")).await;
        let version = write(&*store, &id, at(version, "a"), put("b", "two")).await;
        write(&*store, &id, at(version, "b"), Write::Delete).await;
    }
    let all = take(&*store, start, 9).await;
    assert!(all.is_sorted_by_key(Change::position), "{all:?}");
    for n in 0..8 {
        let rest = take(&*store, all[n].position(), 8 - n).await;
        assert_eq!(rest, all[n + 1..], "after change {n}");
    }
}

/// Several watchers of one space are told the same, whenever they began.
pub async fn every_watcher_is_told_the_same(store: Arc<dyn Store>) {
    let start = store.list(Space::OWNERS, None).await.expect("lists").position;
    let mut early = store.watch(Space::OWNERS, start).await.expect("watches");
    let mut version = write(&*store, &owner("k"), Expect::Absent, put("a", "0")).await;
    for n in 1..5 {
        version = write(&*store, &owner("k"), at(version, "a"), put("a", &n.to_string())).await;
    }
    let mut late = store.watch(Space::OWNERS, start).await.expect("watches");
    for n in 0..5 {
        let told = next(&mut early).await;
        assert_eq!(next(&mut late).await, told);
        let Change::Put { record, .. } = told else { panic!("{told:?}") };
        assert_eq!(record.value, n.to_string(), "each change with the record as it left it");
    }
}

async fn take(store: &dyn Store, after: Position, count: usize) -> Vec<Change> {
    let mut watch = store.watch(Space::OWNERS, after).await.expect("watches");
    let mut changes = Vec::new();
    while changes.len() < count {
        changes.push(next(&mut watch).await);
    }
    changes
}
