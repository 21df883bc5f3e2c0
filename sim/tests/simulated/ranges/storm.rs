//! Splits, merges and moves, crashes and restarts, ways that are cut, nodes that stand still, and a store that loses answers and
//! carries writes out late, all at once; then peace.

use archipelago_backend_conformance::Faults;
use archipelago_sim::for_each_seed;

use super::*;

/// Proves: R337
#[test]
fn whatever_fails_no_actor_is_active_twice_and_all_are_served_again() {
    for_each_seed(1..=SEEDS, |seed| one_at_a_time(&storm(seed).0));
}

/// Those who wait for a range are woken in the same order each time, and so go on in the same order.
#[test]
fn the_same_storm_comes_twice() {
    for seed in 1..=3 {
        let ((first, hash), (second, again)) = (storm(seed), storm(seed));
        let written = |book: &Book| format!("{:?}", book.lock().unwrap());
        assert_eq!((written(&first), hash), (written(&second), again), "seed {seed}");
    }
}

/// What was written, and the hash of the run.
fn storm(seed: u64) -> (Book, u64) {
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
        0 | 1 if world.node(index).is_some() => world.crash(index).await,
        0..=3 if world.node(index).is_none() => drop(world.restart_at_once(index).await),
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
        drop(match (wish, to) {
            (0 | 1, _) => node.split_range("Page", at).await,
            (2, Some(to)) => node.move_range("Page", at, to).await,
            _ => node.merge_range("Page", at).await,
        });
    });
}

/// Every node that is up writes to every page; whether that succeeds is not asked.
async fn write_everywhere(world: &World, number: u32) {
    let up = (0..NODES).filter_map(|index| Some((u32::try_from(index).ok()?, world.node(index)?)));
    let calls = up.flat_map(|(from, node)| {
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

const NODES: usize = 3;
const ROUNDS: u32 = 60;
const SEEDS: u64 = 200;
