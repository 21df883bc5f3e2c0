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

/// What is simulated, and for how many simulated seconds per seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    seconds: &'static str,
}

/// Every workload of the simulator.
pub(crate) const WORKLOADS: [Workload; 5] = [
    Workload { name: "local", seconds: "120" },
    Workload { name: "remote", seconds: "30" },
    Workload { name: "cluster", seconds: "30" },
    Workload { name: "handoff", seconds: "30" },
    Workload { name: "datacenters", seconds: "20" },
];

/// Sweeps so many seeds of every workload, as a step; keeps the figures that the simulator prints.
pub(crate) fn sweep(workspace: &Workspace, seeds: u64) -> Outcome {
    let mut figures = Vec::new();
    for workload in WORKLOADS {
        println!("-- workload {} --", workload.name);
        let outcome = sweep_one(workspace, workload, seeds);
        figures.extend(outcome.lines().iter().map(|line| format!("{}: {line}", workload.name)));
        if let Outcome::Failed(why, _) = outcome {
            return Outcome::Failed(why, figures);
        }
    }
    Outcome::Ok(figures)
}

/// Sweeps so many seeds of one workload.
pub(crate) fn sweep_one(workspace: &Workspace, workload: Workload, seeds: u64) -> Outcome {
    if let failed @ Outcome::Failed(..) = workspace.cargo(&BUILD) {
        return failed;
    }
    let Workload { name, seconds } = workload;
    let mut command = workspace.command(workspace.built("archipelago-sim"));
    command.args(["--workload", name, "--seeds", &seeds.to_string(), "--seconds", seconds]);
    match capture(&mut command, is_figure) {
        Ok(Captured { status, lines }) if status.success() => Outcome::Ok(lines),
        Ok(Captured { status, lines }) => {
            Outcome::Failed(format!("simulator, workload {name}: {status}"), lines)
        }
        Err(message) => Outcome::failed(message),
    }
}

/// A line `figure <name> <value>` or `bar <name> ..`: something the program measured and wants to be remembered.
fn is_figure(line: &str) -> bool {
    line.starts_with("figure ") || line.starts_with("bar ")
}

/// With the examples, because they need what only tests need: so the crates are those that the tests were built with.
const BUILD: [&str; 7] =
    ["build", "--quiet", "--workspace", test::FEATURES, "--examples", "--bin", "archipelago-sim"];

const SIMULATOR: [&str; 7] =
    ["run", "--quiet", "--package", "archipelago-sim", "--bin", "archipelago-sim", "--"];
