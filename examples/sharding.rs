//! Three nodes: shards move to those that join, state goes along, one leaves and one is killed; calls go on.
//!
//! Two of them live in this process. The third is the same program again, because only a process can really be killed.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "it prints, and waits in real time")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use archipelago::identity::NodeId;
use archipelago::membership::MemberStatus;
use archipelago::prelude::*;
use archipelago::{Builder, Event, Notice};

/// Counts a visit; the answer says how many there were, and where the counter lives.
#[remote((u64, u64))]
struct Visit;

/// Counts in memory only: what it knows goes along when its shard moves, and is lost with its node.
#[derive(VirtualActor)]
#[virtual_actor(handles(Visit), migrate)]
struct Counter {
    visits: u64,
    home: NodeId,
}

impl Actor for Counter {
    type Context = Context<Self>;
}

impl Migrate for Counter {
    type Carried = u64;

    fn dehydrate(&mut self) -> Option<u64> {
        Some(self.visits)
    }

    fn rehydrate(&mut self, visits: u64) {
        self.visits = visits;
    }
}

impl Handler<Visit> for Counter {
    type Result = MessageResult<Visit>;

    fn handle(&mut self, _: Visit, _: &mut Context<Self>) -> Self::Result {
        self.visits += 1;
        MessageResult((self.visits, self.home.as_u64()))
    }
}

// ---- the cluster ----

fn builder(bind: &str) -> Builder {
    Node::builder()
        .set("transport.kind", "tcp")
        .set("transport.insecure", "true")
        .set("transport.bind", bind)
        .set("session.ttl", "3s")
        .set("session.heartbeat", "500ms")
        .set("node.data_arbiters", "1")
        .set("actors.kinds.Counter.shards", "64")
        .actor_with(|_, node| Counter { visits: 0, home: node.id() })
}

/// What is watched while the cluster changes.
#[derive(Default)]
struct Progress {
    moved: Cell<usize>,
    cold: Cell<usize>,
    calls: Cell<u64>,
    failed: Cell<u64>,
    /// Calls that were under way to the lost node: nobody knows whether it has handled them.
    unknown: Cell<u64>,
    killed: Cell<bool>,
    slowest: Cell<Duration>,
    /// The last answer of each counter.
    seen: RefCell<BTreeMap<u32, u64>>,
    /// Counters that knew less than they had said before.
    forgot: Cell<usize>,
    over: Cell<bool>,
}

/// Says what happens on a node.
fn narrate(name: &'static str, node: &Node, progress: &Rc<Progress>) {
    let (mut events, progress) = (node.events().subscribe(), Rc::clone(progress));
    actix::spawn(async move {
        while let Some(notice) = events.next().await {
            match notice {
                Notice::Event(Event::ShardMoved { .. }) => {
                    progress.moved.set(progress.moved.get() + 1);
                    if progress.moved.get().is_multiple_of(8) {
                        println!("  {name}: {} shards have moved so far", progress.moved.get());
                    }
                }
                Notice::Event(Event::ShardMovesCold { shard, .. }) => {
                    progress.cold.set(progress.cold.get() + 1);
                    println!("  {name}: shard {shard} moves without its state");
                }
                Notice::Event(Event::SessionEnded { node }) => {
                    println!("  {name}: node {node} is gone for good")
                }
                _ => {}
            }
        }
    });
}

/// Visits all counters again and again, until it is told to stop.
async fn visit_all(node: Node, progress: Rc<Progress>) {
    while !progress.over.get() {
        for key in 0..COUNTERS {
            let begun = Instant::now();
            let counter = node.actor::<Counter>(key.to_string());
            match counter.send_with(Visit, patient()).await {
                Ok((visits, _)) => progress.note(key, visits),
                Err(error) => {
                    println!("  a call has failed: {error}");
                    let expected = progress.killed.get() && !error.is_not_started();
                    let count = if expected { &progress.unknown } else { &progress.failed };
                    count.set(count.get() + 1);
                }
            }
            progress.calls.set(progress.calls.get() + 1);
            progress.slowest.set(progress.slowest.get().max(begun.elapsed()));
        }
        actix::clock::sleep(Duration::from_millis(5)).await;
    }
}

impl Progress {
    fn note(&self, key: u32, visits: u64) {
        if self.seen.borrow_mut().insert(key, visits).is_some_and(|before| visits <= before) {
            self.forgot.set(self.forgot.get() + 1);
        }
    }
}

/// On how many nodes the counters live.
async fn homes(node: &Node) -> BTreeMap<u64, usize> {
    let mut homes = BTreeMap::new();
    for key in 0..COUNTERS {
        let counter = node.actor::<Counter>(key.to_string());
        if let Ok((_, home)) = counter.send_with(Visit, patient()).await {
            *homes.entry(home).or_default() += 1;
        }
    }
    homes
}

/// Waits until the counters live on so many nodes and all of them are up.
async fn spread_over(count: usize, node: &Node) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let up = node.members().iter().filter(|member| member.status == MemberStatus::Up).count();
        let homes = homes(node).await;
        if up == count && homes.len() == count && homes.values().all(|there| *there >= 8) {
            println!("  {COUNTERS} counters live on {count} nodes: {:?}", homes.values().collect::<Vec<_>>());
            return true;
        }
        actix::clock::sleep(Duration::from_millis(100)).await;
    }
    false
}

/// Waits until every counter answers and none lives on the lost node.
async fn taken_over(node: &Node) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        let homes = homes(node).await;
        if homes == BTreeMap::from([(node.id().as_u64(), COUNTERS as usize)]) {
            println!("  all {COUNTERS} counters live on the first node, after {:?}", begun.elapsed());
            return true;
        }
    }
    false
}

/// A node in a process of its own, killed at the latest when this is dropped.
struct Victim(Child);

impl Victim {
    fn start(store: &str) -> std::io::Result<Self> {
        let mut again = Command::new(std::env::current_exe()?);
        again.env(VICTIM, store).stdin(Stdio::piped()).stdout(Stdio::null());
        Ok(Self(again.spawn()?))
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Serves until it is killed, or its parent is gone.
async fn be_the_victim(store: String) -> Result<(), Box<dyn std::error::Error>> {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let _node = builder("127.0.0.1:0").set("backend.embedded.join", &store).start().await?;
    std::future::pending().await
}

fn patient() -> CallOptions {
    CallOptions::new().timeout(Duration::from_secs(20))
}

fn free_port() -> std::io::Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

// ---- the story ----

/// Tells the story; how many promises were broken.
async fn run() -> Result<usize, Box<dyn std::error::Error>> {
    let progress = Rc::new(Progress::default());
    let address = format!("127.0.0.1:{}", free_port()?);
    println!("the first node starts, and with it {COUNTERS} counters");
    let first = builder(&address).set("backend.embedded.serve", "true").start().await?;
    narrate("first", &first, &progress);
    homes(&first).await;
    let visits = actix::spawn(visit_all(first.clone(), Rc::clone(&progress)));
    let mut promises = Vec::new();

    println!("a second and a third node join");
    let second = builder("127.0.0.1:0").set("backend.embedded.join", &address).start().await?;
    let third = Victim::start(&address)?;
    narrate("second", &second, &progress);
    promises.push(("shards move to nodes that join", spread_over(3, &first).await));

    println!("the second node leaves");
    second.stop().await?;
    promises.push(("a node that leaves hands its shards over", spread_over(2, &first).await));
    promises.push(("no counter has forgotten anything", progress.forgot.get() == 0));

    println!("the third node is killed");
    progress.killed.set(true);
    drop(third);
    promises.push(("what a killed node had is served by another", taken_over(&first).await));
    progress.over.set(true);
    visits.await?;
    first.stop().await?;
    promises
        .push(("shards have moved with their state", progress.moved.get() > 0 && progress.cold.get() == 0));
    promises.push(("no call has failed", progress.failed.get() == 0));
    Ok(summary(&progress, &promises))
}

fn summary(progress: &Progress, promises: &[(&str, bool)]) -> usize {
    println!();
    println!("calls             {}", progress.calls.get());
    println!("failed            {}", progress.failed.get());
    println!("slowest call      {:?}", progress.slowest.get());
    println!("shards moved      {}", progress.moved.get());
    println!("unknown           {} (under way to the killed node)", progress.unknown.get());
    println!("counters anew     {} (those of the killed node)", progress.forgot.get());
    for (promise, kept) in promises {
        println!("{} {promise}", if *kept { "yes" } else { "NO " });
    }
    promises.iter().filter(|(_, kept)| !kept).count()
}

#[actix::main]
async fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    if let Ok(store) = std::env::var(VICTIM) {
        be_the_victim(store).await?;
    }
    let broken = run().await?;
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const VICTIM: &str = "ARCHIPELAGO_EXAMPLE_VICTIM";
const COUNTERS: u32 = 48;
const LIMIT: Duration = Duration::from_secs(40);
