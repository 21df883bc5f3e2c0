//! `cargo xtask bench SUITE`: runs a benchmark in release and judges the bars it prints.
//!
//! The benchmark measures and prints `bar <suite>.<name> measured=<x> required=<y> ok|short`; here the bars are
//! collected, repeated at the end, and turned into the exit code. `peers` compares several programs, so its bars come
//! from [`peers`] instead. `raw` measures what the others are compared with, and has no bar.

mod peers;

use std::path::Path;

use crate::capture::capture;
use crate::servers;
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Builds and runs the suite. Fails when a bar is short, unreadable, or when there is none but in `raw`.
pub(crate) fn run(mut workspace: Workspace, arguments: &[String]) -> Result<bool, String> {
    let Some((suite, rest)) = arguments.split_first() else {
        let suites = suites(&workspace.root().join("benches"));
        return Err(format!("usage: cargo xtask bench SUITE; suites are {}", suites.join(", ")));
    };
    if suite == "peers" {
        return judge(&peers::run(&workspace, rest)?);
    }
    if suite == "backends"
        && let Outcome::Failed(why, _) = servers::prepare(&mut workspace)
    {
        return Err(why);
    }
    let (package, fixed) = package(suite);
    let features = features(suite, std::env::var_os("ARCHIPELAGO_TEST_FDB").is_some());
    let build: Vec<&str> =
        ["build", "--release", "--package", &package].into_iter().chain(features).collect();
    if let Outcome::Failed(why, _) = workspace.cargo(&build) {
        return Err(why);
    }
    let run = ["run", "--quiet", "--release", "--package", &package].into_iter().chain(features);
    let mut command = workspace.cargo_command(&run.chain(["--"]).collect::<Vec<_>>());
    let captured = capture(command.args(fixed).args(rest), |line| line.starts_with("bar "))?;
    println!();
    captured.lines.iter().for_each(|line| println!("{line}"));
    if !captured.status.success() {
        return Err(format!("{package}: {}", captured.status));
    }
    judge_suite(suite, &captured.lines)
}

fn judge_suite(suite: &str, lines: &[String]) -> Result<bool, String> {
    if suite == BASELINE && lines.is_empty() { Ok(true) } else { judge(lines) }
}

/// The package of a suite, and what it is always told. The simulator is its own benchmark.
fn package(suite: &str) -> (String, &'static [&'static str]) {
    match suite {
        "sim" => {
            ("archipelago-sim".to_owned(), &["--workload", "cluster", "--seeds", "100", "--seconds", "30"])
        }
        _ => (format!("archipelago-bench-{suite}"), &[]),
    }
}

/// What the package is built with: the client of FoundationDB only where there is a cluster, because it links `libfdb_c`.
fn features(suite: &str, has_cluster: bool) -> Option<&'static str> {
    (suite == "backends" && has_cluster).then_some("--features=foundationdb-client")
}

fn judge(lines: &[String]) -> Result<bool, String> {
    let bars: Vec<Bar<'_>> = lines
        .iter()
        .map(|line| Bar::parse(line).ok_or_else(|| format!("this is not a bar: {line}")))
        .collect::<Result<_, _>>()?;
    if bars.is_empty() {
        return Err("the benchmark printed no bar".to_owned());
    }
    let short: Vec<&str> = bars.iter().filter(|bar| !bar.reached).map(|bar| bar.name).collect();
    if !short.is_empty() {
        println!("short: {}", short.join(", "));
    }
    Ok(short.is_empty())
}

#[derive(Debug, PartialEq)]
struct Bar<'a> {
    name: &'a str,
    reached: bool,
}

impl<'a> Bar<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["bar", name, measured, required, verdict] = words.as_slice() else { return None };
        let number = |word: &str, label: &str| word.strip_prefix(label)?.parse::<f64>().ok();
        number(measured, "measured=")?;
        number(required, "required=")?;
        let reached = match *verdict {
            "ok" => true,
            "short" => false,
            _ => return None,
        };
        name.contains('.').then_some(Self { name, reached })
    }
}

/// The suite that measures bare transports: a baseline cannot fall short.
const BASELINE: &str = "raw";

fn suites(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let crates = entries.filter(|entry| entry.path().join("Cargo.toml").exists());
    let mut names: Vec<String> =
        crates.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.push("sim".to_owned());
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(lines: &[&str]) -> Result<bool, String> {
        judge(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_client_of_foundationdb_is_linked_only_where_there_is_a_cluster() {
        assert_eq!(features("backends", true), Some("--features=foundationdb-client"));
        assert_eq!((features("backends", false), features("local", true)), (None, None));
    }

    #[test]
    fn one_short_bar_fails_the_suite() {
        let good = "bar local.ask measured=1.07 required=1.0 ok";
        assert_eq!(judged(&[good]), Ok(true));
        assert_eq!(judged(&[good, "bar local.idle measured=1400 required=1200 short"]), Ok(false));
    }

    #[test]
    fn the_baseline_alone_needs_no_bar() {
        assert_eq!(judge_suite("raw", &[]), Ok(true));
        assert!(judge_suite("local", &[]).is_err());
        assert!(judge_suite("raw", &["bar raw.ask".to_owned()]).is_err());
    }

    #[test]
    fn suite_without_bars_or_with_an_unreadable_one_fails() {
        assert!(judged(&[]).is_err());
        for line in [
            "bar local.ask measured=1.07 required=1.0",
            "bar local.ask measured=fast required=1.0 ok",
            "bar local.ask measured=1.07 required=1.0 fine",
            "bar ask measured=1.07 required=1.0 ok",
        ] {
            assert!(judged(&[line]).is_err(), "{line}");
        }
    }
}
