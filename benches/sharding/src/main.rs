//! Sharded actors in a cluster of processes on loopback: what routing costs, also to another datacenter, what callers notice of a
//! move, how fast shards find their balance, and what a shard weighs.
//!
//! Each bar is printed as `bar sharding.<name> measured=<x> required=<y> ok|short`. Arguments choose among `throughput`, `abroad`,
//! `pause`, `balance`, `memory` and `keys`; none means all. A number among them divides the calls that are measured, for those who
//! only want to see that it works.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads clocks, spawns and prints"
)]

mod abroad;
mod cluster;
mod load;
mod moves;
mod node;
mod told;

use crate::cluster::{Cluster, Host, MOVES_PER_ROUND, caller_of, memory_of};
use crate::load::{Mix, once_each, throughput};
use crate::moves::{balance, pauses};
use crate::node::{Target, Where, free_address, host};

fn main() {
    if let Some(bind) = cluster::role() {
        return on_actix(cluster::serve(bind));
    }
    let mut only: Vec<String> = std::env::args().skip(1).collect();
    let divisor = only.iter().find_map(|one| one.parse::<usize>().ok()).unwrap_or(1).max(1);
    only.retain(|one| one.parse::<usize>().is_err());
    let wanted = |name: &str| only.is_empty() || only.iter().any(|one| one == name);
    let mut short = 0;
    if wanted("throughput") {
        short += on_actix(compare(ASKS / divisor));
    }
    if wanted("abroad") {
        short += on_actix(another_datacenter(ASKS / divisor));
    }
    if wanted("pause") {
        short += on_actix(pause());
    }
    if wanted("balance") {
        short += on_actix(rebalance());
    }
    if wanted("memory") {
        on_actix(memory());
    }
    if wanted("keys") {
        on_actix(distinct_keys());
    }
    if short > 0 {
        println!("{short} bars are short");
        std::process::exit(1);
    }
}

/// Calls through a cluster against calls to a node whose address is known; contestants take turns.
async fn compare(asks: usize) -> usize {
    let alone = Host::alone();
    let caller = caller_of(&alone).await;
    let cluster = Cluster::start(3, 256, false).await;
    let mut ratios = [Vec::new(), Vec::new()];
    for mix in MIXES {
        throughput(&caller, mix, asks / 5).await;
        throughput(&cluster.node, mix, asks / 5).await;
    }
    for _ in 0..ROUNDS {
        for (mix, ratios) in MIXES.into_iter().zip(&mut ratios) {
            let direct = throughput(&caller, mix, asks).await;
            let routed = throughput(&cluster.node, mix, asks).await;
            println!("{:<8} direct {direct:>9.0}/s   through the cluster {routed:>9.0}/s", mix.name());
            ratios.push(routed / direct);
        }
    }
    cluster.stop().await;
    // Its host is stopped by force.
    let _ = caller.stop().await;
    let bars = MIXES.into_iter().zip(ratios).map(|(mix, ratios)| {
        let ratio = median(ratios);
        bar(&format!("{}_vs_direct", mix.name()), ratio, 0.9, ratio >= 0.9)
    });
    bars.sum()
}

/// Calls to another datacenter against calls to a node whose address is known.
async fn another_datacenter(asks: usize) -> usize {
    let costs = abroad::compare(ROUNDS, asks).await;
    let (many, one) = (median(costs.many), median(costs.one));
    bar("abroad_cost_vs_direct", many, 1.2, many <= 1.2)
        + bar("abroad_one_p50_vs_direct", one, 1.2, one <= 1.2)
}

async fn pause() -> usize {
    let seen = pauses(100).await;
    println!(
        "pause    {} moves: p50 {:.1} p99 {:.1} most {:.1} ms",
        seen.moves, seen.p50, seen.p99, seen.most
    );
    assert!(seen.moves >= 50, "most moves come to something");
    bar("longest_pause_ms", seen.most, 100.0, seen.most < 100.0)
        + bar("failed_calls_in_moves", seen.failed as f64, 0.0, seen.failed == 0)
}

async fn rebalance() -> usize {
    let balance = balance(1_024).await;
    let seconds = balance.took.as_secs_f64();
    let moves = balance.moves;
    println!("balance  {} moves, {} at once at most", moves.count, moves.in_flight);
    assert!(moves.count > 0, "the host that joined got its shards by moves");
    let limit = MOVES_PER_ROUND as f64;
    bar("rebalance_1024_shards_s", seconds, 10.0, seconds <= 10.0)
        + bar("spread_of_shards", balance.spread as f64, 1.0, balance.spread <= 1)
        + bar("moves_per_round", moves.per_round, limit, moves.per_round <= limit)
}

/// What a node and its store need for a shard that has an owner and no actor.
async fn memory() {
    const SHARDS: u16 = 16_384;
    let settings = [
        ("actors.kinds.Target.shards".to_owned(), SHARDS.to_string()),
        ("actors.kinds.Target.idle_after".to_owned(), "50ms".to_owned()),
    ];
    let node = host(&free_address(), &settings).start().await.expect("a node on loopback starts");
    node.actor::<Target>("warm").send(Where).await.expect("the target answers");
    let before = memory_of("self");
    // So many keys leave out one shard in four hundred thousand.
    once_each(&node, usize::from(SHARDS) * 13).await;
    actix::clock::sleep(std::time::Duration::from_secs(2)).await;
    let growth = memory_of("self").saturating_sub(before);
    println!(
        "memory   {:.0} bytes for each of {SHARDS} shards without actors, the store's share included",
        growth as f64 / f64::from(SHARDS)
    );
    node.stop().await.expect("nothing is under way");
}

/// A million actors that nobody has asked before, and once more.
async fn distinct_keys() {
    let cluster = Cluster::start(3, 256, false).await;
    let before: usize = cluster.hosts.iter().map(Host::memory).sum();
    let cold = once_each(&cluster.node, DISTINCT).await;
    let growth = cluster.hosts.iter().map(Host::memory).sum::<usize>().saturating_sub(before);
    let warm = once_each(&cluster.node, DISTINCT).await;
    println!(
        "keys     {DISTINCT} distinct: cold {cold:.1?}, warm {warm:.1?}; {} bytes each on their hosts",
        growth / DISTINCT
    );
    cluster.stop().await;
}

fn on_actix<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    actix::System::new().block_on(work)
}

fn bar(name: &str, measured: f64, required: f64, ok: bool) -> usize {
    let verdict = if ok { "ok" } else { "short" };
    println!("bar sharding.{name} measured={measured:.3} required={required} {verdict}");
    usize::from(!ok)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

const MIXES: [Mix; 2] = [Mix::Uniform, Mix::Zipf];
const ROUNDS: usize = 5;
const ASKS: usize = 200_000;
const DISTINCT: usize = 1_000_000;
