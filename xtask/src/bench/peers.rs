//! `cargo xtask bench peers [--rounds N]`: the same work done by archipelago and by other frameworks.
//!
//! The contestants are the binaries of `benches/peers`; each measures one case per call and prints one line. Here they
//! take turns, the medians of the rounds are compared, and what came of it goes to `docs/peers.md` and
//! `docs/peers.svg`.

mod chart;
mod contestant;
mod line;
mod page;
mod results;

use crate::capture::capture;
use crate::step::Outcome;
use crate::workspace::Workspace;
use contestant::{BUILT_TOGETHER, Contestant};
use line::{Case, Line};
use results::Results;

/// Measures, prints the table and the bars, and writes the page. The bars are returned.
pub(super) fn run(workspace: &Workspace, arguments: &[String]) -> Result<Vec<String>, String> {
    let rounds = rounds(arguments)?;
    build(workspace)?;
    let results = measure(workspace, rounds)?;
    println!("\n{}", results.table());
    let bars = results.bars();
    bars.iter().for_each(|bar| println!("{bar}"));
    write(workspace, "docs/peers.svg", &chart::draw(&results))?;
    write(workspace, "docs/peers.md", &page::page(workspace, &results, &bars, rounds))?;
    Ok(bars)
}

fn rounds(arguments: &[String]) -> Result<usize, String> {
    match arguments {
        [] => Ok(3),
        [flag, count] if flag == "--rounds" => match count.parse() {
            Ok(count @ 1..) => Ok(count),
            _ => Err(format!("--rounds needs a number from one, not {count:?}")),
        },
        _ => Err("usage: cargo xtask bench peers [--rounds N]".to_owned()),
    }
}

/// Builds ours and theirs apart, so that no feature that they ask for of a shared dependency is in ours. A peer that does not
/// build does not keep the others from being measured.
fn build(workspace: &Workspace) -> Result<(), String> {
    let target = workspace.target();
    let target = target.to_string_lossy();
    for packages in BUILT_TOGETHER {
        let mut words = vec!["build", "--release", "--manifest-path", MANIFEST, "--target-dir", &target];
        packages.iter().for_each(|package| words.extend(["--package", package]));
        if let Outcome::Failed(why, _) = workspace.cargo(&words) {
            if packages.contains(&"peer-archipelago") {
                return Err(why);
            }
            println!("{why}");
        }
    }
    Ok(())
}

/// The contestants take turns in every case, because machines are noisy.
fn measure(workspace: &Workspace, rounds: usize) -> Result<Results, String> {
    let mut results = Results::default();
    for case in Case::ALL {
        for _ in 0..rounds {
            for contestant in Contestant::ALL {
                results.add(contestant, case, measure_once(workspace, contestant, case)?);
            }
        }
    }
    Ok(results)
}

fn measure_once(workspace: &Workspace, contestant: &Contestant, case: Case) -> Result<Line, String> {
    let program = workspace.target().join("release").join(contestant.package);
    if !program.is_file() {
        return Ok(Line::Cannot("it was not built".to_owned()));
    }
    let mut command = workspace.command(program);
    command.args(contestant.words).args(case.words());
    let captured = capture(&mut command, |line| Line::parse(line).is_some())?;
    let figure = captured.lines.last().and_then(|line| Line::parse(line));
    // A contestant that breaks must not keep the others from being measured.
    Ok(figure.unwrap_or_else(|| Line::Cannot(format!("ended without a figure, {}", captured.status))))
}

fn write(workspace: &Workspace, path: &str, text: &str) -> Result<(), String> {
    let whole = workspace.root().join(path);
    std::fs::write(&whole, text).map_err(|error| format!("cannot write {path}: {error}"))?;
    println!("written: {path}");
    Ok(())
}

const MANIFEST: &str = "benches/peers/Cargo.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_have_a_default_and_refuse_nonsense() {
        let rounds = |words: &[&str]| rounds(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(rounds(&[]), Ok(3));
        assert_eq!(rounds(&["--rounds", "5"]), Ok(5));
        for words in [&["--rounds"][..], &["--rounds", "0"], &["--rounds", "many"], &["--round", "5"]] {
            assert!(rounds(words).is_err(), "{words:?}");
        }
    }
}
