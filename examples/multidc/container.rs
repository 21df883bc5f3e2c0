//! A node in a container of its own (the profile `multidc` of `config/compose.yaml`). Orders and answers go through a socket in a
//! folder that the containers share, so that no network is needed for them: the networks carry what the nodes tell each other.

use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use archipelago::prelude::*;

use crate::node::Settings;
use crate::orders::{Line, obey, tell};

/// The first argument of a container that becomes a node; the other is the path of its socket.
pub(crate) const NODE: &str = "--container";

/// The line to the node whose socket is `name` in `folder`. Waits until the container is up and the node serves.
pub(crate) fn reach(folder: &Path, name: &str, settings: &Settings) -> Result<Line, BoxError> {
    let (path, until) = (folder.join(name), Instant::now() + PATIENCE);
    let mut orders = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(error) if Instant::now() > until => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    tell(&mut orders, settings)?;
    let answers = BufReader::new(orders.try_clone()?);
    Line::to(orders, answers)
}

/// What the container of a node does: it waits to be told which node it is.
pub(crate) async fn run(path: &Path) -> ExitCode {
    match told(path) {
        Ok((settings, orders, mut answers)) => obey(&settings, orders, &mut answers).await,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            ExitCode::FAILURE
        }
    }
}

type Told = (Settings, BufReader<UnixStream>, UnixStream);

fn told(path: &Path) -> Result<Told, BoxError> {
    // What an earlier run has left is in the way.
    drop(std::fs::remove_file(path));
    let (stream, _) = UnixListener::bind(path)?.accept()?;
    let mut orders = BufReader::new(stream.try_clone()?);
    let mut text = String::new();
    orders.read_line(&mut text)?;
    Ok((serde_json::from_str(&text)?, orders, stream))
}

const PATIENCE: Duration = Duration::from_secs(20);
