//! What the admin API costs: the messages of a node with requests and without, and a page of a million actors.
//!
//! Messages with and without requests take turns in one run and the medians of their ratios count, because machines are noisy. Each
//! bar is printed as `bar admin.<name> measured=<x> required=<y> ok|short`. Client and node share the machine, so what the client
//! costs counts against the API.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stdout,
    reason = "a benchmark reads clocks, spawns, dials and prints"
)]

mod actors;
mod client;
mod crowd;
mod load;

type BoxError = Box<dyn std::error::Error>;

#[actix::main]
async fn main() -> Result<(), BoxError> {
    let mut short = 0;
    for bar in load::under_requests().await? {
        short += bar.print();
    }
    for bar in crowd::pages().await? {
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
            "bar admin.{} measured={:.3} required={} {verdict}",
            self.name, self.measured, self.required
        );
        usize::from(!ok)
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
