//! How a NATS server is started.
//!
//! It listens on loopback with JetStream in its own folder, and is ready within a few hundredths of a second, so every
//! test may have one of its own. What else it should know is a text that follows the rest of its configuration.

use std::path::{Path, PathBuf};

use crate::process::{Place, Recipe, ServerProcess, answer, http_ok};
use crate::program::{Source, find, find_program};

/// The program of a present server, or `None` if there is none: then the test is skipped, and has been told.
///
/// # Panics
///
/// If there is none and `ARCHIPELAGO_TEST_REQUIRE` names `nats`.
pub fn program() -> Option<PathBuf> {
    match find("nats", "nats-server")? {
        Source::Spawn(program) => Some(program),
        Source::At(address) => {
            panic!("tests hurt the server, so they start it themselves, not use {address}")
        }
    }
}

/// A server from before 2.11, as Debian has it: `ARCHIPELAGO_TEST_NATS_OLD_BIN`. `None`: the test is skipped.
pub fn old_program() -> Option<PathBuf> {
    let found = find_program("nats_old", "nats-server-2.9");
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
    ServerProcess::start(Recipe {
        name: "nats-server",
        program,
        ports: 2,
        arguments: Box::new(move |place| arguments(place, &more(place.folder()))),
        ready: Box::new(|place| {
            // The port is open before JetStream has read its streams; the health check is not content until then.
            let greets = answer(place.port(0), b"").is_some_and(|said| said.starts_with("INFO "));
            greets && http_ok(place.port(1), "/healthz")
        }),
    })
}

/// The address of a running server.
pub fn url(server: &ServerProcess) -> String {
    format!("nats://127.0.0.1:{}", server.port(0))
}

/// The folder of its streams.
pub fn store_folder(server: &ServerProcess) -> PathBuf {
    server.place().folder().join("streams")
}

fn arguments(place: &Place, more: &str) -> Vec<String> {
    let file = place.folder().join("server.conf");
    let text = format!(
        "listen: 127.0.0.1:{}\nhttp: 127.0.0.1:{}\njetstream {{ store_dir: {:?} }}\n{more}\n",
        place.port(0),
        place.port(1),
        place.folder().join("streams"),
    );
    std::fs::write(&file, text).expect("the folder can be written");
    vec!["-c".to_owned(), file.display().to_string()]
}
