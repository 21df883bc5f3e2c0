//! What happens to a node whose threads are blocked when its session is over.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{CallError, Event, Notice};
use archipelago_protocol::session::{OnStuck, STUCK_GRACE, times};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::ArbiterRole;
use archipelago_sim::{Faults, Simulation, World};

#[remote(u32)]
struct Tick;

/// What the actors of a test have done.
#[derive(Clone, Default)]
struct Story {
    made: Arc<AtomicU32>,
    begun: Arc<AtomicU32>,
    /// How long `on_activate` takes, in milliseconds.
    slow: Arc<AtomicU64>,
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Tick), lifecycle)]
struct Counter {
    ticks: u32,
    story: Story,
}

impl Actor for Counter {
    type Context = Context<Self>;

    fn started(&mut self, _: &mut Context<Self>) {
        self.story.begun.fetch_add(1, Ordering::Relaxed);
    }
}

impl Lifecycle for Counter {
    async fn on_activate(&mut self, _: Activation) -> Result<(), BoxError> {
        actix::clock::sleep(Duration::from_millis(self.story.slow.load(Ordering::Relaxed))).await;
        Ok(())
    }
}

impl Handler<Tick> for Counter {
    type Result = u32;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u32 {
        self.ticks += 1;
        self.ticks
    }
}

fn one_node(on_stuck: OnStuck, story: &Story) -> Simulation {
    let story = story.clone();
    Simulation::new(5).node(move |builder| {
        let (mut settings, story) = (NodeSettings::default(), story.clone());
        settings.fence_on_stuck = on_stuck;
        settings.data_arbiters = Some(2);
        builder.settings(settings).actor_with(move |_, _| {
            story.made.fetch_add(1, Ordering::Relaxed);
            Counter { ticks: 0, story: story.clone() }
        })
    })
}

fn unreachable() -> Faults {
    Faults { unavailable: 1_000, ..Faults::default() }
}

/// How long after the node could last beat it is gone, at most.
fn longest() -> Duration {
    (times::fence_at(Millis::ZERO, times::DEFAULT_TTL) + STUCK_GRACE + Millis(10)).to_duration()
}

/// Waits until the node has ended its process; how long that took.
async fn time_to_abort(world: &World) -> Option<Duration> {
    let since = world.now();
    while world.now() - since < Duration::from_secs(60) {
        if world.has_aborted(0) {
            return Some(world.now() - since);
        }
        world.advance(Duration::from_millis(10)).await;
    }
    None
}

#[test]
fn a_blocked_arbiter_aborts_the_process_before_others_may_take_over() {
    let run = one_node(OnStuck::Abort, &Story::default()).run(async |world| {
        world.store_faults(unreachable());
        world.block_arbiter(0, ArbiterRole::Data(1), true);
        let took = time_to_abort(&world).await;
        world.crash(0).await;
        world.store_faults(Faults::default());
        world.restart(0).await.unwrap();
        let back = world.node(0).unwrap().actor::<Counter>("a").send(Tick).await;
        (took, back)
    });
    let took = run.output.0.expect("it has aborted");
    assert!(took <= longest() && took < times::observer_wait(times::DEFAULT_TTL).to_duration(), "{took:?}");
    assert_eq!(run.output.1, Ok(1), "the process may start again");
}

#[test]
fn a_blocked_control_arbiter_does_not_keep_the_guard_from_its_work() {
    let run = one_node(OnStuck::Abort, &Story::default()).run(async |world| {
        world.block_arbiter(0, ArbiterRole::Control, true);
        world.block_arbiter(0, ArbiterRole::Data(0), true);
        time_to_abort(&world).await
    });
    let took = run.output.expect("it has aborted");
    assert!(took <= longest(), "{took:?}");
}

#[test]
fn a_blocked_control_arbiter_alone_aborts_nothing() {
    let run = one_node(OnStuck::Abort, &Story::default()).run(async |world| {
        world.block_arbiter(0, ArbiterRole::Control, true);
        let took = time_to_abort(&world).await;
        world.block_arbiter(0, ArbiterRole::Control, false);
        world.advance(Duration::from_secs(60)).await;
        (took, world.node(0).unwrap().actor::<Counter>("a").send(Tick).await)
    });
    assert_eq!(run.output, (None, Ok(1)), "sleeping arbiters were woken, ended by themselves, and came back");
}

#[test]
fn a_node_that_stood_still_does_not_take_its_own_threads_for_blocked() {
    let run = one_node(OnStuck::Abort, &Story::default()).run(async |world| {
        world.pause(0, Duration::from_secs(40));
        let took = time_to_abort(&world).await;
        world.advance(Duration::from_secs(60)).await;
        (took, world.node(0).unwrap().actor::<Counter>("a").send(Tick).await)
    });
    assert_eq!(run.output, (None, Ok(1)));
}

#[test]
fn a_report_is_published_and_the_node_comes_back_when_the_handler_returns() {
    let run = one_node(OnStuck::Report, &Story::default()).run(async |world| {
        let node = world.node(0).unwrap();
        let (before, mut events) = (node.id(), node.events().subscribe());
        world.store_faults(unreachable());
        world.block_arbiter(0, ArbiterRole::Data(1), true);
        assert_eq!(time_to_abort(&world).await, None);
        world.store_faults(Faults::default());
        world.advance(Duration::from_secs(60)).await;
        assert_eq!(node.id(), before, "no second life beside the first");
        world.block_arbiter(0, ArbiterRole::Data(1), false);
        world.advance(Duration::from_secs(60)).await;
        let stuck = Notice::Event(Event::ArbitersStuck { node: before, arbiters: 1 });
        let said = std::iter::from_fn(|| events.try_next()).filter(|notice| *notice == stuck).count();
        (said, node.id() != before, node.actor::<Counter>("a").send(Tick).await)
    });
    assert_eq!(run.output, (1, true, Ok(1)));
}

/// The gate is looked at again after each wait between a claim and an activation.
#[test]
fn an_activation_that_waits_past_its_session_does_not_begin() {
    let story = Story::default();
    let told = story.clone();
    let run = one_node(OnStuck::Report, &story).run(async move |world| {
        let node = world.node(0).unwrap();
        let actor = node.actor::<Counter>("a");
        actor.send(Tick).await.unwrap();
        actor.deactivate().unwrap();
        world.advance(Duration::from_millis(100)).await;
        // Nobody is there to shut the gate: only the clock says that it is shut.
        world.block_arbiter(0, ArbiterRole::Control, true);
        let serves = node.serving_for() + Millis(200);
        told.slow.store(serves.0, Ordering::Relaxed);
        let slow =
            actor.send_with(Tick, archipelago::CallOptions::new().timeout(Duration::from_secs(60))).await;
        let late = actor.send(Tick).await;
        (slow, late)
    });
    let not_serving = Err(CallError::NotServing { reason: "its session is not live".into() });
    assert_eq!(run.output, (not_serving.clone(), not_serving));
    assert_eq!(story.made.load(Ordering::Relaxed), 2, "the third was not even made");
    assert_eq!(story.begun.load(Ordering::Relaxed), 1, "the second did not begin");
}
