//! The routing table's rules on the embedded store.

use std::future::Future;
use std::sync::Arc;

use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::{ImmediateTimer, routing_table_conformance};
use archipelago_embedded::EmbeddedStore;
use futures_util::FutureExt;

/// The embedded store never makes anybody wait, so a rule that waits waits for what never comes.
fn run<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
    let fixture = RoutingTableFixture::new(Arc::new(EmbeddedStore::default()), Arc::new(ImmediateTimer));
    rule(fixture).now_or_never().expect("the tables answer at once");
}

routing_table_conformance!(run);
