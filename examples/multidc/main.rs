//! Three datacenters of two nodes each, over QUIC on loopback, in one process. Nothing has to be set up:
//!
//! ```text
//! cargo run --example multidc
//! ```
//!
//! It shows how the datacenters find each other, how messages find actors wherever they live, and what happens when a leader, a
//! whole datacenter, or the control plane goes away. It ends with an error if anything that it promises does not happen.
//!
//! With `-- --dashboard` it prints the address of a page that shows it all, and goes on until ctrl-c when its story is over.
//!
//! The same with a process per node, on a store that you run already:
//!
//! ```text
//! docker compose -f config/compose.yaml --profile etcd up -d
//! cargo run --features etcd --example multidc -- --backend etcd
//! ```
//!
//! And with a container per node and a network per datacenter, which are cut and healed (needs docker):
//!
//! ```text
//! cargo xtask multidc
//! ```
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own that prints, waits and measures"
)]

mod actors;
mod backend;
mod composed;
mod container;
mod cut;
mod dashboard;
mod node;
mod orders;
mod plane;
mod process;
mod road;
mod running;
mod scenes;
mod stage;
mod tally;
mod thread;
mod view;

use std::process::ExitCode;

use archipelago::prelude::*;

use backend::Backend;
use dashboard::Dashboard;
use stage::Stage;
use view::View;

#[actix::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some((process::NODE, settings)) => return process::run(settings).await,
        Some((container::NODE, [socket])) => return container::run(socket.as_ref()).await,
        _ => {}
    }
    // Only here: what the nodes of others log while their registry is away is expected.
    tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(std::io::stderr).init();
    let wanted =
        Backend::asked_for(&arguments).and_then(|backend| Ok((backend, Dashboard::asked_for(&arguments)?)));
    match wanted {
        Ok((backend, dashboard)) => tell(backend, dashboard).await,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Tells the whole story.
async fn tell(backend: Backend, dashboard: Option<Dashboard>) -> ExitCode {
    let mut view = View::new(backend.chapters());
    let told: Result<_, BoxError> = async {
        let mut stage = Stage::set(&mut view, backend, dashboard).await?;
        stage.play().await;
        Ok(stage.tally)
    }
    .await;
    match told {
        Ok(tally) if view.end(&tally) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the example could not go on: {error}");
            ExitCode::FAILURE
        }
    }
}
