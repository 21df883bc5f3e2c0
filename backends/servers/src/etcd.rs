//! How etcd is started.
//!
//! Two versions may be there: `etcd`, and `etcd34`, an etcd 3.4. etcd 3.5.0 to
//! 3.5.2 can lose committed transactions when it is killed under load (etcd-io/etcd issue 13766), so tests that kill or
//! pause take the 3.4 ([`EtcdServer::to_hurt`]), and are skipped where there is none.

use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::process::{LOOPBACK, Place, Recipe, ServerProcess, http_ok};
use crate::program::{self, Source};

/// A running etcd with one member. Killed when it is dropped.
pub struct EtcdServer {
    process: ServerProcess,
    scheme: &'static str,
}

/// The certificates of a server that talks TLS.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// What client certificates must be signed by, as a PEM file. Clients without one are refused.
    pub client_ca_file: PathBuf,
    /// The server's own, as a PEM file.
    pub certificate_file: PathBuf,
    /// Its private key, as a PEM file.
    pub key_file: PathBuf,
}

impl EtcdServer {
    /// Starts an etcd for one test; `None` if there is no program, which has been said.
    pub fn start() -> Option<Self> {
        Some(Self::spawn(program()?, LOOPBACK, None))
    }

    /// Starts an etcd 3.4 that may be killed and paused; `None` if there is no program, which has been said.
    pub fn to_hurt() -> Option<Self> {
        Self::to_hurt_at(LOOPBACK)
    }

    /// The same, for clients that reach it at `host`, an address of this machine or namespace.
    pub fn to_hurt_at(host: IpAddr) -> Option<Self> {
        Some(Self::spawn(program_34()?, host, None))
    }

    /// Starts an etcd that talks TLS; `None` if there is no program, which has been said.
    pub fn with_tls(tls: ServerTls) -> Option<Self> {
        Some(Self::spawn(program()?, LOOPBACK, Some(tls)))
    }

    /// Starts `members` of one cluster of etcd 3.4 that may be killed and paused; `None` if there is no program, which has been said.
    pub fn cluster(members: usize) -> Option<Vec<Self>> {
        let program = program_34()?;
        let peers = Arc::new(OnceLock::new());
        let recipe = |n| {
            let membership = Membership { n, peers: Arc::clone(&peers) };
            recipe(program.clone(), LOOPBACK, move |place| arguments(place, "http", &membership))
        };
        let processes = ServerProcess::start_together((0..members).map(recipe).collect(), |places| {
            peers.get_or_init(|| places.iter().map(|place| place.port(PEERS)).collect());
        });
        Some(processes.into_iter().map(|process| Self { process, scheme: "http" }).collect())
    }

    /// Where clients reach it.
    pub fn address(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.place().host(), self.port(CLIENTS))
    }

    fn spawn(program: PathBuf, host: IpAddr, tls: Option<ServerTls>) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let recipe = recipe(program, host, move |place| {
            let mut arguments = arguments(place, scheme, &Membership::alone(place));
            // Alone it waits for nobody's vote; the shorter, the sooner it starts.
            arguments.extend(["--heartbeat-interval=10".to_owned(), "--election-timeout=100".to_owned()]);
            arguments.extend(tls.iter().flat_map(ServerTls::arguments));
            arguments
        });
        Self { process: ServerProcess::start(recipe), scheme }
    }
}

fn program() -> Option<PathBuf> {
    let found = program::find_program("etcd", "etcd");
    if found.is_none() {
        program::skip("etcd", "no etcd found; set ARCHIPELAGO_TEST_ETCD_BIN to one");
    }
    found
}

/// Nothing stands in for it: what another version loses when it is killed would be laid at our door, or be missed.
fn program_34() -> Option<PathBuf> {
    let found = program::older("etcd34", "etcd-server/usr/bin/etcd");
    if found.is_none() {
        program::skip("etcd34", "no etcd 3.4 found; set ARCHIPELAGO_TEST_ETCD34_BIN to one");
    }
    found
}

impl ServerTls {
    fn arguments(&self) -> Vec<String> {
        vec![
            "--client-cert-auth".to_owned(),
            format!("--trusted-ca-file={}", self.client_ca_file.display()),
            format!("--cert-file={}", self.certificate_file.display()),
            format!("--key-file={}", self.key_file.display()),
        ]
    }
}

/// Which member it is, and on which ports all members reach each other.
struct Membership {
    n: usize,
    peers: Arc<OnceLock<Vec<u16>>>,
}

impl Membership {
    fn alone(place: &Place) -> Self {
        Self { n: 0, peers: Arc::new(OnceLock::from(vec![place.port(PEERS)])) }
    }

    fn arguments(&self) -> [String; 2] {
        let peers = self.peers.get().expect("all places are known when the first is started");
        let member = |(n, port): (usize, &u16)| format!("member{n}=http://127.0.0.1:{port}");
        let all: Vec<String> = peers.iter().enumerate().map(member).collect();
        [format!("--name=member{}", self.n), format!("--initial-cluster={}", all.join(","))]
    }
}

fn recipe(
    program: PathBuf,
    host: IpAddr,
    arguments: impl Fn(&Place) -> Vec<String> + Send + Sync + 'static,
) -> Recipe {
    Recipe {
        name: "etcd",
        program,
        host,
        ports: 3,
        arguments: Box::new(arguments),
        ready: Box::new(|place| http_ok(place.port(METRICS), "/health")),
    }
}

impl Deref for EtcdServer {
    type Target = ServerProcess;

    fn deref(&self) -> &ServerProcess {
        &self.process
    }
}

impl DerefMut for EtcdServer {
    fn deref_mut(&mut self) -> &mut ServerProcess {
        &mut self.process
    }
}

/// The address of an etcd that all tests of this process share, and that none may hurt; `None` if there is no etcd, which
/// has been said. `ARCHIPELAGO_TEST_ETCD` may name one.
pub fn shared() -> Option<String> {
    static SHARED: OnceLock<EtcdServer> = OnceLock::new();
    match program::find("etcd", "etcd")? {
        Source::At(address) => Some(address),
        Source::Spawn(program) => Some(started_once(&SHARED, program)),
    }
}

/// The same for an etcd 3.4; `None` if there is none, which has been said.
pub fn shared_34() -> Option<String> {
    static SHARED: OnceLock<EtcdServer> = OnceLock::new();
    Some(started_once(&SHARED, program_34()?))
}

/// What lives in a static is never dropped: it ends when the process does.
fn started_once(server: &'static OnceLock<EtcdServer>, program: PathBuf) -> String {
    server.get_or_init(|| EtcdServer::spawn(program, LOOPBACK, None)).address()
}

fn arguments(place: &Place, scheme: &str, membership: &Membership) -> Vec<String> {
    let clients = format!("{scheme}://{}:{}", place.host(), place.port(CLIENTS));
    let peers = format!("http://127.0.0.1:{}", place.port(PEERS));
    let mut arguments = vec![
        format!("--data-dir={}", place.folder().join("data").display()),
        format!("--listen-client-urls={clients}"),
        format!("--advertise-client-urls={clients}"),
        format!("--listen-peer-urls={peers}"),
        format!("--initial-advertise-peer-urls={peers}"),
        format!("--listen-metrics-urls=http://127.0.0.1:{}", place.port(METRICS)),
        "--logger=zap".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    arguments.extend(membership.arguments());
    arguments
}

const CLIENTS: usize = 0;
const PEERS: usize = 1;
const METRICS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etcd_is_paused_killed_and_restarted_at_the_same_address() {
        let Some(mut server) = EtcdServer::to_hurt() else { return };
        let healthy = |server: &EtcdServer| http_ok(server.port(METRICS), "/health");
        let address = server.address();
        server.pause();
        assert!(!healthy(&server), "a paused server answers nobody");
        server.resume();
        assert!(healthy(&server));
        server.kill();
        assert!(!healthy(&server));
        server.restart();
        assert!(healthy(&server));
        server.stop();
        assert!(!healthy(&server));
        server.restart();
        assert!(healthy(&server));
        assert_eq!(server.address(), address);
        let folder = server.place().folder().to_owned();
        drop(server);
        assert!(!folder.exists(), "nothing is left behind");
    }
}
