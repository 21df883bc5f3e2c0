//! Small calls beside a large transfer, and a sender whose receiver does not read.

use std::time::{Duration, Instant};

use archipelago_protocol::link::Overflow;
use archipelago_runtime::{CallOptions, Node, RemoteSettings};
use futures_util::FutureExt;
use hdrhistogram::Histogram;

use crate::child::Child;
use crate::node::{Blob, Count, Echo, Note, Payload, Road, Target, start, start_with};

/// How long small calls took, in microseconds.
pub(crate) struct Beside {
    pub(crate) alone_p99: f64,
    pub(crate) beside_p99: f64,
    pub(crate) beside_most: f64,
}

/// Calls one actor, one call at a time, without and with a transfer to another actor under way.
pub(crate) async fn beside_a_transfer(road: Road) -> Beside {
    let (_child, node) = pair(road).await;
    let large = node.actor::<Target>("large");
    large.send(Count).await.expect("the target answers");
    let alone = calls_until(&node, Duration::from_secs(1), || false).await;
    let (done, mut is_done) = futures_channel::oneshot::channel();
    let options = CallOptions::new().timeout(Duration::from_secs(60));
    let transfer = large.send_with(Blob(vec![7; LARGE]), options);
    actix::spawn(async move {
        transfer.await.expect("the transfer arrives");
        let _ = done.send(());
    });
    let beside =
        calls_until(&node, Duration::from_secs(60), || is_done.try_recv().is_ok_and(|done| done.is_some()))
            .await;
    // The host is stopped by force, so this may find it gone.
    let _ = node.stop().await;
    let micros = |nanos: u64| nanos as f64 / 1_000.0;
    Beside {
        alone_p99: micros(alone.value_at_quantile(0.99)),
        beside_p99: micros(beside.value_at_quantile(0.99)),
        beside_most: micros(beside.max()),
    }
}

async fn calls_until(node: &Node, limit: Duration, mut over: impl FnMut() -> bool) -> Histogram<u64> {
    let small = node.actor::<Target>("small");
    small.send(Echo(Payload::new())).await.expect("the target answers");
    let mut waits = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds fit");
    let begun = Instant::now();
    while begun.elapsed() < limit && !over() {
        let sent = Instant::now();
        small.send(Echo(Payload::new())).await.expect("the target answers");
        waits.saturating_record(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    waits
}

/// What is sent to a receiver that stands still.
#[derive(Clone, Copy)]
pub(crate) struct Stall {
    /// The name of its bar.
    pub(crate) name: &'static str,
    overflow: Overflow,
    asks: bool,
}

/// Every strategy with what it keeps for whom; what waits is bounded by the buffer and once more that much.
pub(crate) const STALLS: [Stall; 5] = [
    Stall { name: "stalled_growth_vs_buffer", overflow: Overflow::Fail, asks: false },
    Stall { name: "stalled_asks_growth_vs_buffer", overflow: Overflow::Fail, asks: true },
    Stall { name: "stalled_drop_oldest_growth_vs_buffer", overflow: Overflow::DropOldest, asks: false },
    Stall { name: "stalled_drop_oldest_asks_growth_vs_buffer", overflow: Overflow::DropOldest, asks: true },
    Stall { name: "stalled_wait_growth_vs_buffer_and_line", overflow: Overflow::Wait, asks: true },
];

/// By how many bytes a sender grows that sends for some seconds while its receiver stands still, and how many bytes it may
/// keep.
pub(crate) async fn stalled_receiver(road: Road, stall: Stall) -> (f64, f64) {
    let child = Child::start(road);
    let mut settings = RemoteSettings::default();
    settings.overflow = stall.overflow;
    let buffer = settings.lane_bytes * if stall.overflow == Overflow::Wait { 2 } else { 1 };
    let host = Some(child.address.clone());
    let node = start_with(road, child.credentials.clone(), host, settings).await.expect("the caller starts");
    let target = node.actor::<Target>("t0");
    target.send(Count).await.expect("the target answers");
    let mut dead = dead_letters(&node);
    // What a sender at work has in memory is not grown yet.
    send_for(WARM_UP, &node, stall).await;
    target.send(Count).await.expect("the target answers");
    let (before, _) = (memory(), dead());
    child.freeze();
    let felt = send_for(A_WHILE, &node, stall).await;
    let growth = memory().saturating_sub(before);
    assert!(felt > 0 || dead() > 0, "a receiver that stands still is felt");
    let _ = node.stop().await;
    (growth as f64, buffer as f64)
}

/// How many messages were refused or have ended.
async fn send_for(length: Duration, node: &Node, stall: Stall) -> u64 {
    if stall.asks { ask_for(length, node).await } else { tell_for(length, node).await }
}

/// How many tells were refused.
async fn tell_for(length: Duration, node: &Node) -> u64 {
    let (target, begun, mut refused, mut told) = (node.actor::<Target>("t0"), Instant::now(), 0, 0_u64);
    while begun.elapsed() < length {
        told += 1;
        let full = target.tell(Note(Payload::new())).is_err();
        refused += u64::from(full);
        // With drop-oldest none is refused.
        if full || told.is_multiple_of(4_096) {
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    refused
}

/// How many asks have ended. They are large: with small ones the callers themselves would be most of what is measured.
async fn ask_for(length: Duration, node: &Node) -> u64 {
    let (target, begun) = (node.actor::<Target>("t0"), Instant::now());
    let options = CallOptions::new().timeout(Duration::from_secs(60));
    let (mut open, mut ended) = (Vec::new(), 0);
    while begun.elapsed() < length {
        open.push(Box::pin(target.send_with(Blob(vec![7; ASKED]), options)));
        actix::clock::sleep(Duration::from_millis(1)).await;
        open.retain_mut(|call| {
            call.as_mut().now_or_never().is_none_or(|_| {
                ended += 1;
                false
            })
        });
    }
    ended
}

/// How many of the messages of this node were lost on their way since now.
fn dead_letters(node: &Node) -> impl FnMut() -> u64 + use<> {
    let mut events = node.events().subscribe();
    move || std::iter::from_fn(|| events.try_next()).count() as u64
}

async fn pair(road: Road) -> (Child, Node) {
    let child = Child::start(road);
    let host = Some(child.address.clone());
    let node = start(road, child.credentials.clone(), host).await.expect("the caller starts");
    (child, node)
}

/// What this process has in memory.
fn memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("a number of pages") * 4_096
}

/// How long a sender works before its receiver stands still.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long a receiver stands still before it is looked how much was kept for it.
const A_WHILE: Duration = Duration::from_secs(3);
/// The length of an ask to it.
const ASKED: usize = 32 << 10;
/// The largest message, less what stands before it.
const LARGE: usize = (64 << 20) - 1_024;
