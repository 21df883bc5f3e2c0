//! Watching an actor of another node while connections break, nodes die, and the watcher itself loses its session.

use std::pin::pin;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago::{Termination, Watch};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Faults, Simulation, World};
use futures_util::future::{Either, select};

/// Node 0 hosts the counters, node 1 only knows them.
fn host_and_guest(seed: u64) -> Simulation {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.idle_after = Millis(3_600_000);
    let host = Simulation::new(seed).nodes(1, &settings, |node| node.actor::<Counter>());
    host.nodes(1, &settings, |node| node.remote_actor::<Counter>())
}

fn tick(world: &World, index: usize) -> impl Future<Output = Result<u32, CallError>> {
    let counter = world.node(index).expect("the node is up").actor::<Counter>("a");
    from_outside(|| counter.send(Tick))
}

/// Wakes the counter and watches it from the guest.
async fn watched(world: &World) -> Watch {
    world.advance(Duration::from_secs(3)).await;
    tick(world, 1).await.expect("the host serves it");
    let guest = world.node(1).expect("the node is up");
    guest.actor::<Counter>("a").watch().await.expect("it is watched")
}

/// What the watch tells within so many seconds, or the watch.
async fn within(world: &World, seconds: u64, watch: Watch) -> Result<Termination, Watch> {
    match select(watch, pin!(world.advance(Duration::from_secs(seconds)))).await {
        Either::Left((how, _)) => Ok(how),
        Either::Right(((), watch)) => Err(watch),
    }
}

#[test]
fn a_watch_outlives_the_connection_it_was_asked_for_over() {
    for seed in 1..=5 {
        let run = host_and_guest(seed).run(async |world| {
            let watch = watched(&world).await;
            world.reset_connections(0);
            world.partition(0, 1);
            world.advance(Duration::from_millis(1_200)).await;
            world.heal(0, 1);
            let Err(watch) = within(&world, 10, watch).await else { return (None, false) };
            // Whoever is asked over the new connection has not ended meanwhile.
            let same = tick(&world, 1).await == Ok(2);
            world.node(0).expect("the node is up").actor::<Counter>("a").deactivate().expect("it is there");
            (within(&world, 10, watch).await.ok(), same)
        });
        let (how, same) = run.output;
        assert!(same, "seed {seed}: a broken connection is no end");
        let told = matches!(how, Some(Termination::Ended { reason: DeactivateReason::Requested, .. }));
        assert!(told, "seed {seed}: {how:?}");
    }
}

#[test]
fn an_end_while_the_connection_is_broken_is_told_once_it_is_back() {
    for seed in 1..=5 {
        let run = host_and_guest(seed).run(async |world| {
            let watch = watched(&world).await;
            world.partition(0, 1);
            world.advance(Duration::from_millis(200)).await;
            world.node(0).expect("the node is up").actor::<Counter>("a").deactivate().expect("it is there");
            world.advance(Duration::from_millis(1_500)).await;
            world.heal(0, 1);
            within(&world, 30, watch).await.ok()
        });
        assert!(run.output.is_some(), "seed {seed}: nobody was told");
    }
}

#[test]
fn a_watcher_that_loses_its_session_is_told_so_and_can_watch_again_when_it_is_back() {
    let run = host_and_guest(1).run(async |world| {
        let watch = watched(&world).await;
        let guest = world.node(1).expect("the node is up");
        let before = guest.id();
        // Nobody beats, so both lose their session; the watch belongs to the life that has ended.
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        let how = within(&world, 10, watch).await.ok();
        world.store_faults(Faults::default());
        world.advance(Duration::from_secs(60)).await;
        let again = watched(&world).await;
        world.node(0).expect("the node is up").actor::<Counter>("a").deactivate().expect("it is there");
        (how, before, within(&world, 10, again).await.ok(), guest.id())
    });
    let (how, before, again, now) = run.output;
    assert_eq!(how, Some(Termination::NodeGone { node: before }));
    assert_ne!(before, now);
    let told = matches!(again, Some(Termination::Ended { reason: DeactivateReason::Requested, .. }));
    assert!(told, "{again:?}");
}
