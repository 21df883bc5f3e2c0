//! What a store that is away costs those who wait for it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use archipelago_directory::{Expect, Store, StoreDirectory, StoreError};
use archipelago_protocol::contract::{Directory, WatchScope};
use archipelago_test_servers::cpu::used_by_this_thread;
use archipelago_test_servers::nats;
use futures_util::StreamExt;
use futures_util::future::join;

use crate::rig::{self, RealTimer, block_on_one_thread, connect, owner, put, until, write};

/// Every request is answered in time and by its type, and watch and connection together take less than 2 % of a core.
#[test]
fn a_server_that_stays_away_costs_next_to_nothing() {
    let Some(program) = nats::program() else { return };
    let mut server = nats::start(program, |_| String::new());
    block_on_one_thread(async {
        let mut config = rig::config(&server);
        config.request_timeout = PATIENCE;
        let store = connect(config).await;
        write(&*store, &owner("before"), Expect::Absent, put("a", "x")).await;
        let directory = StoreDirectory::new(Arc::clone(&store) as Arc<dyn Store>, RealTimer::start());
        let mut watch = directory.watch(WatchScope::Owners, None).await.unwrap();
        watch.next().await.expect("goes on").expect("a snapshot");
        server.kill();
        let ask = async || store.cas(&owner("k"), Expect::Absent, put("a", "x"), None).await;
        until("the break is noticed", async || {
            matches!(ask().await, Err(StoreError::Unavailable { .. })).then_some(())
        })
        .await;
        let (start, before, mut asked) = (Instant::now(), used_by_this_thread(), 0);
        let asking = async {
            loop {
                let sent = Instant::now();
                let answer = ask().await;
                assert!(matches!(answer, Err(StoreError::Unavailable { .. })), "{answer:?}");
                assert!(sent.elapsed() < PATIENCE + Duration::from_secs(1), "{:?}", sent.elapsed());
                asked += 1;
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        };
        let _: Result<((), _), _> = tokio::time::timeout(AWAY, join(asking, watch.next())).await;
        let (used, took) = (used_by_this_thread() - before, start.elapsed());
        eprintln!("{used:?} of {took:?} for {asked} requests");
        assert!(asked > 4, "{asked} requests in {took:?}");
        assert!(used < took / 50, "{used:?} of {took:?}");
        server.restart();
        until("served again", async || ask().await.ok()).await;
    });
}

/// A request waits so long for the connection to come back.
const PATIENCE: Duration = Duration::from_millis(500);
const AWAY: Duration = Duration::from_secs(10);
