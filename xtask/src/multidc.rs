//! The example of several datacenters with a process per node, on servers that are started for it.
#![expect(clippy::disallowed_types, reason = "asks real servers whether they are there")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::capture::run_within;
use crate::servers;
use crate::workspace::Workspace;

/// The stores that it runs on, besides the embedded one.
pub(crate) const BACKENDS: [&str; 2] = ["etcd", "nats"];

/// Runs it on one of them.
pub(crate) fn run(workspace: &Workspace, backend: &str, limit: Duration) -> Result<(), String> {
    let server = Server::start(workspace, backend)?;
    let mut command = workspace.command(workspace.example("multidc"));
    command.args(["--backend", backend, "--endpoint", &server.endpoint]);
    match run_within(&mut command, limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(status.to_string()),
        None => Err(format!("did not end within {} s", limit.as_secs())),
    }
}

/// A server. Dropped, it is gone, and what it wrote as well.
struct Server {
    process: Child,
    endpoint: String,
    folder: PathBuf,
}

impl Server {
    fn start(workspace: &Workspace, backend: &str) -> Result<Self, String> {
        let program = servers::program(workspace, backend)?;
        let folder =
            std::env::temp_dir().join(format!("archipelago-multidc-{backend}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let (port, peers) = (free_port()?, free_port()?);
        let (mut command, scheme) =
            (workspace.command(&program), if backend == "etcd" { "http" } else { "nats" });
        match backend {
            "etcd" => etcd(&mut command, &folder, port, peers),
            _ => nats(&mut command, &folder, port),
        }
        let spawned = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = spawned.map_err(|error| format!("{} does not start: {error}", program.display()))?;
        let server = Self { process, endpoint: format!("{scheme}://127.0.0.1:{port}"), folder };
        let until = Instant::now() + READY_LIMIT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > until {
                return Err(format!("{backend} does not answer"));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; a folder that stays is in the way of nobody.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn etcd(command: &mut Command, folder: &Path, port: u16, peers: u16) {
    let (clients, peers) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peers}"));
    command
        .arg("--data-dir")
        .arg(folder)
        .args(["--name", "etcd", "--listen-client-urls", &clients, "--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("etcd={peers}")]);
}

fn nats(command: &mut Command, folder: &Path, port: u16) {
    command
        .args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--jetstream", "--store_dir"])
        .arg(folder);
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

const READY_LIMIT: Duration = Duration::from_secs(30);
