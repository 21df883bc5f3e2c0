//! An actor that costs nothing, and a member that rings such actors at a steady rate.

use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archipelago::CallOptions;
use archipelago::prelude::*;
use serde::{Deserialize, Serialize};

use crate::member::say;

/// Is counted.
#[remote(u64)]
pub struct Ring;

/// Blocks the thread of its actor for so many milliseconds.
#[remote]
pub struct Obstruct(pub u64);

/// Counts.
#[derive(Default, VirtualActor)]
#[virtual_actor(handles(Ring, Obstruct))]
pub struct Bell {
    rings: u64,
}

impl Actor for Bell {
    type Context = Context<Self>;
}

impl Handler<Ring> for Bell {
    type Result = u64;

    fn handle(&mut self, _: Ring, _: &mut Context<Self>) -> u64 {
        self.rings += 1;
        self.rings
    }
}

impl Handler<Obstruct> for Bell {
    type Result = ();

    fn handle(&mut self, Obstruct(millis): Obstruct, _: &mut Context<Self>) {
        say("obstructed");
        std::thread::sleep(Duration::from_millis(millis));
    }
}

/// What became of the calls of one member, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingCount {
    /// Calls that were made.
    pub offered: u64,
    /// Calls that were answered in time.
    pub answered: u64,
    /// Calls that were refused because a queue was full, or that were not answered in time: the price of more work than the
    /// machine can do.
    pub shed: u64,
    /// Calls that failed in another way.
    pub failed: u64,
}

impl Add for RingCount {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            answered: self.answered + other.answered,
            shed: self.shed + other.shed,
            failed: self.failed + other.failed,
        }
    }
}

/// The same, while it is counted.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    offered: AtomicU64,
    answered: AtomicU64,
    shed: AtomicU64,
    failed: AtomicU64,
}

impl Rings {
    /// The numbers so far.
    pub(crate) fn count(&self) -> RingCount {
        let [offered, answered, shed, failed] =
            [&self.offered, &self.answered, &self.shed, &self.failed].map(|one| one.load(Ordering::Relaxed));
        RingCount { offered, answered, shed, failed }
    }

    fn ended(&self, outcome: &Result<u64, CallError>) {
        let count = match outcome {
            Ok(_) => &self.answered,
            Err(CallError::Overloaded { .. } | CallError::Timeout { .. }) => &self.shed,
            Err(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rings `rate` bells per second, for ever, whatever becomes of them: who waited for answers before the next call would offer less
/// to a cluster that is slow. How many calls are under way is bounded by how long each may take.
pub(crate) async fn ring_steadily(node: Node, rate: u64, rings: Arc<Rings>) {
    let (begin, mut rung) = (Instant::now(), 0_u64);
    loop {
        let due =
            u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX).saturating_mul(rate) / 1_000_000;
        while rung < due {
            let soon = CallOptions::new().timeout(RING_LIMIT);
            let call = node.actor::<Bell>((rung % BELLS).to_string()).send_with(Ring, soon);
            rings.offered.fetch_add(1, Ordering::Relaxed);
            let rings = Arc::clone(&rings);
            actix::spawn(async move { rings.ended(&call.await) });
            rung += 1;
        }
        actix::clock::sleep(TICK).await;
    }
}

const BELLS: u64 = 500;
const RING_LIMIT: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(2);
