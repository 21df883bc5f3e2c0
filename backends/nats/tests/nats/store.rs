//! The store's rules on a real NATS server.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::restart_rules::RestartFixture;
use archipelago_backend_conformance::store_conformance;
use archipelago_directory::Store;

use crate::rig;

fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    rig::with_store(async |store| rule(store).await);
}

fn restarting<F: Future<Output = ()>>(rule: impl FnOnce(RestartFixture) -> F) {
    rig::with_durable_server(async |server| {
        let store = rig::store(&server).await;
        rule(RestartFixture::new(store, rig::RealTimer::start(), rig::Restarting::new(server))).await;
    });
}

store_conformance!(run, restart: restarting);
