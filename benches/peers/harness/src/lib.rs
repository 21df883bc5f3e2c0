//! What every contestant shares: two processes on loopback, asks and tells of 100 bytes, and the lines that say what
//! came of them.
//!
//! A contestant implements [`Peer`] and calls [`run`]. Its binary then understands
//!
//! - `ask IN_FLIGHT` and `tell`: starts itself once more as the server, measures one case and prints one line,
//! - nothing: all cases, one after the other, each in a process of its own,
//! - `serve`: is the server, until the process that started it is gone.
//!
//! The lines are those of `benches/remote`; a contestant that cannot do a case says why instead:
//!
//! ```text
//! elfo       ask  1024     200000/s p50  5000.0 p99   8000.0 µs
//! elfo       tell          600000/s received 1000000 of 1000000
//! rio-rs     tell      cannot: there is no tell
//! ```

mod asks;
mod case;
mod child;
mod payload;
mod tells;

pub use case::Case;
pub use child::Ready;
pub use payload::{PAYLOAD_BYTES, Payload};

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;
use std::process::{Command, ExitCode};

/// Why something could not be done.
pub type Reason = String;

/// A framework that does the work.
pub trait Peer: Sized + 'static {
    /// Its name in tables.
    const NAME: &'static str;

    /// How many tasks tell at a time. One, unless a tell waits for an acknowledgement.
    const TELLERS: u64 = 1;

    /// One task that asks or tells.
    type Caller: Caller;

    /// Hosts the targets, says so by `ready`, and never ends.
    fn serve(ready: Ready) -> impl Future<Output = Result<(), Reason>>;

    /// Joins the server whose address was said to be ready.
    fn connect(address: String) -> impl Future<Output = Result<Self, Reason>>;

    /// The caller with this number; it asks target `number % TARGETS`.
    fn caller(&self, number: u64) -> impl Future<Output = Result<Self::Caller, Reason>>;

    /// Puts the task of a caller into whatever surroundings the framework demands of it.
    fn surround(&self, _number: u64, task: Task) -> Task {
        task
    }
}

/// One task that asks or tells.
pub trait Caller: Send + 'static {
    /// Sends a payload and waits for it to come back.
    fn ask(&mut self) -> impl Future<Output = Result<(), Reason>> + Send;

    /// Sends a payload that the target counts.
    fn tell(&mut self) -> impl Future<Output = Result<(), Reason>> + Send;

    /// Asks the target how many payloads it has counted. Called outside of [`Peer::surround`].
    fn count(&mut self) -> impl Future<Output = Result<u64, Reason>> + Send;
}

/// So many targets are asked, as in `benches/remote`. One is told.
pub const TARGETS: u64 = 16;

/// What a caller does.
pub type Task = Pin<Box<dyn Future<Output = Result<(), Reason>> + Send>>;

/// What a runtime is given to run to its end.
pub type Work = Pin<Box<dyn Future<Output = Result<(), Reason>>>>;

/// The `main` of a contestant on the usual runtime of tokio, one worker per core.
pub fn run<P: Peer>() -> ExitCode {
    run_on::<P>(|work| match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => Err(reason(error)),
    })
}

/// The `main` of a contestant that has a runtime of its own.
pub fn run_on<P: Peer>(block_on: impl FnOnce(Work) -> Result<(), Reason>) -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] => run_all(),
        [child::SERVE] => {
            child::end_with_parent();
            block_on(Box::pin(P::serve(Ready)))
        }
        words => match Case::parse(words) {
            Some(case) => {
                case.limit(P::NAME);
                block_on(Box::pin(case.measure::<P>()))
            }
            None => Err(format!("usage: [ask IN_FLIGHT | tell | {}]", child::SERVE)),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{}: {reason}", P::NAME);
            ExitCode::FAILURE
        }
    }
}

/// Turns an error of a framework into a reason, on one line.
pub fn reason(error: impl Display) -> Reason {
    error.to_string().replace('\n', " ")
}

/// A port that was free a moment ago, for frameworks that do not tell which one they were given.
///
/// # Errors
///
/// The machine has no port left.
pub fn free_port() -> Result<u16, Reason> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(reason)?;
    Ok(listener.local_addr().map_err(reason)?.port())
}

fn run_all() -> Result<(), Reason> {
    for case in Case::ALL {
        let status = Command::new(std::env::current_exe().map_err(reason)?)
            .args(case.to_string().split_whitespace())
            .status()
            .map_err(reason)?;
        if !status.success() {
            return Err(format!("{case}: {status}"));
        }
    }
    Ok(())
}
