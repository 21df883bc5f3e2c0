//! `cargo xtask soak`: what takes too long for every change; its figures go to `docs/soak.md`.
//!
//! The page holds only what this run measured: the commit, the date, and per step its time, how it ended, and the
//! lines it printed to be remembered.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::capture::counts_tests;
use crate::servers;
use crate::sim;
use crate::step::{Outcome, Report, Step, run_all};
use crate::test;
use crate::workspace::Workspace;

/// The steps. To add a step, add a line.
fn steps(options: Options) -> Vec<Step> {
    vec![
        Step::new("prepare servers", servers::prepare),
        Step::vital("build", |w| w.cargo(&["test", "--workspace", test::FEATURES, "--no-run", "--quiet"])),
        Step::new("simulation", move |w| sim::sweep(w, options.seeds)),
        Step::new("mutants", |w| w.cargo(&test::MUTANTS)),
        Step::new("large models", |w| w.cargo_keeping(&LARGE_MODELS, is_figure_or_result)),
        Step::new("faults", move |w| faults(w, options.repeat)),
        Step::new("repeated tests", move |w| repeated_tests(w, options.repeat)),
    ]
}

/// The models that are too large for every change; each prints its size.
const LARGE_MODELS: [&str; 6] = ["test", "--package", "archipelago-models", "--", "--ignored", "--nocapture"];

/// Real processes on real stores that are killed, frozen, cut off and kept busy, with sessions as users have them: each as
/// often, or as long, as `ARCHIPELAGO_TEST_SOAK` says.
fn faults(workspace: &Workspace, repeat: u32) -> Outcome {
    let mut workspace = workspace.clone();
    workspace.set("ARCHIPELAGO_TEST_SOAK", repeat.to_string());
    workspace.cargo_keeping(&FAULTS, is_figure_or_result)
}

/// One at a time: they measure.
const FAULTS: [&str; 16] = [
    "test",
    "--workspace",
    test::FEATURES,
    "--no-fail-fast",
    "--test",
    "failover",
    "--test",
    "outage",
    "--test",
    "partition",
    "--test",
    "busy",
    "--",
    "--nocapture",
    "--test-threads",
    "1",
];

fn is_figure_or_result(line: &str) -> bool {
    line.starts_with("figure ") || counts_tests(line)
}

/// Runs the steps and writes the page, also when some failed.
pub(crate) fn run(mut workspace: Workspace, arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse(arguments)?;
    let commit = commit(&workspace);
    let date = date(SystemTime::now());
    let report = run_all(&steps(options), &mut workspace);
    report.print();
    let path = workspace.root().join("docs/soak.md");
    std::fs::write(&path, page(&commit, &date, options, &report))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("written: docs/soak.md");
    Ok(report.succeeded())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    seeds: u64,
    repeat: u32,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self { seeds: 2000, repeat: 20 };
        for pair in arguments.chunks(2) {
            let [flag, value] = pair else { return Err(format!("{} needs a number", pair[0])) };
            let bad = |_| format!("{flag} needs a number, not {value:?}");
            match flag.as_str() {
                "--seeds" => options.seeds = value.parse().map_err(bad)?,
                "--repeat" => options.repeat = value.parse().map_err(bad)?,
                _ => return Err(format!("there is no option {flag:?}; options are --seeds N, --repeat N")),
            }
        }
        Ok(options)
    }
}

/// Runs all tests again and again, and says how often each ending was seen.
fn repeated_tests(workspace: &Workspace, times: u32) -> Outcome {
    let mut lines = Vec::new();
    let mut failed = 0;
    for round in 1..=times {
        println!("-- round {round} of {times} --");
        let outcome = test::tests(workspace);
        lines.extend(outcome.lines().iter().map(|line| format!("round {round}: {}", line.trim())));
        failed += u32::from(matches!(outcome, Outcome::Failed(..)));
    }
    match failed {
        0 => Outcome::Ok(lines),
        _ => Outcome::Failed(format!("{failed} of {times} rounds failed"), lines),
    }
}

fn page(commit: &str, date: &str, options: Options, report: &Report) -> String {
    let mut page =
        String::from("# Soak\n\nWritten by `cargo xtask soak`; every figure was measured in that run.\n\n");
    let Options { seeds, repeat } = options;
    // Writing into a string cannot fail.
    let _ =
        write!(page, "Commit {commit}, {date}, asked for {seeds} seeds and {repeat} rounds of tests.\n\n");
    page.push_str("| step | seconds | result |\n|---|---|---|\n");
    for entry in &report.entries {
        let seconds = entry.time.as_secs_f64();
        let _ = writeln!(page, "| {} | {seconds:.1} | {} |", entry.name, entry.outcome);
    }
    for entry in report.entries.iter().filter(|entry| !entry.outcome.lines().is_empty()) {
        let _ = write!(page, "\n## {}\n\n```text\n", entry.name);
        entry.outcome.lines().iter().for_each(|line| page.extend([line.as_str(), "\n"]));
        page.push_str("```\n");
    }
    page
}

/// The commit, and whether the files differ from it.
fn commit(workspace: &Workspace) -> String {
    let Some(commit) = workspace.ask("git", &["rev-parse", "HEAD"]) else { return "unknown".to_owned() };
    match workspace.ask("git", &["status", "--porcelain", "--", ".", ":!docs/soak.md"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with uncommitted changes"),
    }
}

/// The day in UTC, `2025-01-31`.
fn date(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The date of a day counted from 1970-01-01, by counting whole years and months.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::step::Entry;

    #[test]
    fn days_are_turned_into_dates() {
        for (days, expected) in
            [(0, (1970, 1, 1)), (11_016, (2000, 2, 29)), (11_017, (2000, 3, 1)), (20_453, (2025, 12, 31))]
        {
            assert_eq!(civil(days), expected);
        }
    }

    #[test]
    fn page_holds_what_the_steps_reported_and_nothing_else() {
        let entries = vec![
            Entry {
                name: "simulation",
                time: Duration::from_millis(1500),
                outcome: Outcome::Ok(vec!["figure seeds 7".to_owned()]),
            },
            Entry {
                name: "repeated tests",
                time: Duration::ZERO,
                outcome: Outcome::failed("2 of 3 rounds failed"),
            },
        ];
        let options = Options { seeds: 7, repeat: 3 };
        let page = page("abc", "2025-12-31", options, &Report { entries });
        assert!(page.contains("Commit abc, 2025-12-31, asked for 7 seeds and 3 rounds of tests."));
        assert!(page.contains("| simulation | 1.5 | ok |"));
        assert!(page.contains("| repeated tests | 0.0 | FAILED (2 of 3 rounds failed) |"));
        assert!(page.contains("## simulation\n\n```text\nfigure seeds 7\n```"));
    }

    #[test]
    fn options_have_defaults_and_refuse_nonsense() {
        let parse =
            |words: &[&str]| Options::parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse(&[]), Ok(Options { seeds: 2000, repeat: 20 }));
        assert_eq!(parse(&["--repeat", "2"]), Ok(Options { seeds: 2000, repeat: 2 }));
        for words in [&["--seeds"][..], &["--seeds", "many"], &["--sedes", "5"]] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
