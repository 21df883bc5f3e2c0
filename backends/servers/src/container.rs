//! The servers of `config/compose.yaml`.
//!
//! One that answers already is used as it is; otherwise it is started, and stays when the tests have ended, for the next
//! ones: `docker compose -f config/compose.yaml --profile all down --volumes` takes it away.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{LOOPBACK, answer, http_ok};

/// A service of the compose file.
struct Service {
    name: &'static str,
    scheme: &'static str,
    /// Which variable of the compose file says where on loopback it is reached.
    port_variable: &'static str,
    usual_port: u16,
    answers: fn(u16) -> bool,
}

const SERVICES: [Service; 2] = [
    Service {
        name: "etcd",
        scheme: "http",
        port_variable: "ARCHIPELAGO_ETCD_PORT",
        usual_port: 2379,
        answers: |port| http_ok(port, "/health"),
    },
    Service {
        name: "nats",
        scheme: "nats",
        port_variable: "ARCHIPELAGO_NATS_PORT",
        usual_port: 4222,
        answers: |port| {
            answer(SocketAddr::from((LOOPBACK, port)), b"").is_some_and(|said| said.starts_with("INFO "))
        },
    },
];

/// Where `engine` of the compose file is reached.
///
/// # Panics
///
/// If the compose file has no such service, or it cannot be started.
pub(crate) fn address(engine: &str) -> String {
    let service = SERVICES.iter().find(|service| service.name == engine);
    let service = service.unwrap_or_else(|| panic!("config/compose.yaml has no {engine}"));
    let port = service.port();
    if !(service.answers)(port) {
        service.start(port);
    }
    format!("{}://127.0.0.1:{port}", service.scheme)
}

impl Service {
    fn port(&self) -> u16 {
        let chosen = std::env::var(self.port_variable).ok().filter(|port| !port.is_empty());
        chosen.map_or(self.usual_port, |port| port.parse().expect("a port is a number"))
    }

    /// One test process starts it, the others wait for that.
    fn start(&self, port: u16) {
        let lock =
            File::create(std::env::temp_dir().join("archipelago-test-compose")).expect("can be written");
        lock.lock().expect("a file can be locked");
        if (self.answers)(port) {
            return;
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/compose.yaml");
        let mut command = compose();
        command.arg("-f").arg(file).args(["--profile", self.name, "up", "-d"]);
        let output = command.output().expect("compose can be run");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} of config/compose.yaml does not start: {said}", self.name);
        let start = Instant::now();
        while !(self.answers)(port) {
            assert!(start.elapsed() < READY_LIMIT, "{} in its container does not answer", self.name);
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// `docker compose`, or the older program.
fn compose() -> Command {
    let newer = Command::new("docker").args(["compose", "version"]).output();
    if newer.is_ok_and(|output| output.status.success()) {
        let mut command = Command::new("docker");
        command.arg("compose");
        return command;
    }
    Command::new("docker-compose")
}

const READY_LIMIT: Duration = Duration::from_secs(60);
