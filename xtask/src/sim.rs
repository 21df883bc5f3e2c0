//! `cargo xtask sim`: the simulator, with whatever arguments it takes.

use crate::capture::{Captured, capture};
use crate::step::Outcome;
use crate::test;
use crate::workspace::Workspace;

/// Passes the arguments on.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    let mut command = workspace.cargo_command(&SIMULATOR);
    let status = command.args(arguments).status().map_err(|error| format!("cannot run cargo: {error}"))?;
    Ok(status.success())
}

/// Sweeps so many seeds of every workload, as a step; keeps the figures that the simulator prints.
pub(crate) fn sweep(workspace: &Workspace, seeds: u64) -> Outcome {
    if let failed @ Outcome::Failed(..) = workspace.cargo(&BUILD) {
        return failed;
    }
    let mut figures = Vec::new();
    for (workload, seconds) in WORKLOADS {
        println!("-- workload {workload} --");
        let mut command = workspace.command(workspace.built("archipelago-sim"));
        command.args(["--workload", workload, "--seeds", &seeds.to_string(), "--seconds", seconds]);
        match capture(&mut command, is_figure) {
            Ok(Captured { status, lines }) => {
                figures.extend(lines.into_iter().map(|line| format!("{workload}: {line}")));
                if !status.success() {
                    return Outcome::Failed(format!("simulator, workload {workload}: {status}"), figures);
                }
            }
            Err(message) => return Outcome::failed(message),
        }
    }
    Outcome::Ok(figures)
}

/// What is simulated, and for how many simulated seconds per seed.
const WORKLOADS: [(&str, &str); 4] =
    [("local", "120"), ("remote", "30"), ("cluster", "30"), ("handoff", "30")];

/// A line `figure <name> <value>`: something the program measured and wants to be remembered.
fn is_figure(line: &str) -> bool {
    line.starts_with("figure ")
}

/// With the examples, because they need what only tests need: so the crates are those that the tests were built with.
const BUILD: [&str; 7] =
    ["build", "--quiet", "--workspace", test::FEATURES, "--examples", "--bin", "archipelago-sim"];

const SIMULATOR: [&str; 7] =
    ["run", "--quiet", "--package", "archipelago-sim", "--bin", "archipelago-sim", "--"];
