//! The backends against their servers' own clients: claims, lookups, renewals, and how soon a watch tells.
//!
//! The contestant of each backend is a directory above its store; its rival sends the same requests, as many of them and
//! as large, by the plain client of the engine. They take turns on the same server in one run, and the medians of their
//! ratios count, because machines are noisy. Each bar is printed as
//! `bar backends.<name> measured=<x> required=<y> ok|short`; the embedded backend has no server to be compared with, and
//! FoundationDB is measured on its engine in memory ([`foundationdb`]), so their figures are printed without a bar. A server that is not there is a bar that is short. With the name of an engine as its argument only that one runs.
//! With `tables` only the tables of range-partitioned kinds are measured, on every engine.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark reads clocks, spawns, prints, and has nobody to report a failure to"
)]

mod contestant;
mod embedded;
mod etcd;
mod foundationdb;
mod measure;
mod nats;
mod tables;

use std::sync::Arc;

use archipelago_directory::Store;
use contestant::{Contestant, Ours, Pair};
use measure::{CROWDS, Figure, Work};

#[tokio::main(worker_threads = 2)]
async fn main() {
    let chosen = std::env::args().nth(1);
    let wanted = |engine: &str| chosen.as_deref().is_none_or(|chosen| chosen == engine);
    let mut short = 0;
    if wanted("tables") {
        short += all_tables().await;
    }
    if wanted("embedded") {
        all_work_alone("embedded", async || Ok(embedded::store())).await.expect("is always there");
    }
    if wanted("foundationdb") {
        short += foundationdb_alone().await;
    }
    if wanted("etcd") {
        short += match etcd::Engine::start() {
            Some(engine) => all_work("etcd", async || engine.pair().await).await,
            None => missing("etcd"),
        };
    }
    if wanted("nats") {
        short += match nats::Engine::start() {
            Some(engine) => all_work("nats", async || engine.pair().await).await,
            None => missing("nats"),
        };
    }
    if short > 0 {
        println!("{short} bars are short");
        std::process::exit(1);
    }
}

/// Measures the tables on every engine that is there; how many bars are short.
async fn all_tables() -> usize {
    let mut short = tables::run("embedded", embedded::store()).await;
    short += match etcd::Engine::start() {
        Some(engine) => tables::run("etcd", engine.store("/tables".to_owned()).await).await,
        None => missing("etcd_tables"),
    };
    short += match nats::Engine::start() {
        Some(engine) => tables::run("nats", engine.store("tables").await).await,
        None => missing("nats_tables"),
    };
    short
}

/// A server that is not there reaches no bar: nothing was shown.
fn missing(what: &str) -> usize {
    println!("{what}: there is no server");
    println!("bar backends.{what} measured=0 required={REQUIRED} short");
    1
}

/// Measures the engine in memory, and the cluster if one is named; how many bars are short: one, if it cannot be reached.
async fn foundationdb_alone() -> usize {
    let in_memory =
        all_work_alone(foundationdb::IN_MEMORY, async || Ok(foundationdb::in_memory().await)).await;
    let on_cluster = match foundationdb::cluster_file() {
        Some(file) => {
            all_work_alone(foundationdb::CLUSTER, async || foundationdb::on_cluster(&file).await).await
        }
        None => Ok(()),
    };
    in_memory.and(on_cluster).map_or_else(
        |why| {
            println!("{why}");
            missing("foundationdb")
        },
        |()| 0,
    )
}

/// Measures every kind of work without a rival, each on a new store.
async fn all_work_alone(
    engine: &str,
    store: impl AsyncFn() -> Result<Arc<dyn Store>, String>,
) -> Result<(), String> {
    for work in Work::ALL {
        for crowd in CROWDS {
            let contestant: Arc<dyn Contestant> = Arc::new(Ours::new(store().await?).await);
            println!(
                "{engine} {work:>8} {crowd:>4} at once: {}",
                measure::alone(&contestant, work, crowd).await
            );
        }
    }
    Ok(())
}

/// Measures every kind of work, each on a new pair; how many bars are short.
async fn all_work(engine: &str, pair: impl AsyncFn() -> Pair) -> usize {
    let mut short = 0;
    for work in Work::ALL {
        short += race(engine, work, &pair().await).await;
    }
    short
}

/// Measures one kind of work with few and many at once; how many bars are short.
async fn race(engine: &str, work: Work, pair: &Pair) -> usize {
    let mut short = 0;
    for crowd in CROWDS {
        let Figure { ours, raw, ratio } = measure::race(pair, work, crowd).await;
        println!("{engine} {work:>8} {crowd:>4} at once: {ours} ours, {raw} raw");
        let verdict = if ratio >= REQUIRED { "ok" } else { "short" };
        println!("bar backends.{engine}_{work}_{crowd} measured={ratio:.3} required={REQUIRED} {verdict}");
        short += usize::from(ratio < REQUIRED);
    }
    short
}

/// What the plain client does in a second, ours does in at most a second and a quarter.
const REQUIRED: f64 = 0.8;
