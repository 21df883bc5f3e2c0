//! The rules of control plane and routing tables on a real NATS server.

use std::future::Future;

use archipelago_backend_conformance::control_plane_rules::ControlPlaneFixture;
use archipelago_backend_conformance::routing_table_rules::RoutingTableFixture;
use archipelago_backend_conformance::{control_plane_conformance, routing_table_conformance};

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

control_plane_conformance!(control_plane);
routing_table_conformance!(routing_table);
