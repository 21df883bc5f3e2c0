//! One storm: everything that can happen to nodes that hold ranges, to their ways and to their store, and then peace.

use std::time::Duration;

use archipelago::prelude::*;
use archipelago::{ChangeRefusal, RangeError};
use archipelago_backend_conformance::Faults;
use archipelago_protocol::time::Millis;
use archipelago_runtime::env::from_outside;
use archipelago_sim::{World, sometimes};
use futures_util::future::join_all;

use super::pages::{Book, KEYS, Page, Put, met, node, put, table, three};

/// What was written, and the hash of the run.
pub(super) fn storm(seed: u64) -> (Book, u64) {
    let book = Book::default();
    let run = three(seed, &["m"], &book).run(async |world| {
        met(&world).await;
        for round in 0..ROUNDS {
            blow(&world).await;
            write_everywhere(&world, round).await;
        }
        peace(&world).await;
        all_is_served(&world, seed).await;
    });
    (book, run.hash)
}

/// Something happens, and a little time passes.
async fn blow(world: &World) {
    let index = usize::try_from(world.below(NODES as u64)).unwrap();
    match world.below(18) {
        0 | 1 if world.node(index).is_some() => {
            sometimes!(PLACES, "node crashed in a storm");
            world.crash(index).await;
        }
        0..=3 if world.node(index).is_none() => {
            sometimes!(PLACES, "node came back in a storm");
            drop(world.restart_at_once(index).await);
        }
        4 | 5 => world.store_faults(Faults {
            unavailable: 50,
            lost_reply: 100,
            late: 150,
            max_delay: Millis(world.below(200)),
            ..Faults::default()
        }),
        6 => world.store_faults(Faults::default()),
        7..=11 => change(world, index),
        12 => world.partition(index, (index + 1) % NODES),
        13 => world.partition_one_way(index, (index + 1) % NODES),
        14 => world.heal(index, (index + 1) % NODES),
        // At times for longer than its session lasts.
        15 => world.pause(index, Duration::from_millis(world.below(6_000))),
        _ => world.advance(Duration::from_secs(2)).await,
    }
    world.advance(Duration::from_millis(world.below(200))).await;
}

/// Somebody asks for another table, and does not wait for it.
fn change(world: &World, index: usize) {
    let Some(node) = world.node(index) else { return };
    let at = ["b", "e", "h", "m", "q", "t", "x"][usize::try_from(world.below(7)).unwrap()];
    let to = world.node(usize::try_from(world.below(NODES as u64)).unwrap()).map(|node| node.id());
    let wish = world.below(4);
    world.spawn(async move {
        // Under such conditions nobody promises that it is done.
        match (wish, to) {
            (0 | 1, _) if node.split_range("Page", at).await.is_ok() => {
                sometimes!(PLACES, "range split in a storm");
            }
            (2, Some(to)) if node.move_range("Page", at, to).await.is_ok() => {
                sometimes!(PLACES, "range moved in a storm");
            }
            (3, _) if node.merge_range("Page", at).await.is_ok() => {
                sometimes!(PLACES, "range merged in a storm");
            }
            _ => {}
        }
    });
}

/// Every node that is up writes to every page; whether that succeeds is not asked.
async fn write_everywhere(world: &World, number: u32) {
    let up = (0..NODES).filter_map(|index| world.node(index));
    let calls = up.flat_map(|node| {
        let from = node.id().as_u64();
        KEYS.map(|key| {
            let options = CallOptions::new().timeout(Duration::from_millis(400));
            from_outside(|| node.actor::<Page>(key).send_with(Put { from, number }, options))
        })
    });
    drop(join_all(calls.collect::<Vec<_>>()).await);
}

/// Nothing fails any more, every node is up, and there is time to come to rest.
async fn peace(world: &World) {
    world.store_faults(Faults::default());
    world.advance(Duration::from_secs(6)).await;
    for index in 0..NODES {
        world.heal(index, (index + 1) % NODES);
        if world.node(index).is_none() {
            world.restart_at_once(index).await.expect("it comes back");
        }
    }
    world.advance(Duration::from_secs(60)).await;
}

/// Every node reaches every page, and somebody decides about ranges.
async fn all_is_served(world: &World, seed: u64) {
    for index in 0..NODES {
        for key in KEYS {
            let answer = put(world, index, key, 1_000).await;
            assert!(answer.is_ok(), "seed {seed}: {key} from {index}: {answer:?}");
        }
    }
    let entries = table(world, 0).table.entries().to_vec();
    assert!(entries.iter().all(|entry| entry.parents.is_empty()), "seed {seed}: {entries:?}");
    for index in 0..NODES {
        match node(world, index).split_range("Page", "k").await {
            Ok(_) | Err(RangeError::Refused(ChangeRefusal::NotInside)) => {}
            Err(error) => panic!("seed {seed}: nobody decides, says {index}: {error}"),
        }
    }
}

/// What must have happened in some storm.
pub(super) const PLACES: [&str; 5] = [
    "node came back in a storm",
    "node crashed in a storm",
    "range merged in a storm",
    "range moved in a storm",
    "range split in a storm",
];

const NODES: usize = 3;
const ROUNDS: u32 = 60;
