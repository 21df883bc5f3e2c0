//! Older servers, as Debian has them: for the tests of what they can do and of what is refused.
//!
//! They are unpacked below `target/debian`, nothing is installed. Where there is no apt, or it has other versions, they are
//! not there, which fails a run that requires them.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{named, started};
use crate::workspace::Workspace;

/// A server program of a Debian package.
pub(super) struct Older {
    pub(super) name: &'static str,
    package: &'static str,
    program: &'static str,
    /// One of these must be in what it says about its version.
    versions: &'static [&'static str],
}

pub(super) const OLDER: [Older; 2] = [
    Older { name: "etcd34", package: "etcd-server", program: "usr/bin/etcd", versions: &[" 3.4."] },
    Older {
        name: "nats_old",
        package: "nats-server",
        program: "usr/sbin/nats-server",
        versions: &["v2.9.", "v2.10."],
    },
];

impl Older {
    /// The program and its version: the one that was named, or unpacked from the package.
    pub(super) fn get(&self, workspace: &Workspace) -> Result<(PathBuf, String), String> {
        if let Some(named) = named(workspace, self.name) {
            return named;
        }
        let folder = workspace.target().join("debian").join(self.package);
        let program = folder.join(self.program);
        let found = started(workspace, &program).map_or_else(
            || {
                self.fetch(workspace, &folder)?;
                started(workspace, &program).ok_or_else(|| "it does not start".to_owned())
            },
            Ok,
        )?;
        if self.is_wanted(&found.1) { Ok(found) } else { Err(format!("it is {}", found.1)) }
    }

    fn is_wanted(&self, version: &str) -> bool {
        self.versions.iter().any(|wanted| version.contains(wanted))
    }

    fn fetch(&self, workspace: &Workspace, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        run(workspace, folder, &["apt-get", "download", "--quiet", self.package])?;
        let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?.flatten();
        let is_package = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "deb");
        let package = entries.map(|entry| entry.path()).find(is_package);
        let package = package.ok_or("apt-get brought no package")?;
        run(workspace, folder, &["dpkg", "-x", &package.to_string_lossy(), "."])
    }
}

fn run(workspace: &Workspace, folder: &Path, words: &[&str]) -> Result<(), String> {
    let mut command = workspace.command(words[0]);
    let command = command.args(&words[1..]).current_dir(folder).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("`{}`: {error}", words[0]))?;
    if output.status.success() { Ok(()) } else { Err(format!("`{}` failed", words.join(" "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_older_versions_are_taken() {
        let [etcd, nats] = &OLDER;
        assert!(etcd.is_wanted("etcd Version: 3.4.23") && !etcd.is_wanted("etcd Version: 3.5.16"));
        assert!(nats.is_wanted("nats-server: v2.9.10") && !nats.is_wanted("nats-server: v2.11.0"));
    }
}
