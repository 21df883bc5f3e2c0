//! The limits of FoundationDB: as the engine gives them, as the store tells them, and how it stays below them.

use std::time::Duration;

use archipelago_directory::{
    CasAnswer, Expect, Read, RecordId, Space, Store, StoreDirectory, StoreError, Write,
};
use archipelago_foundationdb::{
    Breakage, Code, Engine, Isolation, MemoryEngine, TooLarge, TooLate, Transaction,
};
use archipelago_protocol::contract::Directory;
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey};
use archipelago_protocol::session::{EndReason, Session};
use archipelago_protocol::time::Millis;
use bytes::Bytes;

use crate::support::{applied, calm, create, current, next, owner, put, run, store};

// ---- as the engine gives them ----

fn begin(engine: &MemoryEngine) -> Box<dyn Transaction> {
    engine.begin(Read::Linearizable).unwrap()
}

/// What a transaction comes to that writes this.
async fn written(engine: &MemoryEngine, key: usize, value: usize) -> Result<(), Code> {
    let transaction = begin(engine);
    transaction.set(&vec![b'k'; key], &vec![b'v'; value]);
    transaction.commit().await.map(drop).map_err(|uncommitted| uncommitted.code)
}

#[test]
fn a_key_of_more_than_ten_thousand_bytes_is_2102() {
    run(|_| async {
        let engine = calm();
        assert_eq!(written(&engine, 10_000, 1).await, Ok(()));
        assert_eq!(written(&engine, 10_001, 1).await, Err(Code(2102)));
        assert_eq!(engine.keys(), 1);
    });
}

#[test]
fn a_value_of_more_than_a_hundred_thousand_bytes_is_2103() {
    run(|_| async {
        let engine = calm();
        assert_eq!(written(&engine, 1, 100_000).await, Ok(()));
        assert_eq!(written(&engine, 2, 100_001).await, Err(Code(2103)));
        assert_eq!(engine.keys(), 1);
    });
}

#[test]
fn what_is_too_long_is_told_by_the_next_read_too() {
    run(|_| async {
        let engine = calm();
        let writes: [fn(&dyn Transaction); 4] = [
            |one| one.set(&[0; 10_001], b""),
            |one| one.set_max(&[0; 10_001], b""),
            |one| one.set_versionstamped_key(&[0; 10_001], b""),
            |one| one.set_versionstamped_value(&[0; 10_001], b""),
        ];
        for write in writes {
            let transaction = begin(&engine);
            write(&*transaction);
            assert_eq!(transaction.get(b"k", Isolation::Snapshot).await, Err(Code(2102)));
        }
        let clearing = begin(&engine);
        clearing.clear(&[0; 20_000]);
        assert!(clearing.commit().await.is_ok(), "there is no such key");
    });
}

#[test]
fn a_transaction_of_more_than_ten_million_bytes_is_2101_and_nothing_of_it_is_applied() {
    run(|_| async {
        let engine = calm();
        for (values, expected) in [(99, Ok(())), (100, Err(Code(2101)))] {
            let transaction = begin(&engine);
            for n in 0..values {
                transaction.set(format!("{values}/{n}").as_bytes(), &[b'v'; 100_000]);
            }
            assert_eq!(transaction.commit().await.map(drop).map_err(|failed| failed.code), expected);
        }
        assert_eq!(engine.keys(), 99);
        assert!(engine.tally().largest > 10_000_000);
    });
}

/// What was read and must not change counts as well.
#[test]
fn what_a_transaction_has_read_counts_towards_its_size() {
    run(|_| async {
        let engine = calm();
        let transaction = begin(&engine);
        for n in 0..600_u32 {
            let key = [&n.to_be_bytes()[..], &[b'k'; 9_000]].concat();
            transaction.get(&key, Isolation::Serializable).await.unwrap();
        }
        transaction.set(b"k", b"v");
        assert_eq!(transaction.commit().await.err().map(|failed| failed.code), Some(Code(2101)));
    });
}

#[test]
fn a_transaction_of_more_than_five_seconds_is_1007() {
    run(|_| async {
        let engine = calm();
        let (reading, writing) = (begin(&engine), begin(&engine));
        for transaction in [&reading, &writing] {
            transaction.get(b"k", Isolation::Serializable).await.unwrap();
            transaction.set(b"k", b"v");
        }
        engine.let_time_pass(Duration::from_secs(5));
        assert!(reading.get(b"k", Isolation::Snapshot).await.is_ok());
        engine.let_time_pass(Duration::from_micros(1));
        assert_eq!(reading.get(b"k", Isolation::Snapshot).await, Err(Code(1007)));
        assert_eq!(reading.range(b"a", b"z", 9, Isolation::Snapshot).await, Err(Code(1007)));
        assert_eq!(writing.commit().await.err().map(|failed| failed.code), Some(Code(1007)));
        assert_eq!(engine.keys(), 0);
    });
}

// ---- as the store tells them ----

fn too_large(answer: Result<CasAnswer, StoreError>) -> TooLarge {
    match answer {
        Err(StoreError::Fatal { source }) => *source.downcast::<TooLarge>().expect("says what is too large"),
        other => panic!("{other:?}"),
    }
}

fn sized(tag: usize, value: usize) -> Write {
    Write::Put { tag: Some("\0".repeat(tag)), value: Bytes::from(vec![0; value]), ttl: None }
}

fn named(n: u32, length: usize) -> RecordId {
    RecordId::new(Space::OWNERS, format!("{n:08}{}", "\0".repeat(length - 8)))
}

#[test]
fn names_and_values_that_are_too_long_are_refused_by_a_type_before_they_are_sent() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        for (key, tag, value, what, most) in
            [(2_049, 1, 1, "key", 2_048), (8, 2_049, 1, "tag", 2_048), (8, 1, 90_001, "value", 90_000)]
        {
            let answer = store.cas(&named(1, key), Expect::Absent, sized(tag, value), None).await;
            let length = key.max(tag).max(value);
            assert_eq!(too_large(answer), TooLarge { what, length, most });
        }
        assert_eq!(engine.tally().largest, 0, "nothing was sent");
    });
}

/// Zeros take twice their place in the tuple layer, and the index holds tag and key: all of it must fit.
#[test]
fn the_longest_names_and_values_fit_into_the_engine() {
    run(|timer| async move {
        let store = store(&calm(), &timer).await;
        let id = named(1, 2_048);
        let version = applied(store.cas(&id, Expect::Absent, sized(2_048, store.max_value()), None).await);
        let listed = store.list(Space::OWNERS, Some(&"\0".repeat(2_048))).await.unwrap().records;
        assert_eq!(
            listed.iter().map(|record| (&record.id, record.version)).collect::<Vec<_>>(),
            [(&id, version)]
        );
        assert_eq!(store.delete_all(&listed).await.unwrap(), 1);
    });
}

/// Where every attempt becomes too old, the time is up in the end, and it is said why.
#[test]
fn a_request_that_is_always_too_old_is_unavailable_and_says_so() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        engine.set_breakage(Breakage { too_old: 1_000, waits: 1_000, ..Breakage::default() });
        let too_late = |error: Option<StoreError>| match error {
            Some(StoreError::Unavailable { source }) => *source.downcast::<TooLate>().expect("says why"),
            other => panic!("{other:?}"),
        };
        let expected = TooLate { within: Millis(2_000), last: Some(Code::TRANSACTION_TOO_OLD) };
        let read = hurry(&timer, store.get(&owner("k"), Read::Linearizable)).await;
        assert_eq!(too_late(read.err()), expected);
        let written = hurry(&timer, store.cas(&owner("k"), Expect::Absent, put("a", "x"), None)).await;
        assert_eq!(too_late(written.err()), expected);
        engine.set_breakage(Breakage::default());
        assert_eq!(current(&store, "k").await, None);
    });
}

/// The answer, while time passes although requests go on.
async fn hurry<T>(
    timer: &archipelago_backend_conformance::ManualTimer,
    answer: impl Future<Output = T>,
) -> T {
    let mut answer = std::pin::pin!(answer);
    std::future::poll_fn(|context| {
        let polled = answer.as_mut().poll(context);
        timer.advance(Millis(5));
        polled
    })
    .await
}

// ---- how it stays below them ----

/// A hundred deletes of the longest names are one transaction, and no more than the engine takes.
#[test]
fn deletes_of_the_longest_names_stay_below_the_size_of_a_transaction() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        for n in 0..250 {
            applied(store.cas(&named(n, 2_048), Expect::Absent, sized(2_048, 10), None).await);
        }
        let listed = store.list(Space::OWNERS, None).await.unwrap().records;
        let before = engine.tally().applied;
        assert_eq!(store.delete_all(&listed).await.unwrap(), 250);
        assert_eq!(engine.tally().applied - before, 3, "in three parts");
        let largest = engine.tally().largest;
        assert!((1_000_000..10_000_000).contains(&largest), "{largest} bytes");
        assert!(store.list(Space::OWNERS, None).await.unwrap().records.is_empty());
    });
}

/// An operator may have set a lower limit: a batch that is too large for it is divided.
#[test]
fn deletes_that_are_too_large_all_the_same_are_divided() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        for n in 0..250 {
            create(&store, &format!("k{n:03}")).await;
        }
        let listed = store.list(Space::OWNERS, Some("a")).await.unwrap().records;
        engine.limit_transactions(8_000);
        let before = engine.tally().applied;
        assert_eq!(store.delete_all(&listed).await.unwrap(), 250);
        assert!(engine.tally().applied - before > 12, "{:?}", engine.tally());
        engine.limit_transactions(100);
        create_fails_as_too_large(&store).await;
    });
}

/// What cannot be divided any further is told as it is.
async fn create_fails_as_too_large(store: &dyn Store) {
    let answer = store.cas(&owner("k"), Expect::Absent, put("a", "x"), None).await;
    let Err(StoreError::Fatal { source }) = answer else { panic!("{answer:?}") };
    assert_eq!(source.downcast_ref::<Code>(), Some(&Code::TRANSACTION_TOO_LARGE));
}

/// Servers on which a page of 250 records takes longer than a transaction may last.
const SLOW: Duration = Duration::from_millis(60);

#[test]
fn a_listing_on_slow_servers_is_read_in_smaller_pages() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        for n in 0..600 {
            create(&store, &format!("k{n:03}")).await;
        }
        engine.slow_down(SLOW);
        for tag in [None, Some("a")] {
            let before = engine.tally().too_old;
            assert_eq!(store.list(Space::OWNERS, tag).await.unwrap().records.len(), 600, "{tag:?}");
            let too_old = engine.tally().too_old - before;
            assert!((1..6).contains(&too_old), "{too_old} transactions became too old by {tag:?}");
        }
    });
}

#[test]
fn a_watch_on_slow_servers_reads_the_log_in_smaller_pages() {
    run(|timer| async move {
        let engine = calm();
        let store = store(&engine, &timer).await;
        let start = store.list(Space::OWNERS, None).await.unwrap().position;
        for n in 0..600 {
            create(&store, &format!("k{n:03}")).await;
        }
        engine.slow_down(SLOW);
        let mut watch = store.watch(Space::OWNERS, start).await.unwrap();
        for n in 0..600 {
            assert_eq!(next(&mut watch).await.id(), &owner(&format!("k{n:03}")));
        }
        assert!((1..6).contains(&engine.tally().too_old), "{:?}", engine.tally());
    });
}

/// All that a dead node owned goes, however slow the servers are, and what others claimed stays.
#[test]
fn an_eviction_of_many_keys_on_slow_servers_is_done_in_smaller_parts() {
    run(|timer| async move {
        let engine = calm();
        let store = std::sync::Arc::new(store(&engine, &timer).await);
        let directory = StoreDirectory::new(store.clone(), std::sync::Arc::new(timer));
        let session = |id| Session { id: NodeId::new(id), ttl: Millis(6_000) };
        let key = |n| OwnedKey::shard(Kind::new("Account").unwrap(), n);
        for id in [1, 2] {
            directory.open_session(session(id), 7).await.unwrap();
        }
        for n in 0..300 {
            directory.claim(&key(n), session(1), None).await.unwrap();
        }
        directory.claim(&key(300), session(2), None).await.unwrap();
        let seen = directory.lease(NodeId::new(1)).await.unwrap().unwrap();
        directory.end_session(seen.id, seen.version, NodeId::new(2), EndReason::Silent).await.unwrap();
        engine.slow_down(SLOW);
        assert_eq!(directory.evict(NodeId::new(1)).await.unwrap(), 300);
        assert!(engine.tally().too_old > 0, "{:?}", engine.tally());
        engine.slow_down(Duration::ZERO);
        let left = store.list(Space::OWNERS, None).await.unwrap().records;
        assert_eq!(
            left.iter().map(|record| record.id.key.as_str()).collect::<Vec<_>>(),
            ["shard/Account/300"]
        );
    });
}
