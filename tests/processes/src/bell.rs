//! An actor that costs nothing, and a member that rings such actors at a steady rate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archipelago::prelude::*;

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

/// What became of the calls of one member.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Rings {
    /// In words, for whoever asked.
    pub(crate) fn said(&self) -> String {
        format!("{} {}", self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }
}

/// Rings `rate` bells per second, for ever. While too many calls are under way it waits: the rate is then lower, and the
/// count says so.
pub(crate) async fn ring_steadily(node: Node, rate: u64, rings: Arc<Rings>) {
    let (begin, mut rung) = (Instant::now(), 0_u64);
    let under_way = Arc::new(tokio::sync::Semaphore::new(UNDER_WAY));
    loop {
        let due =
            u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX).saturating_mul(rate) / 1_000_000;
        while rung < due {
            let Ok(place) = Arc::clone(&under_way).acquire_owned().await else { return };
            let call = node.actor::<Bell>((rung % BELLS).to_string()).send(Ring);
            let rings = Arc::clone(&rings);
            actix::spawn(async move {
                let outcome = if call.await.is_ok() { &rings.answered } else { &rings.failed };
                outcome.fetch_add(1, Ordering::Relaxed);
                drop(place);
            });
            rung += 1;
        }
        actix::clock::sleep(TICK).await;
    }
}

const BELLS: u64 = 500;
const UNDER_WAY: usize = 512;
const TICK: Duration = Duration::from_millis(2);
