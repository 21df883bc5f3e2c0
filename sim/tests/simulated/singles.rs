//! Actors that have records of their own, step by step: first messages, races, ends, crashes, and what senders remember.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Counter, Tick};
use archipelago::prelude::*;
use archipelago::{KindLayout, Sharding};
use archipelago_backend_conformance::Faults;
use archipelago_protocol::placement::{ChooseNode, Local, Random};
use archipelago_protocol::time::Millis;
use archipelago_runtime::NodeSettings;
use archipelago_sim::{Simulation, World};
use futures_util::future::join_all;

fn settings(placement: Arc<dyn ChooseNode>) -> NodeSettings {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    settings.session_ttl = Millis(3_000);
    settings.idle_after = Millis(2_000);
    settings.placement = placement;
    settings
}

/// Three nodes that host counters, each of which has a record of its own.
fn three(settings: &NodeSettings) -> Simulation {
    Simulation::new(11).nodes(3, settings, |node| {
        node.shard(Sharding::new(|_, _| Counter::default()).divided(KindLayout::Actor))
    })
}

fn node(world: &World, index: usize) -> Node {
    world.node(index).expect("the node is up")
}

async fn tick(world: &World, index: usize, key: &str) -> Result<u32, CallError> {
    let counter = node(world, index).actor::<Counter>(key);
    let options = CallOptions::new().timeout(Duration::from_secs(8));
    archipelago_runtime::env::from_outside(|| counter.send_with(Tick, options)).await
}

/// Where a node remembers a counter to live, by the place of that node in the world.
async fn known_at(world: &World, index: usize, key: &str) -> Option<usize> {
    let known = node(world, index).cached_placement("Counter", key).await?;
    (0..3).find(|one| world.node(*one).is_some_and(|node| node.id() == known.node))
}

async fn met(world: &World) {
    world.advance(Duration::from_secs(6)).await;
}

/// Proves: R204, R206, R207, R209, R237, R240
#[test]
fn a_first_message_places_an_actor_and_every_node_reaches_it_by_what_it_remembers() {
    three(&settings(Arc::new(Local))).run(async |world| {
        met(&world).await;
        assert_eq!(known_at(&world, 1, "one").await, None, "nothing is known of what is not placed");
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        assert_eq!(tick(&world, 2, "one").await, Ok(3));
        assert_eq!(known_at(&world, 1, "one").await, Some(0));
        assert_eq!(known_at(&world, 2, "one").await, Some(0));
        assert_eq!(known_at(&world, 0, "one").await, None, "what is here needs no remembering");
        assert_eq!(tick(&world, 1, "two").await, Ok(1), "another actor lives elsewhere");
        assert_eq!(known_at(&world, 0, "two").await, None);
        assert_eq!(tick(&world, 0, "two").await, Ok(2));
        assert_eq!(known_at(&world, 0, "two").await, Some(1));
    });
}

/// All nodes send to the same new actors at once, and each would place them somewhere else.
///
/// Proves: R205, R220, R221, R232, R238, R241, R242
#[test]
fn of_claims_at_once_one_is_placed_and_all_messages_reach_it() {
    three(&settings(Arc::new(Random))).run(async |world| {
        met(&world).await;
        for key in 0..20 {
            let key = key.to_string();
            let calls = (0..3).flat_map(|index| [tick(&world, index, &key), tick(&world, index, &key)]);
            let mut counts: Vec<u32> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
            counts.sort_unstable();
            assert_eq!(counts, [1, 2, 3, 4, 5, 6], "one activation has counted them all");
        }
    });
}

fn decided(world: &World) -> [u64; 3] {
    ["placed", "already_placed", "raced"].map(|decision| {
        let label = ("decision", decision);
        (0..3).map(|index| world.labelled(index, "archipelago_placements_total", label)).sum()
    })
}

/// Proves: C9
#[test]
fn a_place_taken_found_and_lost_to_another_is_each_counted() {
    three(&settings(Arc::new(Local))).run(async |world| {
        met(&world).await;
        assert_eq!(decided(&world), [0, 0, 0]);
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(decided(&world), [1, 0, 0], "nobody had it");
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        assert_eq!(decided(&world), [1, 1, 0], "it was there when node 1 looked");
        assert_eq!(tick(&world, 1, "one").await, Ok(3));
        assert_eq!(decided(&world), [1, 1, 0], "node 1 remembers it");
        // Now all look at about the same time, and each would have it for itself.
        world.store_faults(Faults { max_delay: Millis(5), ..Faults::default() });
        for key in 0..10 {
            let key = key.to_string();
            let calls = join_all((0..3).map(|index| tick(&world, index, &key))).await;
            assert!(calls.iter().all(Result::is_ok), "{calls:?}");
        }
        let [placed, already_placed, raced] = decided(&world);
        assert_eq!(
            (placed, already_placed + raced),
            (11, 21),
            "two of three came too late, one way or the other"
        );
        assert!(raced > 0, "it came between somebody's look and claim");
    });
}

/// Proves: R210, R215, R216, R226
#[test]
fn an_idle_actor_gives_its_record_up_and_a_sender_that_remembers_it_finds_the_next_one() {
    three(&settings(Arc::new(Local))).run(async |world| {
        met(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(known_at(&world, 1, "one").await, Some(0), "nobody has told it");
        assert_eq!(tick(&world, 2, "one").await, Ok(1), "it begins anew where it is asked for first");
        assert_eq!(tick(&world, 1, "one").await, Ok(2), "and the detour ends there, too");
        assert_eq!(known_at(&world, 1, "one").await, Some(2));
        assert_eq!(tick(&world, 0, "one").await, Ok(3));
    });
}

/// Proves: R217
#[test]
fn a_node_that_follows_the_records_knows_of_a_change_before_it_sends() {
    let mut settings = settings(Arc::new(Local));
    settings.placement_cache.watch = true;
    three(&settings).run(async |world| {
        met(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        assert_eq!(known_at(&world, 1, "one").await, Some(0));
        world.advance(Duration::from_secs(5)).await;
        assert_eq!(known_at(&world, 1, "one").await, None, "the actor has ended, and its record with it");
    });
}

#[test]
fn places_that_are_not_used_are_forgotten() {
    let mut settings = settings(Arc::new(Local));
    settings.idle_after = Millis::MAX;
    settings.placement_cache.limits.idle = Millis(3_000);
    three(&settings).run(async |world| {
        met(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        for count in 3..8 {
            world.advance(Duration::from_secs(1)).await;
            assert_eq!(tick(&world, 1, "one").await, Ok(count));
            assert_eq!(known_at(&world, 1, "one").await, Some(0), "it is in use");
        }
        world.advance(Duration::from_secs(6)).await;
        assert_eq!(known_at(&world, 1, "one").await, None);
        assert_eq!(tick(&world, 1, "one").await, Ok(8), "the same activation is found again");
    });
}

#[test]
fn no_more_places_are_remembered_than_the_bound_allows() {
    let mut settings = settings(Arc::new(Local));
    settings.idle_after = Millis::MAX;
    settings.placement_cache.limits.entries = 4;
    three(&settings).run(async |world| {
        met(&world).await;
        let keys: Vec<String> = (0..40).map(|key| key.to_string()).collect();
        for key in &keys {
            assert_eq!(tick(&world, 0, key).await, Ok(1));
        }
        for round in 2..5 {
            for key in &keys {
                assert_eq!(tick(&world, 1, key).await, Ok(round), "no place is lost for good");
            }
        }
        world.advance(Duration::from_secs(5)).await;
        let known = join_all(keys.iter().map(|key| known_at(&world, 1, key))).await;
        let known = known.into_iter().flatten().count();
        assert!((1..=4).contains(&known), "{known} places are remembered");
    });
}

/// Proves: R233, R234
#[test]
fn the_actors_of_a_crashed_node_are_placed_again_by_their_next_message() {
    three(&settings(Arc::new(Local))).run(async |world| {
        met(&world).await;
        for key in ["one", "two", "three"] {
            assert_eq!(tick(&world, 0, key).await, Ok(1));
            assert_eq!(tick(&world, 1, key).await, Ok(2));
        }
        world.crash(0).await;
        let crashed = world.now();
        // The call by which the loss is noticed is lost with the node, and its caller is told so.
        assert!(!tick(&world, 1, "one").await.unwrap_err().is_not_started());
        assert_eq!(tick(&world, 1, "one").await, Ok(1), "it begins anew");
        assert!(world.now() - crashed >= Duration::from_secs(2), "not before the session has ended");
        assert_eq!(tick(&world, 2, "one").await, Ok(2));
        assert_eq!(tick(&world, 2, "two").await, Ok(1));
        assert_eq!(tick(&world, 1, "three").await, Ok(1));
    });
}

/// Proves: R234
#[test]
fn a_node_that_leaves_gives_its_actors_up_and_no_call_fails() {
    let mut settings = settings(Arc::new(Local));
    settings.idle_after = Millis::MAX;
    three(&settings).run(async |world| {
        met(&world).await;
        let keys: Vec<String> = (0..10).map(|key| key.to_string()).collect();
        for key in &keys {
            assert_eq!(tick(&world, 0, key).await, Ok(1));
            assert_eq!(tick(&world, 1, key).await, Ok(2));
        }
        let stopping = world.clone();
        world.spawn(async move { drop(stopping.stop(0).await) });
        for round in 1..40 {
            world.advance(Duration::from_millis(25)).await;
            for key in &keys {
                assert!(tick(&world, 1, key).await.is_ok(), "round {round}");
            }
        }
        assert_eq!(known_at(&world, 2, "0").await, None);
    });
}

/// Proves: R214
#[test]
fn without_the_store_known_actors_answer_and_new_ones_wait() {
    three(&settings(Arc::new(Local))).run(async |world| {
        met(&world).await;
        assert_eq!(tick(&world, 0, "one").await, Ok(1));
        assert_eq!(tick(&world, 1, "one").await, Ok(2));
        world.store_faults(Faults { unavailable: 1_000, ..Faults::default() });
        assert_eq!(tick(&world, 1, "one").await, Ok(3));
        assert_eq!(tick(&world, 0, "one").await, Ok(4));
        let new = node(&world, 1).actor::<Counter>("two");
        let options = CallOptions::new().timeout(Duration::from_millis(500));
        let call = archipelago_runtime::env::from_outside(|| new.send_with(Tick, options));
        assert_eq!(call.await, Err(CallError::Timeout { started: false }), "nobody can be given it");
        world.store_faults(Faults::default());
        assert_eq!(tick(&world, 1, "two").await, Ok(1));
    });
}
