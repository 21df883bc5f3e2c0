//! The workspace: where it is, and how child processes are started in it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::capture::{Captured, capture};
use crate::step::Outcome;

/// The workspace and the environment that its children get.
#[derive(Clone, Debug)]
pub(crate) struct Workspace {
    root: PathBuf,
    variables: Vec<(String, OsString)>,
}

impl Workspace {
    /// The workspace that this program belongs to.
    pub(crate) fn find() -> Result<Self, String> {
        let own = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let root = match own.as_deref().and_then(Path::parent) {
            Some(root) => root.to_owned(),
            None => std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?,
        };
        let mut workspace = Self::at(root);
        workspace.offer_protoc();
        Ok(workspace)
    }

    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root, variables: Vec::new() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where builds go; children inherit the same.
    pub(crate) fn target(&self) -> PathBuf {
        match std::env::var_os("CARGO_TARGET_DIR") {
            Some(path) => self.root.join(path),
            None => self.root.join("target"),
        }
    }

    /// Where a build puts a program of the workspace.
    pub(crate) fn built(&self, program: &str) -> PathBuf {
        self.target().join("debug").join(program)
    }

    /// Where it puts an example.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.built("examples").join(name)
    }

    /// Hands a variable to every child started from now on.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    /// A program, to be run in the root of the workspace.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        // What `cargo run` says about this program is not true of its children.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(&name);
            }
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// `cargo` with these words.
    pub(crate) fn cargo_command(&self, words: &[&str]) -> Command {
        let mut command = self.command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(words);
        command
    }

    /// Runs cargo; what it says goes straight through.
    pub(crate) fn cargo(&self, words: &[&str]) -> Outcome {
        judge(&mut self.cargo_command(words), words)
    }

    /// Runs cargo with one more variable.
    pub(crate) fn cargo_with(&self, variable: (&str, &str), words: &[&str]) -> Outcome {
        judge(self.cargo_command(words).env(variable.0, variable.1), words)
    }

    /// Runs cargo, shows all it says, and keeps the lines that `keep` chooses.
    pub(crate) fn cargo_keeping(&self, words: &[&str], keep: fn(&str) -> bool) -> Outcome {
        match capture(&mut self.cargo_command(words), keep) {
            Ok(Captured { status, lines }) if status.success() => Outcome::Ok(lines),
            Ok(Captured { status, lines }) => {
                Outcome::Failed(format!("cargo {}: {status}", words.join(" ")), lines)
            }
            Err(message) => Outcome::failed(message),
        }
    }

    /// The same, for at most so long: then cargo and all that it has started are killed.
    pub(crate) fn cargo_keeping_within(
        &self,
        words: &[&str],
        limit: Duration,
        keep: fn(&str) -> bool,
    ) -> Outcome {
        let cargo = self.cargo_command(words);
        let mut command = self.command("timeout");
        command.args(["--kill-after=10", &limit.as_secs().to_string()]).arg(cargo.get_program()).args(words);
        match capture(&mut command, keep) {
            Ok(Captured { status, lines }) if status.success() => Outcome::Ok(lines),
            Ok(Captured { status, lines }) if status.code() == Some(OUT_OF_TIME) => {
                Outcome::Failed(format!("no end within {} s", limit.as_secs()), lines)
            }
            Ok(Captured { status, lines }) => {
                Outcome::Failed(format!("cargo {}: {status}", words.join(" ")), lines)
            }
            Err(message) => Outcome::failed(message),
        }
    }

    /// What a program prints; none if it cannot be run or fails.
    pub(crate) fn ask(&self, program: impl AsRef<std::ffi::OsStr>, words: &[&str]) -> Option<String> {
        let output = self.command(program).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Whether `cargo nextest` is installed.
    pub(crate) fn has_nextest(&self) -> bool {
        self.cargo_command(&["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
    }

    /// Builds that need a protocol buffer compiler find one; the user's own choice goes first.
    fn offer_protoc(&mut self) {
        if std::env::var_os("PROTOC").is_some() {
            return;
        }
        if let (Ok(program), Ok(include)) =
            (protoc_bin_vendored::protoc_bin_path(), protoc_bin_vendored::include_path())
        {
            self.set("PROTOC", program);
            self.set("PROTOC_INCLUDE", include);
        }
    }
}

fn judge(command: &mut Command, words: &[&str]) -> Outcome {
    match command.status() {
        Ok(status) if status.success() => Outcome::ok(),
        Ok(status) => Outcome::failed(format!("cargo {}: {status}", words.join(" "))),
        Err(error) => Outcome::failed(format!("cannot run cargo: {error}")),
    }
}

/// How `timeout` says that it had to end its program.
const OUT_OF_TIME: i32 = 124;
