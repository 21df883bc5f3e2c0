//! The rules of homes on the embedded store.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::homes_conformance;
use archipelago_backend_conformance::homes_rules::HomesFixture;
use archipelago_embedded::EmbeddedStore;
use futures_util::FutureExt;

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
    let fixture = HomesFixture::new(Arc::new(EmbeddedStore::default()));
    rule(fixture).now_or_never().expect("the store answers at once");
}

homes_conformance!(run);
