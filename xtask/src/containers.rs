//! The servers of `config/compose.yaml`, brought up for real, and the suites of the backends against them.
//!
//! Images that are neither here nor to be had are replaced by [`stand_in`]s under the same names, which are removed
//! again. The containers, their network and their volumes bear a name of this run, listen on free ports, and are taken
//! down however the tests end.
#![expect(clippy::disallowed_types, reason = "asks real servers whether they are there")]

mod compose;
pub(crate) mod datacenters;
pub(crate) mod deployment;
mod image;
mod stand_in;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::capture::counts_tests;
use crate::servers::run_quietly;
use crate::step::Outcome;
use crate::workspace::Workspace;
use compose::Compose;
use stand_in::StandIns;

/// Runs the suites of the backends on the servers of the compose file.
pub(crate) fn step(workspace: &Workspace, features: &str) -> Outcome {
    let lines = Composition::new(workspace).and_then(|composition| {
        composition.up()?;
        let etcd = composition.suites(features, ("ARCHIPELAGO_TEST_ETCD", "etcd"), &["newest::"])?;
        let filters = ["store::", "directory::", "control_plane::"];
        let nats = composition.suites(features, ("ARCHIPELAGO_TEST_NATS", "nats"), &filters)?;
        Ok([composition.images.said(), etcd, nats].concat())
    });
    lines.map_or_else(Outcome::failed, Outcome::Ok)
}

/// The services, while they are up. Dropped, they are gone.
struct Composition<'a> {
    workspace: &'a Workspace,
    compose: Compose,
    name: String,
    ports: [(&'static str, u16); 2],
    images: StandIns<'a>,
}

impl<'a> Composition<'a> {
    fn new(workspace: &'a Workspace) -> Result<Self, String> {
        let compose = Compose::find(workspace)?;
        let ports = [("ARCHIPELAGO_ETCD_PORT", free_port()?), ("ARCHIPELAGO_NATS_PORT", free_port()?)];
        let images = StandIns::provide(workspace, &images(workspace, &["etcd", "nats"])?)?;
        let name = format!("archipelago-test-{}", std::process::id());
        Ok(Self { workspace, compose, name, ports, images })
    }

    fn up(&self) -> Result<(), String> {
        run_quietly(self.command().args(["up", "-d"]), "compose up")?;
        for (_, port) in self.ports {
            wait_for(port)?;
        }
        let running = self.command().args(["ps"]).output().map_err(|error| error.to_string())?;
        println!("{}", String::from_utf8_lossy(&running.stdout));
        Ok(())
    }

    /// Runs those tests of `target` whose names match; each uses the server in its container, and none starts one.
    fn suites(
        &self,
        features: &str,
        (variable, target): (&str, &str),
        filters: &[&str],
    ) -> Result<Vec<String>, String> {
        let mut words = vec!["test", "--workspace", features, "--test", target, "--"];
        words.extend(filters);
        let mut workspace = self.workspace.clone();
        workspace.set(variable, "container");
        for (variable, port) in self.ports {
            workspace.set(variable, port.to_string());
        }
        match workspace.cargo_keeping(&words, counts_tests) {
            Outcome::Ok(lines) if lines.is_empty() => Err(format!("no test of {target} ran")),
            Outcome::Ok(lines) => Ok(lines),
            Outcome::Failed(why, _) | Outcome::Skipped(why) => Err(why),
        }
    }

    fn command(&self) -> Command {
        let mut command = self.compose.command(self.workspace);
        command.args(["-f", FILE, "-p", &self.name, "--profile", "etcd", "--profile", "nats"]);
        command.envs(self.ports.map(|(variable, port)| (variable, port.to_string())));
        command
    }
}

impl Drop for Composition<'_> {
    fn drop(&mut self) {
        if let Err(why) = run_quietly(self.command().args(["down", "--volumes"]), "compose down") {
            println!("{} is left behind: {why}", self.name);
        }
    }
}

/// The images that the compose file names for these servers.
fn images(workspace: &Workspace, servers: &[&str]) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(workspace.root().join(FILE));
    Ok(images_in(&text.map_err(|error| format!("{FILE}: {error}"))?, servers))
}

fn images_in(text: &str, servers: &[&str]) -> Vec<String> {
    let named = text.lines().filter_map(|line| line.trim().strip_prefix("image:"));
    let mut images: Vec<String> = named.map(|image| image.trim().trim_matches('"').to_owned()).collect();
    images.retain(|image| servers.contains(&server(image)));
    images.sort();
    images.dedup();
    images
}

/// `quay.io/coreos/etcd:v3.5.21` is an etcd.
fn server(image: &str) -> &str {
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split(':').next().unwrap_or(name)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// A port is open before the server behind it is ready, so it is asked.
fn wait_for(port: u16) -> Result<(), String> {
    let until = Instant::now() + READY_LIMIT;
    while !serves(port).unwrap_or(false) {
        if Instant::now() > until {
            return Err(format!("no server answers on port {port} after {READY_LIMIT:?}"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// etcd says that it is healthy; NATS greets whoever comes.
fn serves(port: u16) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
    let mut said = [0; 16];
    let length = stream.read(&mut said)?;
    let said = String::from_utf8_lossy(&said[..length]);
    Ok(said.starts_with("INFO ") || said.split(' ').nth(1) == Some("200"))
}

const FILE: &str = "config/compose.yaml";
const READY_LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_read_from_the_compose_file() {
        let text = "services:\n  etcd:\n    image: quay.io/etcd:v3\n  nats:\n    image: \"nats:2\"\n  \
                    again:\n    image: nats:2\n  fdb:\n    image: foundationdb/foundationdb:7\n";
        assert_eq!(images_in(text, &["etcd", "nats"]), ["nats:2", "quay.io/etcd:v3"]);
        assert_eq!(images_in(text, &["nats"]), ["nats:2"]);
    }

    #[test]
    fn the_compose_file_has_a_profile_for_every_store() {
        let text = include_str!("../../config/compose.yaml");
        let lists: Vec<&str> = text.lines().filter(|line| line.trim().starts_with("profiles:")).collect();
        for profile in ["etcd", "nats", "fdb", "all", "multidc"] {
            assert!(lists.iter().any(|list| list.contains(&format!("\"{profile}\""))), "{profile}");
        }
    }
}
