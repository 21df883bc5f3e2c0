//! A million actors: how fast they come to life, how fast they go, and what each costs while it idles.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Instant;

use archipelago::Error;
use archipelago::prelude::*;

use crate::Bar;
use crate::actors::{Idler, Note};

const ACTORS: u64 = 1_000_000;
/// New actors between two turns of the arbiter.
const BATCH: u64 = 1_000;

/// Brings a million actors to life on one arbiter; half of them go one by one, the others with their node.
pub(crate) async fn million() -> Result<Vec<Bar>, Error> {
    let (created, bytes) = come_and_go(ACTORS).await?;
    Ok(vec![
        Bar::at_least("activations_per_second", created, 300_000.0),
        Bar::at_most("bytes_per_idle_actor", bytes, 1_200.0),
    ])
}

/// The same with a few actors, for a profiler; its figures say little.
pub(crate) async fn small() -> Result<(), Error> {
    let (created, _) = come_and_go(20 * BATCH).await?;
    println!("activation: {created:.0}/s");
    Ok(())
}

/// How many actors came to life in a second, and how many bytes each of them takes.
async fn come_and_go(actors: u64) -> Result<(f64, f64), Error> {
    let node = Node::builder().on_current_arbiter().actor::<Idler>().start().await?;
    let before = resident_bytes();
    let start = Instant::now();
    for batch in 0..actors / BATCH {
        for n in batch * BATCH..(batch + 1) * BATCH {
            idler(&node, n).tell(Note(n))?;
        }
        idler(&node, batch * BATCH).send(Note(0)).await?;
    }
    let created = actors as f64 / start.elapsed().as_secs_f64();
    let bytes = (resident_bytes() - before) / actors as f64;

    let asked = passivate(&node, actors / 2).await?;
    println!("passivation on request: {asked:.0}/s");
    let (start, left) = (Instant::now(), actors - actors / 2);
    node.stop().await?;
    let gone = left as f64 / start.elapsed().as_secs_f64();
    println!("passivation at stop: {gone:.0}/s, {:?} in all", start.elapsed());
    Ok((created, bytes))
}

/// Asks the first `count` actors of a node that goes on to leave, and waits until they have: how many did in a second.
async fn passivate(node: &Node, count: u64) -> Result<f64, Error> {
    let (start, before) = (Instant::now(), Idler::gone());
    for batch in 0..count / BATCH {
        for n in batch * BATCH..(batch + 1) * BATCH {
            idler(node, n).deactivate()?;
        }
        while Idler::gone() < before + (batch + 1) * BATCH {
            others_first().await;
        }
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
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

fn idler(node: &Node, n: u64) -> ActorRef<Idler> {
    node.actor::<Idler>(format!("idler-{n}"))
}

/// What the process holds in memory, as the kernel counts it.
fn resident_bytes() -> f64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: f64 = statm.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0.0);
    pages * 4096.0
}
