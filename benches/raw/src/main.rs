//! Prints the baseline: `archipelago-bench-raw [rounds] [contestant ...]`.
//!
//! The contestants take turns, `rounds` times (3), and the medians are printed, because machines are noisy.
#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use archipelago_bench_raw::{Contestant, RawError, RawFigures, ask, batch, child_role, quic_settings, tell};

fn main() -> Result<(), RawError> {
    if let Some(role) = child_role() {
        role.run();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(3);
    let named: Vec<_> = arguments.iter().filter_map(|argument| Contestant::named(argument)).collect();
    let contestants = if named.is_empty() { Contestant::ALL.to_vec() } else { named };
    println!("{:?}", quic_settings());
    println!("{:<10} {:<5} {:>9} {:>12} {:>9} {:>9}", "", "", "in flight", "per second", "p50 us", "p99 us");
    for (in_flight, asks) in [(1, 30_000), (64, 400_000), (1024, 1_500_000)] {
        asking("ask", ask, &contestants, rounds, (in_flight, asks))?;
        asking("batch", batch, &contestants, rounds, (in_flight, asks))?;
    }
    telling(&contestants, rounds)
}

type Measure = fn(Contestant, usize, u64) -> Result<RawFigures, RawError>;

fn asking(
    how: &str,
    measure: Measure,
    contestants: &[Contestant],
    rounds: usize,
    (in_flight, asks): (usize, u64),
) -> Result<(), RawError> {
    let mut measured = vec![Vec::new(); contestants.len()];
    for _ in 0..rounds {
        for (figures, contestant) in measured.iter_mut().zip(contestants) {
            figures.push(measure(*contestant, in_flight, asks)?);
        }
    }
    for (mut figures, contestant) in measured.into_iter().zip(contestants) {
        figures.sort_by(|a: &RawFigures, b| a.ask_per_second.total_cmp(&b.ask_per_second));
        let RawFigures { ask_per_second, p50_micros, p99_micros } = figures[figures.len() / 2];
        let name = contestant.name();
        println!(
            "{name:<10} {how:<5} {in_flight:>9} {ask_per_second:>12.0} {p50_micros:>9.1} {p99_micros:>9.1}"
        );
    }
    Ok(())
}

fn telling(contestants: &[Contestant], rounds: usize) -> Result<(), RawError> {
    let mut measured = vec![Vec::new(); contestants.len()];
    for _ in 0..rounds {
        for (figures, contestant) in measured.iter_mut().zip(contestants) {
            figures.push(tell(*contestant, 1_000_000)?);
        }
    }
    for (mut figures, contestant) in measured.into_iter().zip(contestants) {
        figures.sort_by(f64::total_cmp);
        println!("{:<10} {:<5} {:>9} {:>12.0}", contestant.name(), "tell", "", figures[figures.len() / 2]);
    }
    Ok(())
}
