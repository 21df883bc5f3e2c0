//! Servers that are not there, do not answer, or have lost a connection without knowing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{CasAnswer, Expect, Store, StoreDirectory, StoreError};
use archipelago_etcd::{EtcdConfig, EtcdError, EtcdStore};
use archipelago_protocol::contract::{Directory, WatchScope};
use archipelago_test_servers::etcd::EtcdServer;
use futures_util::StreamExt;

use crate::support::{
    RealTimer, Road, applied, connect, create, current, eventually, hasty, owner, put, run, settings,
};

async fn refused_by(config: &EtcdConfig) -> (EtcdError, Duration) {
    let start = Instant::now();
    let error = EtcdStore::connect(config, RealTimer::new()).await.err().expect("there is no etcd");
    (error, start.elapsed())
}

/// A port that nobody listens on.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_start_without_a_server_names_each_endpoint_and_why_in_time() {
    run(async {
        let (first, second) = (nobody().await, nobody().await);
        let config = EtcdConfig {
            endpoints: vec![first.clone(), second.clone()],
            connect_timeout: Duration::from_millis(500),
            ..settings(&first)
        };
        let (error, took) = refused_by(&config).await;
        assert!(matches!(error, EtcdError::Unreachable { .. }), "{error:?}");
        let said = error.to_string();
        for part in ["500ms", &first, &second, "Connection refused"] {
            assert!(said.contains(part), "{part} is missing in: {said}");
        }
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    });
}

#[test]
fn a_start_with_a_silent_server_names_it_in_time() {
    let Some(server) = EtcdServer::to_hurt() else { return };
    run(async {
        server.pause();
        let connect_timeout = Duration::from_millis(500);
        let (error, took) = refused_by(&EtcdConfig { connect_timeout, ..settings(&server.address()) }).await;
        assert!(error.to_string().contains(&server.address()), "{error}");
        assert!(error.to_string().contains("no answer"), "{error}");
        assert!(took < Duration::from_millis(1_500), "{took:?}");
    });
}

#[test]
fn a_start_waits_for_a_server_that_comes_up() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    server.kill();
    let address = server.address();
    let starting = std::thread::spawn(move || {
        run(async {
            let connect_timeout = Duration::from_secs(20);
            create(&connect(&EtcdConfig { connect_timeout, ..settings(&address) }).await, &owner("k"), "a")
                .await
        })
    });
    server.restart();
    starting.join().unwrap();
}

#[test]
fn writes_to_a_dead_server_are_unavailable_at_once_and_work_again_after_it() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    run(async {
        let store = connect(&settings(&server.address())).await;
        let version = create(&store, &owner("k"), "a").await;
        server.kill();
        let start = Instant::now();
        // What was under way when it died may be unknown; from then on it certainly was not applied.
        let mut answer = store.cas(&owner("k"), Expect::Absent, put("b", "{}"), None).await;
        for _ in 0..5 {
            answer = store.cas(&owner("k"), Expect::Absent, put("b", "{}"), None).await;
        }
        assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
        assert!(matches!(current(&store, &owner("k")).await, Err(StoreError::Unavailable { .. })));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        server.restart();
        let id = owner("k");
        let found = eventually(|| current(&store, &id)).await.expect("was written");
        assert_eq!(found.version, version);
        applied(store.cas(&owner("k"), found.expect(), put("b", "{}"), None).await);
    });
}

#[test]
fn a_write_to_a_paused_server_is_unknown_by_its_deadline_and_may_happen_later() {
    let Some(server) = EtcdServer::to_hurt() else { return };
    run(async {
        let config = hasty(&server.address());
        let store = connect(&config).await;
        create(&store, &owner("before"), "a").await;
        server.pause();
        let start = Instant::now();
        let answer = store.cas(&owner("k"), Expect::Absent, put("a", "{}"), None).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        let answer = current(&store, &owner("k")).await;
        assert!(
            matches!(answer, Err(StoreError::Unavailable { .. })),
            "nothing was to be written: {answer:?}"
        );
        let took = start.elapsed();
        assert!(took >= 2 * config.request_timeout && took < Duration::from_secs(5), "{took:?}");
        server.resume();
        // Whether it happened or not, the same write settles it.
        let id = owner("k");
        let again = eventually(|| store.cas(&id, Expect::Absent, put("a", "{}"), None)).await;
        assert!(matches!(again, CasAnswer::Applied(_) | CasAnswer::Conflict(Some(_))), "{again:?}");
        assert!(eventually(|| current(&store, &id)).await.is_some());
    });
}

/// The connection is dead but nobody says so: only the deadline can notice, and a new connection mends it.
#[test]
fn a_connection_that_stalls_without_an_error_is_given_up() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let store = connect(&hasty(&road.address)).await;
        create(&store, &owner("before"), "a").await;
        road.block();
        let answer = store.cas(&owner("lost"), Expect::Absent, put("a", "{}"), None).await;
        assert!(matches!(answer, Err(StoreError::Unknown { .. })), "{answer:?}");
        create(&store, &owner("after"), "a").await;
        assert_eq!(road.accepted(), 2);
    });
}

/// A caller that has less patience than we have drops the request; that must count as well.
#[test]
fn a_stalled_connection_is_given_up_although_the_caller_left_first() {
    let Some(server) = EtcdServer::start() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let store = connect(&settings(&road.address)).await;
        road.block();
        let patience = Duration::from_millis(700);
        assert!(tokio::time::timeout(patience, current(&store, &owner("k"))).await.is_err());
        create(&store, &owner("after"), "a").await;
        assert_eq!(road.accepted(), 2);
    });
}

#[test]
fn a_watch_on_a_dead_server_costs_a_few_attempts_only() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    run(async {
        let road = Road::to(&server.address()).await;
        let store = Arc::new(connect(&hasty(&road.address)).await);
        let directory = StoreDirectory::new(store, RealTimer::new());
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        watch.next().await.expect("goes on").expect("a snapshot");
        server.kill();
        let before = road.accepted();
        let quiet = tokio::time::timeout(Duration::from_secs(4), watch.next()).await;
        assert!(quiet.is_err(), "nothing can come: {quiet:?}");
        let attempts = road.accepted() - before;
        assert!((2..=8).contains(&attempts), "{attempts} attempts in 4 s");
    });
}
