//! What a script can do to a world, with actors of a user.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallError, Event, Notice};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_sim::{Faults, Simulation, World};

#[remote(u32)]
struct Tick;

/// Counts for a while before it answers.
#[remote(u32)]
struct Ponder {
    millis: u64,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Tick, Ponder))]
struct Counter {
    ticks: u32,
    pondered: Arc<AtomicU32>,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Handler<Tick> for Counter {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.ticks += 1;
        self.ticks
    }
}

impl Handler<Ponder> for Counter {
    type Result = ResponseFuture<u32>;

    fn handle(&mut self, Ponder { millis }: Ponder, _: &mut Context<Self>) -> ResponseFuture<u32> {
        let pondered = Arc::clone(&self.pondered);
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(millis)).await;
            pondered.fetch_add(1, Ordering::Relaxed) + 1
        })
    }
}

fn one_node(pondered: &Arc<AtomicU32>) -> Simulation {
    simulation(11, pondered)
}

fn simulation(seed: u64, pondered: &Arc<AtomicU32>) -> Simulation {
    let pondered = Arc::clone(pondered);
    Simulation::new(seed).node(move |builder| {
        let pondered = Arc::clone(&pondered);
        builder.actor_with(move |_, _| Counter { ticks: 0, pondered: Arc::clone(&pondered) })
    })
}

fn never_rejoining(pondered: &Arc<AtomicU32>) -> Simulation {
    let pondered = Arc::clone(pondered);
    Simulation::new(11).node(move |builder| {
        let (mut settings, pondered) = (NodeSettings::default(), Arc::clone(&pondered));
        settings.session_rejoin = false;
        builder
            .settings(settings)
            .actor_with(move |_, _| Counter { ticks: 0, pondered: Arc::clone(&pondered) })
    })
}

fn counter(world: &World) -> ActorRef<Counter> {
    world.node(0).expect("the node is up").actor("one")
}

#[test]
fn time_passes_only_when_nothing_is_left_to_do() {
    let run = one_node(&Arc::default()).run(async |world| {
        let asked = world.now();
        let answer = counter(&world).send(Ponder { millis: 2_000 }).await;
        (answer, world.now() - asked)
    });
    assert_eq!(run.output, (Ok(1), Duration::from_secs(2)));
}

#[test]
fn a_crash_drops_the_detached_handlers_too() {
    let pondered = Arc::default();
    let run = one_node(&pondered).run(async |world| {
        let call = counter(&world).send(Ponder { millis: 500 });
        world.advance(Duration::from_millis(100)).await;
        world.crash(0).await;
        let answer = call.await;
        world.restart(0).await.unwrap();
        (answer, counter(&world).send(Tick).await)
    });
    assert_eq!(run.output, (Err(CallError::Stopped), Ok(1)));
    assert_eq!(pondered.load(Ordering::Relaxed), 0);
}

#[test]
fn a_short_pause_only_delays() {
    let run = one_node(&Arc::default()).run(async |world| {
        world.pause(0, Duration::from_secs(1));
        let asked = world.now();
        (counter(&world).send(Tick).await, world.now() - asked)
    });
    assert_eq!(run.output, (Ok(1), Duration::from_secs(1)));
}

/// Proves: R475
#[test]
fn a_node_paused_for_longer_than_its_session_handles_nothing_afterwards() {
    let pondered = Arc::default();
    let run = never_rejoining(&pondered).run(async |world| {
        let old = world.node(0).expect("the node is up");
        let before = old.actor::<Counter>("one").send(Tick).await;
        let running = old.actor::<Counter>("one").send(Ponder { millis: 3_000 });
        let waiting = old.actor::<Counter>("one").send(Tick);
        world.advance(Duration::from_millis(50)).await;
        world.pause(0, Duration::from_secs(30));
        let taken_over = world.restart(0).await.unwrap();
        let after = taken_over.actor::<Counter>("one").send(Tick).await;
        world.advance(Duration::from_secs(60)).await;
        let refused = old.actor::<Counter>("one").tell(Tick).is_err();
        (before, after, running.await, waiting.await.is_err_and(|error| error.is_not_started()), refused)
    });
    assert_eq!(run.output, (Ok(1), Ok(1), Err(CallError::Stopped), true, true));
    assert_eq!(pondered.load(Ordering::Relaxed), 0, "the handler under way was cancelled");
}

#[test]
fn a_store_that_is_away_for_longer_than_the_session_ends_the_node_until_it_is_back() {
    let run = one_node(&Arc::default()).run(async |world| {
        let (node, one) = (world.node(0).unwrap(), counter(&world));
        let before = node.id();
        one.send(Tick).await.unwrap();
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        world.advance(Duration::from_secs(2)).await;
        let soon = one.send(Tick).await;
        world.advance(Duration::from_secs(60)).await;
        let late = one.send(Tick).await;
        let late = late.is_err_and(|error| error.is_not_started()) && one.tell(Tick).is_err();
        world.store_faults(Faults::default());
        // The longest pause, and until the old session is known to have ended.
        world.advance(Duration::from_secs(40)).await;
        (soon, late, one.send(Tick).await, node.id() != before)
    });
    assert_eq!(run.output, (Ok(2), true, Ok(1), true), "it comes back with nothing left of the first life");
}

#[test]
fn a_node_that_may_not_rejoin_stays_down() {
    let run = never_rejoining(&Arc::default()).run(async |world| {
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        world.advance(Duration::from_secs(10)).await;
        world.store_faults(Faults::default());
        world.advance(Duration::from_secs(600)).await;
        let node = world.node(0).unwrap();
        (counter(&world).send(Tick).await.is_err(), node.session_lost().await.is_empty())
    });
    assert_eq!(run.output, (true, false));
}

/// Loses the session of node 0, and has the store back right after.
async fn lose_the_session(world: &World) {
    world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
    world.advance(Duration::from_secs(7)).await;
    world.store_faults(Faults::default());
}

#[test]
fn a_crashed_node_does_not_rejoin() {
    let run = one_node(&Arc::default()).run(async |world| {
        let (node, one) = (world.node(0).unwrap(), counter(&world));
        lose_the_session(&world).await;
        world.crash(0).await;
        let id = node.id();
        world.advance(Duration::from_secs(600)).await;
        (one.send(Tick).await.is_err(), node.id() == id)
    });
    assert_eq!(run.output, (true, true));
}

#[test]
fn a_stop_ends_a_node_in_every_phase_of_its_return() {
    let (mut gap, mut back) = (0, 0);
    for millis in (0..12_000).step_by(90) {
        let run = one_node(&Arc::default()).run(async |world| {
            let (node, one) = (world.node(0).unwrap(), counter(&world));
            let first = node.id();
            world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
            world.advance(Duration::from_secs(4)).await;
            world.store_faults(Faults { unavailable: 1_000, max_delay: Millis(400), ..Faults::default() });
            world.advance(Duration::from_secs(3)).await;
            world.store_faults(Faults { max_delay: Millis(400), ..Faults::default() });
            world.advance(Duration::from_millis(millis)).await;
            let stopped = node.stop().await;
            let (returned, last) = (node.id() != first, node.id());
            world.advance(Duration::from_secs(120)).await;
            let quiet = world.is_quiet(0);
            (stopped, one.send(Tick).await.is_err(), node.id() == last, quiet, returned)
        });
        let (stopped, refused, same, quiet, returned) = run.output;
        assert_eq!((stopped, refused, same, quiet), (Ok(()), true, true, true), "after {millis} ms");
        *(if returned { &mut back } else { &mut gap }) += 1;
    }
    assert!(gap > 5 && back > 5, "{gap} stops came in the gap, {back} after it");
}

#[test]
fn a_node_comes_back_as_often_as_it_loses_its_session_and_refs_stay_good() {
    let run = one_node(&Arc::default()).run(async |world| {
        let (node, one) = (world.node(0).unwrap(), counter(&world));
        let mut events = node.events().subscribe();
        let mut ids = vec![node.id()];
        for _ in 0..3 {
            assert_eq!(one.send(Tick).await, Ok(1), "a life begins with nothing");
            lose_the_session(&world).await;
            world.advance(Duration::from_secs(60)).await;
            ids.push(node.id());
        }
        let mut told = Vec::new();
        while let Some(Notice::Event(event)) = events.try_next() {
            match event {
                Event::SessionLost { node, .. } => told.push((node, None)),
                Event::Rejoined { before, now } => told.push((before, Some(now))),
                _ => {}
            }
        }
        (ids, told)
    });
    let (ids, told) = run.output;
    let expected: Vec<_> =
        ids.windows(2).flat_map(|pair| [(pair[0], None), (pair[0], Some(pair[1]))]).collect();
    assert_eq!(told, expected);
    assert_eq!(ids.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
}

#[test]
fn lost_replies_do_not_end_a_session() {
    let run = one_node(&Arc::default()).run(async |world| {
        world.store_faults(Faults { lost_reply: 200, late: 100, max_delay: Millis(30), ..Faults::default() });
        world.advance(Duration::from_secs(600)).await;
        counter(&world).send(Tick).await
    });
    assert_eq!(run.output, Ok(1));
}

/// A node whose start fails must not keep a session that was opened without a reply: what it owns nobody would ever get.
#[test]
fn a_start_that_fails_leaves_nothing_behind() {
    let mut failures = 0;
    for seed in 1..=60 {
        let run = simulation(seed, &Arc::default()).run(async |world| {
            world.stop(0).await.unwrap();
            world.store_faults(Faults { lost_reply: 900, max_delay: Millis(400), ..Faults::default() });
            let failed = world.restart(0).await;
            world.store_faults(Faults::default());
            if failed.is_err() {
                world.advance(Duration::from_secs(20)).await;
                world.restart(0).await.unwrap();
            }
            (failed.err(), counter(&world).send(Tick).await)
        });
        let (failed, served) = run.output;
        assert!(failed.is_none() || served == Ok(1), "seed {seed}: after {failed:?} there is {served:?}");
        failures += usize::from(failed.is_some());
    }
    assert!(failures > 0, "no start failed");
}

#[test]
fn a_bent_clock_bends_the_deadlines() {
    let timeout = CallOptions::new().timeout(Duration::from_secs(10));
    let run = one_node(&Arc::default()).run(async |world| {
        world.skew(0, -20_000);
        let asked = world.now();
        let answer = counter(&world).send_with(Ponder { millis: 20_000 }, timeout).await;
        (answer, (world.now() - asked).as_millis())
    });
    let (answer, took) = run.output;
    assert_eq!(answer, Err(CallError::Timeout { started: true }));
    assert!((10_200..10_230).contains(&took), "{took} ms for ten seconds on a clock that is 2 % slow");
}

/// A machine that was stopped as a whole, its clock with it, must not serve by what it knew before.
#[test]
fn a_wall_clock_that_ran_ahead_stops_the_node_until_its_next_beat() {
    let run = one_node(&Arc::default()).run(async |world| {
        let (node, one) = (world.node(0).unwrap(), counter(&world));
        let id = node.id();
        one.send(Tick).await.unwrap();
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        world.advance(Duration::from_millis(1_500)).await;
        let before = node.serving_for() > Millis::ZERO;
        world.set_wall_forward(0, Duration::from_secs(60));
        world.advance(Duration::from_millis(1_100)).await;
        let doubted = node.serving_for() == Millis::ZERO && one.send(Tick).await.is_err();
        world.store_faults(Faults::default());
        world.advance(Duration::from_millis(1_000)).await;
        (before, doubted, one.send(Tick).await, node.id() == id)
    });
    assert_eq!(run.output, (true, true, Ok(2), true), "the session and its actors live on");
}
