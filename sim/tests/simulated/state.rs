//! States of actors where nodes come to grief: what was acknowledged is there, and whoever is late changes nothing.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use archipelago::prelude::*;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_sim::{Faults, Simulation, World};

/// Adds one, waits, saves, and answers with the count once it is kept.
#[remote(Result<u64, String>)]
struct Count {
    wait_ms: u64,
}

/// Answers with the count.
#[remote(u64)]
struct Read;

/// What became of every save, also if nobody could be told.
#[derive(Clone, Default)]
struct Saves(Arc<Mutex<Vec<Result<u64, String>>>>);

#[cfg(feature = "mutants")]
impl Saves {
    fn all(&self) -> Vec<Result<u64, String>> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

#[derive(VirtualActor)]
#[virtual_actor(handles(Count, Read), persistent, lifecycle)]
struct Counter {
    count: u64,
    saves: Saves,
    here: Option<Activation>,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Persistent for Counter {
    type State = u64;

    fn state(&self) -> Option<u64> {
        Some(self.count)
    }

    fn restore(&mut self, count: u64) {
        self.count = count;
    }
}

impl Lifecycle for Counter {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        self.here = Some(here);
        Ok(())
    }
}

impl Handler<Count> for Counter {
    type Result = ResponseFuture<Result<u64, String>>;

    fn handle(&mut self, Count { wait_ms }: Count, _: &mut Context<Self>) -> Self::Result {
        self.count += 1;
        let (saving, count, saves) =
            (self.here.as_ref().map(|here| here.save(self)), self.count, self.saves.clone());
        Box::pin(async move {
            actix::clock::sleep(Duration::from_millis(wait_ms)).await;
            let saving = saving.ok_or("not activated")?;
            let saved = saving.await.map(|()| count).map_err(|error| error.to_string());
            saves.0.lock().expect("nobody panics with it").push(saved.clone());
            saved
        })
    }
}

impl Handler<Read> for Counter {
    type Result = u64;

    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> u64 {
        self.count
    }
}

fn simulation(seed: u64, saves: &Saves) -> Simulation {
    let saves = saves.clone();
    Simulation::new(seed).node(move |builder| {
        let (saves, mut settings) = (saves.clone(), NodeSettings::default());
        settings.idle_after = Millis(60_000);
        builder.settings(settings).actor_with(move |_, _| Counter {
            count: 0,
            saves: saves.clone(),
            here: None,
        })
    })
}

fn counter(world: &World) -> ActorRef<Counter> {
    world.node(0).expect("the node is up").actor("one")
}

const COUNT: Count = Count { wait_ms: 0 };

/// Proves: R311, R313, R493
#[test]
fn an_acknowledged_save_is_there_after_idleness_a_crash_and_a_lost_session() {
    let run = simulation(3, &Saves::default()).run(async |world| {
        let mut seen = vec![counter(&world).send(COUNT).await];
        world.advance(Duration::from_secs(130)).await;
        seen.push(counter(&world).send(COUNT).await);
        world.crash(0).await;
        world.restart(0).await.expect("starts");
        seen.push(counter(&world).send(COUNT).await);
        let before = world.node(0).expect("is up").id();
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        world.advance(Duration::from_secs(30)).await;
        world.store_faults(Faults::default());
        world.advance(Duration::from_secs(60)).await;
        assert_ne!(world.node(0).expect("is up").id(), before, "the session was lost");
        seen.push(counter(&world).send(COUNT).await);
        seen
    });
    assert_eq!(run.output, [Ok(Ok(1)), Ok(Ok(2)), Ok(Ok(3)), Ok(Ok(4))]);
}

#[test]
fn what_was_not_saved_is_lost_with_a_crash() {
    let run = simulation(4, &Saves::default()).run(async |world| {
        counter(&world).send(COUNT).await.expect("answers").expect("saves");
        // Counted, and not saved yet.
        let unsaved = counter(&world).send(Count { wait_ms: 3_600_000 });
        world.advance(Duration::from_millis(100)).await;
        world.crash(0).await;
        drop(unsaved);
        world.restart(0).await.expect("starts");
        counter(&world).send(Read).await
    });
    assert_eq!(run.output, Ok(1));
}

/// A save that its sender was told nothing about reaches the store long after the next owner has loaded.
///
/// Proves: R493
#[test]
fn a_save_that_arrives_after_the_next_owner_has_loaded_changes_nothing() {
    let mut unknown = 0;
    for seed in 0..20 {
        let run = simulation(seed, &Saves::default()).run(async |world| {
            counter(&world).send(COUNT).await.expect("answers").expect("saves");
            world.store_faults(Faults { late: 1_000, ..Faults::default() });
            let doubtful = counter(&world).send(COUNT).await;
            world.crash(0).await;
            world.store_faults(Faults::default());
            world.restart(0).await.expect("starts");
            let found = counter(&world).send(Read).await.expect("answers");
            // Whatever is still on its way comes through by then.
            world.advance(Duration::from_secs(200)).await;
            world.crash(0).await;
            world.restart(0).await.expect("starts");
            (doubtful, found, counter(&world).send(Read).await)
        });
        let (doubtful, found, later) = run.output;
        unknown += u32::from(matches!(doubtful, Ok(Err(_))));
        assert!((1..=2).contains(&found), "seed {seed}: {found}");
        assert_eq!(later, Ok(found), "seed {seed}: nothing lands after the load");
    }
    assert!(unknown > 10, "the saves were not doubtful");
}

/// A node that does not know that it is dead, and whose own fence is broken, is refused by the store.
///
/// Proves: R493
#[cfg(feature = "mutants")]
#[test]
fn a_fenced_node_that_saves_late_is_refused() {
    use archipelago_runtime::{Mutant, set_mutant};
    let saves = Saves::default();
    set_mutant(Some(Mutant::NoFence));
    let run = simulation(5, &saves).run(async |world| {
        counter(&world).send(COUNT).await.expect("answers").expect("saves");
        let late = counter(&world).send(Count { wait_ms: 5_000 });
        world.advance(Duration::from_millis(100)).await;
        world.pause(0, Duration::from_secs(60));
        world.restart(0).await.expect("starts");
        let taken_over = counter(&world).send(Read).await;
        world.advance(Duration::from_secs(120)).await;
        drop(late);
        (taken_over, counter(&world).send(Read).await)
    });
    set_mutant(None);
    assert_eq!(run.output, (Ok(1), Ok(1)));
    let late = saves.all().pop();
    let refused =
        matches!(&late, Some(Err(why)) if why.starts_with("the actor has been loaded under generation"));
    assert!(refused, "{late:?}");
}
