//! Scenarios that take hours of an actor's life and milliseconds of ours.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_sim::{Simulation, World};

#[remote(u32)]
struct Greet;

thread_local! {
    /// What the actor of this test has gone through; a simulation has one thread.
    static STORY: Rc<RefCell<Vec<String>>> = Rc::default();
}

fn note(what: impl Into<String>) {
    STORY.with(|story| story.borrow_mut().push(what.into()));
}

fn story() -> Vec<String> {
    STORY.with(|story| story.borrow().clone())
}

/// Saves what it has counted when it goes, and finds it again when it comes back.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Greet), lifecycle)]
struct Charlie {
    greeted: u32,
}

thread_local! {
    static SAVED: RefCell<u32> = const { RefCell::new(0) };
}

impl Actor for Charlie {
    type Context = Context<Self>;
}

impl Lifecycle for Charlie {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        actix::clock::sleep(Duration::from_millis(5)).await;
        self.greeted = SAVED.with_borrow(|saved| *saved);
        note(format!("{} comes", here.id()));
        Ok(())
    }

    fn on_deactivate(&mut self, reason: DeactivateReason) -> ResponseFuture<()> {
        let greeted = self.greeted;
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(5)).await;
            SAVED.set(greeted);
            note(format!("goes: {reason:?}"));
        })
    }
}

impl Handler<Greet> for Charlie {
    type Result = u32;

    fn handle(&mut self, _: Greet, _: &mut Context<Self>) -> u32 {
        self.greeted += 1;
        self.greeted
    }
}

fn charlie(world: &World) -> ActorRef<Charlie> {
    world.node(0).expect("the node is up").actor("charlie")
}

/// Proves: R314, R315, R316, R320, R437, R313
#[test]
fn an_actor_goes_after_ten_minutes_saves_first_and_finds_its_state_again() {
    let run = Simulation::new(3).node(|builder| builder.actor::<Charlie>()).run(async |world| {
        let mut answers = vec![charlie(&world).send(Greet).await];
        world.advance(Duration::from_secs(599)).await;
        let before = story();
        world.advance(Duration::from_secs(2)).await;
        let after = story();
        answers.push(charlie(&world).send(Greet).await);
        (answers, before, after)
    });
    let (answers, before, after) = run.output;
    assert_eq!(before, ["default::Charlie/charlie comes"], "nobody goes before ten minutes");
    assert_eq!(after, ["default::Charlie/charlie comes", "goes: Idle"]);
    assert_eq!(answers, [Ok(1), Ok(2)], "the second activation went on from what the first had saved");
}

/// Proves: R126, R484
#[test]
fn all_time_randomness_and_spawning_of_a_node_come_from_its_environment() {
    let life = |seed| {
        SAVED.set(0);
        let run = Simulation::new(seed).node(|builder| builder.actor::<Charlie>()).run(async |world| {
            for _ in 0..20 {
                let key = format!("c{}", world.below(5));
                let actor = world.node(0).expect("the node is up").actor::<Charlie>(key);
                world.record(
                    "greeted",
                    u64::from(actor.send(Greet).await.unwrap_or(0)),
                    world.now().as_nanos() as u64,
                );
                world.advance(Duration::from_secs(world.below(400))).await;
            }
            world.node(0).expect("the node is up").id()
        });
        (run.hash, run.output)
    };
    assert_eq!(life(7), life(7), "anything that escaped the environment would differ");
    assert_ne!(life(7), life(8));
}
