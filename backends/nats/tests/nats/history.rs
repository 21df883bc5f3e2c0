//! What the stream remembers, what it forgets, and how a watch finds out.

use std::time::Duration;

use crate::rig::{self, connect, owner, put, with_server, write};
use archipelago_directory::{
    CasAnswer, Change, Expect, Position, Read, Space, Store, StoreError, StoreWatch, Write,
};
use archipelago_nats::NatsConfig;
use archipelago_protocol::time::Millis;
use archipelago_test_servers::{ServerProcess, nats};
use bytes::Bytes;
use futures_util::StreamExt;

fn lasting(value: &str, ttl: u64) -> Write {
    Write::Put { tag: Some("a".into()), value: Bytes::from(value.to_owned()), ttl: Some(Millis(ttl)) }
}

/// Remembers for as short as it can, so that tests need not wait.
fn forgetful(server: &ServerProcess) -> NatsConfig {
    let mut config = rig::config(server);
    config.history = Duration::from_secs(4);
    config
}

async fn position(store: &dyn Store) -> Position {
    store.list(Space::OWNERS, None).await.unwrap().position
}

async fn next(watch: &mut StoreWatch) -> Change {
    watch.next().await.expect("the watch goes on").expect("the watch holds")
}

fn value(change: &Change) -> Option<String> {
    match change {
        Change::Put { record, .. } => Some(String::from_utf8(record.value.to_vec()).unwrap()),
        Change::Deleted { .. } => None,
    }
}

#[test]
fn a_watch_that_missed_a_version_says_so() {
    with_server(async |server| {
        let store = rig::store(&server).await;
        let start = position(&*store).await;
        let mut expect = Expect::Absent;
        for n in 0..12 {
            write(&*store, &owner("k"), expect, put("a", n.to_string())).await;
            expect = store.get(&owner("k"), Read::Any).await.unwrap().unwrap().expect();
        }
        let mut watch = store.watch(Space::OWNERS, start).await.unwrap();
        let first = watch.next().await.unwrap();
        assert!(matches!(first, Err(StoreError::Compacted)), "{first:?}");
        assert!(watch.next().await.is_none(), "after a gap comes nothing");
    });
}

/// Proves: R373
#[test]
fn records_with_a_time_to_live_leave_a_history_too() {
    with_server(async |server| {
        let store = rig::store(&server).await;
        let start = position(&*store).await;
        let mut expect = Expect::Absent;
        for n in 0..6 {
            write(&*store, &owner("k"), expect, lasting(&n.to_string(), 90_000)).await;
            expect = store.get(&owner("k"), Read::Linearizable).await.unwrap().unwrap().expect();
        }
        let mut watch = store.watch(Space::OWNERS, start).await.unwrap();
        for n in 0..6 {
            assert_eq!(value(&next(&mut watch).await), Some(n.to_string()));
        }
    });
}

#[test]
fn positions_of_other_times_and_streams_are_compacted() {
    with_server(async |server| {
        let store = rig::store(&server).await;
        let here = position(&*store).await;
        for strange in
            [Position(0), Position(here.0 - 1_000), Position(here.0 + 1_000), Position(u64::MAX - 1)]
        {
            let answer = store.watch(Space::OWNERS, strange).await.err();
            assert!(matches!(answer, Some(StoreError::Compacted)), "{strange:?}: {answer:?}");
        }
        assert!(store.watch(Space::OWNERS, here).await.is_ok());
    });
}

#[test]
fn a_position_grows_too_old_to_watch_from() {
    with_server(async |server| {
        let store = connect(forgetful(&server)).await;
        let start = position(&*store).await;
        assert!(store.watch(Space::OWNERS, start).await.is_ok());
        tokio::time::sleep(Duration::from_millis(2_200)).await;
        let answer = store.watch(Space::OWNERS, start).await.err();
        assert!(matches!(answer, Some(StoreError::Compacted)), "{answer:?}");
    });
}

/// What the server removes by itself is told as deleted, and nothing older comes back in its place (H15).
///
/// Proves: R168
#[test]
fn an_expired_record_is_gone_for_good() {
    with_server(async |server| {
        let store = connect(forgetful(&server)).await;
        let mut watch = store.watch(Space::OWNERS, position(&*store).await).await.unwrap();
        let first = write(&*store, &owner("k"), Expect::Absent, put("a", "stays")).await;
        let stays = store.get(&owner("k"), Read::Linearizable).await.unwrap().unwrap();
        assert_eq!((value(&next(&mut watch).await).as_deref(), stays.version), (Some("stays"), first));
        write(&*store, &owner("k"), stays.expect(), lasting("goes", 1_000)).await;
        let goes = store.get(&owner("k"), Read::Linearizable).await.unwrap().unwrap();
        assert_eq!(value(&next(&mut watch).await).as_deref(), Some("goes"));
        assert_eq!(value(&next(&mut watch).await), None, "told by the server's marker");
        assert_eq!(store.get(&owner("k"), Read::Linearizable).await.unwrap(), None);
        for late in [stays.expect(), goes.expect()] {
            let answer = store.cas(&owner("k"), late, put("b", "late"), None).await.unwrap();
            assert_eq!(answer, CasAnswer::Conflict(None));
        }
        assert!(store.list(Space::OWNERS, None).await.unwrap().records.is_empty());
        assert!(write(&*store, &owner("k"), Expect::Absent, put("a", "anew")).await > goes.version);
    });
}

/// Delete markers do not pile up, and clearing them up disturbs no watch.
#[test]
fn delete_markers_are_cleared_up_in_the_end() {
    with_server(async |server| {
        let store = connect(forgetful(&server)).await;
        let mut watch = store.watch(Space::OWNERS, position(&*store).await).await.unwrap();
        for key in ["by the next delete", "by a listing"] {
            let other = if key == "by a listing" { connect(forgetful(&server)).await } else { store.clone() };
            let version = write(&*other, &owner(key), Expect::Absent, put("a", "x")).await;
            let record = store.get(&owner(key), Read::Linearizable).await.unwrap().unwrap();
            assert_eq!(record.version, version);
            write(&*other, &owner(key), record.expect(), Write::Delete).await;
            assert!(value(&next(&mut watch).await).is_some() && value(&next(&mut watch).await).is_none());
        }
        let client = async_nats::connect(nats::url(&server)).await.unwrap();
        let stream = async_nats::jetstream::new(client).get_stream("archipelago").await.unwrap();
        let empty = async || {
            let subjects = stream.info_with_subjects("archipelago.own.*").await.unwrap();
            let left: Vec<String> = subjects.map(|subject| subject.unwrap().0).collect().await;
            left
        };
        assert_eq!(empty().await.len(), 2);
        let clearing_up = async {
            tokio::time::sleep(Duration::from_millis(4_200)).await;
            write(&*store, &owner("other"), Expect::Absent, Write::Delete).await;
            rig::until("cleared up by the next delete", || async {
                (empty().await.len() <= 2).then_some(())
            })
            .await;
            rig::until("all cleared up", || async {
                tokio::time::sleep(Duration::from_millis(500)).await;
                position(&*store).await;
                empty().await.is_empty().then_some(())
            })
            .await;
            write(&*store, &owner("by a listing"), Expect::Absent, put("a", "anew")).await;
        };
        let watching = async {
            loop {
                if let Some(value) = value(&next(&mut watch).await) {
                    return value;
                }
            }
        };
        assert_eq!(tokio::join!(clearing_up, watching).1, "anew");
    });
}

/// The newest message of a record that is replaced all the time is always behind the barrier of a listing.
#[test]
fn a_record_that_is_replaced_all_the_time_is_in_every_listing() {
    with_server(async |server| {
        let (store, writer) = (rig::store(&server).await, rig::store(&server).await);
        write(&*store, &owner("calm"), Expect::Absent, put("a", "0")).await;
        write(&*store, &owner("busy"), Expect::Absent, put("a", "0")).await;
        let busy = async {
            loop {
                let expect = writer.get(&owner("busy"), Read::Any).await.unwrap().unwrap().expect();
                write(&*writer, &owner("busy"), expect, put("a", "1")).await;
            }
        };
        let lists = async {
            for _ in 0..200 {
                let listed = store.list(Space::OWNERS, None).await.unwrap();
                let keys: Vec<_> = listed.records.iter().map(|record| record.id.key.as_str()).collect();
                assert_eq!(keys, ["busy", "calm"]);
            }
        };
        tokio::select! {
            () = busy => {}
            () = lists => {}
        }
    });
}
