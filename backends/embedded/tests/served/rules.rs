//! All suites, and the session protocol, over the wire.

use std::future::Future;
use std::sync::{Arc, Mutex};

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::directory_rules::Fixture;
use archipelago_backend_conformance::homes_rules::HomesFixture;
use archipelago_backend_conformance::restart_rules::{RestartFixture, Server};
use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
use archipelago_backend_conformance::{
    ImmediateTimer, Plan, World, control_plane_conformance, directory_conformance, homes_conformance,
    routing_table_conformance, state_store_conformance, store_conformance,
};
use archipelago_directory::Store;
use archipelago_protocol::time::Millis;
use async_trait::async_trait;

use crate::rig::{Rig, now};

/// The clock stands still, so a rule that waits for what never comes is seen to wait.
fn store<F: Future<Output = ()>>(rule: impl FnOnce(Arc<dyn Store>) -> F) {
    now(rule(Rig::new().remote));
}

fn restarting<F: Future<Output = ()>>(rule: impl FnOnce(RestartFixture) -> F) {
    let rig = Rig::new();
    let store = Arc::clone(&rig.remote);
    now(rule(RestartFixture::new(store, Arc::new(ImmediateTimer), Arc::new(Anew(Mutex::new(rig))))));
}

/// The process that serves the store dies, and another serves an empty one in its place.
struct Anew(Mutex<Rig>);

#[async_trait]
impl Server for Anew {
    async fn restart(&self) {
        let mut rig = self.0.lock().unwrap();
        rig.restart(2, Millis::ZERO);
        // The poll that was under way ends with the connection.
        rig.clock.advance(POLL);
    }

    fn forgets(&self) -> bool {
        true
    }
}

store_conformance!(store, restart: restarting);

fn directory<F: Future<Output = ()>>(rule: impl FnOnce(Fixture) -> F) {
    now(rule(Fixture::new(Rig::new().remote, Arc::new(ImmediateTimer))));
}

directory_conformance!(directory);

fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
    now(rule(RoutingTableFixture::new(Rig::new().remote, Arc::new(ImmediateTimer))));
}

routing_table_conformance!(routing_table);

fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    now(rule(ControlPlaneFixture::new(Rig::new().remote, Arc::new(ImmediateTimer))));
}

control_plane_conformance!(control_plane);

fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
    now(rule(StateStoreFixture::new(Rig::new().remote)));
}

state_store_conformance!(state_store);

fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
    now(rule(HomesFixture::new(Rig::new().remote)));
}

homes_conformance!(homes);

/// The worlds of the session protocol go the same way whether the store is in the process or served.
#[test]
fn sessions_are_as_safe_as_in_one_process() {
    for seed in 0..60 {
        let served = World::new(seed, Plan::draw(seed), Rig::above(0).remote).run();
        let local = World::new(seed, Plan::draw(seed), Rig::above(0).local).run();
        assert_eq!(served, local, "seed {seed}");
    }
}

/// How long a poll without changes waits.
const POLL: Millis = Millis(2_000);
