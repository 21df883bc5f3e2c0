//! Nodes that come and go: what the others keep of those that are gone.

use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Simulation, World};

/// All host the counters, each at another address in each of its lives.
fn three(seed: u64) -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(2);
    settings.session_ttl = Millis(3_000);
    Simulation::new(seed).nodes(3, &settings, |node| node.actor::<Counter>())
}

/// Has both nodes that stay speak to actors everywhere.
async fn speak(world: &World) {
    for key in 0..24 {
        for from in 0..2 {
            let counter = world.node(from).expect("the node is up").actor::<Counter>(format!("k{key}"));
            let options = CallOptions::new().timeout(Duration::from_secs(20));
            let ticked = from_outside(|| counter.send_with(Tick, options)).await;
            assert!(ticked.is_ok(), "{ticked:?}");
        }
    }
}

fn lanes(world: &World) -> [usize; 2] {
    [0, 1].map(|index| world.gauge(index, "archipelago_lanes") as usize)
}

#[test]
fn links_to_nodes_that_are_gone_are_given_up() {
    for seed in 1..=3 {
        three(seed).run(async |world| {
            world.advance(Duration::from_secs(5)).await;
            for round in 0..6 {
                speak(&world).await;
                // To each of the two others: one between the control arbiters, and between the data arbiters at most four.
                let [low, high] = lanes(&world);
                assert!(
                    (4..=10).contains(&low) && (4..=10).contains(&high),
                    "seed {seed}, {round}: {low}, {high}"
                );
                if round % 2 == 0 {
                    world.crash(2).await;
                } else {
                    world.stop(2).await.expect("it has nothing to finish");
                }
                world.advance(Duration::from_secs(30)).await;
                let [low, high] = lanes(&world);
                assert!(low <= 5 && high <= 5, "seed {seed}, {round}: {low}, {high} lanes to one other node");
                world.restart_at_once(2).await.expect("it starts");
                world.advance(Duration::from_secs(5)).await;
            }
        });
    }
}
