//! Servers that pause, die and come back, and what was on its way to them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::proxy::Proxy;
use crate::rig::{self, connect, owner, put, until, with_server, write};
use archipelago_directory::{CasAnswer, Change, Expect, Read, Space, Store, StoreError};
use archipelago_nats::NatsStore;
use archipelago_test_servers::ServerProcess;
use futures_util::StreamExt;
use futures_util::future::join_all;

async fn impatient(server: &ServerProcess) -> Arc<NatsStore> {
    let mut config = rig::config(server);
    config.request_timeout = Duration::from_millis(400);
    connect(config).await
}

/// Runs a request that must end soon.
async fn timed<T>(request: impl Future<Output = T>) -> T {
    let started = Instant::now();
    let answer = request.await;
    assert!(started.elapsed() < Duration::from_secs(3), "took {:?}", started.elapsed());
    answer
}

#[test]
fn a_paused_server_leaves_the_outcome_unknown_and_serves_again_later() {
    with_server(async |server| {
        let store = impatient(&server).await;
        let version = write(&*store, &owner("k"), Expect::Absent, put("a", "one")).await;
        let seen = store.get(&owner("k"), Read::Linearizable).await.unwrap().unwrap();
        let position = store.list(Space::OWNERS, None).await.unwrap().position;
        server.pause();
        let answer = timed(store.cas(&owner("k"), seen.expect(), put("a", "two"), None)).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        // What was only to be read has no outcome that could be unknown.
        for read in [Read::Linearizable, Read::Any] {
            let answer = timed(store.get(&owner("k"), read)).await;
            assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        }
        let answer = timed(store.list(Space::OWNERS, None)).await;
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        let answer = timed(store.watch(Space::OWNERS, position)).await;
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{:?}", answer.map(drop));
        server.resume();
        let now =
            until("an answer", || async { store.get(&owner("k"), Read::Linearizable).await.ok().flatten() })
                .await;
        assert!(now.version >= version);
        write(&*store, &owner("l"), Expect::Absent, put("a", "three")).await;
    });
}

/// Nothing was handed to the client while there was no connection, so nothing can arrive later.
///
/// Proves: R373
#[test]
fn a_server_that_is_away_is_unavailable_until_it_is_back() {
    with_server(async |mut server| {
        let store = impatient(&server).await;
        server.kill();
        until("the break is noticed", || async {
            let answer = timed(store.cas(&owner("k"), Expect::Absent, put("a", "x"), None)).await;
            matches!(answer, Err(StoreError::Unavailable { .. })).then_some(())
        })
        .await;
        let answer = timed(store.cas(&owner("never"), Expect::Absent, put("a", "x"), None)).await;
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        server.restart();
        until("served again", || async {
            store.cas(&owner("after"), Expect::Absent, put("a", "x"), None).await.ok()
        })
        .await;
        assert_eq!(store.get(&owner("never"), Read::Linearizable).await.unwrap(), None);
    });
}

#[test]
fn a_server_that_stays_away_is_rarely_asked_for() {
    with_server(async |mut server| {
        let mut config = rig::config(&server);
        config.max_reconnect_delay = Duration::from_secs(1);
        let _store = connect(config).await;
        server.kill();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", server.port(0))).await.unwrap();
        let mut attempts = 0;
        let counting = async {
            loop {
                drop(listener.accept().await);
                attempts += 1;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(4), counting).await;
        assert!((1..12).contains(&attempts), "{attempts} attempts in 4 s");
    });
}

/// A watch breaks with the server and is taken up where it was: nothing is missed, nothing comes from before.
///
/// Proves: R373
#[test]
fn a_watch_goes_on_after_a_restart_of_the_server() {
    with_server(async |mut server| {
        let store = rig::store(&server).await;
        let mut after = store.list(Space::OWNERS, None).await.unwrap().position;
        let mut watch = store.watch(Space::OWNERS, after).await.unwrap();
        let mut told = Vec::new();
        for round in 0..3 {
            write(&*store, &owner(&format!("before {round}")), Expect::Absent, put("a", "x")).await;
            server.restart();
            until("served again", || async {
                let id = owner(&format!("after {round}"));
                let answer = store.cas(&id, Expect::Absent, put("a", "x"), None).await;
                matches!(answer, Ok(CasAnswer::Applied(_) | CasAnswer::Conflict(Some(_)))).then_some(())
            })
            .await;
            while told.len() < 2 * (round + 1) {
                match watch.next().await {
                    Some(Ok(change)) => {
                        assert!(change.position() > after);
                        after = change.position();
                        told.push(change.id().key.clone());
                    }
                    Some(Err(StoreError::Unavailable { .. })) | None => {
                        watch =
                            until("watched again", || async { store.watch(Space::OWNERS, after).await.ok() })
                                .await;
                    }
                    Some(Err(error)) => panic!("{error:?}"),
                }
            }
        }
        assert_eq!(told, ["before 0", "after 0", "before 1", "after 1", "before 2", "after 2"]);
    });
}

/// What the client still had in hand when the connection broke arrives after the reconnect, though its caller has given
/// up; and it changes nothing where something else stands by then.
#[test]
fn a_write_whose_caller_gave_up_is_delivered_after_the_reconnect() {
    with_server(async |server| {
        let proxy = Proxy::start(server.port(0)).await;
        let mut config = rig::config(&server);
        config.urls = vec![proxy.url().try_into().unwrap()];
        config.request_timeout = Duration::from_millis(1_500);
        let (cut_off, other) = (connect(config).await, rig::store(&server).await);
        write(&*cut_off, &owner("contested"), Expect::Absent, put("a", "first")).await;
        let seen = other.get(&owner("contested"), Read::Linearizable).await.unwrap().unwrap();
        proxy.hold();
        // More than all buffers on the way can take, so that what follows stays in the client's hands.
        let bulk = vec![0_u8; 512 << 10];
        let (contested, free) = (owner("contested"), owner("free"));
        let big: Vec<_> = (0..60).map(|n| owner(&format!("big {n}"))).collect();
        let fill = big.iter().map(|id| cut_off.cas(id, Expect::Absent, put("a", bulk.clone()), None));
        let late = [
            cut_off.cas(&contested, seen.expect(), put("a", "late"), None),
            cut_off.cas(&free, Expect::Absent, put("a", "late"), None),
        ];
        for answer in join_all(fill.chain(late)).await {
            assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        }
        assert_eq!(other.get(&free, Read::Linearizable).await.unwrap(), None, "it has not arrived");
        write(&*other, &contested, seen.expect(), put("b", "second")).await;
        proxy.cut();
        let arrived =
            until("the late write", || async { other.get(&free, Read::Linearizable).await.unwrap() }).await;
        assert_eq!(arrived.value, "late");
        let stands = other.get(&contested, Read::Linearizable).await.unwrap().unwrap();
        assert_eq!(stands.value, "second", "a late write replaces only what it names");
    });
}

/// Two processes race for the same keys, under different tags.
///
/// Proves: R220, R221
#[test]
fn two_stores_race_and_one_wins() {
    with_server(async |server| {
        let (one, two) = (rig::store(&server).await, rig::store(&server).await);
        let position = one.list(Space::OWNERS, None).await.unwrap().position;
        let mut watch = one.watch(Space::OWNERS, position).await.unwrap();
        for round in 0..300 {
            let id = owner(&format!("k{}", round % 7));
            let expect = one
                .get(&id, Read::Linearizable)
                .await
                .unwrap()
                .map_or(Expect::Absent, |record| record.expect());
            let races = [(&one, "a"), (&two, "b")];
            let claims = races.map(|(store, tag)| store.cas(&id, expect.clone(), put(tag, tag), None));
            let answers: Vec<_> = join_all(claims).await.into_iter().map(Result::unwrap).collect();
            let [winner] =
                &(0..2).filter(|n| matches!(answers[*n], CasAnswer::Applied(_))).collect::<Vec<_>>()[..]
            else {
                panic!("round {round}: {answers:?}");
            };
            let change = watch.next().await.unwrap().unwrap();
            let Change::Put { record, .. } = change else { panic!("{change:?}") };
            assert_eq!((record.id, record.tag.as_deref()), (id, Some(races[*winner].1)));
        }
    });
}
