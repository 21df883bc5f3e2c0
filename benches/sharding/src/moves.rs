//! What callers notice of a shard that moves, and how long a cluster takes to find its balance after a join.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use archipelago::handoff::HandOffOutcome;
use archipelago::prelude::*;
use futures_util::StreamExt;
use hdrhistogram::Histogram;

use crate::cluster::Cluster;
use crate::node::{Target, Where};
use crate::told::{Moves, now};

/// The longest pause that any caller saw, move by move, in milliseconds.
pub(crate) struct Pauses {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
    pub(crate) failed: u64,
    pub(crate) moves: usize,
}

/// Moves one shard so many times, under the load of callers of its actors.
pub(crate) async fn pauses(moves: usize) -> Pauses {
    let cluster = Cluster::start(3, 256, false).await;
    let keys = keys_of_shard(&cluster.node, 7, 256, CALLERS);
    let slowest = Rc::new(Cell::new(Duration::ZERO));
    let (failed, over) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(false)));
    let answered: Rc<Vec<Cell<u64>>> = Rc::new(keys.iter().map(|_| Cell::new(0)).collect());
    let callers: Vec<_> = keys
        .into_iter()
        .enumerate()
        .map(|(caller, key)| {
            let target = cluster.node.actor::<Target>(key);
            let (slowest, failed, over) = (Rc::clone(&slowest), Rc::clone(&failed), Rc::clone(&over));
            let answered = Rc::clone(&answered);
            actix::spawn(async move {
                while !over.get() {
                    let begun = Instant::now();
                    failed.set(failed.get() + u64::from(target.send(Where).await.is_err()));
                    slowest.set(slowest.get().max(begun.elapsed()));
                    answered[caller].set(answered[caller].get() + 1);
                }
            })
        })
        .collect();
    actix::clock::sleep(Duration::from_secs(1)).await;
    let mut waits = Histogram::<u64>::new_with_bounds(1, 60_000_000, 3).expect("the bounds fit");
    let mut moved = 0;
    for turn in 0..moves {
        let to = cluster.hosts[turn % cluster.hosts.len()].id;
        slowest.set(Duration::ZERO);
        let outcome = cluster.node.move_shard("Target", 7, to).await;
        all_go_on(&answered).await;
        if let Ok(HandOffOutcome::Moved(_)) = outcome {
            moved += 1;
            waits.saturating_record(u64::try_from(slowest.get().as_micros()).unwrap_or(u64::MAX));
        }
    }
    over.set(true);
    for caller in callers {
        caller.await.expect("a caller ends");
    }
    cluster.stop().await;
    let millis = |micros: u64| micros as f64 / 1_000.0;
    Pauses {
        p50: millis(waits.value_at_quantile(0.5)),
        p99: millis(waits.value_at_quantile(0.99)),
        most: millis(waits.max()),
        failed: failed.get(),
        moves: moved,
    }
}

/// Waits until every caller has had the answer to what it had asked before, and one more.
async fn all_go_on(answered: &[Cell<u64>]) {
    let before: Vec<u64> = answered.iter().map(Cell::get).collect();
    while answered.iter().zip(&before).any(|(now, before)| now.get() < before + 2) {
        actix::clock::sleep(Duration::from_millis(1)).await;
    }
}

/// What became of a cluster of four after a fifth host has joined.
pub(crate) struct Balance {
    /// How long it took, from when the host was up.
    pub(crate) took: Duration,
    /// How many shards the fullest host has more than the emptiest.
    pub(crate) spread: usize,
    /// What moved meanwhile.
    pub(crate) moves: Moves,
}

/// Lets a fifth host join a cluster of four and waits until all have as many shards.
pub(crate) async fn balance(shards: u16) -> Balance {
    let mut cluster = Cluster::start(4, shards, true).await;
    let keys: Vec<String> =
        (0..shards).flat_map(|shard| keys_of_shard(&cluster.node, shard, shards, 1)).collect();
    settled(&cluster.node, &keys, 4, Duration::from_secs(120)).await;
    let since = now();
    cluster.add().await;
    let begun = Instant::now();
    let spread = settled(&cluster.node, &keys, 5, Duration::from_secs(60)).await;
    let took = begun.elapsed();
    let moves = Moves::of(cluster.hosts.iter().map(|host| &host.told), since, ROUND);
    cluster.stop().await;
    Balance { took, spread, moves }
}

/// Waits until so many hosts have as many shards each, give or take one; how much they differ then.
async fn settled(node: &Node, keys: &[String], hosts: usize, limit: Duration) -> usize {
    let begun = Instant::now();
    loop {
        let homes = homes(node, keys).await;
        let most = homes.values().max().copied().unwrap_or(0);
        let least = homes.values().min().copied().filter(|_| homes.len() == hosts).unwrap_or(0);
        if most - least <= 1 || begun.elapsed() > limit {
            return most - least;
        }
        actix::clock::sleep(Duration::from_millis(50)).await;
    }
}

/// How many of the keys each host has.
async fn homes(node: &Node, keys: &[String]) -> BTreeMap<u64, usize> {
    let homes = RefCell::new(BTreeMap::new());
    let asks = keys.iter().map(|key| {
        let options = CallOptions::new().timeout(Duration::from_secs(30));
        let call = node.actor::<Target>(key).send_with(Where, options);
        async {
            let home = call.await.expect("every call is answered");
            *homes.borrow_mut().entry(home).or_default() += 1;
        }
    });
    futures_util::stream::iter(asks).buffer_unordered(64).collect::<Vec<()>>().await;
    homes.into_inner()
}

/// So many keys whose actors are in a shard.
fn keys_of_shard(node: &Node, shard: u16, shards: u16, count: usize) -> Vec<String> {
    let is_there = |key: &String| {
        let id = node.actor::<Target>(key).id().expect("a number is a key").stable_hash();
        id % u64::from(shards) == u64::from(shard)
    };
    (0_u64..).map(|n| format!("s{n}")).filter(is_there).take(count).collect()
}

/// Who calls while a shard moves.
const CALLERS: usize = 64;

/// So often moves are begun.
const ROUND: Duration = Duration::from_secs(1);
