//! A modest sweep of several datacenters under load, and the same seed twice.

use std::time::Duration;

use archipelago_sim::Workload;

#[test]
fn several_datacenters_hold_every_promise() {
    crate::common::holds(Workload::Datacenters, 60, LENGTH);
}

#[test]
fn the_same_seed_gives_the_same_run_of_several_datacenters() {
    crate::common::repeats(Workload::Datacenters, &[1, 2, 3], LENGTH);
}

const LENGTH: Duration = Duration::from_secs(20);
