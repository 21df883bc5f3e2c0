//! What nodes say about their load, and where new work goes by it.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago::{KindLayout, Sharding};
use archipelago_protocol::membership::NodeLoad;
use archipelago_protocol::placement::{LeastLoaded, Local};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Simulation, World};

/// Answers with the node that it runs on, after a while.
#[remote(u64)]
struct Where {
    millis: u64,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Where))]
struct Guest(u64);

impl Actor for Guest {
    type Context = Context<Self>;
}

impl Handler<Where> for Guest {
    type Result = ResponseFuture<u64>;

    fn handle(&mut self, Where { millis }: Where, _: &mut Context<Self>) -> ResponseFuture<u64> {
        let here = self.0;
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            here
        })
    }
}

/// Three nodes. Counters live where they are first asked for, guests where there is least to do; nobody moves, nobody leaves.
fn three() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(2);
    settings.idle_after = Millis::MAX;
    Simulation::new(3).nodes(3, &settings, |node| {
        let counters = Sharding::new(|_, _| Counter::default());
        let guests = Sharding::new(|_, node: &Node| Guest(node.id().as_u64()));
        node.shard(counters.divided(KindLayout::Actor).placement(Arc::new(Local)))
            .shard(guests.divided(KindLayout::Actor).placement(Arc::new(LeastLoaded)))
    })
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

/// Has `count` counters come to life on a node.
async fn settle(world: &World, index: usize, count: usize) {
    for number in 0..count {
        let counter = node(world, index).actor::<Counter>(format!("{index}-{number}-{count}"));
        assert_eq!(from_outside(|| counter.send(Tick)).await, Ok(1));
    }
}

/// Where a new guest comes to live that a node asks for.
async fn guest(world: &World, asker: usize, key: &str) -> Option<usize> {
    let guest = node(world, asker).actor::<Guest>(key);
    let at = from_outside(|| guest.send(Where { millis: 0 })).await.expect("it answers");
    (0..3).find(|index| node(world, *index).id().as_u64() == at)
}

/// Long enough for every node to measure its load and for all to hear of it.
async fn told(world: &World) {
    world.advance(Duration::from_secs(12)).await;
}

/// Proves: R239
#[test]
fn the_next_actor_comes_to_the_node_with_the_least_load_whoever_asks() {
    three().run(async |world| {
        told(&world).await;
        settle(&world, 0, 60).await;
        settle(&world, 1, 30).await;
        told(&world).await;
        for number in 0..12 {
            let asker = number % 3;
            assert_eq!(guest(&world, asker, &format!("first {number}")).await, Some(2), "asked by {asker}");
        }
        settle(&world, 2, 90).await;
        told(&world).await;
        for number in 0..12 {
            let asker = number % 3;
            assert_eq!(guest(&world, asker, &format!("then {number}")).await, Some(1), "asked by {asker}");
        }
    });
}

/// What the others were last told about a node.
fn load(world: &World, of: usize) -> Vec<NodeLoad> {
    let id = node(world, of).id();
    let others = (0..3).filter(|index| *index != of);
    let told = others.filter_map(|index| {
        let members = node(world, index).members();
        members.iter().find(|member| member.info.id == id)?.load
    });
    told.collect()
}

#[test]
fn all_are_told_how_many_messages_wait_on_a_node() {
    three().run(async |world| {
        told(&world).await;
        let busy = node(&world, 0).actor::<Guest>("busy");
        let at = guest(&world, 0, "busy").await.expect("it lives somewhere");
        for _ in 0..8 {
            let told = from_outside(|| busy.tell(Where { millis: 20_000 }));
            assert_eq!(told, Ok(()));
        }
        told(&world).await;
        // One of the eight has begun.
        let loads = load(&world, at);
        assert_eq!(
            loads.iter().map(|load| (load.activations, load.waiting)).collect::<Vec<_>>(),
            [(1, 7); 2]
        );
        world.advance(Duration::from_secs(180)).await;
        let loads = load(&world, at);
        assert_eq!(
            loads.iter().map(|load| (load.activations, load.waiting)).collect::<Vec<_>>(),
            [(1, 0); 2]
        );
    });
}
