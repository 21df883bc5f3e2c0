//! The exported suites, without faults and with all that can be overcome.

use archipelago_foundationdb::Breakage;

/// All suites on an engine of this seed.
macro_rules! suites_on {
    ($seed:expr, $breakage:expr) => {
        use std::future::Future;
        use std::sync::Arc;

        use archipelago_backend_conformance::ManualTimer;
        use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
        use archipelago_backend_conformance::directory_rules::Fixture;
        use archipelago_backend_conformance::homes_rules::HomesFixture;
        use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
        use archipelago_backend_conformance::restart_rules::RestartFixture;
        use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
        use archipelago_directory::Store;
        use archipelago_foundationdb::MemoryEngine;

        use crate::support;

        fn on_timer<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>, ManualTimer) -> F) {
            support::run(|timer| async move {
                let engine = MemoryEngine::new($seed, $breakage);
                rule(Arc::new(support::store(&engine, &timer).await), timer).await;
            });
        }

        fn store<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
            on_timer(|store, _| rule(store));
        }

        fn directory<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
            on_timer(|store, timer| rule(Fixture::new(store, Arc::new(timer))));
        }

        fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
            on_timer(|store, timer| rule(RoutingTableFixture::new(store, Arc::new(timer))));
        }

        fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
            on_timer(|store, timer| rule(ControlPlaneFixture::new(store, Arc::new(timer))));
        }

        fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
            store(|store| rule(StateStoreFixture::new(store)));
        }

        fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
            store(|store| rule(HomesFixture::new(store)));
        }

        fn restarting<F: Future<Output = ()>>(rule: impl FnOnce(RestartFixture) -> F) {
            support::run(|timer| async move {
                let engine = MemoryEngine::new($seed, $breakage);
                let store = Arc::new(support::store(&engine, &timer).await);
                let server = Arc::new(support::Servers { engine, timer: timer.clone() });
                rule(RestartFixture::new(store, Arc::new(timer), server)).await;
            });
        }

        archipelago_backend_conformance::store_conformance!(store, restart: restarting);
        archipelago_backend_conformance::directory_conformance!(directory);
        archipelago_backend_conformance::routing_table_conformance!(routing_table);
        archipelago_backend_conformance::control_plane_conformance!(control_plane);
        archipelago_backend_conformance::state_store_conformance!(state_store);
        archipelago_backend_conformance::homes_conformance!(homes);
    };
}

/// Everything that the store must overcome without its caller noticing.
const BROKEN: Breakage = Breakage {
    refused: 60,
    unknown_applied: 100,
    unknown_lost: 60,
    unknown_late: 100,
    timed_out: 0,
    too_old: 20,
    future_version: 20,
    short_page: 200,
    watch_refused: 200,
    watch_deaf: 200,
    shared_version: 500,
    waits: 500,
};

mod calm {
    suites_on!(0, archipelago_foundationdb::Breakage::default());
}

mod busy {
    suites_on!(
        1,
        archipelago_foundationdb::Breakage {
            shared_version: 500,
            waits: 700,
            ..archipelago_foundationdb::Breakage::default()
        }
    );
}

mod broken_1 {
    suites_on!(1, super::BROKEN);
}

mod broken_2 {
    suites_on!(2, super::BROKEN);
}

mod broken_3 {
    suites_on!(3, super::BROKEN);
}
