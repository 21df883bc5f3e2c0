//! The exported suites, on every version of etcd that is there.

/// All suites on the server that `$shared` names; what restarts a server starts one with `$own`, and ends it so.
macro_rules! suites_on {
    ($shared:path, $own:path, $end:path) => {
        use std::future::Future;
        use std::sync::Arc;
        use std::time::Duration;

        use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
        use archipelago_backend_conformance::directory_rules::Fixture;
        use archipelago_backend_conformance::homes_rules::HomesFixture;
        use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
        use archipelago_backend_conformance::restart_rules::RestartFixture;
        use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
        use archipelago_directory::Store;
        use archipelago_etcd::EtcdConfig;

        use crate::support::{Restarting, RealTimer, connect, run, settings};

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

        fn restarting<F: Future<Output = ()>>(rule: impl FnOnce(RestartFixture) -> F) {
            let Some(server) = $own() else { return };
            run(async {
                let request_timeout = Duration::from_secs(3);
                let config = EtcdConfig { request_timeout, ..settings(&server.address()) };
                let store = Arc::new(connect(&config).await);
                rule(RestartFixture::new(store, RealTimer::new(), Restarting::new(server, $end))).await;
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

mod newest {
    // It is asked to end: killed under load, 3.5.0 to 3.5.2 may lose what they acknowledged.
    suites_on!(
        archipelago_test_servers::etcd::shared,
        archipelago_test_servers::etcd::EtcdServer::start,
        archipelago_test_servers::ServerProcess::stop
    );
}

mod version_3_4 {
    suites_on!(
        archipelago_test_servers::etcd::shared_34,
        archipelago_test_servers::etcd::EtcdServer::to_hurt,
        archipelago_test_servers::ServerProcess::kill
    );
}
