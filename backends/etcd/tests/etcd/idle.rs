//! What a store that is away costs those who wait for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{Expect, Store, StoreDirectory, StoreError};
use archipelago_protocol::contract::{Directory, WatchScope};
use archipelago_test_servers::cpu::used_by_this_thread;
use archipelago_test_servers::etcd::EtcdServer;
use futures_util::StreamExt;
use futures_util::future::join;

use crate::support::{RealTimer, connect, create, eventually, owner, put, run, settings};

/// Every request is answered in time and by its type, and watch and connection together take less than 2 % of a core.
#[test]
fn a_server_that_stays_away_costs_next_to_nothing() {
    let Some(mut server) = EtcdServer::to_hurt() else { return };
    run(async {
        let store = Arc::new(connect(&settings(&server.address())).await);
        create(&*store, &owner("before"), "a").await;
        let directory = StoreDirectory::new(Arc::clone(&store) as Arc<dyn Store>, RealTimer::new());
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        watch.next().await.expect("goes on").expect("a snapshot");
        server.kill();
        // What was under way when it died may be unknown.
        let _ = store.cas(&owner("k"), Expect::Absent, put("a", "{}"), None).await;
        let (start, before, mut asked) = (Instant::now(), used_by_this_thread(), 0);
        let asking = async {
            loop {
                let sent = Instant::now();
                let answer = store.cas(&owner("k"), Expect::Absent, put("a", "{}"), None).await;
                assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
                assert!(sent.elapsed() < Duration::from_secs(2), "{:?}", sent.elapsed());
                asked += 1;
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        };
        let _: Result<((), _), _> = tokio::time::timeout(AWAY, join(asking, watch.next())).await;
        let (used, took) = (used_by_this_thread() - before, start.elapsed());
        eprintln!("{used:?} of {took:?} for {asked} requests");
        assert!(asked > 10, "{asked} requests in {took:?}");
        assert!(used < took / 50, "{used:?} of {took:?}");
        server.restart();
        let id = owner("k");
        eventually(|| store.cas(&id, Expect::Absent, put("a", "{}"), None)).await;
    });
}

const AWAY: Duration = Duration::from_secs(10);
