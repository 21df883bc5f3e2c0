//! The local road against plain actix: asks and tells, activation, memory.
//!
//! Contestants take turns in one run and the medians of their ratios count, because machines are noisy. Each bar is
//! printed as `bar local.<name> measured=<x> required=<y> ok|short`. With the name of a contestant as its argument
//! only that one runs, for a profiler.
#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark reads clocks, spawns and prints"
)]

mod actors;
mod crowd;
mod ratios;

use archipelago::Error;

#[actix::main]
async fn main() -> Result<(), Error> {
    if let Some(contestant) = std::env::args().nth(1) {
        return match contestant.as_str() {
            "crowd" => crowd::small().await,
            other => ratios::alone(other).await,
        };
    }
    let mut short = 0;
    for bar in ratios::same_arbiter().await? {
        short += bar.print();
    }
    ratios::across_arbiters(ratios::ROUNDS).await?;
    for bar in crowd::million().await? {
        short += bar.print();
    }
    if short > 0 {
        println!("{short} bars are short");
        std::process::exit(1);
    }
    Ok(())
}

/// One figure that must be reached.
struct Bar {
    name: &'static str,
    measured: f64,
    required: f64,
    /// True if less is better.
    at_most: bool,
}

impl Bar {
    const fn at_least(name: &'static str, measured: f64, required: f64) -> Self {
        Self { name, measured, required, at_most: false }
    }

    const fn at_most(name: &'static str, measured: f64, required: f64) -> Self {
        Self { name, measured, required, at_most: true }
    }

    /// Prints the bar; 1 if it is short.
    fn print(&self) -> usize {
        let ok = if self.at_most { self.measured <= self.required } else { self.measured >= self.required };
        let verdict = if ok { "ok" } else { "short" };
        println!(
            "bar local.{} measured={:.3} required={} {verdict}",
            self.name, self.measured, self.required
        );
        usize::from(!ok)
    }
}
