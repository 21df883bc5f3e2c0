//! Sweeps seeds of the workload: `archipelago-sim [--from S] [--seeds N] [--seconds T] [--replay SEED]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a command talks, and measures real time"
)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use archipelago_sim::{Outcome, Sweep, run_seed};

struct Arguments {
    from: u64,
    seeds: u64,
    seconds: u64,
    replay: Option<u64>,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Arguments { replay: Some(seed), seconds, .. }) => replay(seed, Duration::from_secs(seconds)),
        Ok(arguments) => sweep(&arguments),
        Err(message) => {
            eprintln!("{message}");
            eprintln!("usage: archipelago-sim [--from S] [--seeds N] [--seconds T] [--replay SEED]");
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments { from: 1, seeds: 100, seconds: 120, replay: None };
    while let Some(word) = words.next() {
        let text = words.next().ok_or_else(|| format!("{word} needs a number"))?;
        let number = text.parse().map_err(|_| format!("{word} needs a number, not {text:?}"))?;
        match word.as_str() {
            "--from" => arguments.from = number,
            "--seeds" => arguments.seeds = number,
            "--seconds" => arguments.seconds = number,
            "--replay" => arguments.replay = Some(number),
            _ => return Err(format!("{word} is unknown")),
        }
    }
    Ok(arguments)
}

/// Runs one seed and tells all about it.
fn replay(seed: u64, length: Duration) -> ExitCode {
    let outcome = run_seed(seed, length);
    println!("seed {seed} hash {:016x} sent {} handled {}", outcome.hash, outcome.sent, outcome.handled);
    outcome.tail.iter().for_each(|line| println!("{line}"));
    if let Some(violation) = &outcome.violation {
        println!("seed {seed}: {violation}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn sweep(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let length = Duration::from_secs(arguments.seconds);
    let mut sweep = Sweep::new();
    let mut told = Instant::now();
    let seeds =
        regressions().into_iter().chain(arguments.from..arguments.from.saturating_add(arguments.seeds));
    for seed in seeds {
        if !sweep.run(seed, length)
            && let Some(failed) = sweep.failed.last()
        {
            tell_failure(failed, arguments.seconds);
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("seed {seed}: {} passed, {} failed so far", sweep.passed, sweep.failed.len());
        }
    }
    let failed = tell_sum(&sweep, arguments, began.elapsed());
    println!("{} passed, {failed} failed", sweep.passed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell_failure(failed: &Outcome, seconds: u64) {
    let seed = failed.seed;
    failed.tail.iter().for_each(|line| println!("  {line}"));
    if let Some(violation) = &failed.violation {
        println!("seed {seed}: {violation}");
    }
    println!("replay: cargo xtask sim --from {seed} --seeds 1 --seconds {seconds}");
}

/// Prints the sum and answers with the number of failures: seeds, promises never looked at, places never reached.
fn tell_sum(sweep: &Sweep, arguments: &Arguments, real: Duration) -> usize {
    for (invariant, count) in &sweep.evaluated {
        println!("{invariant}: looked at {count} times");
    }
    println!("figure sim.seeds {}", sweep.passed + sweep.failed.len() as u64);
    println!("figure sim.messages {}", sweep.sent);
    println!("figure sim.simulated_seconds {}", sweep.simulated.as_secs());
    println!("figure sim.speed {:.0}", sweep.simulated.as_secs_f64() / real.as_secs_f64().max(0.001));
    let mut failed = sweep.failed.len();
    // A few seeds cannot reach everything, and need not: they are somebody's replay.
    if arguments.seeds >= WHOLE_SWEEP {
        for invariant in sweep.never_evaluated() {
            println!("{invariant} was never looked at");
            failed += 1;
        }
        for point in sweep.never_reached() {
            println!("never happened: {point}");
            failed += 1;
        }
    }
    failed
}

/// The seeds that failed once.
fn regressions() -> Vec<u64> {
    let lines = include_str!("../../seeds/regressions.txt").lines();
    lines.filter_map(|line| line.split('#').next()?.trim().parse().ok()).collect()
}

/// From how many seeds on a sweep must have seen everything.
const WHOLE_SWEEP: u64 = 50;
