//! Three datacenters of two nodes each, over QUIC on loopback, in one process. Nothing has to be set up:
//!
//! ```text
//! cargo run --example multidc
//! ```
//!
//! It shows how the datacenters find each other, how messages find actors wherever they live, and what happens when a leader, a
//! whole datacenter, or the control plane goes away. It ends with an error if anything that it promises does not happen.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program of its own that prints, waits and measures"
)]

mod plane;
mod story;
mod tally;
mod town;
mod view;

use std::process::ExitCode;

use view::View;

#[actix::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().with_max_level(tracing::Level::ERROR).with_writer(std::io::stderr).init();
    let mut view = View::new();
    match story::tell(&mut view).await {
        Ok(tally) if view.end(&tally) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the example could not go on: {error}");
            ExitCode::FAILURE
        }
    }
}
