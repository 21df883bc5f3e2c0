//! Watches: what they tell when the engine's own watches fail, when commits share versions, and when the log is cut off.

use std::time::Duration;

use archipelago_directory::{Change, Position, Space, Store, StoreError};
use archipelago_foundationdb::{Breakage, FoundationDbConfig, MemoryEngine};
use futures_util::StreamExt;
use futures_util::future::{FutureExt, join_all};

use crate::support::{
    applied, calm, create, current, forgetful, next, owner, put, run, settings, store, store_with,
};

#[test]
fn a_watch_that_the_engine_refuses_or_forgets_is_made_up_for_by_looking() {
    for breakage in [
        Breakage { watch_refused: 1_000, ..Breakage::default() },
        Breakage { watch_deaf: 1_000, ..Breakage::default() },
    ] {
        run(|timer| async move {
            let engine = MemoryEngine::new(1, breakage);
            let store = store(&engine, &timer).await;
            let mut watch = store.watch(Space::OWNERS, Position(0)).await.unwrap();
            assert!(watch.next().now_or_never().is_none());
            create(&store, "k").await;
            assert!(watch.next().now_or_never().is_none(), "nobody tells it");
            assert_eq!(next(&mut watch).await.id(), &owner("k"), "but it looks");
        });
    }
}

#[test]
fn a_watch_that_waits_is_told_at_once() {
    run(|timer| async move {
        let config = FoundationDbConfig { watch_poll: Duration::from_secs(60), ..settings() };
        let engine = calm();
        let store = store_with(&engine, &timer, config).await;
        let mut watch = store.watch(Space::OWNERS, Position(0)).await.unwrap();
        for n in 0..3 {
            assert!(watch.next().now_or_never().is_none());
            create(&store, &format!("k{n}")).await;
            let told = watch.next().now_or_never().expect("told without waiting");
            assert_eq!(told.unwrap().unwrap().id(), &owner(&format!("k{n}")));
        }
    });
}

/// Several commits may have one version; then positions must not skip any of them.
#[test]
fn a_watch_resumes_within_changes_of_one_version() {
    let mut shared = 0;
    for seed in 0..20 {
        let breakage = Breakage { shared_version: 1_000, waits: 700, short_page: 400, ..Breakage::default() };
        shared += run(|timer| async move {
            let engine = MemoryEngine::new(seed, breakage);
            let store = store(&engine, &timer).await;
            let start = store.list(Space::OWNERS, None).await.unwrap().position;
            let keys: Vec<String> = (0..8).map(|n| format!("k{n}")).collect();
            join_all(keys.iter().map(|key| create(&store, key))).await;
            let mut watch = store.watch(Space::OWNERS, start).await.unwrap();
            let mut all = Vec::new();
            for _ in 0..8 {
                all.push(next(&mut watch).await);
            }
            assert!(all.is_sorted_by_key(Change::position), "seed {seed}: {all:?}");
            for n in 0..7 {
                let mut again = store.watch(Space::OWNERS, all[n].position()).await.unwrap();
                let mut told = Vec::new();
                while told.last() != all.last().map(Change::id) {
                    told.push(next(&mut again).await.id().clone());
                }
                let rest: Vec<_> = all[n + 1..].iter().map(|change| change.id().clone()).collect();
                assert!(told.ends_with(&rest), "seed {seed}, after {n}: {told:?}");
            }
            engine.tally().shared
        });
    }
    assert!(shared > 20, "only {shared} commits shared a version");
}

#[test]
fn a_watch_from_before_the_cut_is_compacted_and_the_log_stays_short() {
    run(|timer| async move {
        let engine = calm();
        let store = store_with(&engine, &timer, forgetful()).await;
        let start = store.list(Space::OWNERS, None).await.unwrap().position;
        let mut behind = store.watch(Space::OWNERS, start).await.unwrap();
        let mut version = create(&store, "k").await;
        for n in 0..1_000 {
            let expect = current(&store, "k").await.unwrap().expect();
            let newer = applied(store.cas(&owner("k"), expect, put("a", &n.to_string()), None).await);
            assert!(newer > version);
            version = newer;
        }
        assert!(engine.keys() < 100, "{} keys for one record", engine.keys());
        let early = store.watch(Space::OWNERS, start).await.err();
        assert!(matches!(early, Some(StoreError::Compacted)), "{early:?}");
        let late = behind.next().await;
        assert!(matches!(late, Some(Err(StoreError::Compacted))), "{late:?}");
        assert!(behind.next().await.is_none());
        let now = store.list(Space::OWNERS, None).await.unwrap().position;
        assert!(store.watch(Space::OWNERS, now).await.is_ok());
    });
}

/// A space that is quiet while another is busy loses nothing; and one that is watched all the time is never compacted.
#[test]
fn a_watch_that_keeps_up_is_never_compacted() {
    run(|timer| async move {
        let engine = calm();
        let store = store_with(&engine, &timer, forgetful()).await;
        let mut watch = store.watch(Space::OWNERS, Position(0)).await.unwrap();
        for n in 0..300 {
            create(&store, &format!("k{n}")).await;
            assert_eq!(next(&mut watch).await.id(), &owner(&format!("k{n}")));
        }
    });
}

/// A position that the database has never come to is of another history.
#[test]
fn a_watch_from_the_future_is_compacted() {
    run(|timer| async move {
        let store = store(&calm(), &timer).await;
        create(&store, "k").await;
        let refused = store.watch(Space::OWNERS, Position(u64::MAX)).await.err();
        assert!(matches!(refused, Some(StoreError::Compacted)), "{refused:?}");
    });
}

/// Pages are read at different times: what changes between them comes through the watch.
#[test]
fn a_listing_of_many_pages_and_a_watch_together_miss_nothing() {
    for seed in 0..6 {
        run(|timer| async move {
            let engine = MemoryEngine::new(seed, Breakage::default());
            let store = store(&engine, &timer).await;
            for n in 0..600 {
                create(&store, &format!("k{n:03}")).await;
            }
            let breakage = Breakage { waits: 500, too_old: 50, short_page: 300, ..Breakage::default() };
            engine.set_breakage(breakage);
            let listing = store.list(Space::OWNERS, None);
            let moving = async {
                for n in [0, 299, 599] {
                    let record = current(&store, &format!("k{n:03}")).await.unwrap();
                    applied(store.cas(&record.id, record.expect(), put("b", "moved"), None).await);
                }
            };
            let (listed, ()) = futures_util::future::join(listing, moving).await;
            let listed = listed.unwrap();
            assert_eq!(listed.records.len(), 600, "seed {seed}");
            let mut watch = store.watch(Space::OWNERS, listed.position).await.unwrap();
            let mut known: std::collections::BTreeMap<_, _> =
                listed.records.into_iter().map(|record| (record.id.clone(), record)).collect();
            while known.values().filter(|record| record.tag.as_deref() == Some("b")).count() < 3 {
                if let Change::Put { record, .. } = next(&mut watch).await {
                    known.insert(record.id.clone(), record);
                }
            }
            assert_eq!(known.len(), 600, "seed {seed}");
        });
    }
}
