//! State goes along with a shard that moves, and an actor whose state does not starts without it; nothing else is lost.
#![expect(clippy::disallowed_methods, reason = "a user's actors sleep as actix lets them")]

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use archipelago::handoff::{HandOffOutcome, RefuseReason, StayReason};
use archipelago::prelude::*;
use archipelago::{Event, Notice, Subscription};
use archipelago_protocol::placement::Local;
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{Simulation, World};
use futures_util::FutureExt;
use serde::{Deserialize, Serialize};

// ---- the actors ----

/// Counts one more, and answers with the count.
#[remote(u64)]
struct Tick;

/// Writes down what it has counted, in the way of `keep` and `save`.
#[remote]
struct Keep;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    DehydratePanics,
    RehydratePanics,
    Unreadable,
    /// What goes along is so many bytes longer.
    Long(usize),
    /// The farewell takes longer than a drain may.
    LongFarewell,
}

thread_local! {
    /// What goes wrong; a simulation has one thread.
    static TROUBLE: Cell<Trouble> = const { Cell::new(Trouble::None) };
    /// How many activations are to fail after they have saved.
    static FAILURES: Cell<u32> = const { Cell::new(0) };
}

/// Counts in memory, and takes the count along.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick), migrate, lifecycle)]
struct Traveller {
    count: u64,
}

/// What it takes along.
#[derive(Deserialize)]
struct Luggage {
    count: u64,
    #[serde(default)]
    _padding: String,
}

impl Serialize for Luggage {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Plain {
            count: u64,
            _padding: String,
        }
        match TROUBLE.get() {
            Trouble::Unreadable => to.serialize_str("nothing that it can read"),
            Trouble::Long(length) => Plain { count: self.count, _padding: "x".repeat(length) }.serialize(to),
            _ => Plain { count: self.count, _padding: String::new() }.serialize(to),
        }
    }
}

impl Actor for Traveller {
    type Context = Context<Self>;
}

impl Lifecycle for Traveller {
    fn on_deactivate(&mut self, _: DeactivateReason) -> ResponseFuture<()> {
        let long = TROUBLE.get() == Trouble::LongFarewell;
        Box::pin(async move {
            if long {
                actix::clock::sleep(Duration::from_secs(3)).await;
            }
        })
    }
}

impl Migrate for Traveller {
    type Carried = Luggage;

    fn dehydrate(&mut self) -> Option<Luggage> {
        assert!(TROUBLE.get() != Trouble::DehydratePanics, "as asked");
        Some(Luggage { count: self.count, _padding: String::new() })
    }

    fn rehydrate(&mut self, luggage: Luggage) {
        self.count = luggage.count;
        assert!(TROUBLE.get() != Trouble::RehydratePanics, "as asked");
    }
}

impl Handler<Tick> for Traveller {
    type Result = u64;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u64 {
        self.count += 1;
        self.count
    }
}

/// Stores the count only when it is told to, and takes all of it along.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Tick, Keep), persistent, migrate, lifecycle)]
struct Clerk {
    count: u64,
    kept: u64,
    restored: u64,
}

impl Actor for Clerk {
    type Context = Context<Self>;
}

impl Persistent for Clerk {
    type State = u64;

    fn state(&self) -> Option<u64> {
        Some(self.kept)
    }

    fn restore(&mut self, kept: u64) {
        (self.count, self.kept, self.restored) = (kept, kept, kept);
    }
}

impl Migrate for Clerk {
    type Carried = u64;

    fn dehydrate(&mut self) -> Option<u64> {
        Some(self.count)
    }

    fn rehydrate(&mut self, count: u64) {
        assert_eq!(self.restored, self.kept, "what is stored comes first");
        self.count = count;
    }
}

impl Lifecycle for Clerk {
    async fn on_activate(&mut self, here: Activation) -> Result<(), BoxError> {
        if FAILURES.get() > 0 {
            FAILURES.set(FAILURES.get() - 1);
            self.kept = self.count + 100;
            here.save(self).await?;
            return Err("as asked".into());
        }
        Ok(())
    }
}

impl Handler<Tick> for Clerk {
    type Result = u64;

    fn handle(&mut self, _: Tick, _: &mut Context<Self>) -> u64 {
        self.count += 1;
        self.count
    }
}

impl Handler<Keep> for Clerk {
    type Result = ();

    fn handle(&mut self, _: Keep, _: &mut Context<Self>) {
        self.kept = self.count;
    }
}

// ---- the world ----

/// Three nodes that all host them; whoever asks first owns them.
fn three_hosts(seed: u64) -> Simulation {
    Simulation::new(seed).nodes(3, &settings(), |node| node.actor::<Traveller>().actor::<Clerk>())
}

fn settings() -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.placement = Arc::new(Local);
    settings.idle_after = Millis(60_000);
    settings
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn tick(world: &World, by: usize) -> u64 {
    tick_of(world, by, "one").await
}

async fn tick_of(world: &World, by: usize, key: &str) -> u64 {
    let options = CallOptions::new().timeout(Duration::from_secs(10));
    let traveller = node(world, by).actor::<Traveller>(key);
    from_outside(|| traveller.send_with(Tick, options)).await.expect("every call is answered")
}

async fn move_to(world: &World, kind: &str, to: usize) -> HandOffOutcome {
    let by = node(world, 2);
    let id = by.actor_ref(kind, "one").id().expect("the key is one").stable_hash();
    let shard = u32::try_from(id % 256).expect("a shard is a small number");
    by.move_shard(kind, shard, node(world, to).id()).await.expect("the owner can be asked")
}

async fn moves_to(world: &World, kind: &str, to: usize) {
    let mut outcome = move_to(world, kind, to).await;
    // The new owner writes its record once more before it serves.
    while let HandOffOutcome::Refused(RefuseReason::WrongGeneration | RefuseReason::NotServing) = outcome {
        world.advance(Duration::from_millis(10)).await;
        outcome = move_to(world, kind, to).await;
    }
    assert!(matches!(outcome, HandOffOutcome::Moved(_)), "{outcome:?}");
}

/// What has happened so far.
fn seen(events: &mut Subscription) -> Vec<Event> {
    let mut seen = Vec::new();
    while let Some(Some(notice)) = events.next().now_or_never() {
        if let Notice::Event(event) = notice {
            seen.push(event);
        }
    }
    seen
}

/// Runs a script after the nodes have met, in which this goes wrong.
fn run<T>(seed: u64, trouble: Trouble, script: impl AsyncFnOnce(World) -> T) -> T {
    TROUBLE.set(trouble);
    let run = three_hosts(seed).run(async |world| {
        world.advance(Duration::from_secs(30)).await;
        script(world).await
    });
    TROUBLE.set(Trouble::None);
    run.output
}

// ---- what goes along ----

#[test]
fn state_goes_along_there_and_back_and_without_a_message_in_between() {
    run(1, Trouble::None, async |world| {
        for count in 1..=3 {
            assert_eq!(tick(&world, 0).await, count);
        }
        moves_to(&world, "Traveller", 1).await;
        assert_eq!(tick(&world, 0).await, 4, "the new activation goes on from what the last one had");
        moves_to(&world, "Traveller", 0).await;
        assert_eq!(tick(&world, 1).await, 5);
        moves_to(&world, "Traveller", 1).await;
        moves_to(&world, "Traveller", 2).await;
        moves_to(&world, "Traveller", 0).await;
        assert_eq!(tick(&world, 1).await, 6, "what nobody has asked for goes on as well");
    });
}

#[test]
fn a_node_that_stops_hands_its_shards_over_with_their_state() {
    run(2, Trouble::None, async |world| {
        for count in 1..=3 {
            assert_eq!(tick(&world, 0).await, count);
        }
        world.stop(0).await.expect("nothing is wrong");
        assert_eq!(tick(&world, 1).await, 4);
    });
}

#[test]
fn two_nodes_that_stop_at_once_both_hand_all_their_shards_over_with_their_state() {
    for seed in 1..=4 {
        let mut settings = settings();
        settings.sharding.rebalance = false;
        let world = Simulation::new(seed).nodes(4, &settings, |node| node.actor::<Traveller>());
        world.run(async |world| {
            world.advance(Duration::from_secs(30)).await;
            let key = |number: usize| format!("traveller-{number}");
            for number in 0..24 {
                assert_eq!(tick_of(&world, number % 2, &key(number)).await, 1);
            }
            let (first, second) = futures_util::future::join(world.stop(0), world.stop(1)).await;
            first.and(second).expect("nothing is wrong");
            for number in 0..24 {
                assert_eq!(tick_of(&world, 2, &key(number)).await, 2, "seed {seed}, number {number}");
            }
        });
    }
}

#[test]
fn state_in_several_parts_arrives_whole() {
    run(3, Trouble::Long(3 << 20), async |world| {
        assert_eq!(tick(&world, 0).await, 1);
        moves_to(&world, "Traveller", 1).await;
        assert_eq!(tick(&world, 0).await, 2);
    });
}

#[test]
fn a_shard_that_stays_gives_its_actors_their_state_back() {
    run(4, Trouble::LongFarewell, async |world| {
        assert_eq!(tick(&world, 0).await, 1);
        let outcome = move_to(&world, "Traveller", 1).await;
        assert_eq!(outcome, HandOffOutcome::Stays(StayReason::DrainTooLong));
        assert_eq!(tick(&world, 1).await, 2, "the next activation on the same node has it");
    });
}

// ---- what does not ----

#[test]
fn an_actor_whose_state_cannot_be_taken_or_given_starts_without_it_and_says_so() {
    for (trouble, at, word) in [
        (Trouble::DehydratePanics, 0, "dehydrate() panicked"),
        (Trouble::RehydratePanics, 1, "rehydrate() panicked"),
        (Trouble::Unreadable, 1, "the state cannot be read"),
    ] {
        run(5, trouble, async |world| {
            assert_eq!((tick(&world, 0).await, tick(&world, 0).await), (1, 2));
            let mut events = node(&world, at).events().subscribe();
            moves_to(&world, "Traveller", 1).await;
            assert_eq!(tick(&world, 0).await, 1, "{word}: it begins anew, with nothing of the last one");
            assert_eq!(tick(&world, 0).await, 2, "{word}: and is served");
            let told = seen(&mut events).into_iter().any(|event| match event {
                Event::StateNotCarried { actor, reason } => {
                    actor.ends_with("/one") && reason.starts_with(word)
                }
                _ => false,
            });
            assert!(told, "{word}");
        });
    }
}

#[test]
fn more_state_than_may_go_along_stays_behind_and_the_shard_moves() {
    run(6, Trouble::Long(65 << 20), async |world| {
        assert_eq!((tick(&world, 0).await, tick(&world, 0).await), (1, 2));
        let mut events = node(&world, 0).events().subscribe();
        moves_to(&world, "Traveller", 1).await;
        assert_eq!(tick(&world, 0).await, 1);
        assert!(seen(&mut events).iter().any(|event| matches!(event, Event::ShardMovesCold { .. })));
    });
}

#[test]
fn state_that_nobody_asks_for_is_forgotten_like_an_idle_actor() {
    run(7, Trouble::None, async |world| {
        assert_eq!(tick(&world, 0).await, 1);
        moves_to(&world, "Traveller", 1).await;
        world.advance(Duration::from_secs(59)).await;
        assert_eq!(tick(&world, 0).await, 2);
        moves_to(&world, "Traveller", 2).await;
        world.advance(Duration::from_secs(62)).await;
        assert_eq!(tick(&world, 0).await, 1);
    });
}

#[test]
fn state_dies_with_the_node_that_has_it() {
    run(8, Trouble::None, async |world| {
        assert_eq!(tick(&world, 0).await, 1);
        moves_to(&world, "Traveller", 1).await;
        world.crash(1).await;
        world.advance(Duration::from_secs(30)).await;
        assert_eq!(tick(&world, 0).await, 1);
    });
}

// ---- beside what is stored ----

async fn clerk_ticks(world: &World, by: usize) -> Result<u64, CallError> {
    let options = CallOptions::new().timeout(Duration::from_secs(10));
    let clerk = node(world, by).actor::<Clerk>("one");
    from_outside(|| clerk.send_with(Tick, options)).await
}

#[test]
fn what_goes_along_wins_over_what_is_stored_and_a_crash_leaves_what_is_stored() {
    run(9, Trouble::None, async |world| {
        assert_eq!(clerk_ticks(&world, 0).await, Ok(1));
        let clerk = node(&world, 0).actor::<Clerk>("one");
        from_outside(|| clerk.send(Keep)).await.expect("every call is answered");
        assert_eq!(clerk_ticks(&world, 0).await, Ok(2));
        moves_to(&world, "Clerk", 1).await;
        assert_eq!(clerk_ticks(&world, 0).await, Ok(3), "1 is stored, 2 came along");
        world.crash(1).await;
        world.advance(Duration::from_secs(30)).await;
        assert_eq!(clerk_ticks(&world, 0).await, Ok(2), "what was kept is there");
    });
}

#[test]
fn what_the_new_owner_has_stored_wins_over_what_came_along() {
    run(10, Trouble::None, async |world| {
        assert_eq!(clerk_ticks(&world, 0).await, Ok(1));
        moves_to(&world, "Clerk", 1).await;
        FAILURES.set(1);
        let failed = clerk_ticks(&world, 0).await;
        assert!(matches!(failed, Err(CallError::ActivationFailed { .. })), "{failed:?}");
        assert_eq!(clerk_ticks(&world, 0).await, Ok(102), "the first activation had saved 101");
    });
}
