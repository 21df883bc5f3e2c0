//! A million actors: how fast they come to life, how fast they go, and what each costs while it idles.

use std::time::{Duration, Instant};

use archipelago::Error;
use archipelago::prelude::*;

use crate::Bar;
use crate::actors::{Idler, Note};

const ACTORS: u64 = 1_000_000;
/// New actors between two turns of the arbiter.
const BATCH: u64 = 1_000;

/// Brings a million actors to life on one arbiter.
pub(crate) async fn million() -> Result<Vec<Bar>, Error> {
    let node = Node::builder().on_current_arbiter().actor::<Idler>().start().await?;
    let before = resident_bytes();
    let start = Instant::now();
    for batch in 0..ACTORS / BATCH {
        for n in batch * BATCH..(batch + 1) * BATCH {
            node.actor::<Idler>(format!("idler-{n}")).tell(Note(n))?;
        }
        node.actor::<Idler>(format!("idler-{}", batch * BATCH)).send(Note(0)).await?;
    }
    let created = ACTORS as f64 / start.elapsed().as_secs_f64();
    let bytes = (resident_bytes() - before) / ACTORS as f64;

    let start = Instant::now();
    node.stop().await?;
    let gone = ACTORS as f64 / start.elapsed().as_secs_f64();
    println!("passivation at stop: {gone:.0}/s, {:?} in all", Duration::from_secs_f64(ACTORS as f64 / gone));
    Ok(vec![
        Bar::at_least("activations_per_second", created, 300_000.0),
        Bar::at_most("bytes_per_idle_actor", bytes, 1_200.0),
    ])
}

/// What the process holds in memory, as the kernel counts it.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    pages * 4096.0
}
