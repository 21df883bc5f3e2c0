//! The control plane's rules on the embedded store.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::{ImmediateTimer, control_plane_conformance};
use archipelago_embedded::EmbeddedStore;
use futures_util::FutureExt;

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    let fixture = ControlPlaneFixture::new(Arc::new(EmbeddedStore::default()), Arc::new(ImmediateTimer));
    rule(fixture).now_or_never().expect("the control plane answers at once");
}

control_plane_conformance!(run);
