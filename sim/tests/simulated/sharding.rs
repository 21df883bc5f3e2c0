//! Sharded kinds in virtual time: each with settings of its own, and routes that are known need nobody to ask.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago_protocol::placement::{Local, ShardCount};
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_runtime::{NodeSettings, Sharding};
use archipelago_sim::{Faults, Simulation, World};

/// Another kind of counter.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick))]
struct Lasting(u32);

impl Actor for Lasting {
    type Context = Context<Self>;
}

impl Handler<Tick> for Lasting {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.0 += 1;
        self.0
    }
}

fn two_hosts() -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.placement = Arc::new(Local);
    Simulation::new(3).nodes(2, &settings, |node| {
        let few = ShardCount::new(4).expect("four is a number of shards");
        let brief = Sharding::new(|_: &_, _: &_| Counter::default()).shards(few);
        node.shard(brief.passivate_after(Millis(60_000))).actor::<Lasting>()
    })
}

async fn tick<A>(world: &World, by: usize) -> Result<u32, CallError>
where
    A: VirtualActor,
    Tick: archipelago_runtime::AcceptedBy<A>,
{
    let actor = world.node(by).expect("the node is up").actor::<A>("one");
    let options = CallOptions::new().timeout(Duration::from_secs(3));
    from_outside(|| actor.send_with(Tick, options)).await
}

/// Proves: R434, R297
#[test]
fn each_kind_has_its_own_number_of_shards_and_its_own_idle_time() {
    two_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!((tick::<Counter>(&world, 0).await, tick::<Lasting>(&world, 0).await), (Ok(1), Ok(1)));
        world.advance(Duration::from_secs(50)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(2), "it was used and stays");
        world.advance(Duration::from_secs(50)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(3), "that was a minute ago, but not without use");
        world.advance(Duration::from_secs(62)).await;
        assert_eq!((tick::<Counter>(&world, 0).await, tick::<Lasting>(&world, 0).await), (Ok(1), Ok(2)));
        let node = world.node(0).expect("the node is up");
        let unknown = node.move_shard("Counter", 4, node.id()).await;
        assert!(unknown.is_err(), "this kind has four shards");
        let known = node.move_shard("Lasting", 255, node.id()).await;
        assert!(!matches!(&known, Err(CallError::UnknownKind { .. })), "and the other has 256: {known:?}");
    });
}

/// Proves: R291
#[test]
fn a_shard_whose_place_is_known_is_reached_without_asking_anybody() {
    two_hosts().run(async |world| {
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(tick::<Counter>(&world, 0).await, Ok(1));
        assert_eq!(tick::<Counter>(&world, 1).await, Ok(2), "now the other node knows the place as well");
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        for count in 3..=20 {
            assert_eq!(tick::<Counter>(&world, 1).await, Ok(count), "no store is asked");
        }
        world.store_faults(Faults::default());
    });
}
