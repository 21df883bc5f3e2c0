//! Tells: as fast as they can be handed over, counted by the receiver, which is asked at the end.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::{Caller, Peer, Reason, reason};

/// What the tells came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    per_second: f64,
    received: u64,
    sent: u64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_second, received, sent } = self;
        write!(f, "{per_second:>10.0}/s received {received} of {sent}")
    }
}

/// Tells a few to warm up, and then a million, or as many as the warm-up says fit into a few seconds.
pub(crate) async fn measure<P: Peer>(peer: &P) -> Result<Figures, Reason> {
    let mut counter = peer.caller(0).await?;
    let warm_up = tell(peer, &mut counter, WARM_UP).await?;
    let fitting = (warm_up.per_second * MEASURED.as_secs_f64()) as u64;
    tell(peer, &mut counter, fitting.clamp(WARM_UP, TELLS)).await
}

async fn tell<P: Peer>(peer: &P, counter: &mut P::Caller, count: u64) -> Result<Figures, Reason> {
    let before = counter.count().await?;
    let mut tellers = Vec::new();
    for _ in 0..P::TELLERS {
        tellers.push(peer.caller(0).await?);
    }
    let (each, sent) = (count / P::TELLERS, count / P::TELLERS * P::TELLERS);
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for teller in tellers {
        tasks.spawn(peer.surround(0, Box::pin(tell_times(teller, each))));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(reason)??;
    }
    let (received, at) = wait_for_count(counter, before, sent).await?;
    Ok(Figures { per_second: received as f64 / (at - start).as_secs_f64(), received, sent })
}

async fn tell_times(mut teller: impl Caller, times: u64) -> Result<(), Reason> {
    for number in 0..times {
        teller.tell().await?;
        if number % 256 == 255 {
            // Not every tell waits for anything; the tasks of the network must have their turn.
            yield_now().await;
        }
    }
    Ok(())
}

/// Asks until all that was sent is received, or nothing more comes; how many, and when the last were seen.
async fn wait_for_count(counter: &mut impl Caller, before: u64, sent: u64) -> Result<(u64, Instant), Reason> {
    let (mut received, mut at) = (0, Instant::now());
    loop {
        let now = counter.count().await?.saturating_sub(before);
        if now > received {
            (received, at) = (now, Instant::now());
        }
        if received >= sent || at.elapsed() > PATIENCE {
            return Ok((received, at));
        }
        sleep(Duration::from_millis(5)).await;
    }
}

const TELLS: u64 = 1_000_000;
const WARM_UP: u64 = 8_192;
const MEASURED: Duration = Duration::from_secs(2);
/// How long nothing comes before the rest is taken for lost.
const PATIENCE: Duration = Duration::from_secs(3);
