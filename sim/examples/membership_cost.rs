//! What membership costs whole nodes that do nothing else: bytes on the simulated network, and how long a join, a crash and a
//! return take to be known to everybody. Part of `cargo xtask cost`; other sizes may be given as arguments.
#![expect(clippy::print_stdout, reason = "a measurement talks")]

use std::time::Duration;

use archipelago_protocol::identity::NodeId;
use archipelago_protocol::membership::MemberStatus;
use archipelago_runtime::{Node, NodeSettings};
use archipelago_sim::{Simulation, World};

fn main() {
    let counts: Vec<usize> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let counts = if counts.is_empty() { vec![10, 50] } else { counts };
    println!(
        "| nodes | bytes/s per node | all know a crash (suspect) | all know it is gone | all know a join |"
    );
    println!("|---|---|---|---|---|");
    counts.into_iter().for_each(measure);
}

fn measure(count: usize) {
    let mut settings = NodeSettings::default();
    settings.data_arbiters = Some(1);
    let run = Simulation::new(1).nodes(count, &settings, |node| node).run(async |world| {
        until(&world, || views(&world).all(|view| view.up == count)).await;
        world.advance(Duration::from_secs(30)).await;
        let before = world.network_stats().bytes_taken;
        world.advance(QUIET).await;
        let bytes = world.network_stats().bytes_taken - before;
        let gone = world.node(0).map(|node| node.id());
        world.crash(0).await;
        let suspect = until(&world, || views(&world).all(|view| !view.trusts(gone))).await;
        let removed = suspect + until(&world, || views(&world).all(|view| view.up == count - 1)).await;
        world.restart(0).await.expect("nothing is wrong with the store");
        let joined = until(&world, || views(&world).all(|view| view.up == count)).await;
        (bytes, suspect, removed, joined)
    });
    let (bytes, suspect, removed, joined) = run.output;
    let rate = bytes as f64 / count as f64 / QUIET.as_secs_f64();
    let [suspect, removed, joined] = [suspect, removed, joined].map(|took| took.as_secs_f64());
    println!("| {count} | {rate:.0} | {suspect:.1} s | {removed:.1} s | {joined:.1} s |");
}

/// What one node sees.
struct View {
    up: usize,
    trusted: Vec<NodeId>,
}

impl View {
    fn of(node: &Node) -> Self {
        let members = node.members();
        let up: Vec<_> = members.iter().filter(|member| member.status == MemberStatus::Up).collect();
        let trusted = up.iter().filter(|member| !member.suspect).map(|member| member.info.id).collect();
        Self { up: up.len(), trusted }
    }

    fn trusts(&self, node: Option<NodeId>) -> bool {
        node.is_some_and(|node| self.trusted.contains(&node))
    }
}

fn views(world: &World) -> impl Iterator<Item = View> {
    (0..world.node_count()).filter_map(|index| world.node(index)).map(|node| View::of(&node))
}

/// Waits until something holds; how long it took.
async fn until(world: &World, holds: impl Fn() -> bool) -> Duration {
    let began = world.now();
    while !holds() {
        assert!(world.now() - began < LIMIT, "the nodes do not agree");
        world.advance(Duration::from_millis(100)).await;
    }
    world.now() - began
}

/// How long the cluster is left alone while its bytes are counted.
const QUIET: Duration = Duration::from_secs(60);
/// When to give up.
const LIMIT: Duration = Duration::from_secs(300);
