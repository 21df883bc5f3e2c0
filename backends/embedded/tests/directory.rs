//! The directory's rules on the embedded store.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::directory_rules::Fixture;
use archipelago_backend_conformance::{ImmediateTimer, directory_conformance};
use archipelago_embedded::EmbeddedStore;
use futures_util::FutureExt;

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
    let fixture = Fixture::new(Arc::new(EmbeddedStore::default()), Arc::new(ImmediateTimer));
    rule(fixture).now_or_never().expect("the directory answers at once");
}

directory_conformance!(run);
