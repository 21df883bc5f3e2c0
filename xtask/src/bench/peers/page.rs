//! `docs/peers.md`: what was measured, with whom, on what, and how to do it again.

use std::fmt::Write as _;

use super::contestant::Contestant;
use super::line::{Case, Line};
use super::results::Results;
use crate::workspace::Workspace;

pub(super) fn page(workspace: &Workspace, results: &Results, bars: &[String], rounds: usize) -> String {
    let mut page = String::from(INTRODUCTION);
    // Writing into a string cannot fail.
    let _ = writeln!(
        page,
        "{}; the median of {rounds} rounds in which the contestants took turns.\n",
        where_and_when(workspace)
    );
    page.push_str("![Messages per second of every contestant in every case](peers.svg)\n");
    Case::ALL.into_iter().for_each(|case| section(&mut page, results, case));
    page.push_str("\n## Bars\n\n```text\n");
    bars.iter().for_each(|bar| page.extend([bar.as_str(), "\n"]));
    page.push_str("```\n");
    contestants(&mut page, workspace);
    page.push_str(METHOD);
    page
}

fn section(page: &mut String, results: &Results, case: Case) {
    let (second, third) = match case {
        Case::Ask(_) => ("p50 µs", "p99 µs"),
        Case::Tell => ("received", "of"),
    };
    let _ = write!(page, "\n## {}\n\n", capitalised(case));
    let _ = writeln!(
        page,
        "| | per second | {second} | {third} | archipelago on QUIC is | on TCP + TLS | on TCP |"
    );
    page.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
    for Contestant { name, .. } in Contestant::ALL {
        let _ = writeln!(page, "| {name} | {} |", cells(results, name, case).join(" | "));
    }
}

fn cells(results: &Results, name: &'static str, case: Case) -> Vec<String> {
    let mut cells = match results.median(name, case) {
        Some(Line::Asked { per_second, p50_micros, p99_micros, unanswered }) => {
            let late =
                if *unanswered > 0 { format!(" ({unanswered} never answered)") } else { String::new() };
            vec![format!("{}{late}", thousands(*per_second)), tenths(*p50_micros), tenths(*p99_micros)]
        }
        Some(Line::Told { per_second, received, sent }) => {
            [*per_second, *received as f64, *sent as f64].map(thousands).to_vec()
        }
        Some(Line::Cannot(reason)) => vec![format!("cannot: {reason}"), String::new(), String::new()],
        None => vec!["not measured".to_owned(), String::new(), String::new()],
    };
    match results.ratios(name, case) {
        Some([tcp, tls, quic]) => cells.extend([quic, tls, tcp].map(|ratio| format!("{ratio:.2}x"))),
        None => cells.extend([const { String::new() }; 3]),
    }
    cells
}

fn contestants(page: &mut String, workspace: &Workspace) {
    let lock = std::fs::read_to_string(workspace.root().join("benches/peers/Cargo.lock")).unwrap_or_default();
    page.push_str("\n## Contestants\n\n| | version | over | settings |\n|---|---|---|---|\n");
    for contestant in Contestant::ALL {
        let Contestant { name, wire, settings, .. } = contestant;
        let version = version(&lock, contestant.library()).unwrap_or("unknown");
        let _ = writeln!(page, "| {name} | {version} | {wire} | {settings} |");
    }
}

/// The version of a package in a lock file.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name).skip(1);
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}

fn where_and_when(workspace: &Workspace) -> String {
    let ask = |program, words: &[&str]| workspace.ask(program, words).unwrap_or_else(|| "unknown".to_owned());
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map(|(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "Commit {}, {}, {cores} cores of {}, {} {}, {}",
        ask("git", &["rev-parse", "--short", "HEAD"]),
        ask("date", &["-u", "+%Y-%m-%d"]),
        model.unwrap_or("an unknown processor"),
        std::env::consts::OS,
        ask("uname", &["-r"]),
        ask("rustc", &["--version"]),
    )
}

fn capitalised(case: Case) -> String {
    let text = case.to_string();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// 1234567 as 1,234,567.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn tenths(number: f64) -> String {
    format!("{number:.1}")
}

const INTRODUCTION: &str = "\
# Archipelago and its peers

The same work done by archipelago and by other actor frameworks in Rust that talk over a network: one process asks or
tells, the other hosts the actors, both on one machine over loopback, with 100 bytes of payload. The rows `raw` are the bare
transports, without actors and serialisation. Written by `cargo xtask bench peers`; every figure was measured in that run.

";

const METHOD: &str = "
## How it is measured

- Two processes, started anew for every case and round. The second is ended when the case is done.
- *Ask*: so many callers, each waiting for the payload to come back before it asks again, spread over 16 actors. After
  a warm-up the answers of one second are counted; archipelago answers a fixed number instead, which takes about as long.
- *Tell*: one sender, one actor that counts. The sender asks for the count at the end, and the clock stops when all is
  counted, or, if something was lost, when the last was. A million is sent; as many as fit into 2 s for contestants
  that would take longer.
- The peers run on the usual runtime of tokio with one worker per core (actix-telepathy on the one thread of an actix
  system), archipelago with one arbiter for data. All are built in release with fat LTO and one codegen unit.
- A case ends after 60 s in any case. A contestant that cannot do it says why.

To do it again: `cargo xtask bench peers`, or `--rounds N` for more than three rounds. Single cases:
`cargo run --release --manifest-path benches/peers/Cargo.toml -p peer-elfo -- ask 1024`.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in [(0.0, "0"), (999.0, "999"), (1000.4, "1,000"), (1_234_567.0, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }

    #[test]
    fn versions_come_from_the_lock_file() {
        let lock = "[[package]]\nname = \"elfo-core\"\nversion = \"9\"\n\n[[package]]\nname = \"elfo\"\nversion = \"0.2.0-alpha.21\"\n";
        assert_eq!(version(lock, "elfo"), Some("0.2.0-alpha.21"));
        assert_eq!(version(lock, "coerce"), None);
    }
}
