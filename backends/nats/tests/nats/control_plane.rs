//! The rules of control plane, routing tables, states and homes on a real NATS server.

use std::future::Future;

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::homes_rules::HomesFixture;
use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::state_store_rules::StateStoreFixture;
use archipelago_backend_conformance::{
    control_plane_conformance, homes_conformance, routing_table_conformance, state_store_conformance,
};

use crate::rig;

fn control_plane<F: Future<Output = ()>>(rule: impl FnOnce(ControlPlaneFixture) -> F) {
    rig::with_store(async |store| {
        rule(ControlPlaneFixture::new(store, rig::RealTimer::start())).await;
    });
}

fn routing_table<F: Future<Output = ()>>(rule: impl FnOnce(RoutingTableFixture) -> F) {
    rig::with_store(async |store| {
        rule(RoutingTableFixture::new(store, rig::RealTimer::start())).await;
    });
}

fn state_store<F: Future<Output = ()>>(rule: impl FnOnce(StateStoreFixture) -> F) {
    rig::with_store(async |store| {
        rule(StateStoreFixture::new(store)).await;
    });
}

fn homes<F: Future<Output = ()>>(rule: impl FnOnce(HomesFixture) -> F) {
    rig::with_store(async |store| {
        rule(HomesFixture::new(store)).await;
    });
}

control_plane_conformance!(control_plane);
routing_table_conformance!(routing_table);
state_store_conformance!(state_store);
homes_conformance!(homes);
