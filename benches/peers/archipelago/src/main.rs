//! The same cases done by archipelago, with the measuring code of `benches/remote`.
//!
//! `ROAD ask IN_FLIGHT` and `ROAD tell`, where a road is `tcp`, `tls` or `quic`; the lines are those of the peers.

#[path = "../../../remote/src/child.rs"]
mod child;
#[path = "../../../remote/src/measure.rs"]
mod measure;
#[path = "../../../remote/src/node.rs"]
mod node;

use std::process::ExitCode;

use harness::Case;

use crate::measure::Figures;
use crate::node::Road;

fn main() -> ExitCode {
    if let Some(road) = child::role() {
        actix::System::new().block_on(child::host(road));
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let cases: Vec<(Road, Case)> = match words.as_slice() {
        [] => Road::ALL.into_iter().flat_map(|road| Case::ALL.map(|case| (road, case))).collect(),
        [road, case @ ..] => match (Road::named(road), Case::parse(case)) {
            (Some(road), Some(case)) => vec![(road, case)],
            _ => {
                eprintln!("usage: [tcp|tls|quic ask IN_FLIGHT | tcp|tls|quic tell]");
                return ExitCode::FAILURE;
            }
        },
    };
    if let [(road, case)] = cases.as_slice() {
        case.limit(name(*road));
    }
    cases.into_iter().for_each(|(road, case)| run(road, case));
    ExitCode::SUCCESS
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
