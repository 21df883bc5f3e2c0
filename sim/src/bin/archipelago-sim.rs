//! Sweeps seeds of a workload:
//! `archipelago-sim [--workload local|remote|cluster|handoff|datacenters] [--from S] [--seeds N] [--seconds T] [--threads N]
//! [--replay SEED [--log true]]`.
//!
//! A seed runs on one thread; several threads run one seed each.
#![expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a command talks, and measures real time"
)]

use std::cell::OnceCell;
use std::fmt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use archipelago_sim::{Outcome, Sweep, Workload};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

struct Arguments {
    workload: Workload,
    from: u64,
    seeds: u64,
    seconds: u64,
    threads: usize,
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
                "usage: archipelago-sim [--workload local|remote|cluster|handoff|datacenters] [--from S] [--seeds N] [--seconds T] [--threads N] [--replay SEED [--log true]]"
            );
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let (from, seeds, seconds, replay, log) = (1, 100, 120, None, false);
    let mut arguments = Arguments { workload: Workload::Local, from, seeds, seconds, threads, replay, log };
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
            "--threads" => arguments.threads = usize::try_from(number).unwrap_or(1).max(1),
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
    let mut sweep = Sweep::of(arguments.workload);
    let (mut told, mut of_five) = (Instant::now(), Pace::default());
    let mut seeds = regressions(arguments.workload);
    seeds.extend(arguments.from..arguments.from.saturating_add(arguments.seeds));
    run_all(arguments, &seeds, |outcome, took| {
        if outcome.nodes == 5 {
            of_five.add(outcome.simulated, took);
        }
        if !sweep.add(outcome)
            && let Some(failed) = sweep.failed.last()
        {
            tell_failure(failed, arguments);
        }
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            let (passed, failed) = (sweep.passed, sweep.failed.len());
            println!("{passed} passed, {failed} failed of {} so far", seeds.len());
        }
    });
    let failed = tell_sum(&sweep, arguments, began.elapsed());
    if arguments.seeds >= WHOLE_SWEEP && of_five.simulated > Duration::ZERO {
        of_five.tell();
    }
    println!("{} passed, {failed} failed", sweep.passed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs every seed, and hands over what became of each and the time of its thread that it took, as they end.
fn run_all(arguments: &Arguments, seeds: &[u64], mut take: impl FnMut(Outcome, Duration)) {
    let (workload, length) = (arguments.workload, Duration::from_secs(arguments.seconds));
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(arguments.threads);
        for _ in 0..arguments.threads {
            let (next, send) = (&next, send.clone());
            scope.spawn(move || {
                while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let began = Instant::now();
                    let before = time_of_thread(began);
                    let outcome = workload.run(*seed, length);
                    if send.send((outcome, time_of_thread(began) - before)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        receive.iter().for_each(|(outcome, took)| take(outcome, took));
    });
}

/// How long this thread has run, whatever else the machine did meanwhile; since it `began`, where the system does not say.
fn time_of_thread(began: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split_whitespace().next()?.parse().ok());
    nanos.map_or_else(|| began.elapsed(), Duration::from_nanos)
}

/// How fast some seeds ran, each on its thread.
#[derive(Default)]
struct Pace {
    simulated: Duration,
    took: Duration,
}

impl Pace {
    fn add(&mut self, simulated: Duration, took: Duration) {
        self.simulated += simulated;
        self.took += took;
    }

    /// Says how many seconds five nodes live in one of a thread, and whether that is enough.
    fn tell(&self) {
        let measured = self.simulated.as_secs_f64() / self.took.as_secs_f64().max(0.001);
        let verdict = if measured >= REQUIRED_PACE { "ok" } else { "short" };
        println!("bar sim.pace_of_five_nodes measured={measured:.0} required={REQUIRED_PACE} {verdict}");
    }
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
        Workload::Datacenters => include_str!("../../seeds/datacenters.txt"),
    };
    let lines = listed.lines();
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// How many simulated seconds of five nodes a second of one thread must hold.
const REQUIRED_PACE: f64 = 500.0;
/// From how many seeds on a sweep must have seen everything.
const WHOLE_SWEEP: u64 = 50;
