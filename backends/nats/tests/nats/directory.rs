//! The directory's rules on a real NATS server.

use std::future::Future;

use archipelago_backend_conformance::directory_conformance;
use archipelago_backend_conformance::directory_rules::Fixture;

use crate::rig;

fn run<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
    rig::with_store(async |store| {
        rule(Fixture::new(store, rig::RealTimer::start())).await;
    });
}

directory_conformance!(run);
