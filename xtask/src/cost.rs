//! `cargo xtask cost`: what membership costs, as the tables of `docs/membership.md` have it.
//!
//! The machines alone at 10, 100 and 1,000 nodes, then whole nodes at 10 and 50 on the simulated network; both on virtual time,
//! so the figures are the same on every machine.

use crate::step::Outcome;
use crate::test;
use crate::workspace::Workspace;

/// Prints both tables.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<bool, String> {
    if !arguments.is_empty() {
        return Err("usage: cargo xtask cost".to_owned());
    }
    if let Outcome::Failed(why, _) = workspace.cargo(&BUILD) {
        return Err(why);
    }
    for name in [MACHINES, NODES] {
        let mut command = workspace.command(workspace.example(name));
        let status = command.status().map_err(|error| format!("cannot run {name}: {error}"))?;
        if !status.success() {
            return Err(format!("{name}: {status}"));
        }
        println!();
    }
    Ok(true)
}

const MACHINES: &str = "gossip_cost";
const NODES: &str = "membership_cost";
const BUILD: [&str; 8] =
    ["build", "--quiet", "--workspace", test::FEATURES, "--example", MACHINES, "--example", NODES];
