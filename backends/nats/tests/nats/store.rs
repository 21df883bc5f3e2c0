//! The store's rules on a real NATS server.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::store_conformance;
use archipelago_directory::Store;

use crate::rig;

fn run<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    rig::with_store(async |store| rule(store).await);
}

store_conformance!(run);
