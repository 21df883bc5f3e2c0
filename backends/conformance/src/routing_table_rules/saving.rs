//! Rules about which table is saved.

use archipelago_directory::{Read, table_id};
use archipelago_protocol::contract::{Epoch, RoutingTableError, TableVersion};
use archipelago_protocol::identity::{ActorKey, Kind};
use archipelago_protocol::ranges::{KeyRange, RangeTable, RouteEntry};
use futures_util::FutureExt;
use futures_util::future::join_all;

use super::{RoutingTableFixture, conflict, kind, name, owner, split, superseded, whole};
use crate::directory_rules::session;

/// A kind without a table is no error.
///
/// Proves: R327
pub async fn load_of_nothing_is_none(f: RoutingTableFixture) {
    assert_eq!(f.load().await, None);
    let saved = f.save(&whole(1), None).await;
    assert_eq!(f.load().await, Some(saved));
}

/// A table replaces exactly the one that its manager saw.
///
/// Proves: R326, R337, C25
pub async fn save_names_its_version(f: RoutingTableFixture) {
    let first = f.save(&whole(1), None).await;
    let second = f.save(&whole(2), Some(&first)).await;
    for stale in [None, Some(&first)] {
        assert_eq!(conflict(f.try_save(&whole(3), stale, 1).await), Some(second.clone()));
    }
    assert_eq!(f.load().await, Some(second));
}

/// Every saved table has a greater version than all before.
///
/// Proves: R339
pub async fn table_version_grows(f: RoutingTableFixture) {
    let mut last = None;
    for n in 1..6 {
        let saved = f.save(&whole(n), last.as_ref()).await;
        assert_eq!(saved.version, TableVersion(n));
        assert!(last.is_none_or(|last| saved.record > last.record));
        last = Some(saved);
    }
}

/// Of several managers that save over one version one is applied.
///
/// Proves: R337
pub async fn save_is_exclusive(f: RoutingTableFixture) {
    let mut last = None;
    for round in 0..8 {
        let tables: Vec<RangeTable> = (0..5).map(|n| whole(round * 10 + n)).collect();
        let saves = tables.iter().map(|table| f.try_save(table, last.as_ref(), 1));
        let mut applied = Vec::new();
        for answer in join_all(saves).await {
            match answer {
                Ok(saved) => applied.push(saved),
                Err(RoutingTableError::Conflict { current }) => drop(current.expect("stands")),
                Err(other) => panic!("{other:?}"),
            }
        }
        let [winner] = &applied[..] else { panic!("round {round}: {applied:?}") };
        assert_eq!(f.load().await.as_ref(), Some(winner));
        last = Some(winner.clone());
    }
}

/// A manager that was replaced saves nothing, whatever it saw (H11).
///
/// Proves: R322
pub async fn stale_manager_is_refused(f: RoutingTableFixture) {
    let old = f.try_save(&whole(1), None, 3).await.expect("saves");
    let new = f.try_save(&whole(2), Some(&old), 7).await.expect("saves");
    for seen in [None, Some(&old), Some(&new)] {
        assert_eq!(superseded(f.try_save(&whole(3), seen, 3).await), Epoch(7));
    }
    assert_eq!(superseded(f.tables.seal(&kind(), Epoch(3)).await), Epoch(7));
    assert_eq!(f.load().await, Some(new));
}

/// After a seal no earlier manager's save is applied, and the seal shows the last one that was.
pub async fn seal_fences_earlier_managers(f: RoutingTableFixture) {
    let empty = f.tables.seal(&kind(), Epoch(2)).await.expect("seals nothing");
    assert_eq!((empty.table.clone(), empty.epoch), (None, Epoch(2)));
    assert_eq!(superseded(f.try_save(&whole(1), None, 1).await), Epoch(2));
    let saved = f.try_save(&whole(1), Some(&empty), 2).await.expect("saves");
    let sealed = f.tables.seal(&kind(), Epoch(5)).await.expect("seals");
    assert_eq!((sealed.table.clone(), sealed.epoch), (Some(whole(1)), Epoch(5)));
    assert!(sealed.version > saved.version);
    assert_eq!(superseded(f.try_save(&whole(2), Some(&saved), 2).await), Epoch(5));
    assert_eq!(f.tables.seal(&kind(), Epoch(5)).await.expect("seals"), sealed, "once is enough");
    f.try_save(&whole(3), Some(&sealed), 5).await.expect("the sealer goes on");
}

/// A table that could let two partitions with a key in common be owned at once is refused.
pub async fn save_keeps_ranges_apart(f: RoutingTableFixture) {
    let first = f.save(&whole(1), None).await;
    let half = |partition: &str, start: &str, end: &str| RouteEntry {
        partition: name(partition),
        range: KeyRange::new(ActorKey::new(start).ok(), ActorKey::new(end).ok()).expect("not empty"),
        owner: owner(1),
        parents: Vec::new(),
    };
    let renamed = RangeTable::new(vec![half("other", "", "")]).expect("a table");
    let orphans = RangeTable::new(vec![half("a", "", "m"), half("b", "m", "")]).expect("a table");
    let shrunk = RangeTable::new(vec![half("all", "", "m"), half("b", "m", "")]).expect("a table");
    for table in [renamed, orphans, shrunk] {
        let refused = f.try_save(&table, Some(&first), 1).await;
        assert!(matches!(refused, Err(RoutingTableError::Invalid { .. })), "{table:?}: {refused:?}");
    }
    assert_eq!(f.load().await.as_ref(), Some(&first));
    f.save(&split(&whole(1), "all", "m"), Some(&first)).await;
}

/// A partition is not divided again, merged, or freed of its parents before those have been retired.
pub async fn split_waits_for_retired_parents(f: RoutingTableFixture) {
    f.directory.open(1).await;
    let first = f.save(&whole(1), None).await;
    let owned = f.place(&whole(1), "all", 1).await;
    let halves = split(&whole(1), "all", "m");
    let second = f.save(&halves, Some(&first)).await;
    let quarters = split(&halves, "all1", "g");
    let merged = halves.merge(&name("all1"), name("again"), owner(1)).expect("merges");
    let freed: Vec<RouteEntry> =
        halves.entries().iter().map(|entry| RouteEntry { parents: Vec::new(), ..entry.clone() }).collect();
    let freed = RangeTable::new(freed).expect("a table");
    for table in [&quarters, &merged, &freed] {
        let refused = f.try_save(table, Some(&second), 1).await;
        let Err(RoutingTableError::NotRetired { partition }) = refused else { panic!("{refused:?}") };
        assert_eq!(partition, name("all"));
    }
    f.directory.directory.retire(&owned).await.expect("retires");
    let third = f.save(&freed, Some(&second)).await;
    let fourth = f.save(&split(&freed, "all1", "g"), Some(&third)).await;
    f.place(&fourth.table.expect("saved"), "all11", 1).await;
}

/// A split from end to end: the children are claimed only after the parent's owner has stopped and retired it, and a
/// parent whose owner is dead does not stop them.
pub async fn a_split_hands_the_keys_to_the_children(f: RoutingTableFixture) {
    f.directory.open(1).await;
    f.directory.open(2).await;
    let first = f.save(&whole(1), None).await;
    let owned = f.place(&whole(1), "all", 1).await;
    let halves = split(&whole(1), "all", "m");
    let second = f.save(&halves, Some(&first)).await;
    let key = archipelago_protocol::identity::OwnedKey::range(kind(), "all1").expect("valid");
    let early = f.directory.directory.claim_range(&key, &[name("all")], session(2), None).await;
    assert!(early.is_err(), "{early:?}");
    f.directory.directory.retire(&owned).await.expect("retires");
    let low = f.place(&halves, "all1", 2).await;
    f.place(&halves, "all2", 1).await;
    f.directory.directory.retire(&low).await.expect("retires");
    f.directory.end(1).await;
    let merged = halves.merge(&name("all1"), name("again"), owner(2)).expect("merges");
    f.save(&merged, Some(&second)).await;
    f.place(&merged, "again", 2).await;
}

/// A table of one kind is nothing to another.
pub async fn kinds_are_apart(f: RoutingTableFixture) {
    let saved = f.save(&whole(1), None).await;
    let other = Kind::new("Ledger.archive").expect("valid");
    assert_eq!(f.tables.load(&other).await.expect("loads"), None);
    let second = f.tables.save(&other, &whole(2), None, Epoch(1)).await.expect("saves");
    assert_eq!(f.load().await, Some(saved));
    assert_eq!(f.tables.load(&other).await.expect("loads"), Some(second));
}

/// People can read what the store holds.
///
/// Proves: R110, R111, R113, R321
pub async fn table_is_json(f: RoutingTableFixture) {
    f.save(&whole(0xab), None).await;
    let record = f.directory.store.get(&table_id(&kind()), Read::Linearizable).await.expect("reads");
    let json: serde_json::Value = serde_json::from_slice(&record.expect("stands").value).expect("JSON");
    assert_eq!(json["version"], 1);
    assert_eq!(json["entries"][0]["partitionId"], "all");
    assert_eq!(json["entries"][0]["nodeId"], "00000000000000ab");
    assert_eq!(json["entries"][0]["keyRangeEnd"], "");
}

/// A table that the store could not hold is refused before it is sent.
pub async fn table_size_is_bounded(f: RoutingTableFixture) {
    let long = |n: usize| format!("{n:0>190}");
    let entry = |n: usize| RouteEntry {
        partition: name(&long(n)),
        range: KeyRange::new(
            (n > 0).then(|| ActorKey::new(&long(n)).expect("valid")),
            (n + 1 < RangeTable::MAX_PARTITIONS).then(|| ActorKey::new(&long(n + 1)).expect("valid")),
        )
        .expect("not empty"),
        owner: owner(1),
        parents: Vec::new(),
    };
    let table = RangeTable::new((0..RangeTable::MAX_PARTITIONS).map(entry).collect()).expect("a table");
    let refused = f.try_save(&table, None, 1).await;
    assert!(matches!(refused, Err(RoutingTableError::Invalid { .. })), "{:?}", refused.err());
    assert_eq!(f.load().await, None);
}

/// A dropped save may or may not have happened; the manager goes on from what stands.
pub async fn routing_table_is_cancel_safe(f: RoutingTableFixture) {
    for n in 1..10 {
        let seen = f.load().await;
        let _ = f.try_save(&whole(n), seen.as_ref(), 1).now_or_never();
        let saved = match f.try_save(&whole(n), seen.as_ref(), 1).await {
            Ok(saved) => saved,
            Err(RoutingTableError::Conflict { current }) => *current.expect("stands"),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(saved.table, Some(whole(n)));
    }
}
