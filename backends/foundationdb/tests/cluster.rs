//! The exported suites on a real FoundationDB: set `ARCHIPELAGO_TEST_FDB` to its cluster file.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "tests run in real time against a real database")]

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::directory_rules::Fixture;
use archipelago_backend_conformance::homes_rules::HomesFixture;
use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
use archipelago_directory::{Sleep, Store, Timer};
use archipelago_foundationdb::{FoundationDbConfig, FoundationDbStore};
use archipelago_protocol::time::Millis;

struct RealTimer(Instant);

impl Timer for RealTimer {
    fn now(&self) -> Millis {
        Millis::from_duration(self.0.elapsed())
    }

    fn sleep(&self, length: Millis) -> Sleep {
        Box::pin(tokio::time::sleep(length.to_duration()))
    }
}

fn timer() -> Arc<RealTimer> {
    Arc::new(RealTimer(Instant::now()))
}

/// Settings for the database at `cluster_file`, with a prefix that no other test has.
fn settings(cluster_file: String) -> FoundationDbConfig {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let (process, n) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    FoundationDbConfig {
        cluster_file: Some(cluster_file.into()),
        prefix: format!("archipelago-test-{now}-{process}-{n}"),
        // Generous, so that a busy machine fails nothing.
        connect_timeout: Duration::from_secs(20),
        request_timeout: Duration::from_secs(20),
        ..FoundationDbConfig::default()
    }
}

fn store<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    let Ok(cluster_file) = std::env::var("ARCHIPELAGO_TEST_FDB") else {
        let why = "there is no FoundationDB; set ARCHIPELAGO_TEST_FDB to a cluster file";
        return archipelago_test_servers::program::skip("foundationdb", why);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = FoundationDbStore::connect(&settings(cluster_file), timer()).await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(60), rule(Arc::new(store)));
        ended.await.expect("ends within a minute");
    });
}

fn directory<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
    store(|store| rule(Fixture::new(store, timer())));
}

fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
    store(|store| rule(RoutingTableFixture::new(store, timer())));
}

fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    store(|store| rule(ControlPlaneFixture::new(store, timer())));
}

fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
    store(|store| rule(StateStoreFixture::new(store)));
}

fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
    store(|store| rule(HomesFixture::new(store)));
}

archipelago_backend_conformance::store_conformance!(
    store,
    cannot_restart: "a cluster that somebody lends is not restarted"
);
archipelago_backend_conformance::directory_conformance!(directory);
archipelago_backend_conformance::routing_table_conformance!(routing_table);
archipelago_backend_conformance::control_plane_conformance!(control_plane);
archipelago_backend_conformance::state_store_conformance!(state_store);
archipelago_backend_conformance::homes_conformance!(homes);
