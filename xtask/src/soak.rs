//! `cargo xtask soak`: what takes too long for every change; its figures go to `docs/soak.md`.
//!
//! The page holds only what this run measured: the commit, the date, and per step its time, how it ended, and the
//! lines it printed to be remembered.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::capture::counts_tests;
use crate::servers;
use crate::sim;
use crate::step::{Outcome, Report, Step, run_each};
use crate::test;
use crate::workspace::Workspace;

/// The steps, none longer than it must be: what has run stands in the page, whenever the rest is cut short. The large models
/// come last: each of them may take as long as everything else.
fn steps(options: Options, models: &[String]) -> Vec<Step> {
    let mut steps = vec![
        Step::new("prepare servers", servers::prepare),
        Step::vital("build", |w| w.cargo(&["test", "--workspace", test::FEATURES, "--no-run", "--quiet"])),
    ];
    steps.extend(sim::WORKLOADS.map(|workload| {
        let name = format!("simulation: {}", workload.name);
        Step::new(name, move |w| sim::sweep_one(w, workload, options.seeds))
    }));
    steps.push(Step::new("mutants", |w| {
        w.cargo_keeping(&[&test::MUTANTS[..], &TALKING].concat(), is_finding)
    }));
    steps.push(Step::new("pages of a million actors", |w| w.cargo(&MILLION)));
    steps.extend(
        FAULTS.map(|fault| Step::new(format!("faults: {fault}"), move |w| faults(w, fault, options.repeat))),
    );
    steps.extend(
        (1..=options.repeat).map(|round| Step::new(format!("tests, round {round}"), |w| test::tests(w))),
    );
    steps.extend(models.iter().cloned().map(|model| {
        Step::new(format!("large model: {model}"), move |w| {
            let words = [&MODELS[..], &["--", "--ignored", "--nocapture", "--exact", &model]].concat();
            w.cargo_keeping_within(&words, MODEL_LIMIT, is_figure_or_result)
        })
    }));
    steps
}

/// The models that are too large for every change, by the names of their tests; each prints its size.
fn large_models(workspace: &Workspace) -> Result<Vec<String>, String> {
    let words = [&MODELS[..], &["--quiet", "--", "--ignored", "--list", "--format", "terse"]].concat();
    let output = workspace.cargo_command(&words).output();
    let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!(
            "the large models cannot be listed: {}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    Ok(named_tests(&String::from_utf8_lossy(&output.stdout)))
}

/// The tests of a listing.
fn named_tests(listing: &str) -> Vec<String> {
    listing.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

const MODELS: [&str; 3] = ["test", "--package", "archipelago-models"];

/// How long one model may take. One that has not seen its whole space by then counts as failed.
const MODEL_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The bar of the admin API's listings.
const MILLION: [&str; 4] = ["test", "--package=archipelago-admin", "--", "--ignored"];

const TALKING: [&str; 2] = ["--", "--nocapture"];

/// Real processes on real stores that are killed, frozen, cut off and kept busy, with sessions as users have them: each as
/// often, or as long, as `ARCHIPELAGO_TEST_SOAK` says. One test at a time: they measure.
fn faults(workspace: &Workspace, fault: &str, repeat: u32) -> Outcome {
    let mut workspace = workspace.clone();
    workspace.set("ARCHIPELAGO_TEST_SOAK", repeat.to_string());
    let words = ["test", "--workspace", test::FEATURES, "--no-fail-fast", "--test", fault];
    let words = [&words[..], &TALKING, &["--include-ignored", "--test-threads", "1"]].concat();
    workspace.cargo_keeping(&words, is_figure_or_result)
}

/// The tests that do so, by their programs.
const FAULTS: [&str; 9] =
    ["failover", "outage", "partition", "busy", "datacenters", "clocks", "severed", "in_turn", "no_store"];

fn is_figure_or_result(line: &str) -> bool {
    line.starts_with("figure ") || counts_tests(line)
}

/// A line that says which seed found a deliberate bug.
fn is_finding(line: &str) -> bool {
    line.contains(" found by seed ") || counts_tests(line)
}

/// Runs the steps and writes the page after each: also when some failed, and when nobody waits for the end.
pub(crate) fn run(mut workspace: Workspace, arguments: &[String]) -> Result<bool, String> {
    let options = Options::parse(arguments)?;
    let about = About { commit: commit(&workspace), date: date(SystemTime::now()), options };
    let path = workspace.root().join("docs/soak.md");
    let models = large_models(&workspace)?;
    let steps = steps(options, &models);
    let names: Vec<&str> = steps.iter().map(Step::name).collect();
    let mut written = Ok(());
    let report = run_each(&steps, &mut workspace, |report| {
        written = std::fs::write(&path, page(&about, report, &names[report.entries.len()..]));
    });
    report.print();
    written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    println!("written: docs/soak.md");
    Ok(report.succeeded())
}

/// What a run is about.
struct About {
    commit: String,
    date: String,
    options: Options,
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

/// The page of a run in which the steps `missing` have not run yet.
fn page(about: &About, report: &Report, missing: &[&str]) -> String {
    let mut page =
        String::from("# Soak\n\nWritten by `cargo xtask soak`; every figure was measured in that run.\n\n");
    let About { commit, date, options: Options { seeds, repeat } } = about;
    // Writing into a string cannot fail.
    let _ = write!(
        page,
        "Commit {commit}, {date}, asked for {seeds} seeds of each workload and {repeat} rounds of faults and tests.\n\n"
    );
    page.push_str("| step | seconds | result |\n|---|---|---|\n");
    for entry in &report.entries {
        let seconds = entry.time.as_secs_f64();
        let _ = writeln!(page, "| {} | {seconds:.1} | {} |", entry.name, entry.outcome);
    }
    if !missing.is_empty() {
        let _ = write!(page, "\nCut short before the end of: {}.\n", missing.join("; "));
    }
    for entry in report.entries.iter().filter(|entry| !entry.outcome.lines().is_empty()) {
        let _ = write!(page, "\n## {}\n\n```text\n", entry.name);
        entry.outcome.lines().iter().for_each(|line| page.extend([line.trim(), "\n"]));
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
    fn page_holds_what_the_steps_reported_and_what_is_missing_and_nothing_else() {
        let entries = vec![
            Entry {
                name: "simulation: local".to_owned(),
                time: Duration::from_millis(1500),
                outcome: Outcome::Ok(vec!["figure seeds 7".to_owned()]),
            },
            Entry {
                name: "mutants".to_owned(),
                time: Duration::ZERO,
                outcome: Outcome::failed("one was not found"),
            },
        ];
        let options = Options { seeds: 7, repeat: 3 };
        let about = About { commit: "abc".to_owned(), date: "2025-12-31".to_owned(), options };
        let report = Report { entries };
        let whole = page(&about, &report, &[]);
        assert!(whole.contains("Commit abc, 2025-12-31, asked for 7 seeds of each workload and 3 rounds"));
        assert!(whole.contains("| simulation: local | 1.5 | ok |"));
        assert!(whole.contains("| mutants | 0.0 | FAILED (one was not found) |"));
        assert!(whole.contains("## simulation: local\n\n```text\nfigure seeds 7\n```"));
        assert!(!whole.contains("Cut short"));
        let part = page(&about, &report, &["faults: busy", "tests, round 1"]);
        assert!(part.contains("Cut short before the end of: faults: busy; tests, round 1."));
    }

    #[test]
    fn soak_holds_every_workload_every_fault_and_every_round() {
        let models =
            named_tests("handoff::tests::pause: test\nregistry::tests::three_nodes_hold: test\n\n2 tests\n");
        let steps = steps(Options { seeds: 1, repeat: 2 }, &models);
        let names: Vec<&str> = steps.iter().map(Step::name).collect();
        for name in ["simulation: handoff", "mutants", "faults: clocks", "faults: in_turn", "tests, round 2"]
        {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let last = ["large model: handoff::tests::pause", "large model: registry::tests::three_nodes_hold"];
        assert!(names.ends_with(&last), "each on its own, and after all others: {names:?}");
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
