//! How a NATS server is started.
//!
//! It listens on loopback with JetStream in its own folder, and is ready within a few hundredths of a second, so every
//! test may have one of its own. What else it should know is a text that follows the rest of its configuration.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::process::{LOOPBACK, Place, Recipe, ServerProcess, answer, http_ok};
use crate::program::{Source, find, find_program, older};

/// The program of a present server, or `None` if there is none: then the test is skipped, and has been told.
///
/// # Panics
///
/// If there is none and `ARCHIPELAGO_TEST_REQUIRE` names `nats`.
pub fn program() -> Option<PathBuf> {
    let found = find_program("nats", "nats-server");
    if found.is_none() {
        crate::program::skip("nats", "no nats-server found; set ARCHIPELAGO_TEST_NATS_BIN to one");
    }
    found
}

/// The address of a server that `ARCHIPELAGO_TEST_NATS` names, for tests that do not hurt it; `None` if they are to start
/// one.
pub fn named() -> Option<String> {
    match find("nats", "nats-server")? {
        Source::At(address) => Some(address),
        Source::Spawn(_) => None,
    }
}

/// A server from before 2.11, as Debian has it: `ARCHIPELAGO_TEST_NATS_OLD_BIN`. `None`: the test is skipped.
pub fn old_program() -> Option<PathBuf> {
    let found = older("nats_old", "nats-server/usr/sbin/nats-server");
    if found.is_none() {
        crate::program::skip(
            "nats_old",
            "no NATS server from before 2.11 found; set ARCHIPELAGO_TEST_NATS_OLD_BIN to one",
        );
    }
    found
}

/// Starts `program`, told `more` beside its address and folder.
pub fn start(program: PathBuf, more: impl Fn(&Path) -> String + Send + Sync + 'static) -> ServerProcess {
    ServerProcess::start(recipe(program, LOOPBACK, move |place| arguments(place, "", &more(place.folder()))))
}

/// Starts `program` as production needs it: a write is on disk when it is acknowledged.
pub fn start_durable(program: PathBuf) -> ServerProcess {
    start_durable_at(program, LOOPBACK)
}

/// The same, for clients that reach it at `host`, an address of this machine or namespace.
pub fn start_durable_at(program: PathBuf, host: IpAddr) -> ServerProcess {
    ServerProcess::start(recipe(program, host, |place| arguments(place, DURABLE, "")))
}

/// Starts `members` of one cluster as production needs it, called `member0` and so on.
pub fn start_cluster(program: &Path, members: usize) -> Vec<ServerProcess> {
    let routes: Arc<OnceLock<Vec<u16>>> = Arc::default();
    let recipe = |n| {
        let routes = Arc::clone(&routes);
        let cluster = move |place: &Place| {
            let routes = routes.get().expect("all places are known when the first is started");
            let routes: Vec<String> =
                routes.iter().map(|port| format!("\"nats://127.0.0.1:{port}\"")).collect();
            format!(
                "server_name: member{n}\ncluster {{ name: test, listen: \"127.0.0.1:{}\", routes: [{}] }}",
                place.port(ROUTES),
                routes.join(", ")
            )
        };
        recipe(program.to_owned(), LOOPBACK, move |place| arguments(place, DURABLE, &cluster(place)))
    };
    ServerProcess::start_together((0..members).map(recipe).collect(), |places| {
        routes.get_or_init(|| places.iter().map(|place| place.port(ROUTES)).collect());
    })
}

fn recipe(
    program: PathBuf,
    host: IpAddr,
    arguments: impl Fn(&Place) -> Vec<String> + Send + Sync + 'static,
) -> Recipe {
    Recipe {
        name: "nats-server",
        program,
        host,
        ports: 3,
        arguments: Box::new(arguments),
        ready: Box::new(|place| {
            // The port is open before JetStream has read its streams; the health check is not content until then.
            let clients = SocketAddr::from((place.host(), place.port(0)));
            let greets = answer(clients, b"").is_some_and(|said| said.starts_with("INFO "));
            greets && http_ok(place.port(1), "/healthz")
        }),
    }
}

/// The address of a running server.
pub fn url(server: &ServerProcess) -> String {
    format!("nats://{}:{}", server.place().host(), server.port(0))
}

/// The folder of its streams.
pub fn store_folder(server: &ServerProcess) -> PathBuf {
    server.place().folder().join("streams")
}

fn arguments(place: &Place, jetstream: &str, more: &str) -> Vec<String> {
    let file = place.folder().join("server.conf");
    let text = format!(
        "listen: {}:{}\nhttp: 127.0.0.1:{}\njetstream {{ store_dir: {:?}\n{jetstream} }}\n{more}\n",
        place.host(),
        place.port(0),
        place.port(1),
        place.folder().join("streams"),
    );
    std::fs::write(&file, text).expect("the folder can be written");
    vec!["-c".to_owned(), file.display().to_string()]
}

/// Without it JetStream acknowledges what is not on disk yet.
const DURABLE: &str = "sync_interval: always";
/// The port on which members of a cluster reach each other.
const ROUTES: usize = 2;
