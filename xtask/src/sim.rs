//! `cargo xtask sim`: the simulator, with whatever arguments it takes.

use crate::capture::{Captured, capture};
use crate::step::Outcome;
use crate::workspace::Workspace;

/// Passes the arguments on.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    let mut command = workspace.cargo_command(&SIMULATOR);
    let status = command.args(arguments).status().map_err(|error| format!("cannot run cargo: {error}"))?;
    Ok(status.success())
}

/// Sweeps so many seeds, as a step; keeps the figures that the simulator prints.
pub(crate) fn sweep(workspace: &Workspace, seeds: u64) -> Outcome {
    let mut command = workspace.cargo_command(&SIMULATOR);
    match capture(command.args(["--seeds", &seeds.to_string()]), is_figure) {
        Ok(Captured { status, lines }) if status.success() => Outcome::Ok(lines),
        Ok(Captured { status, lines }) => Outcome::Failed(format!("simulator: {status}"), lines),
        Err(message) => Outcome::failed(message),
    }
}

/// A line `figure <name> <value>`: something the program measured and wants to be remembered.
fn is_figure(line: &str) -> bool {
    line.starts_with("figure ")
}

const SIMULATOR: [&str; 7] =
    ["run", "--quiet", "--package", "archipelago-sim", "--bin", "archipelago-sim", "--"];
