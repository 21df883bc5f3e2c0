//! Sweeps seeds of a workload:
//! `archipelago-sim [--workload local|remote|cluster|handoff] [--from S] [--seeds N] [--seconds T] [--replay SEED [--log true]]`.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a command talks, and measures real time"
)]

use std::cell::OnceCell;
use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archipelago_sim::{Outcome, Sweep, Workload};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

struct Arguments {
    workload: Workload,
    from: u64,
    seeds: u64,
    seconds: u64,
    replay: Option<u64>,
    /// Whether a replay prints what the nodes log.
    log: bool,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Arguments { workload, replay: Some(seed), seconds, log, .. }) => {
            let work = || replay(workload, seed, Duration::from_secs(seconds));
            if log { with_log(work) } else { work() }
        }
        Ok(arguments) => sweep(&arguments),
        Err(message) => {
            eprintln!("{message}");
            eprintln!(
                "usage: archipelago-sim [--workload local|remote|cluster|handoff] [--from S] [--seeds N] [--seconds T] [--replay SEED [--log true]]"
            );
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments =
        Arguments { workload: Workload::Local, from: 1, seeds: 100, seconds: 120, replay: None, log: false };
    while let Some(word) = words.next() {
        let text = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        if word == "--workload" {
            let named = Workload::named(&text);
            arguments.workload = named.ok_or_else(|| format!("there is no workload {text:?}"))?;
            continue;
        }
        if word == "--log" {
            arguments.log = text.parse().map_err(|_| format!("--log needs true or false, not {text:?}"))?;
            continue;
        }
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
fn replay(workload: Workload, seed: u64, length: Duration) -> ExitCode {
    let outcome = workload.run(seed, length);
    println!("seed {seed} hash {:016x} sent {} handled {}", outcome.hash, outcome.sent, outcome.handled);
    outcome.tail.iter().for_each(|line| println!("{line}"));
    if let Some(violation) = &outcome.violation {
        println!("seed {seed}: {violation}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs `work` and prints what is logged meanwhile, in virtual time.
fn with_log(work: impl FnOnce() -> ExitCode) -> ExitCode {
    struct Virtual;
    impl FormatTime for Virtual {
        fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
            let now = BEGAN.with(|began| began.get_or_init(tokio::time::Instant::now).elapsed());
            write!(out, "{:>12.6}s", now.as_secs_f64())
        }
    }
    thread_local! {
        static BEGAN: OnceCell<tokio::time::Instant> = const { OnceCell::new() };
    }
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).with_timer(Virtual).finish();
    tracing::subscriber::with_default(log, work)
}

fn sweep(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let length = Duration::from_secs(arguments.seconds);
    let mut sweep = Sweep::of(arguments.workload);
    let mut told = Instant::now();
    let seeds = regressions(arguments.workload)
        .into_iter()
        .chain(arguments.from..arguments.from.saturating_add(arguments.seeds));
    for seed in seeds {
        if !sweep.run(seed, length)
            && let Some(failed) = sweep.failed.last()
        {
            tell_failure(failed, arguments);
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

fn tell_failure(failed: &Outcome, arguments: &Arguments) {
    let (seed, seconds, workload) = (failed.seed, arguments.seconds, arguments.workload.name());
    failed.tail.iter().for_each(|line| println!("  {line}"));
    if let Some(violation) = &failed.violation {
        println!("seed {seed}: {violation}");
    }
    println!("replay: cargo xtask sim --workload {workload} --from {seed} --seeds 1 --seconds {seconds}");
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
fn regressions(workload: Workload) -> Vec<u64> {
    let listed = match workload {
        Workload::Local => include_str!("../../seeds/regressions.txt"),
        Workload::Remote => include_str!("../../seeds/remote.txt"),
        Workload::Cluster => include_str!("../../seeds/cluster.txt"),
        Workload::Handoff => include_str!("../../seeds/handoff.txt"),
    };
    let lines = listed.lines();
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// From how many seeds on a sweep must have seen everything.
const WHOLE_SWEEP: u64 = 50;
