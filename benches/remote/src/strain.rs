//! Small calls beside a large transfer, and a sender whose receiver does not read.

use std::time::{Duration, Instant};

use archipelago_runtime::{CallOptions, Node};
use hdrhistogram::Histogram;

use crate::child::Child;
use crate::node::{Blob, Count, Echo, Note, Payload, Road, Target, start};

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

/// By how many bytes a sender grows that tells for some seconds while its receiver stands still, and how many bytes it may
/// keep.
pub(crate) async fn stalled_receiver(road: Road) -> (f64, f64) {
    let (child, node) = pair(road).await;
    let target = node.actor::<Target>("t0");
    target.send(Count).await.expect("the target answers");
    child.freeze();
    let before = memory();
    let begun = Instant::now();
    let mut refused = 0_u64;
    while begun.elapsed() < Duration::from_secs(3) {
        if target.tell(Note(Payload::new())).is_err() {
            refused += 1;
            actix::clock::sleep(Duration::from_millis(1)).await;
        }
    }
    let growth = memory().saturating_sub(before);
    assert!(refused > 0, "a receiver that stands still is felt");
    let _ = node.stop().await;
    (growth as f64, archipelago_runtime::RemoteSettings::default().lane_bytes as f64)
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

/// The largest message, less what stands before it.
const LARGE: usize = (64 << 20) - 1_024;
