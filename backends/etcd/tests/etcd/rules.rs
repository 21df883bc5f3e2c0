//! The exported suites, on every version of etcd that is there.

/// All suites on the server that `$shared` names.
macro_rules! suites_on {
    ($shared:path) => {
        use std::future::Future;
        use std::sync::Arc;

        use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
        use archipelago_backend_conformance::directory_rules::Fixture;
        use archipelago_backend_conformance::homes_rules::HomesFixture;
        use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
        use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
        use archipelago_directory::Store;

        use crate::support::{RealTimer, connect, run, settings};

        fn store<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
            let Some(address) = $shared() else { return };
            run(async { rule(Arc::new(connect(&settings(&address)).await)).await });
        }

        fn directory<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
            store(|store| rule(Fixture::new(store, RealTimer::new())));
        }

        fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
            store(|store| rule(RoutingTableFixture::new(store, RealTimer::new())));
        }

        fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
            store(|store| rule(ControlPlaneFixture::new(store, RealTimer::new())));
        }

        fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
            store(|store| rule(StateStoreFixture::new(store)));
        }

        fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
            store(|store| rule(HomesFixture::new(store)));
        }

        archipelago_backend_conformance::store_conformance!(store);
        archipelago_backend_conformance::directory_conformance!(directory);
        archipelago_backend_conformance::routing_table_conformance!(routing_table);
        archipelago_backend_conformance::control_plane_conformance!(control_plane);
        archipelago_backend_conformance::state_store_conformance!(state_store);
        archipelago_backend_conformance::homes_conformance!(homes);
    };
}

mod newest {
    suites_on!(archipelago_test_servers::etcd::shared);
}

mod version_3_4 {
    suites_on!(archipelago_test_servers::etcd::shared_34);
}
