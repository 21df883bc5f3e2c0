//! All suites on a real clock, with every request under way for some milliseconds, as engines behind a network have it:
//! no rule may depend on answers that come at once, or on time that passes by itself.

#![allow(clippy::unwrap_used)]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::directory_rules::Fixture;
use archipelago_backend_conformance::homes_rules::HomesFixture;
use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
use archipelago_backend_conformance::{
    Faults, FaultyStore, control_plane_conformance, directory_conformance, homes_conformance,
    routing_table_conformance, state_store_conformance, store_conformance,
};
use archipelago_directory::{Sleep, Store, Timer};
use archipelago_embedded::EmbeddedStore;
use archipelago_protocol::time::Millis;

fn store<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    block_on(rule(slow_store(RealTimer::start())));
}

store_conformance!(store, no_server);

fn directory<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
    let timer = RealTimer::start();
    block_on(rule(Fixture::new(slow_store(timer), Arc::new(timer))));
}

directory_conformance!(directory);

fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
    let timer = RealTimer::start();
    block_on(rule(RoutingTableFixture::new(slow_store(timer), Arc::new(timer))));
}

routing_table_conformance!(routing_table);

fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    let timer = RealTimer::start();
    block_on(rule(ControlPlaneFixture::new(slow_store(timer), Arc::new(timer))));
}

control_plane_conformance!(control_plane);

fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
    block_on(rule(StateStoreFixture::new(slow_store(RealTimer::start()))));
}

state_store_conformance!(state_store);

fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
    block_on(rule(HomesFixture::new(slow_store(RealTimer::start()))));
}

homes_conformance!(homes);

fn slow_store(timer: RealTimer) -> Arc<dyn Store> {
    let faults = Faults { max_delay: Millis(3), ..Faults::default() };
    Arc::new(FaultyStore::new(Arc::new(EmbeddedStore::default()), Arc::new(timer), 1, faults))
}

#[derive(Clone, Copy)]
struct RealTimer {
    start: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the clock of these tests is the real one")]
fn instant() -> Instant {
    Instant::now()
}

impl RealTimer {
    fn start() -> Self {
        Self { start: instant() }
    }
}

impl Timer for RealTimer {
    fn now(&self) -> Millis {
        Millis::from_duration(instant() - self.start)
    }

    fn sleep(&self, length: Millis) -> Sleep {
        let until = instant() + length.to_duration();
        Box::pin(std::future::poll_fn(
            move |_| if instant() >= until { Poll::Ready(()) } else { Poll::Pending },
        ))
    }
}

/// Looks again every half millisecond, so nobody needs to be woken.
fn block_on(rule: impl Future<Output = ()>) {
    let mut rule = pin!(rule);
    let deadline = instant() + Duration::from_secs(90);
    while rule.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
        assert!(instant() < deadline, "the rule waits for what never comes");
        std::thread::park_timeout(Duration::from_micros(500));
    }
}
