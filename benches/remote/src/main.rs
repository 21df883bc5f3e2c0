//! The remote road between two processes on loopback, as multiples of what the bare transports do in the same run.
//!
//! Contestants take turns and the medians of their ratios count, because machines are noisy. Each bar is printed as
//! `bar remote.<name> measured=<x> required=<y> ok|short`.
//!
//! `archipelago-bench-remote alone <road> <in flight> <asks>` measures ours alone, once, for those who count instructions;
//! zero in flight tells instead of asking. Both processes end by themselves then, as profilers want it.
//! `archipelago-bench-remote strain <road>` measures what a large transfer and a receiver that stands still do to one road.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads clocks, spawns and prints"
)]

mod child;
mod measure;
mod node;
mod strain;

use archipelago_bench_raw::{Contestant, RawError, RawFigures};

use crate::measure::Figures;
use crate::node::Road;
use crate::strain::{Beside, STALLS, Stall};

const ROUNDS: usize = 5;

fn main() {
    if let Some(role) = archipelago_bench_raw::child_role() {
        role.run();
    }
    if let Some(road) = child::role() {
        actix::System::new().block_on(child::host(road));
        return;
    }
    let only: Vec<String> = std::env::args().skip(1).collect();
    if let [first, road, in_flight, count] = &only[..]
        && first == "alone"
    {
        return alone(road, in_flight, count);
    }
    match &only[..] {
        [first, road] if first == "strain" => return exit(strain(named(road))),
        [first, road, stall] if first == STALLED => return stalled_alone(named(road), stall),
        _ => {}
    }
    let roads =
        Road::ALL.into_iter().filter(|road| only.is_empty() || only.iter().any(|name| name == road.name()));
    exit(roads.map(compare).sum());
}

/// Says how many bars are short, also to whoever started this.
fn exit(short: usize) {
    if short > 0 {
        println!("{short} bars are short");
        std::process::exit(1);
    }
}

fn named(road: &str) -> Road {
    Road::named(road).expect("tcp, tls or quic")
}

/// Measures ours alone.
fn alone(road: &str, in_flight: &str, count: &str) {
    let road = named(road);
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match (number(in_flight), number(count)) {
        (0, count) => println!("{:<5} tell {:>10.0}/s", road.name(), on_actix(measure::tell(road, count))),
        (callers, count) => {
            println!("{:<5} ask {callers:>5} {}", road.name(), on_actix(measure::ask(road, callers, count)));
        }
    }
}

/// Measures one road against its bare transport; how many bars are short.
fn compare(road: Road) -> usize {
    let (raw, needed) = match road {
        Road::Tcp => (Contestant::Tcp, 0.5),
        Road::Tls => (Contestant::Tls, 0.5),
        Road::Quic => (Contestant::Quic, 0.7),
    };
    let full = rounds(road, raw, 1024, 400_000);
    rounds(road, raw, 64, 200_000);
    let one = rounds(road, raw, 1, 20_000);
    let of_batch = median(full.iter().map(|round| round.ours.per_second / round.batch.per_second).collect());
    // No bar: the bar below is against callers, who wait as ours do.
    println!(
        "info remote.{}_ask_1024_vs_raw_batches measured={of_batch:.3}: one task per side, whole buffers, nobody waits",
        road.name()
    );
    let tells: Vec<f64> = (0..ROUNDS).map(|_| on_actix(measure::tell(road, 1_000_000))).collect();
    println!("{:<5} tell            {:>10.0}/s", road.name(), median(tells));
    let ask = median(full.iter().map(|round| round.ours.per_second / round.callers.per_second).collect());
    let p50 = median(one.iter().map(|round| round.ours.p50_micros / round.batch.p50_micros).collect());
    bar(road, "ask_1024_vs_raw", ask, needed, ask >= needed)
        + bar(road, "ask_1_p50_vs_raw", p50, 1.5, p50 <= 1.5)
        + strain(road)
}

/// What small calls and the sender's memory suffer; how many bars are short.
fn strain(road: Road) -> usize {
    let beside: Vec<_> = (0..ROUNDS).map(|_| on_actix(strain::beside_a_transfer(road))).collect();
    for Beside { alone_p99, beside_p99, beside_most } in &beside {
        println!(
            "{:<5} beside 64 MiB   p99 alone {alone_p99:>8.1} beside {beside_p99:>8.1} most {beside_most:>8.1} µs",
            road.name()
        );
    }
    let ratio = median(beside.iter().map(|one| one.beside_p99 / one.alone_p99).collect());
    // No call at all may take longer, so the slowest of all rounds counts.
    let most = beside.iter().map(|one| one.beside_most / 1_000.0).fold(0.0, f64::max);
    bar(road, "p99_beside_64_mib_vs_alone", ratio, 5.0, ratio <= 5.0)
        + bar(road, "slowest_beside_64_mib_ms", most, 20.0, most <= 20.0)
        + STALLS.into_iter().map(|stall| stalled(road, stall)).sum::<usize>()
}

/// What a sender keeps for a receiver that stands still; whether that is more than it may. Each in a process of its own: what
/// earlier work has left to the allocator would hide its growth.
fn stalled(road: Road, stall: Stall) -> usize {
    let program = std::env::current_exe().expect("this binary");
    let output = std::process::Command::new(program)
        .args([STALLED, road.name(), stall.name])
        .stderr(std::process::Stdio::inherit())
        .output()
        .expect("the binary can be started again");
    let said = String::from_utf8_lossy(&output.stdout);
    let ratio: f64 = said.trim().parse().expect("the ratio");
    bar(road, stall.name, ratio, 1.0, ratio <= 1.0)
}

/// Prints by how much of its buffer a sender grows.
fn stalled_alone(road: Road, name: &str) {
    let stall = STALLS.into_iter().find(|stall| stall.name == name).expect("a stall");
    let (growth, buffer) = on_actix(strain::stalled_receiver(road, stall));
    println!("{}", growth / buffer);
}

const STALLED: &str = "stalled";

/// One turn of each contestant.
struct Round {
    ours: Figures,
    /// The bare transport, every ask with a caller of its own.
    callers: Figures,
    /// The bare transport, frames in batches.
    batch: Figures,
}

fn rounds(road: Road, raw: Contestant, in_flight: u64, asks: u64) -> Vec<Round> {
    let round = || Round {
        callers: bare(archipelago_bench_raw::ask(raw, in_flight as usize, asks)),
        ours: on_actix(measure::ask(road, in_flight, asks)),
        batch: bare(archipelago_bench_raw::batch(raw, in_flight as usize, asks)),
    };
    let all: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    for Round { ours, callers, batch } in &all {
        println!("{:<5} ask {in_flight:>5} {ours}   raw {callers}   batch {batch}", road.name());
    }
    all
}

fn bare(measured: Result<RawFigures, RawError>) -> Figures {
    let RawFigures { ask_per_second, p50_micros, p99_micros } = measured.expect("the baseline runs");
    Figures { per_second: ask_per_second, p50_micros, p99_micros }
}

fn on_actix<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    actix::System::new().block_on(work)
}

fn bar(road: Road, name: &str, measured: f64, required: f64, ok: bool) -> usize {
    let verdict = if ok { "ok" } else { "short" };
    println!("bar remote.{}_{name} measured={measured:.3} required={required} {verdict}", road.name());
    usize::from(!ok)
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}
