//! Servers that go away and come back: what is said meanwhile, and what became of what was under way.

use std::sync::Arc;

use archipelago_backend_conformance::ManualTimer;
use archipelago_directory::{
    CasAnswer, Expect, Position, Read, Space, Store, StoreDirectory, StoreError, Timer,
};
use archipelago_foundationdb::{Breakage, MemoryEngine, TooLate};
use archipelago_protocol::contract::{Directory, WatchEvent, WatchScope};
use archipelago_protocol::identity::{NodeId, OwnedKey};
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;
use futures_util::StreamExt;
use futures_util::future::{FutureExt, join};

use crate::support::{calm, create, current, next, owner, put, run, store};

async fn back_after(engine: &MemoryEngine, timer: &ManualTimer, length: Millis) {
    timer.sleep(length).await;
    engine.start();
}

/// Nobody knows of the commit that was under way, and versions have leapt; the write is applied once, and told once.
#[test]
fn a_write_under_way_when_the_servers_went_is_applied_once() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        let version = create(&store, "before").await;
        let mut watch = store.watch(Space::OWNERS, Position(version.0)).await.unwrap();
        engine.stop();
        let back = back_after(&engine, &timer, Millis(500));
        let (newer, ()) = join(create(&store, "k"), back).await;
        assert!(newer.0 > version.0 + 100_000_000, "versions leap: {newer:?} after {version:?}");
        assert_eq!(next(&mut watch).await.id(), &owner("k"));
        assert!(watch.next().now_or_never().is_none(), "told once");
        assert_eq!(store.list(Space::OWNERS, None).await.unwrap().records.len(), 2);
    });
}

/// A request that nobody answers ends by its deadline: a read as `Unavailable`, a write too, as it was not committed yet.
#[test]
fn servers_that_stay_away_are_unavailable_in_time() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.stop();
        let start = timer.now();
        let read = store.get(&owner("k"), Read::Linearizable).await.map(drop);
        let written = store.cas(&owner("k"), Expect::Absent, put("a", "x"), None).await.map(drop);
        let listed = store.list(Space::OWNERS, None).await.map(drop);
        let watched = store.watch(Space::OWNERS, Position(0)).await.map(drop);
        for answer in [read, written, listed, watched] {
            let Err(StoreError::Unavailable { source }) = answer else { panic!("{answer:?}") };
            assert_eq!(source.downcast_ref(), Some(&TooLate { within: Millis(2_000), last: None }));
        }
        assert!(timer.now() - start <= Millis(8_200), "{}", timer.now() - start);
        engine.start();
        assert_eq!(current(&store, "k").await, None, "what was unavailable is not applied later");
        create(&store, "k").await;
    });
}

/// The deadline falls into a commit: then it may be applied, and is said to be unknown.
#[test]
fn a_commit_that_is_under_way_at_its_deadline_is_unknown() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        let id = owner("k");
        let mut write = store.cas(&id, Expect::Absent, put("a", "x"), None);
        engine.set_breakage(Breakage { waits: 1_000, ..Breakage::default() });
        // Each request of it waits once: the read of the record, the version, and then the commit.
        for _ in 0..3 {
            assert!(write.as_mut().now_or_never().is_none());
        }
        engine.stop();
        let answer = write.await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        engine.start();
        let again = store.cas(&id, Expect::Absent, put("a", "x"), None).await;
        assert!(matches!(again, Ok(CasAnswer::Applied(_))), "{again:?}");
    });
}

/// Whoever watches goes on asking, but seldom.
#[test]
fn a_watch_asks_servers_that_stay_away_a_few_times_only() {
    run(|timer| async move {
        let engine = calm();
        let store = Arc::new(store(&engine, &timer).await);
        let directory = StoreDirectory::new(store.clone(), Arc::new(timer.clone()));
        let session = Session { id: NodeId::new(1), ttl: Millis(6_000) };
        directory.open_session(session, 7).await.unwrap();
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        watch.next().await.expect("goes on").expect("a snapshot");
        engine.stop();
        let before = engine.tally().begun;
        let claiming = async {
            back_after(&engine, &timer, Millis(60_000)).await;
            let asked = engine.tally().begun - before;
            assert!((5..40).contains(&asked), "asked {asked} times in a minute");
            directory.claim(&OwnedKey::role("leader").unwrap(), session, None).await.unwrap();
        };
        let (told, ()) = join(watch.next(), claiming).await;
        assert!(matches!(told, Some(Ok(WatchEvent::Put { .. }))), "{told:?}");
    });
}
