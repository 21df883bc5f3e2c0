//! The same cases done by archipelago, with the measuring code of `benches/remote`, and by the bare transports, with that of
//! `benches/raw`.
//!
//! `ROAD ask IN_FLIGHT` and `ROAD tell`, where a road is `tcp`, `tls` or `quic`, or one of these behind `raw-`; the lines are
//! those of the peers.

#[path = "../../../remote/src/child.rs"]
mod child;
#[path = "../../../remote/src/measure.rs"]
mod measure;
#[path = "../../../remote/src/node.rs"]
mod node;

use std::process::ExitCode;

use archipelago_bench_raw::{Contestant as Bare, RawFigures};
use harness::Case;

use crate::measure::Figures;
use crate::node::Road;

fn main() -> ExitCode {
    if let Some(role) = archipelago_bench_raw::child_role() {
        role.run();
    }
    if let Some(road) = child::role() {
        actix::System::new().block_on(child::host(road));
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let cases: Vec<(Who, Case)> = match words.as_slice() {
        [] => Road::ALL.into_iter().flat_map(|road| Case::ALL.map(|case| (Who::Ours(road), case))).collect(),
        [who, case @ ..] => match (Who::named(who), Case::parse(case)) {
            (Some(who), Some(case)) => vec![(who, case)],
            _ => {
                eprintln!("usage: [[raw-]tcp|tls|quic ask IN_FLIGHT | [raw-]tcp|tls|quic tell]");
                return ExitCode::FAILURE;
            }
        },
    };
    if let [(who, case)] = cases.as_slice() {
        case.limit(who.name());
    }
    for (who, case) in cases {
        match who {
            Who::Ours(road) => run(road, case),
            Who::Raw(bare) => run_bare(bare, case),
        }
    }
    ExitCode::SUCCESS
}

/// Archipelago, or what is below it.
#[derive(Clone, Copy)]
enum Who {
    Ours(Road),
    Raw(Bare),
}

impl Who {
    fn named(name: &str) -> Option<Self> {
        match name {
            "raw-tcp" => Some(Self::Raw(Bare::Tcp)),
            "raw-tls" => Some(Self::Raw(Bare::Tls)),
            "raw-quic" => Some(Self::Raw(Bare::Quic)),
            road => Road::named(road).map(Self::Ours),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Ours(road) => name(road),
            Self::Raw(bare) => bare_name(bare),
        }
    }
}

fn run_bare(bare: Bare, case: Case) {
    let label = case.label(bare_name(bare));
    let figures = match case {
        Case::Ask(in_flight) => {
            let asked = archipelago_bench_raw::ask(bare, in_flight as usize, asks(in_flight));
            asked.map(|RawFigures { ask_per_second, p50_micros, p99_micros }| {
                format!("{ask_per_second:>10.0}/s p50 {p50_micros:>9.1} p99 {p99_micros:>9.1} µs")
            })
        }
        Case::Tell => archipelago_bench_raw::tell(bare, TELLS)
            .map(|per_second| format!("{per_second:>10.0}/s received {TELLS} of {TELLS}")),
    };
    match figures {
        Ok(figures) => println!("{label} {figures}"),
        Err(error) => println!("{label} cannot: {error}"),
    }
}

const fn bare_name(bare: Bare) -> &'static str {
    match bare {
        Bare::Tcp => "raw-tcp",
        Bare::Tls => "raw-tls",
        Bare::Quic => "raw-quic",
        Bare::QuicLane => "raw-quic-lane",
    }
}

fn run(road: Road, case: Case) {
    let label = case.label(name(road));
    match case {
        Case::Ask(in_flight) => {
            let Figures { per_second, p50_micros, p99_micros } =
                on_actix(measure::ask(road, in_flight, asks(in_flight)));
            println!("{label} {per_second:>10.0}/s p50 {p50_micros:>9.1} p99 {p99_micros:>9.1} µs");
        }
        Case::Tell => {
            let per_second = on_actix(measure::tell(road, TELLS));
            println!("{label} {per_second:>10.0}/s received {TELLS} of {TELLS}");
        }
    }
}

const fn name(road: Road) -> &'static str {
    match road {
        Road::Tcp => "archipelago-tcp",
        Road::Tls => "archipelago-tls",
        Road::Quic => "archipelago-quic",
    }
}

/// So many take about a second.
const fn asks(in_flight: u64) -> u64 {
    match in_flight {
        0..16 => 20_000,
        16..256 => 300_000,
        256.. => 800_000,
    }
}

fn on_actix<T: 'static>(work: impl Future<Output = T> + 'static) -> T {
    actix::System::new().block_on(work)
}

const TELLS: u64 = 1_000_000;
