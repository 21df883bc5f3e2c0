//! What membership costs: bytes per node and second, and rounds until a change is known to all.
//!
//! Runs the machines alone, in simulated time: part of `cargo xtask cost`; other sizes may be given as arguments.
//! Sizes are those of the frames, without what a transport adds to each.
#![allow(clippy::print_stdout, missing_docs)]

#[path = "../tests/cluster/mod.rs"]
mod cluster;

use archipelago_protocol::membership::{MembershipEvent, NodeLoad};
use cluster::Cluster;

fn main() {
    let sizes: Vec<usize> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![10, 100, 1_000] } else { sizes };
    println!(
        "| nodes | to form | quiet | with loads every 5 s | one join | rounds to agree | one death | rounds to agree |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for size in sizes {
        row(size);
    }
}

fn row(size: usize) {
    let mut cluster = Cluster::new(size as u64);
    cluster.keeps_events = false;
    (0..size).for_each(|_| _ = cluster.start());
    let began = cluster.now;
    assert!(cluster.run_until(600_000, Cluster::agrees), "{size} nodes did not find together");
    let formed = cluster.now.since(began).0 as f64 / 1_000.0;
    cluster.run(20_000);
    let quiet = per_second(&mut cluster, 20, |_| {});
    let loaded = per_second(&mut cluster, 20, measure_loads);
    let (join, join_rounds) = until_agreed(&mut cluster, |cluster| _ = cluster.start());
    cluster.run(10_000);
    let (death, death_rounds) = until_agreed(&mut cluster, |cluster| cluster.kill(3));
    println!(
        "| {size} | {formed:.1} s | {quiet:.0} B/s | {loaded:.0} B/s | {join:.0} B | {join_rounds:.0} | {death:.0} B | {death_rounds:.0} |"
    );
}

fn measure_loads(cluster: &mut Cluster) {
    for place in 0..cluster.nodes.len() {
        let load = NodeLoad { waiting: cluster.draw() as u32 % 100, ..NodeLoad::default() };
        cluster.tell(place, MembershipEvent::LoadMeasured(load));
    }
}

/// Bytes that one node sends in a second, on average.
fn per_second(cluster: &mut Cluster, seconds: u64, every_fifth: impl Fn(&mut Cluster)) -> f64 {
    let before = sent(cluster);
    for second in 0..seconds {
        if second % 5 == 0 {
            every_fifth(cluster);
        }
        cluster.run(1_000);
    }
    (sent(cluster) - before) as f64 / seconds as f64 / cluster.nodes.len() as f64
}

/// Bytes that one node sends until all agree after a change, and the rounds that it takes; beats left out by
/// counting only what is beyond a quiet time as long.
fn until_agreed(cluster: &mut Cluster, change: impl Fn(&mut Cluster)) -> (f64, f64) {
    let quiet = per_second(cluster, 5, |_| {});
    let (before, began) = (sent(cluster), cluster.now);
    change(cluster);
    cluster.run(1);
    assert!(cluster.run_until(120_000, Cluster::agrees), "no agreement");
    let seconds = cluster.now.since(began).0 as f64 / 1_000.0;
    let bytes = (sent(cluster) - before) as f64 / cluster.nodes.len() as f64 - quiet * seconds;
    (bytes.max(0.0), seconds.ceil())
}

fn sent(cluster: &Cluster) -> u64 {
    cluster.nodes.iter().map(|node| node.bytes_sent).sum()
}
