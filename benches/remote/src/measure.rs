//! Asks and tells between two processes.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use archipelago_runtime::{CallOptions, Node};
use futures_channel::mpsc;
use futures_util::StreamExt;
use hdrhistogram::Histogram;

use crate::child::Child;
use crate::node::{Count, Echo, Note, Payload, Road, Target, start};

/// What one measurement came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    pub(crate) p50_micros: f64,
    pub(crate) p99_micros: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, p50_micros, p99_micros } = self;
        write!(f, "{per_second:>9.0}/s p50 {p50_micros:>7.1} p99 {p99_micros:>8.1} µs")
    }
}

/// Asks with `in_flight` callers until `asks` are answered.
pub(crate) async fn ask(road: Road, in_flight: u64, asks: u64) -> Figures {
    let child = Child::start(road);
    let node =
        start(road, child.credentials.clone(), Some(child.address.clone())).await.expect("the caller starts");
    run_asks(&node, in_flight, (asks / 10).max(in_flight)).await;
    let figures = run_asks(&node, in_flight, asks).await;
    let _ = node.stop().await;
    child.end();
    figures
}

async fn run_asks(node: &Node, in_flight: u64, asks: u64) -> Figures {
    let start = Instant::now();
    let (done, all_done) = mpsc::unbounded::<()>();
    for caller in 0..in_flight {
        let actor = node.actor::<Target>(format!("t{}", caller % ACTORS));
        let (target, done) = (actor.clone(), done.clone());
        let task = move || async move {
            for _ in 0..asks / in_flight {
                let sent = Instant::now();
                target.send(Echo(Payload::new())).await.expect("the target answers");
                let nanos = u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX);
                WAITS.with_borrow_mut(|waits| waits.saturating_record(nanos));
            }
            drop(done);
        };
        node.spawn_beside(&actor, task).expect("the arbiter takes tasks");
    }
    drop(done);
    all_done.collect::<Vec<()>>().await;
    let elapsed = start.elapsed();
    let waits = collected(node).await;
    let micros = |quantile| waits.value_at_quantile(quantile) as f64 / 1_000.0;
    Figures {
        per_second: (asks / in_flight * in_flight) as f64 / elapsed.as_secs_f64(),
        p50_micros: micros(0.5),
        p99_micros: micros(0.99),
    }
}

thread_local! {
    /// How long the asks took whose callers run on this thread. One for all of them: so many histograms would fill the
    /// caches that are to be measured.
    static WAITS: RefCell<Histogram<u64>> = RefCell::new(waits());
}

/// What the callers on the arbiter have noted down; they begin anew.
async fn collected(node: &Node) -> Histogram<u64> {
    let (sender, mut waits_of) = mpsc::unbounded();
    let collect = move || async move {
        let _ = sender.unbounded_send(WAITS.replace(waits()));
    };
    node.spawn_beside(&node.actor::<Target>("t0"), collect).expect("the arbiter takes tasks");
    waits_of.next().await.expect("the arbiter answers")
}

/// Tells `count` messages and waits until the receiver has counted them all.
pub(crate) async fn tell(road: Road, count: u64) -> f64 {
    let child = Child::start(road);
    let node =
        start(road, child.credentials.clone(), Some(child.address.clone())).await.expect("the caller starts");
    let actor = node.actor::<Target>("t0");
    actor.send(Count).await.expect("the target answers");
    let start = Instant::now();
    let (done, mut is_done) = mpsc::unbounded::<()>();
    let target = actor.clone();
    let task = move || async move {
        for n in 0..count {
            while target.tell(Note(Payload::new())).is_err() {
                // The lane is full: let it drain.
                others_first().await;
            }
            if n % 256 == 255 {
                others_first().await;
            }
        }
        let options = CallOptions::new().timeout(Duration::from_secs(60));
        let counted = target.send_with(Count, options).await.expect("the target answers");
        assert_eq!(counted, count, "every tell is counted once");
        let _ = done.unbounded_send(());
    };
    node.spawn_beside(&actor, task).expect("the arbiter takes tasks");
    is_done.next().await;
    let rate = count as f64 / start.elapsed().as_secs_f64();
    let _ = node.stop().await;
    child.end();
    rate
}

/// Lets the other tasks of the thread have their turn.
async fn others_first() {
    let mut waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn waits() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 2).expect("the bounds fit")
}

/// So many actors are asked.
const ACTORS: u64 = 16;
