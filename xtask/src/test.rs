//! `cargo xtask test`: everything that must hold before a change is taken.

use std::path::Path;
use std::time::Duration;

use crate::book;
use crate::capture::{counts_tests, run_within};
use crate::containers;
use crate::foundationdb;
use crate::guarantees;
use crate::metrics;
use crate::multidc;
use crate::package;
use crate::pair;
use crate::requirements;
use crate::servers;
use crate::sim;
use crate::skipped::Skipped;
use crate::step::{Outcome, Step, run_all};
use crate::workspace::Workspace;

/// Deliberate bugs of the runtime, each of which the simulator must find, and of the simulated network, each of which the
/// rules of the transport contract must find.
pub(crate) const MUTANTS: [&str; 5] = [
    "test",
    "--workspace",
    "--features=archipelago/dashboard,archipelago/prometheus,archipelago/etcd,archipelago/nats,archipelago-sim/mutants",
    "--test",
    "mutants",
];

/// The backends of the facade that are not in every build.
///
/// Every step builds the whole workspace with them, and chooses by target what it wants: cargo unites the features of what is
/// selected, so with `--package` the same crates would be built again for every step.
pub(crate) const FEATURES: &str =
    "--features=archipelago/dashboard,archipelago/prometheus,archipelago/etcd,archipelago/nats";

/// The targets that are tested as a user has the facade by default: without the backends of [`FEATURES`]. What the compiler
/// says about mistakes is compared here alone, because it depends on the crates it sees.
const FACADE_ALONE: [&str; 7] =
    ["--lib", "--test", "backends", "--test", "config_samples", "--test", "compile_fail"];

/// How many seeds the simulator sweeps for every change.
const SEEDS: u64 = 500;

/// The steps, cheap ones first. To add a step, add a line.
fn steps() -> Vec<Step> {
    vec![
        Step::new("format", |w| format(w)),
        Step::new("requirements", |w| requirements::step(w)),
        Step::new("guarantees", |w| guarantees::step(w)),
        Step::new("metrics", |w| metrics::step(w)),
        Step::new("package", |w| package::step(w)),
        Step::new("book", |w| book::step(w)),
        Step::new("prepare servers", servers::prepare),
        Step::vital("build", |w| w.cargo(&["test", "--workspace", FEATURES, "--no-run", "--quiet"])),
        Step::new("clippy", |w| {
            let features = if foundationdb::can_compile() { foundationdb::FEATURES } else { FEATURES };
            w.cargo(&["clippy", "--workspace", features, "--all-targets", "--", "-D", "warnings"])
        }),
        Step::new("facade alone", |w| facade_alone(w)),
        Step::new("docs", |w| {
            w.cargo_with(("RUSTDOCFLAGS", "-D warnings"), &["doc", "--workspace", FEATURES, "--no-deps"])
        }),
        Step::new("tests", |w| tests(w)),
        Step::new("doc tests", |w| {
            w.cargo_keeping(&["test", "--workspace", FEATURES, "--doc"], counts_tests)
        }),
        Step::new("foundationdb", |w| foundationdb::step(w)),
        Step::new("simulation", |w| sim::sweep(w, SEEDS)),
        Step::new("mutants", |w| w.cargo_keeping(&MUTANTS, counts_tests)),
        Step::new("examples", |w| examples(w)),
    ]
}

/// Runs the steps, or those named by `--only`; with `--docker` also what runs in containers.
pub(crate) fn run(mut workspace: Workspace, arguments: &[String]) -> Result<bool, String> {
    let (docker, rest): (Vec<&String>, Vec<&String>) =
        arguments.iter().partition(|argument| *argument == "--docker");
    let mut steps = match rest.as_slice() {
        [] => steps(),
        [flag, names] if *flag == "--only" => chosen(names)?,
        _ => return Err("usage: cargo xtask test [--only STEP,STEP] [--docker]".to_owned()),
    };
    if !docker.is_empty() {
        steps.push(Step::new("containers", |w| containers::step(w, FEATURES)));
        steps.push(Step::new("datacenters", |w| containers::datacenters::step(w)));
        steps.push(Step::new("deployment", |w| containers::deployment::step(w)));
    }
    let skipped = Skipped::begin(&mut workspace)?;
    let report = run_all(&steps, &mut workspace);
    println!();
    skipped.lines().iter().for_each(|line| println!("{line}"));
    report.print();
    Ok(report.succeeded())
}

/// Looks at the format of the workspace, and of what is no part of it.
fn format(workspace: &Workspace) -> Outcome {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml", "benches/peers/Cargo.toml"] {
        let words = ["fmt", "--all", "--check", "--manifest-path", manifest];
        if let failed @ Outcome::Failed(..) = workspace.cargo(&words) {
            return failed;
        }
    }
    Outcome::ok()
}

/// Runs every unit and integration test, with nextest where it is installed.
pub(crate) fn tests(workspace: &Workspace) -> Outcome {
    let words: &[&str] = if workspace.has_nextest() {
        &["nextest", "run", "--workspace", FEATURES, "--no-fail-fast"]
    } else {
        &["test", "--workspace", FEATURES, "--lib", "--bins", "--tests", "--no-fail-fast"]
    };
    workspace.cargo_keeping(words, counts_tests)
}

/// Without nextest no tests of one package can be chosen from a build of all.
fn facade_alone(workspace: &Workspace) -> Outcome {
    let (nextest, package) = (["nextest", "run", "--workspace"], ["test", "--package", "archipelago"]);
    let mut words = if workspace.has_nextest() { nextest } else { package }.to_vec();
    words.extend(FACADE_ALONE);
    if workspace.has_nextest() {
        words.extend(["-E", "package(archipelago)"]);
    }
    workspace.cargo_keeping(&words, counts_tests)
}

fn chosen(names: &str) -> Result<Vec<Step>, String> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    let all = steps();
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|step| step.name() == **name)) {
        let known: Vec<&str> = all.iter().map(Step::name).collect();
        return Err(format!("there is no step {unknown:?}; steps are {}", known.join(", ")));
    }
    Ok(all.into_iter().filter(|step| names.contains(&step.name())).collect())
}

/// Runs each example of the facade; each must end by itself, in time and well.
fn examples(workspace: &Workspace) -> Outcome {
    let names = match example_names(&workspace.root().join("examples")) {
        Ok(names) if names.is_empty() => return Outcome::Skipped("there are no examples".to_owned()),
        Ok(names) => names,
        Err(error) => return Outcome::failed(format!("cannot list examples: {error}")),
    };
    if let failed @ Outcome::Failed(..) =
        workspace.cargo(&["build", "--workspace", FEATURES, "--examples", "--quiet"])
    {
        return failed;
    }
    let run = |name: &str, result: Result<(), String>| {
        result.map(|()| name.to_owned()).map_err(|why| {
            println!("-- example {name}: {why} --");
            format!("{name}: {why}")
        })
    };
    let mut results = Vec::new();
    for name in &names {
        println!("-- example {name} --");
        results.push(run(name, example(workspace, name)));
    }
    for backend in multidc::BACKENDS {
        println!("-- example multidc on {backend} --");
        if let Err(why) = servers::program(workspace, backend) {
            // The step that prepares servers fails if it is required.
            println!("skipped: {why}");
            continue;
        }
        results.push(run(&format!("multidc on {backend}"), multidc::run(workspace, backend, EXAMPLE_LIMIT)));
    }
    let (good, bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    let good: Vec<String> = good.into_iter().flatten().collect();
    let failures: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() {
        Outcome::Ok(vec![format!("{} ran and ended well", good.join(", "))])
    } else {
        Outcome::failed(failures.join("; "))
    }
}

fn example(workspace: &Workspace, name: &str) -> Result<(), String> {
    if name == "pair" {
        return pair::run(workspace, EXAMPLE_LIMIT);
    }
    let mut command = workspace.command(workspace.example(name));
    if SERVERS.contains(&name) {
        command.arg("--self-test");
    }
    let limit = limit_of(name);
    match run_within(&mut command, limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(status.to_string()),
        None => Err(format!("did not end within {} s", limit.as_secs())),
    }
}

/// How long an example may take once it is built.
fn limit_of(name: &str) -> Duration {
    if name == "multidc" { MINUTE } else { EXAMPLE_LIMIT }
}

/// `examples/NAME.rs` and `examples/NAME/main.rs`, in alphabetical order.
fn example_names(directory: &Path) -> std::io::Result<Vec<String>> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let is_example = path.extension().is_some_and(|ext| ext == "rs") || path.join("main.rs").exists();
        names.extend(path.file_stem().filter(|_| is_example).map(|name| name.to_string_lossy().into_owned()));
    }
    names.sort();
    Ok(names)
}

/// Examples that serve until they are stopped; `--self-test` makes them call themselves once and end.
const SERVERS: [&str; 2] = ["shop", "webapp"];

const EXAMPLE_LIMIT: Duration = Duration::from_secs(120);

/// README promises newcomers that `multidc` takes less than a minute.
const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_different_names_and_can_be_chosen() {
        let steps = steps();
        let mut names: Vec<&str> = steps.iter().map(Step::name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
        assert_eq!(chosen("clippy, format").unwrap().len(), 2);
        assert!(chosen("clipy").err().unwrap().contains("\"clipy\""));
    }

    #[test]
    fn the_example_for_newcomers_has_less_than_a_minute() {
        assert_eq!(limit_of("multidc"), Duration::from_secs(60));
        assert!(limit_of("sharding") > limit_of("multidc"));
    }

    #[test]
    fn examples_are_found_as_files_and_as_directories() {
        let directory = std::env::temp_dir().join(format!("xtask-examples-{}", std::process::id()));
        std::fs::create_dir_all(directory.join("bank")).unwrap();
        std::fs::create_dir_all(directory.join("data")).unwrap();
        for file in ["bank/main.rs", "hello.rs", "notes.txt"] {
            std::fs::write(directory.join(file), "").unwrap();
        }
        assert_eq!(example_names(&directory).unwrap(), ["bank", "hello"]);
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(example_names(&directory).unwrap().is_empty());
    }
}
