//! The baseline of the remote road: what the bare transports do between two processes.
//!
//! Two processes on loopback, one connection, one task per side on a current-thread runtime, frames of 100 bytes in
//! whole-buffer writes, a fixed number in flight. Every frame is taken from the buffer and answered by itself, as any
//! protocol must, but there are no actors and no serialisation: what ours is compared with.
//!
//! There are two baselines for asks. [`ask`] is what an ask means: every one in flight has a caller of its own, who is
//! woken by its answer and then asks again. [`batch`] is the upper bound: one task sends as many frames as were answered
//! by the last read, and nobody waits for any one of them. With one in flight they are the same thing, and [`batch`] is
//! the leaner.
//!
//! The second process is the calling binary, started once more. So a binary that measures must begin with
//!
//! ```no_run
//! if let Some(role) = archipelago_bench_raw::child_role() {
//!     role.run();
//! }
//! let figures = archipelago_bench_raw::ask(archipelago_bench_raw::Contestant::Quic, 64, 100_000);
//! ```
//!
//! The child ends when the measurement is over, also if it fails, and when the process that started it is gone.
#![expect(
    clippy::disallowed_methods,
    reason = "a benchmark reads clocks, starts threads and uses the real network"
)]

mod callers;
mod child;
pub use child::{ChildRole, child_role};
mod client;
mod connect;
mod error;
pub use error::RawError;
mod figures;
pub use figures::RawFigures;
mod frame;
mod server;
mod settings;
pub use settings::quic_settings;
mod wire;

use std::time::Duration;

use child::Child;
use connect::Setup;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contestant {
    /// A plain TCP stream of tokio.
    Tcp,
    /// The same with TLS 1.3, both sides proven.
    Tls,
    /// A bidirectional stream of quinn, with the settings of `archipelago-quic`.
    Quic,
    /// The lane of `archipelago-quic`, which shows what the transport itself costs.
    QuicLane,
}

impl Contestant {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Tls, Self::Quic, Self::QuicLane];

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tcp+tls",
            Self::Quic => "quic",
            Self::QuicLane => "quic-lane",
        }
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|contestant| contestant.name() == name)
    }
}

/// Measures `asks` round trips of `in_flight` callers, each of whom asks again when it has its answer. Blocks the calling
/// thread; a runtime of its own is used, so the caller may be in another one.
///
/// # Errors
///
/// The child did not start, the connection failed, or it took longer than two minutes.
pub fn ask(contestant: Contestant, in_flight: usize, asks: u64) -> Result<RawFigures, RawError> {
    measure(contestant, async move |setup: Setup| {
        let mut wire = setup.dial().await?;
        callers::ask(&mut *wire, in_flight, asks).await
    })
}

/// Measures `asks` round trips with `in_flight` of them under way, sent and counted in batches. Blocks as [`ask`] does.
///
/// # Errors
///
/// As [`ask`].
pub fn batch(contestant: Contestant, in_flight: usize, asks: u64) -> Result<RawFigures, RawError> {
    measure(contestant, async move |setup: Setup| {
        let mut wire = setup.dial().await?;
        client::ask(&mut *wire, in_flight, asks).await
    })
}

/// Measures how many frames per second arrive at a receiver that counts `frames` of them. Blocks as [`ask`] does.
///
/// # Errors
///
/// As [`ask`].
pub fn tell(contestant: Contestant, frames: u64) -> Result<f64, RawError> {
    measure(contestant, async move |setup: Setup| {
        let mut wire = setup.dial().await?;
        client::tell(&mut *wire, frames).await
    })
}

fn measure<T: Send>(
    contestant: Contestant,
    run: impl AsyncFnOnce(Setup) -> Result<T, RawError> + Send,
) -> Result<T, RawError> {
    let measured = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut child = Child::start(contestant)?;
            let setup = child.setup()?;
            block_on(async { tokio::time::timeout(LIMIT, run(setup)).await.map_err(|_| RawError::TooSlow)? })
        });
        thread.join()
    });
    measured.map_err(|_| RawError::Panicked)?
}

/// Runs `future` on a current-thread runtime, as an arbiter would.
fn block_on<T>(future: impl Future<Output = Result<T, RawError>>) -> Result<T, RawError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}

/// The longest that one measurement takes.
const LIMIT: Duration = Duration::from_secs(120);
