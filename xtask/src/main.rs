//! The project's own commands: test, multidc, deployment, soak, requirements, bench, sim, cost.
//!
//! Each command is a module; [`workspace`] runs child processes, [`step`] times them and writes the summary.

#![expect(clippy::print_stdout, reason = "a command-line program speaks on stdout")]
#![expect(clippy::disallowed_methods, reason = "runs and times real processes, outside every simulation")]

mod background;
mod bench;
mod book;
mod capture;
mod containers;
mod cost;
mod foundationdb;
mod guarantees;
mod licences;
mod metadata;
mod metrics;
mod multidc;
mod package;
mod pair;
mod requirements;
mod rules;
mod servers;
mod sim;
mod skipped;
mod soak;
mod sources;
mod step;
mod test;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one command. `Ok(false)` and `Err` both fail the process; the first has already said why.
fn run(arguments: &[String]) -> Result<bool, String> {
    let (command, rest) = arguments.split_first().map_or(("help", arguments), |(c, rest)| (c.as_str(), rest));
    let workspace = || Workspace::find();
    match command {
        "test" => test::run(workspace()?, rest),
        "soak" => soak::run(workspace()?, rest),
        "requirements" => requirements::run(&workspace()?, rest),
        "bench" => bench::run(workspace()?, rest),
        "sim" => sim::run(&workspace()?, rest),
        "multidc" => containers::datacenters::run(&workspace()?, rest),
        "deployment" => containers::deployment::run(&workspace()?, rest),
        "cost" => cost::run(&workspace()?, rest),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(true)
        }
        other => Err(format!("there is no command {other:?}\n\n{HELP}")),
    }
}

const HELP: &str = "\
cargo xtask test [--only STEP,STEP]      everything that must hold: format, lints, docs, tests, examples
cargo xtask test --docker                also the suites of the backends on the servers of config/compose.yaml,
                                         and several datacenters in containers, whose networks are cut and healed,
                                         and the image of config/deploy, which drains under load
cargo xtask multidc [image]              those datacenters alone, to be looked at; or only their image
cargo xtask deployment                   that image alone
cargo xtask soak [--seeds N] [--repeat N]
                                         the long sister: many seeds, repeated tests; writes docs/soak.md
cargo xtask requirements [--min N]       which statements of docs/requirements.md no test cites
cargo xtask bench SUITE [ARGUMENTS]      runs archipelago-bench-SUITE (or the simulator) in release and judges its bars
cargo xtask sim [--from S] --seeds N     runs the simulator; all arguments go to it
cargo xtask cost                         what membership costs: the tables of docs/membership.md
cargo xtask help

ARCHIPELAGO_TEST_REQUIRE=etcd,chromium   servers and a browser without which `test` fails instead of saying what is missing
ARCHIPELAGO_TEST_FDB=CLUSTER_FILE        the step `foundationdb` runs on this database, not on a stub";
