//! What a call to another process costs in allocations, on either side.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on panics, and says what it counted"
)]

use archipelago_process_tests::{
    ALLOCATOR, Allocated, CountingAllocator, Host, Note, Orders, Papers, Road, Scribe, allocated, caller,
};
use archipelago_runtime::{ActorRef, Node};
use futures_channel::mpsc;
use futures_util::StreamExt;

#[global_allocator]
static COUNTING: &CountingAllocator = ALLOCATOR;

const IN_FLIGHT: u64 = 64;
const ASKS: u64 = 500;
/// The bar is two. The memory of jobs and replies is used again, so it is none but for what both processes do besides: buffers,
/// tasks, timers.
const PLAIN_LIMIT: f64 = 0.5;
/// What encrypts has buffers of its own.
const SECURED_LIMIT: f64 = 2.0;

/// One after the other: the count is that of the process.
#[actix::test]
async fn an_ask_costs_at_most_two_allocations_on_either_side() {
    for (road, limit) in [(Road::Tcp, PLAIN_LIMIT), (Road::Tls, SECURED_LIMIT), (Road::Quic, SECURED_LIMIT)] {
        let [caller, callee] = per_ask(road).await;
        println!("{}: {caller:.2} at the caller, {callee:.2} at the callee", road.name());
        assert!(
            caller <= limit && callee <= limit,
            "{}: {caller:.2} allocations at the caller, {callee:.2} at the callee",
            road.name()
        );
    }
}

/// How often an ask asks for memory: at the caller and at the callee.
async fn per_ask(road: Road) -> [f64; 2] {
    let orders = Orders { road, papers: Papers::new(), namespace: "default".to_owned() };
    let host = Host::start(env!("CARGO_BIN_EXE_archipelago-test-host"), &orders);
    let node = caller(road, &orders.papers, host.address.clone(), |_| {}).await.unwrap();
    let scribe = node.actor::<Scribe>("one");
    // Until every buffer has its size.
    ask_many(&node, &scribe).await;

    let (here, there) = (allocated(), scribe.send(Allocated).await.unwrap());
    assert!(here > 0 && there > 0, "both processes count");
    ask_many(&node, &scribe).await;
    let (here_after, there_after) = (allocated(), scribe.send(Allocated).await.unwrap());

    node.stop().await.unwrap();
    let per_ask = |before: u64, after: u64| (after - before) as f64 / (IN_FLIGHT * ASKS) as f64;
    [per_ask(here, here_after), per_ask(there, there_after)]
}

/// Asks from the arbiter that the lane is on, as an actor would.
async fn ask_many(node: &Node, scribe: &ActorRef<Scribe>) {
    let (done, mut all_done) = mpsc::unbounded::<u64>();
    for _ in 0..IN_FLIGHT {
        let (caller, done) = (scribe.clone(), done.clone());
        let asking = move || async move {
            for n in 0..ASKS {
                caller.send(Note(n)).await.unwrap();
            }
            drop(done);
        };
        node.spawn_beside(scribe, asking).unwrap();
    }
    drop(done);
    while all_done.next().await.is_some() {}
}
