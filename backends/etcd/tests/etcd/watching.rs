//! Watches across everything that can happen to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{
    Change, Expect, Position, Space, Store, StoreDirectory, StoreError, StoreWatch, Write,
};
use archipelago_protocol::contract::{Directory, Entry, WatchEvent, WatchScope};
use archipelago_protocol::identity::{Generation, Kind, NodeId, OwnedKey};
use archipelago_protocol::session::Session;
use archipelago_protocol::time::Millis;
use archipelago_test_servers::etcd::{EtcdServer, shared};
use futures_util::StreamExt;

use crate::support::{
    RealTimer, Road, applied, connect, create, eventually, hasty, operator, owner, put, run, settings,
};

async fn next(watch: &mut StoreWatch) -> Change {
    watch.next().await.expect("goes on").expect("holds")
}

async fn position(store: &dyn Store) -> Position {
    store.list(Space::OWNERS, None).await.unwrap().position
}

#[test]
fn a_watch_goes_on_after_a_restart_of_the_server_and_misses_nothing() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    run(async {
        let store = Arc::new(connect(&settings(&server.address())).await);
        let directory = StoreDirectory::new(store, RealTimer::new());
        let session = Session { id: NodeId::new(1), ttl: Millis(6_000) };
        directory.open_session(session, 7).await.unwrap();
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Snapshot { .. }))));
        let mut seen = Vec::new();
        for round in 0..3 {
            let key = OwnedKey::shard(Kind::new("Account").unwrap(), round);
            eventually(|| directory.claim(&key, session, None)).await;
            let Some(Ok(WatchEvent::Put { entry: Entry::Owner(record), .. })) = watch.next().await else {
                panic!()
            };
            assert_eq!(record.key(), &key);
            seen.push(record.placement.generation);
            server.restart();
        }
        assert!(seen.is_sorted_by(|a: &Generation, b| a < b), "{seen:?}");
    });
}

#[test]
fn a_watch_that_stalls_without_an_error_ends_by_its_deadline() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let store = connect(&hasty(&road.address)).await;
        let mut watch = store.watch(Space::OWNERS, position(&store).await).await.unwrap();
        create(&store, &owner("before"), "a").await;
        let last = next(&mut watch).await.position();
        road.block();
        let start = Instant::now();
        let broken = watch.next().await;
        assert!(matches!(broken, Some(Err(StoreError::Unavailable { .. }))), "{broken:?}");
        assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
        assert!(watch.next().await.is_none());
        let id = owner("after");
        eventually(|| store.cas(&id, Expect::Absent, put("a", "{}"), None)).await;
        let mut again = eventually(|| store.watch(Space::OWNERS, last)).await;
        assert_eq!(next(&mut again).await.id(), &owner("after"));
    });
}

/// The server answers that it is there, so a quiet watch is left alone.
#[test]
fn a_watch_on_which_nothing_happens_stays() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&hasty(&address)).await;
        let mut watch = store.watch(Space::OWNERS, position(&store).await).await.unwrap();
        let quiet = tokio::time::timeout(Duration::from_secs(3), watch.next()).await;
        assert!(quiet.is_err(), "nothing happened, but {quiet:?} came");
        create(&store, &owner("k"), "a").await;
        assert_eq!(next(&mut watch).await.id(), &owner("k"));
    });
}

#[test]
fn a_watch_from_before_the_history_is_compacted() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let store = connect(&settings(&server.address())).await;
        let before = position(&store).await;
        let mut version = create(&store, &owner("k"), "a").await;
        for _ in 0..3 {
            let expect = Expect::At(archipelago_directory::Seen { version, tag: Some("a".into()) });
            version = applied(store.cas(&owner("k"), expect, put("a", "{}"), None).await);
        }
        let revision = i64::try_from(version.0).unwrap();
        operator(&server.address()).await.compact(revision, None).await.unwrap();
        let first = match store.watch(Space::OWNERS, before).await {
            Ok(mut watch) => watch.next().await.expect("says why").map(|_| ()),
            Err(error) => Err(error),
        };
        assert!(matches!(first, Err(StoreError::Compacted)), "{first:?}");
        let listed = store.list(Space::OWNERS, None).await.unwrap();
        assert!(store.watch(Space::OWNERS, listed.position).await.is_ok());
    });
}

/// A directory's watch that was cut off while the history was compacted lists, and tells the difference.
#[test]
fn a_watch_survives_compaction_while_it_is_cut_off() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let config = hasty(&road.address);
        let store = Arc::new(connect(&config).await);
        let directory = StoreDirectory::new(store, RealTimer::new());
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        assert!(matches!(watch.next().await, Some(Ok(WatchEvent::Snapshot { .. }))));
        road.block();
        let other = archipelago_etcd::EtcdConfig { endpoints: vec![server.address()], ..config };
        let other = StoreDirectory::new(Arc::new(connect(&other).await), RealTimer::new());
        let session = Session { id: NodeId::new(1), ttl: Millis(6_000) };
        other.open_session(session, 7).await.unwrap();
        let key = OwnedKey::role("leader").unwrap();
        other.claim(&key, session, None).await.unwrap();
        let record = other.lookup(&key).await.unwrap().unwrap();
        let record = other.reassert(&record).await.unwrap();
        let newest = i64::try_from(record.placement.generation.as_u64()).unwrap();
        operator(&server.address()).await.compact(newest, None).await.unwrap();
        let Some(Ok(WatchEvent::Put { entry: Entry::Owner(told), .. })) = watch.next().await else {
            panic!()
        };
        assert_eq!(told, record);
    });
}

/// A position that this etcd has not reached is of another history: waiting for it would be silence.
#[test]
fn a_watch_from_the_future_is_compacted() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        let future = Position(position(&store).await.0 + 1_000_000);
        let answer = store.watch(Space::OWNERS, future).await;
        assert!(matches!(answer, Err(StoreError::Compacted)), "{:?}", answer.err());
    });
}

/// One transaction deletes several records at one revision; a watch cut in between must not lose the rest.
#[test]
fn a_watch_can_be_taken_up_in_the_middle_of_a_batch() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        for key in ["k1", "k2", "k3"] {
            create(&store, &owner(key), "a").await;
        }
        let listed = store.list(Space::OWNERS, Some("a")).await.unwrap();
        let mut watch = store.watch(Space::OWNERS, listed.position).await.unwrap();
        assert_eq!(store.delete_all(&listed.records).await.unwrap(), 3);
        let first = next(&mut watch).await;
        let mut again = store.watch(Space::OWNERS, first.position()).await.unwrap();
        let rest = [next(&mut again).await, next(&mut again).await, next(&mut again).await];
        assert_eq!(rest[0], first, "at least once");
        assert_eq!(rest.each_ref().map(|change| change.id().key.as_str()), ["k1", "k2", "k3"]);
        create(&store, &owner("k4"), "a").await;
        let mut later = store.watch(Space::OWNERS, rest[2].position()).await.unwrap();
        assert_eq!(next(&mut later).await.id(), &owner("k4"));
    });
}

#[test]
fn a_deleted_record_is_told_as_deleted() {
    let Some(address) = shared() else { return };
    run(async {
        let store = connect(&settings(&address)).await;
        let version = create(&store, &owner("k"), "a").await;
        let mut watch = store.watch(Space::OWNERS, Position(version.0)).await.unwrap();
        let expect = Expect::At(archipelago_directory::Seen { version, tag: Some("a".into()) });
        let gone = applied(store.cas(&owner("k"), expect, Write::Delete, None).await);
        assert_eq!(next(&mut watch).await, Change::Deleted { position: Position(gone.0), id: owner("k") });
    });
}
