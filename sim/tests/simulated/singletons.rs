//! Actors of which a cluster has one, in virtual time: on which node they come to life.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago_protocol::identity::{Kind, NodeId, OwnedKey};
use archipelago_protocol::placement::Local;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeBuilder, NodeSettings};
use archipelago_sim::{Simulation, World};

fn of(version: &str) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.placement = Arc::new(Local);
    version.clone_into(&mut settings.version);
    settings
}

fn hosting(node: NodeBuilder) -> NodeBuilder {
    node.singleton::<Counter>()
}

fn id(world: &World, index: usize) -> NodeId {
    world.node(index).expect("the node is up").id()
}

async fn owner(world: &World) -> Option<NodeId> {
    world.owner_of(0, &OwnedKey::shard(Kind::new("Counter").expect("a kind"), 0)).await
}

/// While a cluster is upgraded node by node, whoever looks first.
///
/// Proves: R301
#[test]
fn a_singleton_whose_node_dies_comes_to_life_on_a_node_of_the_newest_version() {
    for seed in 1..=8 {
        let old = || of("1.9.0");
        let world = Simulation::new(seed).nodes(4, &old(), hosting).nodes(1, &of("1.10.0"), hosting);
        world.run(async |world| {
            world.advance(Duration::from_secs(10)).await;
            let (first, newest) = (id(&world, 0), id(&world, 4));
            if owner(&world).await != Some(first) {
                let moved = world.node(4).expect("the node is up").move_shard("Counter", 0, first).await;
                assert!(moved.is_ok(), "seed {seed}: {moved:?}");
            }
            assert_eq!(owner(&world).await, Some(first), "seed {seed}");
            world.crash(0).await;
            world.advance(Duration::from_secs(15)).await;
            assert_eq!(owner(&world).await, Some(newest), "seed {seed}");
            let one = world.node(1).expect("the node is up").singleton::<Counter>();
            assert_eq!(from_outside(|| one.send(Tick)).await, Ok(1), "seed {seed}: it lives");
        });
    }
}
